//! Profiles as text charts: a bar for each bin.

use std::fmt::Write as _;

use senesce_core::Bytes;

use super::{
    combine::compute_difference,
    distribution::Deviation,
    format::{AgingProfile, SizeMeaning},
};

/// Columns of the longest bar.
const BAR: f64 = 44.0;

/// A profile for a reader: its origin, and its distributions as bars of shares of all files.
pub fn draw_profile(profile: &AgingProfile) -> String {
    let mut text = format!("{}: {}\n", profile.name, profile.description);
    if let Some(source) = &profile.source {
        let _ = writeln!(text, "source: {}", source.study);
    }
    for note in &profile.notes {
        let _ = writeln!(text, "note: {note}");
    }
    if let Some(fullness) = profile.fullness {
        let _ = writeln!(text, "fullness: {:.1}%", fullness * 100.0);
    }
    let sizes: Vec<String> = profile.size.values.iter().map(|&bytes| Bytes(bytes).to_string()).collect();
    let prefix = if profile.size.meaning == SizeMeaning::UpperBound { "up to " } else { "" };
    bars(&mut text, &format!("file size ({})", profile.size.meaning.as_str()), prefix, &sizes, &profile.size.fractions);
    let depths: Vec<String> = profile.depth.values.iter().map(u64::to_string).collect();
    bars(&mut text, "directory depth (0 = in the root)", "", &depths, &profile.depth.fractions);
    let life = profile.life_seconds() as f64;
    let ages: Vec<String> = profile.age.upper_relative.iter().map(|relative| age_label(relative * life)).collect();
    let unit = if profile.age.unit == "unknown" { "age (unit unknown, hours assumed)" } else { "age" };
    bars(&mut text, unit, "up to ", &ages, &profile.age.fractions);
    if let Some(extents) = &profile.extents {
        let sum = extents.weights.iter().sum::<i64>().max(1) as f64;
        let labels: Vec<String> = extents.values.iter().map(u64::to_string).collect();
        let fractions: Vec<f64> = extents.weights.iter().map(|&weight| weight as f64 / sum).collect();
        bars(&mut text, &format!("extents per file (mean {:.2})", extents.mean), "up to ", &labels, &fractions);
    }
    text
}

/// The differences of two profiles, as a table and as pairs of bars.
pub fn draw_difference(found: &AgingProfile, wanted: &AgingProfile) -> String {
    let difference = compute_difference(found, wanted);
    let mut text = format!("{} against {}\n\n", found.name, wanted.name);
    let _ = writeln!(
        text,
        "{:<8} {:>16} {:>16} {:>12} {:>8}",
        "", "total variation", "largest bin", "chi-square", "degrees"
    );
    let mut row = |name: &str, deviation: Deviation| {
        let _ = writeln!(
            text,
            "{name:<8} {:>16.4} {:>16.4} {:>12.1} {:>8}",
            deviation.total_variation, deviation.largest, deviation.chi_square, deviation.degrees_of_freedom
        );
    };
    row("size", difference.size);
    row("depth", difference.depth);
    row("age", difference.age);
    text
}

fn bars(text: &mut String, title: &str, prefix: &str, labels: &[String], fractions: &[f64]) {
    let _ = writeln!(text, "\n{title}");
    let most = fractions.iter().copied().fold(1e-12, f64::max);
    for (label, fraction) in labels.iter().zip(fractions) {
        let _ = writeln!(
            text,
            "{:>16} {:>7.2}% {}",
            format!("{prefix}{label}"),
            fraction * 100.0,
            bar(fraction / most * BAR)
        );
    }
}

/// A bar of `columns` columns, to an eighth.
fn bar(columns: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (columns * 8.0).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

fn age_label(seconds: f64) -> String {
    let (value, unit) = match seconds {
        ..120.0 => (seconds, "s"),
        ..7200.0 => (seconds / 60.0, "min"),
        ..172_800.0 => (seconds / 3600.0, "h"),
        ..63_115_200.0 => (seconds / 86_400.0, "d"),
        _ => (seconds / 31_557_600.0, "y"),
    };
    format!("{value:.1} {unit}")
}

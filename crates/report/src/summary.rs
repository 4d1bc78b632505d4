//! The summary: one line per arm and volume.

use senesce_store::{Results, Role};

use crate::devices::{TRACED, VIRTUAL_TIME};
use crate::format::{count, figure};
use crate::model::{Line, Lines, Model, ROLES, Spread};
use crate::verdict::{verdicts, warnings};

/// Heads of the summary's columns; the third is what checkpoints are counted in. Of disks in virtual time the modelled
/// figures lead, and the wall's stand where else the model's do. The last is bytes written to the device for each of content, from the
/// first step on.
pub(crate) fn heads<'m>(model: &'m Model) -> [&'m str; 13] {
    let memory = model.is_wall_of_memory();
    let (first, last, slowdown, interval, other, other_slowdown) = match model.virtual_disk() {
        None => ("first s/GiB", "last s/GiB", "slowdown", "95% (n)", "model s/GiB", "model slowdown"),
        Some(_) if memory => {
            let (other, other_slowdown) = ("memory s/GiB", "memory slowdown");
            ("first model s/GiB", "last model s/GiB", "model slowdown", "95% (n)", other, other_slowdown)
        }
        Some(_) => {
            ("first model s/GiB", "last model s/GiB", "model slowdown", "95% (n)", "wall s/GiB", "wall slowdown")
        }
    };
    let layout = ["layout score", "extents/file", "adjacent files"];
    let [score, extents, adjacent] = layout;
    let writes = "writes/byte";
    [
        "arm",
        "volume",
        &model.unit,
        first,
        last,
        slowdown,
        interval,
        other,
        other_slowdown,
        score,
        extents,
        adjacent,
        writes,
    ]
}

/// Where the modelled figures of a device come from.
fn how(device: &str) -> &'static str {
    match (device.ends_with(VIRTUAL_TIME), device.ends_with(TRACED)) {
        (true, _) => "modelled from what the grep test asked the disk for",
        (_, true) => "modelled from the traced requests of a grep test",
        _ => "predicted from where files lie",
    }
}

/// What the columns of cost are, as sentences.
pub(crate) fn note(model: &Model) -> String {
    let Some((device, ..)) = model.main_device() else { return String::new() };
    let how = how(device);
    match (model.virtual_disk(), model.is_wall_of_memory()) {
        (None, _) => format!("{device}: {how}; not measured"),
        (_, true) => format!("{device}: {how}; wall times are of memory and say nothing about the disk"),
        _ => format!("{device}: {how}; wall times are those of the disk, which took its time"),
    }
}

/// The summary's rows, as text, in the order of [`heads`].
pub(crate) fn rows(model: &Model) -> Vec<[String; 13]> {
    let (wall, none) = (model.grep_cost(), Lines::new());
    let measured = (&wall, &model.slowdown);
    let modelled = model.main_device().map_or((&none, &none), |(_, costs, slowdown)| (costs, slowdown));
    let (main, other) = if model.virtual_disk().is_some() { (modelled, measured) } else { (measured, modelled) };
    let times = |ratio: &Spread| format!("{}×", figure(ratio.median));
    let median = |spread: &Spread| figure(spread.median);
    let mut rows = Vec::new();
    for (arm, _) in &model.arms {
        for role in ROLES {
            let cells = model.results.cells.iter().filter(|cell| cell.key.arm == *arm && cell.key.role == role);
            let Some(pulls) = cells.map(|cell| cell.key.pulls).max() else { continue };
            let line = |lines: &Lines| lines.get(&(arm.clone(), role)).cloned().unwrap_or_default();
            let first = line(main.0).first_key_value().map(|(_, spread)| figure(spread.median));
            let ratio = |lines: &Lines| match role {
                Role::Unaged => String::new(),
                _ => last(&line(lines), pulls, times),
            };
            let interval = line(main.1).last_key_value().map(|(_, ratio)| interval(ratio)).unwrap_or_default();
            rows.push([
                arm.clone(),
                role.name().to_owned(),
                count(pulls),
                first.unwrap_or_else(|| "–".to_owned()),
                last(&line(main.0), pulls, median),
                ratio(main.1),
                interval,
                last(&line(other.0), pulls, median),
                ratio(other.1),
                last(&line(&model.layout_score), pulls, |score| format!("{:.3}", score.median)),
                last(&line(&model.extents_per_file), pulls, |extents| format!("{:.3}", extents.median)),
                last(&line(&model.adjacent_files_share), pulls, |share| format!("{:.1}%", share.median * 100.0)),
                match model.write_amplification_of_all.get(&(arm.clone(), role)) {
                    Some(times) => figure(*times),
                    None if role == Role::Unaged => String::new(),
                    None => "–".to_owned(),
                },
            ]);
        }
    }
    rows
}

/// How sure a ratio is: `1.25–6.00 (3)`; of a single repetition nothing but that.
fn interval(ratio: &Spread) -> String {
    match ratio.count {
        0 | 1 => "– (1)".to_owned(),
        n => format!("{}–{} ({n})", figure(ratio.low), figure(ratio.high)),
    }
}

/// The last figure of a line; says where it is from if that is not the last checkpoint.
fn last(line: &Line, pulls: u64, text: impl Fn(&Spread) -> String) -> String {
    match line.last_key_value() {
        None => "–".to_owned(),
        Some((at, spread)) if *at == pulls => text(spread),
        Some((at, spread)) => format!("{} (at {})", text(spread), count(*at)),
    }
}

/// The summary as plain text: verdicts, a table with one line per arm and volume, warnings.
///
/// In: the results of a run. Out: lines that end with a newline; slowdown is aged over unaged grep cost (medians) at the
/// same checkpoint. Cost: linear in the rows.
pub fn summary_table(results: &Results) -> String {
    let model = Model::compute(results);
    let (heads, rows) = (heads(&model), rows(&model));
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([heads[at].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |cells: &[&str]| {
        let aligned = cells.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
            0 | 1 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        aligned.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = String::new();
    for verdict in verdicts(&model) {
        text.push_str(&verdict);
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&line(&heads));
    let rules: Vec<_> = widths.iter().map(|width| "-".repeat(*width)).collect();
    text.push_str(&line(&rules.iter().map(String::as_str).collect::<Vec<_>>()));
    for row in &rows {
        text.push_str(&line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    let note = note(&model);
    if !note.is_empty() {
        text.push_str(&format!("\n{note}\n"));
    }
    let warnings = warnings(&model);
    if !warnings.is_empty() {
        text.push('\n');
    }
    for warning in warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    text
}

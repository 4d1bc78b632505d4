//! The summary: one line per arm and volume.

use senesce_store::{Results, Role};

use crate::format::{count, figure};
use crate::model::{Line, Lines, Model, ROLES, TRACED, VIRTUAL_TIME};
use crate::verdict::{verdicts, warnings};

/// Heads of the summary's columns; the third is what checkpoints are counted in.
const HEADS: [&str; 11] = [
    "arm",
    "volume",
    "",
    "first s/GiB",
    "last s/GiB",
    "slowdown",
    "model s/GiB",
    "model slowdown",
    "layout score",
    "extents/file",
    "adjacent files",
];

/// Heads of the summary's columns.
pub(crate) fn heads<'m>(model: &'m Model) -> [&'m str; 11] {
    let mut heads = HEADS;
    heads[2] = &model.unit;
    heads
}

/// Where the modelled figures of a device come from.
pub(crate) fn how(device: &str) -> &'static str {
    match (device.ends_with(VIRTUAL_TIME), device.ends_with(TRACED)) {
        (true, _) => "modelled from what the grep test asked the disk for",
        (_, true) => "modelled from the traced requests of a grep test",
        _ => "predicted from where files lie",
    }
}

/// The summary's rows, as text, in the order of [`heads`].
pub(crate) fn rows(model: &Model) -> Vec<[String; 11]> {
    let cost = model.grep_cost();
    let modelled = model.main_device();
    let times = |median: f64| format!("{}×", figure(median));
    let mut rows = Vec::new();
    for (arm, _) in &model.arms {
        for role in ROLES {
            let cells = model.results.cells.iter().filter(|cell| cell.key.arm == *arm && cell.key.role == role);
            let Some(pulls) = cells.map(|cell| cell.key.pulls).max() else { continue };
            let line = |lines: &Lines| lines.get(&(arm.clone(), role)).cloned().unwrap_or_default();
            let first = line(&cost).first_key_value().map(|(_, spread)| figure(spread.median));
            let slowdown = match role {
                Role::Unaged => String::new(),
                _ => last(&line(&model.slowdown), pulls, times),
            };
            let share = |median: f64| format!("{:.1}%", median * 100.0);
            rows.push([
                arm.clone(),
                role.name().to_owned(),
                count(pulls),
                first.unwrap_or_else(|| "–".to_owned()),
                last(&line(&cost), pulls, figure),
                slowdown,
                modelled.map_or_else(|| "–".to_owned(), |(_, costs, _)| last(&line(costs), pulls, figure)),
                match (role, modelled) {
                    (Role::Unaged, _) => String::new(),
                    (_, None) => "–".to_owned(),
                    (_, Some((_, _, slowdown))) => last(&line(slowdown), pulls, times),
                },
                last(&line(&model.layout_score), pulls, |median| format!("{median:.3}")),
                last(&line(&model.extents_per_file), pulls, |median| format!("{median:.3}")),
                last(&line(&model.adjacent_files_share), pulls, share),
            ]);
        }
    }
    rows
}

/// The last figure of a line; says where it is from if that is not the last checkpoint.
fn last(line: &Line, pulls: u64, text: impl Fn(f64) -> String) -> String {
    match line.last_key_value() {
        None => "–".to_owned(),
        Some((at, spread)) if *at == pulls => text(spread.median),
        Some((at, spread)) => format!("{} (at {})", text(spread.median), count(*at)),
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
    if let Some((device, _, _)) = model.main_device() {
        text.push_str(&format!("\n{device}: {}; not measured\n", how(device)));
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

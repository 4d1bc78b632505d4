//! The summary: one line per arm and volume.

use senesce_store::{Results, Role};

use crate::columns::{align, column_widths};
use crate::cures::cures_text;
use crate::devices::{TRACED, VIRTUAL_TIME, short};
use crate::format::{count, figure, percent, score};
use crate::headline::headline;
use crate::model::{Line, Lines, Model, ROLES, Spread, words};
use crate::noise::{Alike, Finding, Noise, band_text};
use crate::own_cost::last_over_first;
use crate::published::published_text;
use crate::warnings::warnings;

/// A cell of the summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub text: String,
    /// The CSS class: `strong` for a difference beyond chance and noise, `muted` for no difference,
    /// `unbroken` for a text on one line; else empty.
    pub class: &'static str,
}

impl Cell {
    fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), class: "" }
    }
}

/// The class of an interval with its repetitions: a line break between them makes a row high.
const UNBROKEN: &str = "unbroken";
/// The class of a measured ratio that is not shown.
const TOO_NOISY: &str = "too-noisy";
/// The head of a volume's last cost over its own first one.
const LAST_OVER_FIRST: &str = "last / first";

/// Heads of the summary's columns. The modelled slowdown comes first, then the measured one with
/// its interval and the noise band: narrow screens show the first columns. Wall times of memory
/// have no columns. Writes/byte are bytes written to the device for each byte of content, from the
/// first step on. If arms have different modelled devices, a column names them. The last column is
/// the checkpoint, in its unit.
pub(crate) fn heads<'m>(model: &'m Model) -> Vec<&'m str> {
    // For disks in virtual time, the model has repetitions, and a figure for every checkpoint with
    // a grep test.
    const MODEL: [&str; 4] = ["model slowdown", "first model s/GiB", "last model s/GiB", LAST_OVER_FIRST];
    const WALL: [&str; 3] = ["wall slowdown", "95% (n)", "noise band"];
    let mut heads = vec!["arm", "volume"];
    match (model.main_device().is_some(), model.virtual_disk().is_some()) {
        (false, _) => heads.extend(WALL.iter().chain(&["first wall s/GiB", "last wall s/GiB", LAST_OVER_FIRST])),
        (true, false) => heads.extend(MODEL.iter().chain(&WALL).chain(&["wall s/GiB"])),
        (true, true) => {
            heads.extend(["model slowdown", "95% (n)"].iter().chain(&MODEL[1..]));
            if !model.is_wall_of_memory() {
                heads.extend(["wall slowdown", "noise band", "wall s/GiB"]);
            }
        }
    }
    heads.extend(["layout score", "extents/file", "adjacent files", "writes/byte"]);
    if model.first_devices().len() > 1 {
        heads.push("modelled device");
    }
    heads.push(model.unit.as_str());
    heads
}

/// The source of the modelled figures of a device.
fn how(device: &str) -> &'static str {
    match (device.ends_with(VIRTUAL_TIME), device.ends_with(TRACED)) {
        (true, _) => "modelled from the requests of the grep test",
        (_, true) => "modelled from the traced requests of a grep test",
        _ => "predicted from the places of files",
    }
}

/// The meaning of the columns of cost, as sentences.
pub(crate) fn note(model: &Model) -> String {
    let devices: Vec<String> =
        model.first_devices().iter().map(|device| format!("{device}: {}", how(device))).collect();
    if devices.is_empty() {
        return String::new();
    }
    let wall = match (model.virtual_disk(), model.is_wall_of_memory()) {
        (None, _) => "not measured",
        (_, true) => "wall times are of memory and say nothing about the disk",
        _ => "wall times include the modelled delay of each request",
    };
    format!("{}; {wall}", devices.join("; "))
}

/// The meaning of bold and grey slowdowns, as sentences: the rules of [`crate::noise`].
pub(crate) fn legend(model: &Model) -> String {
    let limit = Alike::fresh(model.settles);
    let (low, high, percent) = (limit.low, limit.high, limit.percent());
    let why = match model.settles {
        true => "Smaller differences can be chance.".to_owned(),
        false => format!(
            "Fresh copies of two runs of a plan that does not settle differ by up to {percent}, and repetitions of one \
             volume do not show that."
        ),
    };
    let of_model = format!("A model slowdown is bold above {high:.2}× and below {low:.2}×. {why}");
    let of_wall =
        "Bold measured slowdowns are beyond chance and noise; grey ones are not, or have too few measurements.";
    match (model.main_device().is_some(), model.is_wall_of_memory()) {
        (true, true) => of_model,
        (true, false) => format!("{of_model} {of_wall}"),
        (false, _) => of_wall.to_owned(),
    }
}

/// The summary's rows in the order of [`heads`], by arms in the order of the page.
pub(crate) fn rows(model: &Model) -> Vec<Vec<Cell>> {
    let several_devices = model.first_devices().len() > 1;
    let mut rows = Vec::new();
    for (arm, _) in &model.arms {
        for role in ROLES {
            let cells = model.results.cells.iter().filter(|cell| cell.key.arm == *arm && cell.key.role == role);
            let Some(pulls) = cells.map(|cell| cell.key.pulls).max() else { continue };
            let line = |lines: &Lines| lines.get(&(arm.clone(), role)).cloned().unwrap_or_default();
            let layout = |lines: &Lines, text: fn(&Spread) -> String| Cell::plain(last(&line(lines), pulls, text));
            let writes = match model.write_amplification_of_all.get(&(arm.clone(), role)) {
                Some(times) => figure(*times),
                None if role == Role::Unaged => String::new(),
                None => "–".to_owned(),
            };
            let mut row = vec![Cell::plain(arm), Cell::plain(role.name())];
            row.extend(costs(model, arm, role, pulls));
            row.extend([
                layout(&model.layout_score, |spread| score(spread.median)),
                layout(&model.extents_per_file, |extents| figure(extents.median)),
                layout(&model.adjacent_files_share, |share| percent(share.median)),
                Cell::plain(writes),
            ]);
            if several_devices {
                let device = model.device_of(arm).map_or("–", short).trim_end_matches(VIRTUAL_TIME);
                row.push(Cell { text: device.to_owned(), class: UNBROKEN });
            }
            row.push(Cell::plain(count(pulls)));
            rows.push(row);
        }
    }
    rows
}

/// The columns of cost and slowdown.
fn costs(model: &Model, arm: &str, role: Role, pulls: u64) -> Vec<Cell> {
    let (wall, none) = (model.grep_cost(), Lines::new());
    let of_device = |device: &str| Some((model.modelled.get(device)?, model.modelled_slowdown.get(device)?));
    let modelled = model.device_of(arm).and_then(of_device).unwrap_or((&none, &none));
    let line = |lines: &Lines| lines.get(&(arm.to_owned(), role)).cloned().unwrap_or_default();
    let noise = model.noise.get(arm).copied();
    let median = |spread: &Spread| figure(spread.median);
    let first = |lines: &Lines| {
        let first = line(lines).first_key_value().map(|(_, spread)| figure(spread.median));
        Cell::plain(first.unwrap_or_else(|| "–".to_owned()))
    };
    let cost = |lines: &Lines| Cell::plain(last(&line(lines), pulls, median));
    let planned = (model.plans.ends(arm).map_or(0, |(first, _)| first), pulls);
    let of_own_start = |lines: &Lines| Cell::plain(last_over_first(lines, &(arm.to_owned(), role), planned));
    let slowdown = |lines: &Lines, class: &dyn Fn(&Spread, Option<Noise>) -> &'static str| match role {
        Role::Unaged => Cell::default(),
        _ => {
            let line = line(lines);
            let class = line.last_key_value().map_or("", |(_, ratio)| class(ratio, noise));
            if class == TOO_NOISY {
                return Cell { text: "–".to_owned(), class: "muted" };
            }
            Cell { text: last(&line, pulls, |ratio| format!("{}×", figure(ratio.median))), class }
        }
    };
    let of_model = |ratio: &Spread, _| match ratio.includes_one() {
        true => "muted",
        false if model.is_difference(ratio) => "strong",
        false => "",
    };
    let of_wall = |ratio: &Spread, noise: Option<Noise>| match Finding::of(ratio, noise) {
        // A band that hides most effects has no ratios: they would be read as figures.
        Finding::Noise if noise.is_some_and(Noise::is_too_wide) => TOO_NOISY,
        Finding::Difference => "strong",
        Finding::Noise | Finding::Unknown => "muted",
    };
    let sure = |lines: &Lines| {
        let ratio = line(lines).last_key_value().map(|(_, ratio)| interval(ratio, model.planned_repetitions()));
        Cell { text: ratio.unwrap_or_default(), class: UNBROKEN }
    };
    let band = match role {
        Role::Unaged => Cell::default(),
        _ => Cell::plain(band_text(noise)),
    };
    let modelled_slowdown = slowdown(modelled.1, &of_model);
    let wall_slowdown = slowdown(&model.slowdown, &of_wall);
    let of_wall = [wall_slowdown.clone(), sure(&model.slowdown), band.clone()];
    if model.main_device().is_none() {
        return of_wall.into_iter().chain([first(&wall), cost(&wall), of_own_start(&wall)]).collect();
    }
    if model.virtual_disk().is_none() {
        let of_model = [modelled_slowdown, first(modelled.0), cost(modelled.0), of_own_start(modelled.0)];
        return of_model.into_iter().chain(of_wall).chain([cost(&wall)]).collect();
    }
    let mut cells = vec![modelled_slowdown, sure(modelled.1), first(modelled.0), cost(modelled.0)];
    cells.push(of_own_start(modelled.0));
    if !model.is_wall_of_memory() {
        cells.extend([wall_slowdown, band, cost(&wall)]);
    }
    cells
}

/// The interval of a ratio and n: `1.25–6.00 (3)`. A single repetition has no interval.
/// `(3 + 2 repeated)`: the plan requests three, and two were added because of disturbances.
fn interval(ratio: &Spread, planned: Option<usize>) -> String {
    let n = match planned {
        Some(planned) if ratio.count > planned => format!("{planned} + {} repeated", ratio.count - planned),
        _ => ratio.count.to_string(),
    };
    match ratio.count {
        0 | 1 => "– (1)".to_owned(),
        _ => format!("{}–{} ({n})", figure(ratio.low), figure(ratio.high)),
    }
}

/// The last figure of a line, with its checkpoint if that is not the last one.
fn last(line: &Line, pulls: u64, text: impl Fn(&Spread) -> String) -> String {
    match line.last_key_value() {
        None => "–".to_owned(),
        Some((at, spread)) if *at == pulls => text(spread),
        Some((at, spread)) => format!("{} (at {})", text(spread), count(*at)),
    }
}

/// The summary as plain text: the headline, a table with one line per arm and volume, warnings.
///
/// In: the results of a run. Out: lines that end with a newline; slowdown is aged over unaged grep
/// cost (medians) at the same checkpoint. Cost: linear in the rows.
pub fn summary_table(results: &Results) -> String {
    let model = Model::compute(results);
    let (heads, rows) = (heads(&model), rows(&model));
    let mut lines = vec![heads.to_vec()];
    lines.extend(rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect()));
    let widths = column_widths(&lines);
    let rule = widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>();
    let mut text = String::new();
    for sentence in headline(&model) {
        text.push_str(&sentence);
        text.push('\n');
    }
    text.push('\n');
    let volumes: Vec<_> = ROLES.iter().map(|role| format!("{} = {}", role.name(), words(*role))).collect();
    text.push_str(&format!("Volumes: {}.\n", volumes.join(", ")));
    text.push_str(&format!("{LAST_OVER_FIRST}: the last cost of a volume over its own first one.\n\n"));
    for (at, line) in lines.iter().enumerate() {
        text.push_str(&align(line, &widths, &[0, 1]));
        if at == 0 {
            text.push_str(&align(&rule, &widths, &[0, 1]));
        }
    }
    let note = note(&model);
    if !note.is_empty() {
        text.push_str(&format!("\n{note}\n"));
    }
    text.push_str(&published_text(&model));
    text.push_str(&cures_text(&model));
    let warnings = warnings(&model);
    if !warnings.is_empty() {
        text.push('\n');
    }
    for warning in warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_repetitions_are_named() {
        let ratio = |count| Spread { count, median: 1.5, low: 1.0, high: 2.0, ..Spread::default() };
        assert_eq!(interval(&ratio(5), Some(3)), "1.00–2.00 (3 + 2 repeated)");
        assert_eq!(interval(&ratio(3), Some(3)), "1.00–2.00 (3)");
        assert_eq!(interval(&ratio(1), Some(3)), "– (1)");
    }
}

//! Cures: the cost of a cold read before and after each, beside a fresh copy.

use std::collections::BTreeMap;

use senesce_core::statistics::compute_median;
use senesce_store::{CellKey, CureRow, Results, Role};

use crate::{
    chart::{Axis, DotPanel},
    columns::text_table,
    csv::lines_csv,
    devices::short,
    format::{SecondsColumn, bytes, count},
    model::{Lines, Model, Spread, lines, words},
    panels::{Figure, Legend, Panel, Variant},
    panels_lines::{LineFigure, line_panels},
};

/// The volumes of the figure, in its order.
const ROLES: [Role; 5] = [Role::Full, Role::Empty, Role::CuredFull, Role::CuredEmpty, Role::Unaged];

/// Heads of the table of reads. The costs come early: narrow screens show the first columns.
pub(crate) const READ_HEADS: [&str; 11] =
    ["arm", "volume", "before", "cured", "fresh copy", "cured by", "at", "written", "took", "moved", "skipped"];
/// The columns of [`READ_HEADS`] that are texts.
pub(crate) const READ_TEXTS: [usize; 4] = [0, 1, 5, 10];
/// Heads of the table of models, in the same order.
pub(crate) const MODEL_HEADS: [&str; 10] =
    ["arm", "volume", "device", "before", "cured", "fresh copy", "predicted", "best order", "cured by", "at"];
/// The columns of [`MODEL_HEADS`] that are texts.
pub(crate) const MODEL_TEXTS: [usize; 4] = [0, 1, 2, 8];

/// The seconds of the grep tests of all cells, by cell: in virtual time if there are any, else wall
/// time.
pub(crate) fn read_seconds(results: &Results) -> BTreeMap<&CellKey, Vec<f64>> {
    let mut wall: BTreeMap<&CellKey, Vec<f64>> = BTreeMap::new();
    for row in results.counted_grep() {
        wall.entry(&row.key).or_default().push(row.wall_seconds);
    }
    let mut modelled: BTreeMap<&CellKey, Vec<f64>> = BTreeMap::new();
    for row in results.modelled.iter().filter(|row| row.method == "virtual-time") {
        modelled.entry(&row.key).or_default().push(row.seconds);
    }
    if modelled.is_empty() { wall } else { modelled }
}

/// The cures of a run, by arms in the order of the page.
fn cures<'m>(model: &'m Model) -> Vec<&'m CureRow> {
    let place = |row: &&CureRow| model.arms.iter().position(|(arm, _)| *arm == row.key.arm);
    let mut rows: Vec<&CureRow> = model.results.cures.iter().collect();
    rows.sort_by_key(place);
    rows
}

/// A line for each cure: what it gained in a cold read, and what it cost.
pub(crate) fn read_rows(model: &Model) -> Vec<[String; 11]> {
    let reads = read_seconds(model.results);
    let mut cures = cures(model);
    // The figures of the read are the same on every modelled device.
    cures.dedup_by(|later, earlier| later.key == earlier.key);
    let fresh = |row: &CureRow| {
        let fresh = CellKey { role: Role::Unaged, ..row.key.clone() };
        reads.get(&fresh).and_then(|figures| compute_median(figures)).unwrap_or(f64::NAN)
    };
    let of_reads = |row: &CureRow| [row.read_before_seconds, row.read_after_seconds, fresh(row)];
    let took = |row: &CureRow| if row.disk_seconds.is_finite() { row.disk_seconds } else { row.wall_seconds };
    // The three costs of reading are compared with each other.
    let costs = SecondsColumn::of(cures.iter().flat_map(|row| of_reads(row)));
    let durations = SecondsColumn::of(cures.iter().map(|row| took(row)));
    let number = |files: Option<u64>| files.map_or("–".to_owned(), count);
    let row = |row: &&CureRow| {
        let [before, after, fresh] = of_reads(row).map(|seconds| costs.text(seconds));
        let skipped = match row.skipped.as_str() {
            "" => number(row.skipped_files),
            reasons => reasons.to_owned(),
        };
        [
            row.key.arm.clone(),
            words(row.key.role.uncured()).to_owned(),
            before,
            after,
            fresh,
            tool(row),
            format!("{} {}", count(row.key.pulls), model.unit),
            row.written_bytes.map_or("–".to_owned(), |written| bytes(written as f64)),
            durations.text(took(row)),
            number(row.moved_files),
            skipped,
        ]
    };
    cures.iter().map(row).collect()
}

/// A line for each cure and modelled device: the prediction beside the model of the new layout, the
/// best order of the volume before the cure, and a fresh copy.
pub(crate) fn model_rows(model: &Model) -> Vec<[String; 10]> {
    let mut of_maps = BTreeMap::new();
    for row in model.results.modelled.iter().filter(|row| row.method == "extents") {
        of_maps.insert((row.key.clone(), row.device.as_str()), row);
    }
    let costs = |row: &CureRow| {
        let of = |role| {
            let key = CellKey { role, ..row.key.clone() };
            of_maps.get(&(key, row.device.as_str()))
        };
        [
            row.modelled_before_seconds,
            row.predicted_seconds,
            row.modelled_after_seconds,
            of(row.key.role.uncured()).map_or(f64::NAN, |row| row.best_order_seconds),
            of(Role::Unaged).map_or(f64::NAN, |row| row.seconds),
        ]
    };
    let cures = cures(model);
    let unit = SecondsColumn::of(cures.iter().flat_map(|row| costs(row)));
    let row = |row: &&CureRow| {
        let [before, predicted, after, best, fresh] = costs(row).map(|seconds| unit.text(seconds));
        [
            row.key.arm.clone(),
            words(row.key.role.uncured()).to_owned(),
            short(&row.device).to_owned(),
            before,
            after,
            fresh,
            predicted,
            best,
            tool(row),
            format!("{} {}", count(row.key.pulls), model.unit),
        ]
    };
    cures.iter().map(row).collect()
}

fn tool(row: &CureRow) -> String {
    match row.strategies.as_str() {
        "" => row.tool.clone(),
        strategies => format!("{} ({})", row.tool, strategies.replace(',', ", ")),
    }
}

/// How the cold reads of the table were timed, as a sentence; empty without cures.
pub(crate) fn note(model: &Model) -> String {
    if model.results.cures.is_empty() {
        return String::new();
    }
    let took = match model.virtual_disk() {
        Some(_) => "the time that this disk was at work, with the write-back",
        None => "wall time, with the write-back and an unmount",
    };
    format!(
        "{} Written: bytes of write requests to the block device, counted in the same way for all tools. Took: {took}.",
        how_read(model)
    )
}

/// How the cold reads were timed, as a sentence.
fn how_read(model: &Model) -> String {
    let how = match model.virtual_disk() {
        Some((device, ..)) => format!("the time of the grep test on a disk in virtual time ({device})"),
        None => "the wall time of the grep test".to_owned(),
    };
    format!("The columns before and cured have {how}: the median of the repetitions.")
}

/// The cures as lines of text for a terminal; nothing without cures.
pub(crate) fn cures_text(model: &Model) -> String {
    let rows = read_rows(model);
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nCures: cold read before and after\n\n");
    text.push_str(&text_table(READ_HEADS, &rows, &READ_TEXTS));
    text = text + "\n" + &note(model) + "\n";
    let modelled = model_rows(model);
    text.push_str("\nCures: modelled cold read, from the map of the tree\n\n");
    text + &text_table(MODEL_HEADS, &modelled, &MODEL_TEXTS)
}

/// The figure: each arm's cold read at its last checkpoint with the cured one, and over all
/// checkpoints. No panels without cures.
pub(crate) fn cures_figure(model: &Model) -> Figure {
    let reads = read_seconds(model.results);
    let is_valid = |key: &CellKey| model.results.cells.iter().any(|cell| cell.valid && cell.key == *key);
    let figures = reads.iter().filter(|(key, _)| is_valid(key));
    let all = lines(figures.flat_map(|(key, seconds)| seconds.iter().map(|seconds| (*key, *seconds))));
    let has_cures = !model.results.cures.is_empty();
    let label = "cold read, s";
    let course = LineFigure { roles: &ROLES, ..LineFigure::of(&all, label, " s") };
    let (dots, course) = match has_cures {
        true => (dot_panels(model, &all), line_panels(model, label, &course, Variant::Shared)),
        false => (Vec::new(), Vec::new()),
    };
    Figure {
        name: "cures".to_owned(),
        title: "Cost of reading before and after a cure".to_owned(),
        caption: format!(
            "A cold read of all files, in seconds: at the last checkpoint with a cure of each arm, or at its last checkpoint \
             if it has none. An arrow goes from the aged volume to the cured one. {}",
            how_read(model)
        ),
        legend: Legend::Roles(ROLES.to_vec()),
        csv: lines_csv(&[("cold read, s", &all)]),
        variants: vec![
            (Variant::Choice { name: "last", label: "last cure" }, dots),
            (Variant::Choice { name: "course", label: "all checkpoints" }, course),
        ],
    }
}

/// An arm, and the figures of its volumes.
type DotRow = (String, Vec<(Role, f64)>);

/// A panel for each file system, with a line for each of its arms.
fn dot_panels(model: &Model, all: &Lines) -> Vec<Panel> {
    let mut panels: Vec<(&str, Vec<DotRow>)> = Vec::new();
    for (arm, file_system) in &model.arms {
        let cells = || model.results.cells.iter().filter(|cell| cell.key.arm == *arm);
        let cured = cells().filter(|cell| cell.key.role.is_cured()).map(|cell| cell.key.pulls).max();
        let Some(at) = cured.or_else(|| cells().map(|cell| cell.key.pulls).max()) else { continue };
        let value = |role: Role| {
            let spread: &Spread = all.get(&(arm.clone(), role))?.get(&at)?;
            Some((role, spread.median))
        };
        let drawn = [Role::Full, Role::Empty, Role::Unaged, Role::CuredFull, Role::CuredEmpty];
        let values: Vec<_> = drawn.into_iter().filter_map(value).collect();
        if values.is_empty() {
            continue;
        }
        let row = (arm.clone(), values);
        match panels.iter_mut().find(|(known, _)| known == file_system) {
            Some((_, rows)) => rows.push(row),
            None => panels.push((file_system, vec![row])),
        }
    }
    let panel = |(file_system, rows): (&str, Vec<DotRow>)| {
        let most = rows.iter().flat_map(|(_, values)| values).map(|(_, value)| *value).fold(0.0, f64::max);
        let x = Axis::from_zero(most);
        let title = file_system.to_owned();
        let panel = DotPanel { title, x_label: "cold read, s", unit: " s", x, rows };
        Panel::new(format!("{file_system}: cold read before and after a cure"), panel)
    };
    panels.into_iter().map(panel).collect()
}

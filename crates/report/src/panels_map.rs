//! The figure of maps: the volumes of each arm at the last checkpoint, with equal cells.

use senesce_store::{MapRow, Role};

use crate::chart::MapPanel;
use crate::csv::{Csv, exact};
use crate::film::{end_bytes, is_metadata};
use crate::model::{Model, ROLES, words};
use crate::panels::{Figure, Legend, Panel, Variant};

/// Cells without files up to this number are drawn between cells with files; wider gaps are left
/// out.
const GAP: u64 = 8;

/// The volumes at the last checkpoint, as pictures.
pub(crate) fn map_figure(model: &Model) -> Figure {
    let panels = model.arms.iter().flat_map(|(arm, _)| arm_panels(model, arm)).collect();
    Figure {
        name: "maps".to_owned(),
        title: "Where files are".to_owned(),
        caption: "Each volume along a Hilbert curve: what is near on the volume is near in the picture. All cells of a row \
                  have the same number of bytes. Colour is the place in the tree of the file that holds most of a cell, from \
                  the first file (violet) to the last (yellow). A volume filled in the order of its tree is smooth; an aged one \
                  is speckled. A cell with few bytes of files has nearly the colour of free space. Wide gaps without \
                  files are left out. Point at a cell to see its file; the wheel zooms, dragging moves."
            .to_owned(),
        legend: Legend::Places,
        csv: map_csv(model),
        variants: vec![(Variant::Shared, panels)],
    }
}

/// The cells of the drawn maps, in the size in which they were recorded.
fn map_csv(model: &Model) -> String {
    let mut csv = Csv::new(&[
        "arm",
        "volume",
        "shown_as",
        "checkpoint",
        "first_byte",
        "bytes",
        "holds",
        "share_of_files",
        "place_in_tree",
        "path",
    ]);
    let drawn = |row: &&MapRow| row.key.pulls == last_checkpoint(model, &row.key.arm) && ROLES.contains(&row.key.role);
    for row in model.results.maps.iter().filter(drawn) {
        let texts = [&row.key.arm, row.key.role.name(), words(row.key.role)].map(str::to_owned);
        let numbers = [row.key.pulls, row.cell * row.cell_bytes, row.cell_bytes].map(|number| number.to_string());
        let share = row.used_bytes as f64 / row.cell_bytes.max(1) as f64;
        let holds = match is_metadata(row) {
            true => ["metadata".to_owned(), "0".to_owned(), String::new(), String::new()],
            false => ["files".to_owned(), exact(share), exact(row.place), row.path.clone().unwrap_or_default()],
        };
        csv.row(&[&texts[..], &numbers[..], &holds[..]].concat());
    }
    csv.finish()
}

/// The last checkpoint of the plan of an arm.
fn last_checkpoint(model: &Model, arm: &str) -> u64 {
    model.plans.ends(arm).map_or(0, |(_, last)| last)
}

/// The maps of an arm's volumes, all with cells of the same size, on squares of the same side.
fn arm_panels(model: &Model, arm: &str) -> Vec<Panel> {
    let last = last_checkpoint(model, arm);
    let rows = |role: Role| -> Vec<&MapRow> {
        let is_it = |row: &&MapRow| row.key.arm == *arm && row.key.role == role && row.key.pulls == last;
        model.results.maps.iter().filter(is_it).collect()
    };
    let volumes: Vec<_> =
        ROLES.into_iter().map(|role| (role, rows(role))).filter(|(_, rows)| !rows.is_empty()).collect();
    let cell_bytes = volumes.iter().map(|(_, rows)| rows[0].cell_bytes).max().unwrap_or(1).max(1);
    let drawn: Vec<_> = volumes
        .iter()
        .map(|(role, rows)| {
            let owned: Vec<MapRow> = rows.iter().map(|row| (*row).clone()).collect();
            let end = end_bytes(model, &rows[0].key, &owned).div_ceil(cell_bytes);
            (*role, crop(&coarsen(rows, cell_bytes), end))
        })
        .collect();
    let cells = drawn.iter().map(|(_, (_, cells))| *cells).max().unwrap_or(0);
    // The curve needs an even side.
    let side = (((cells as f64).sqrt() / 2.0).ceil() as u32 * 2).max(4);
    let panel = |(role, (places, end)): (Role, (Vec<Cell>, u64))| {
        let title = format!("{arm}, {}", words(role));
        let panel = MapPanel { title: title.clone(), side, places, end };
        Panel::new(format!("Map, {title}"), panel)
    };
    drawn.into_iter().map(panel).collect()
}

/// A cell, and the place in the tree of its file; none of metadata.
type Cell = (u64, Option<f64>);

/// The cells at another size, which is not smaller: each has the file of the fullest cell in it.
fn coarsen(rows: &[&MapRow], cell_bytes: u64) -> Vec<Cell> {
    let mut cells: std::collections::BTreeMap<u64, (u64, Option<f64>)> = std::collections::BTreeMap::new();
    for row in rows {
        let middle = row.cell * row.cell_bytes + row.cell_bytes / 2;
        let cell = cells.entry(middle / cell_bytes).or_default();
        if !is_metadata(row) && (cell.1.is_none() || row.used_bytes > cell.0) {
            *cell = (row.used_bytes, Some(row.place));
        }
    }
    cells.into_iter().map(|(cell, (_, place))| (cell, place)).collect()
}

/// The cells without wide gaps, and their number. A volume ends at cell `end`.
fn crop(cells: &[Cell], end: u64) -> (Vec<Cell>, u64) {
    let mut cropped = Vec::with_capacity(cells.len());
    // The next cell of the picture, and the cell of the volume before it.
    let (mut next, mut before) = (0, None::<u64>);
    let has_files = cells.iter().any(|(_, place)| place.is_some());
    for (cell, place) in cells.iter().filter(|(_, place)| place.is_some() || !has_files) {
        let gap = before.map_or(*cell, |before| cell - before - 1);
        next += gap.min(if before.is_none() { GAP / 2 } else { GAP });
        cropped.push((next, *place));
        next += 1;
        before = Some(*cell);
    }
    let rest = before.map_or(end, |before| end.saturating_sub(before + 1));
    (cropped, next + rest.min(GAP / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cropping_leaves_out_wide_gaps_only() {
        let cells = [(2, Some(0.1)), (5, Some(0.2)), (6, None), (100, Some(0.3))];
        let (cropped, end) = crop(&cells, 200);
        assert_eq!(cropped, [(2, Some(0.1)), (5, Some(0.2)), (14, Some(0.3))]);
        assert_eq!(end, 19);
        assert_eq!(crop(&[(1, None)], 2), (vec![(1, None)], 2), "metadata alone are shown");
    }
}

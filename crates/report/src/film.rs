//! The maps of every volume, checkpoint by checkpoint, for the page's script: as small as can be, for there are many.

use std::collections::BTreeMap;

use senesce_store::{CellKey, MapRow};
use serde_json::json;

use crate::chart::PLACE_COLOURS;
use crate::model::Model;

/// A cell of metadata alone.
const METADATA: u8 = 255;

/// The maps as JSON that can stand in a script element; empty without maps.
///
/// Of a checkpoint: bytes of a cell, where the volume ends, the entries of its tree, whether free space is known, and three
/// bytes for each cell up to the last one that has anything, in base64: 0 for none of files, 1 to 254 for their share, or
/// [`METADATA`]; then the place in the tree of the file with most of it, 0 to 65,535, the higher byte first.
pub(crate) fn film(model: &Model) -> String {
    let mut films: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut side = 0;
    for rows in model.results.maps.chunk_by(|a, b| a.key == b.key) {
        let key = &rows[0].key;
        side = rows[0].side;
        films.entry((&key.arm, key.role)).or_default().push(frame(model, key, rows));
    }
    let volume =
        |((arm, role), frames)| json!({ "arm": arm, "role": senesce_store::Role::name(role), "frames": frames });
    let volumes: Vec<_> = films.into_iter().map(volume).collect();
    match volumes.is_empty() {
        true => String::new(),
        false => json!({ "unit": model.unit, "side": side, "colours": PLACE_COLOURS, "volumes": volumes })
            .to_string()
            .replace('<', "\\u003c"),
    }
}

fn frame(model: &Model, key: &CellKey, rows: &[MapRow]) -> serde_json::Value {
    let last = rows.iter().map(|row| row.cell + 1).max().unwrap_or(0).min(rows[0].side * rows[0].side);
    let mut cells = vec![0; last as usize * 3];
    for row in rows {
        let share = row.used_bytes as f64 / row.cell_bytes.max(1) as f64;
        // A cell has at least a little of what it has any of.
        let kind = if is_metadata(row) { METADATA } else { 1 + (share.clamp(0.004, 1.0) * 253.0).round() as u8 };
        let [high, low] = ((row.place.clamp(0.0, 1.0) * 65_535.0).round() as u16).to_be_bytes();
        if let Some(cell) = cells.get_mut(row.cell as usize * 3..row.cell as usize * 3 + 3) {
            cell.copy_from_slice(&[kind, high, low]);
        }
    }
    let cell = model.results.cells.iter().find(|cell| cell.key == *key);
    json!({
        "pulls": key.pulls,
        "cell_bytes": rows[0].cell_bytes,
        "end_bytes": end_bytes(model, key, rows),
        "entries": cell.map_or(1, |cell| (cell.files + cell.directories).max(1)),
        "knows_free": rows.iter().any(|row| row.free_bytes > 0 || is_metadata(row)),
        "cells": base64(&cells),
    })
}

/// Whether a cell has something in it, but nothing of files.
pub(crate) fn is_metadata(row: &MapRow) -> bool {
    row.used_bytes == 0
}

/// Where a volume ends: at its device's end, or else where what the file system can hold ends; never before what it holds.
pub(crate) fn end_bytes(model: &Model, key: &CellKey, rows: &[MapRow]) -> u64 {
    let name = format!("{}.device_bytes", key.role.name());
    let device = model.results.circumstances.iter().find(|row| row.arm == key.arm && row.key == name);
    let device = device.and_then(|row| row.value.parse().ok());
    let capacity = || model.results.cells.iter().find(|cell| cell.key == *key).map(|cell| cell.capacity_bytes);
    let held = rows.iter().map(|row| row.cell * row.cell_bytes + row.used_bytes).max().unwrap_or(0);
    device.or_else(capacity).unwrap_or(0).max(held)
}

/// Base64 of a number of bytes that three divides.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters = bytes.chunks_exact(3).flat_map(|three| {
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        [18, 12, 6, 0].map(|shift| char::from(LETTERS[(bits >> shift) as usize & 63]))
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        assert_eq!(base64(b"foobar"), "Zm9vYmFy");
        assert_eq!(base64(&[255, 0, 62]), "/wA+");
    }
}

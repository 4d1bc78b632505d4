//! The maps of every volume, checkpoint by checkpoint, for the page's script, in a small encoding:
//! there are many.

use std::collections::BTreeMap;

use senesce_core::Printable;
use senesce_store::{CellKey, MapRow, Role};
use serde_json::json;

use crate::format::page_json;
use crate::model::{Model, words};

/// A cell of metadata alone.
const METADATA: u8 = 255;

/// The maps as JSON that can stand in a script element; empty without maps.
///
/// A volume has the last checkpoint of its plan, and its frames, one for each checkpoint. A frame
/// has the bytes of a cell, the end of the volume, the number of entries of the tree, and whether
/// free space is known. It also has five bytes for each cell that is not empty, in base64:
/// - two bytes: the distance from the previous such cell (from -1 for the first), higher byte first
/// - one byte: the share of files, 1 to 254, or [`METADATA`]
/// - two bytes: the place in the tree of the file that holds most of the cell, 0 to 65,535
///
/// `owners` has two bytes for each cell of files, in base64: the number of that file's path in
/// `paths`, from 1 on, or 0. `paths` are sorted. Each path has the number of letters that it shares
/// with the previous one, and the rest.
pub(crate) fn film(model: &Model) -> String {
    let paths = Paths::of(&model.results.maps);
    let mut films: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for rows in model.results.maps.chunk_by(|a, b| a.key == b.key) {
        let key = &rows[0].key;
        films.entry((&key.arm, key.role)).or_default().push(frame(model, key, rows, &paths));
    }
    let volume = |((arm, role), frames): ((&String, Role), Vec<_>)| json!({ "arm": arm, "role": role.name(), "name": format!("{arm}, {}", words(role)), "last": model.plans.ends(arm).map(|(_, last)| last), "frames": frames });
    let volumes: Vec<_> = films.into_iter().map(volume).collect();
    match volumes.is_empty() {
        true => String::new(),
        false => page_json(
            &json!({
                "unit": model.unit, "paths": paths.shared(), "volumes": volumes,
            })
            .to_string(),
        ),
    }
}

/// The paths of all maps, each once, in order. Several volumes hold the same tree, which changes
/// little between checkpoints.
struct Paths<'a>(Vec<&'a str>);

impl<'a> Paths<'a> {
    /// The paths that two bytes can number.
    const MOST: usize = u16::MAX as usize;

    fn of(rows: &'a [MapRow]) -> Self {
        let mut paths: Vec<&str> = rows.iter().filter_map(|row| row.path.as_deref()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths.truncate(Self::MOST);
        Self(paths)
    }

    fn number(&self, row: &MapRow) -> u16 {
        let found = row.path.as_deref().and_then(|path| self.0.binary_search(&path).ok());
        found.map_or(0, |at| at as u16 + 1)
    }

    /// The number of UTF-16 units (the unit of scripts) that each shares with the one before, and
    /// the rest.
    fn shared(&self) -> Vec<serde_json::Value> {
        let mut before = String::new();
        let mut list = Vec::with_capacity(2 * self.0.len());
        for path in &self.0 {
            // The script shows them unchanged.
            let path = Printable::new(*path).to_string();
            let alike = path.chars().zip(before.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a);
            let (bytes, letters) = alike
                .fold((0, 0), |(bytes, letters), letter| (bytes + letter.len_utf8(), letters + letter.len_utf16()));
            list.extend([json!(letters), json!(path[bytes..])]);
            before = path;
        }
        list
    }
}

fn frame(model: &Model, key: &CellKey, rows: &[MapRow], paths: &Paths<'_>) -> serde_json::Value {
    let (side, cell_bytes, end_bytes) = (rows[0].side, rows[0].cell_bytes, end_bytes(model, key, rows));
    let mut cells = Vec::with_capacity(rows.len() * 5);
    let mut next = 0;
    // Two bytes hold every distance: of the largest map the last cell is left out.
    let mut rows: Vec<&MapRow> =
        rows.iter().filter(|row| row.cell < (row.side * row.side).min(u64::from(u16::MAX))).collect();
    rows.sort_by_key(|row| row.cell);
    for row in &rows {
        let share = row.used_bytes as f64 / row.cell_bytes.max(1) as f64;
        // A share above 0 is stored as at least 1.
        let kind = if is_metadata(row) { METADATA } else { 1 + (share.clamp(0.004, 1.0) * 253.0).round() as u8 };
        let place = (row.place.clamp(0.0, 1.0) * 65_535.0).round() as u16;
        cells.extend(((row.cell + 1 - next) as u16).to_be_bytes());
        cells.push(kind);
        cells.extend(place.to_be_bytes());
        next = row.cell + 1;
    }
    cells.resize(cells.len().next_multiple_of(3), 0);
    let of_files = rows.iter().filter(|row| !is_metadata(row));
    let mut owners: Vec<u8> = of_files.flat_map(|row| paths.number(row).to_be_bytes()).collect();
    owners.resize(owners.len().next_multiple_of(3), 0);
    let cell = model.results.cells.iter().find(|cell| cell.key == *key);
    json!({
        "pulls": key.pulls,
        "side": side,
        "cell_bytes": cell_bytes,
        "end_bytes": end_bytes,
        "entries": cell.map_or(1, |cell| (cell.files + cell.directories).max(1)),
        "knows_free": rows.iter().any(|row| row.free_bytes > 0 || is_metadata(row)),
        "cells": base64(&cells),
        "owners": base64(&owners),
    })
}

/// Whether a cell is in use, but by no file.
pub(crate) fn is_metadata(row: &MapRow) -> bool {
    row.used_bytes == 0
}

/// The end of a volume: its device's end, or else the end of the file system's capacity; never
/// before its last used block.
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

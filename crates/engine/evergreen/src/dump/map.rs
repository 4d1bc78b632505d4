//! The map of nodes, chunk by chunk, and what it leaves free.

use senesce_fsapi::dump::{Dump, DumpTable, read_fields, sum_text};

use super::{Media, layout::MAP_CHUNK};
use crate::{
    Result,
    disk::{BLOCK, NodeMap, Space},
};

/// Where each node lies.
pub(super) fn map(media: &Media, most: u64) -> Result<Dump> {
    let Media { area, superblock } = media;
    let bytes = area.read(&superblock.map.extents, 0, superblock.map.bytes as usize)?;
    let mut dump = Dump::new(format!("map of nodes of superblock {}", superblock.generation));
    dump.field("checksum of all", sum_text(NodeMap::sum(&bytes)));
    match NodeMap::load(area, superblock) {
        Ok(map) => {
            dump.field("nodes", map.len() as u64);
            let mut table = DumpTable::new(&["node", "bytes", "header checksum", "extents"]);
            for (node, place) in map.iter() {
                let row = [node.0.into(), u64::from(place.bytes).into(), sum_text(place.header_sum).into()];
                table.push(most, [&row[..], &[place.extents.to_string().into()]].concat());
            }
            dump.table = Some(table);
        }
        Err(error) => dump.wrong(error),
    }
    for chunk in bytes.chunks_exact(BLOCK).take(most as usize) {
        let mut part = Dump::new("chunk");
        read_fields(&mut part, chunk, MAP_CHUNK);
        dump.parts.push(part);
    }
    Ok(dump)
}

/// What is free.
pub(super) fn space(media: &Media, most: u64) -> Result<Dump> {
    let Media { area, superblock } = media;
    let map = NodeMap::load(area, superblock)?;
    let mut dump = Dump::new(format!("units that superblock {} leaves free", superblock.generation));
    let used = map.iter().flat_map(|(_, place)| place.extents.to_vec()).chain(superblock.map.extents.iter().copied());
    let space = match Space::complement(superblock.geometry.units, used) {
        Ok(space) => space,
        Err(damage) => {
            dump.wrong(damage);
            return Ok(dump);
        }
    };
    let statistics = space.statistics();
    dump.field("units", statistics.units);
    dump.field("free", statistics.free);
    dump.field("free extents", statistics.free_extents);
    dump.field("largest", statistics.largest);
    let mut table = DumpTable::new(&["first unit", "units"]);
    for extent in space.free_extents() {
        table.push(most, vec![u64::from(extent.first).into(), u64::from(extent.count).into()]);
    }
    dump.table = Some(table);
    Ok(dump)
}

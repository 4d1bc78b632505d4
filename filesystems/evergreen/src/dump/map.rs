//! Dumps of the map of nodes, chunk by chunk, and of the free space.

use senesce_fsapi::dump::{Dump, DumpTable, read_fields, sum_text};

use super::{
    Media,
    field_offsets::{MAP_CHUNK, OLD_MAP_CHUNK},
};
use crate::{
    Error, Result,
    disk::{BLOCK, NodeMap, Space, u32_at},
};

/// The magic of a chunk of format version 1.
const OLD_MAGIC: u32 = 0x7061_4d6e;

/// Dumps the places of the nodes.
pub(super) fn map(media: &Media, most: u64) -> Result<Dump> {
    let Media { area, superblock } = media;
    let mut dump = Dump::new(format!("map of nodes of superblock {}", superblock.generation));
    let mut bad = Vec::new();
    let loaded = NodeMap::load_noting(area, superblock, true, &mut bad);
    bad.iter().for_each(|error| dump.wrong(error));
    // The first copy that the device can read, damaged or not.
    let mut copies = superblock.map.copies().map(|(_, extents)| area.read(extents, 0, superblock.map.bytes as usize));
    let is_whole = |bytes: &Result<bytes::Bytes>| bytes.as_ref().is_ok_and(|b| NodeMap::sum(b) == superblock.map.sum);
    let first = copies.next().unwrap_or_else(|| Err(Error::Invalid { what: "a map without a place".to_owned() }));
    let chosen = if is_whole(&first) { first } else { copies.find(is_whole).unwrap_or(first) };
    let bytes = chosen?;
    dump.field("checksum of all", sum_text(NodeMap::sum(&bytes)));
    match loaded {
        Ok(map) => {
            dump.field("nodes", map.len() as u64);
            let mut table = DumpTable::new(&["node", "bytes", "header checksum", "extents", "second copy"]);
            for (node, place) in map.iter() {
                let row = [node.0.into(), u64::from(place.bytes).into(), sum_text(place.header_sum).into()];
                let copies = [&place.extents, &place.second].map(|extents| extents.to_string().into());
                table.push(most, [&row[..], &copies[..]].concat());
            }
            dump.table = Some(table);
        }
        Err(error) => dump.wrong(error),
    }
    for chunk in bytes.chunks_exact(BLOCK).take(most as usize) {
        let mut part = Dump::new("chunk");
        let is_old = u32_at(chunk, 0) == OLD_MAGIC;
        read_fields(&mut part, chunk, if is_old { OLD_MAP_CHUNK } else { MAP_CHUNK });
        dump.parts.push(part);
    }
    Ok(dump)
}

/// Dumps the free extents.
pub(super) fn space(media: &Media, most: u64) -> Result<Dump> {
    let Media { area, superblock } = media;
    let map = NodeMap::load(area, superblock)?;
    let mut dump = Dump::new(format!("units that superblock {} leaves free", superblock.generation));
    let used = map.iter().flat_map(|(_, place)| place.all()).chain(superblock.map.all());
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

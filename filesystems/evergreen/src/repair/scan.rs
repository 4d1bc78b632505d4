//! Scans a whole device for headers of nodes and chunks of maps, if no structure leads to them.

use std::collections::HashMap;

use bytes::Bytes;
use senesce_block::BlockDevice;

use crate::{
    disk::{BLOCK, Extent, Extents, Geometry, Loose, MOST_COUNTED, NodeId, SLOTS_AT, loose_entries},
    node::Header,
};

/// A node with a whole header.
#[derive(Clone, Debug)]
pub(super) struct FoundNode {
    /// The offset on the device.
    pub at: u64,
    /// The UUID of the file system; nodes of format version 1 have none.
    pub uuid: Identity,
    pub id: NodeId,
    pub generation: u64,
    /// The checksum of the header: equal headers have equal ones.
    pub sum: u64,
    /// The length of the node.
    pub bytes: u64,
    pub height: u8,
    pub lower: Bytes,
    pub upper: Option<Bytes>,
}

/// The extents of the copies, by the number and the header checksum of a node.
type Places = HashMap<(NodeId, u64), Vec<Vec<Extent>>>;

/// The nodes and maps on a device.
#[derive(Default)]
pub(super) struct Found {
    pub nodes: Vec<FoundNode>,
    /// The extents that current or old maps have for the copies of a node with this header.
    pub places: Places,
    /// The offsets of the chunks of these maps, and their generations.
    pub chunks: Vec<(u64, u64)>,
    /// Both by file system; entries of several maps occur once.
    of_all: HashMap<Identity, (Vec<(u64, u64)>, Places)>,
}

/// The bytes of one read.
const WINDOW: usize = 1 << 20;

/// The UUID of the file system of a node; nodes of format version 1 have none.
pub(super) type Identity = Option<[u8; 16]>;

/// Reads each block after the superblocks, and finds the structures of one file system: the known
/// one, or the one with most nodes. Skips unreadable blocks. Cost: reads the whole device; memory
/// of about 200 bytes and the bounds for each header, and for each entry of a map.
pub(super) fn scan(device: &dyn BlockDevice, known: Option<Identity>) -> Found {
    let mut found = Found::default();
    let mut window = vec![0; WINDOW];
    let size = device.size().0 / BLOCK as u64 * BLOCK as u64;
    let mut at = SLOTS_AT[1] + BLOCK as u64;
    while at < size {
        let bytes = (size - at).min(WINDOW as u64) as usize;
        let window = &mut window[..bytes];
        if device.read_at(at, window).is_ok() {
            (at..).step_by(BLOCK).zip(window.chunks_exact(BLOCK)).for_each(|(at, block)| found.take(device, at, block));
        } else {
            for (at, block) in (at..).step_by(BLOCK).zip(window.chunks_exact_mut(BLOCK)) {
                if device.read_at(at, block).is_ok() {
                    found.take(device, at, block);
                }
            }
        }
        at += bytes as u64;
    }
    found.keep(known);
    found
}

/// The header that starts at an offset, if there is one.
pub(super) fn header_at(device: &dyn BlockDevice, at: u64, start: &[u8]) -> Option<Header> {
    let bytes = Header::bytes(start).ok()?;
    if bytes <= start.len() {
        return Header::decode(Bytes::copy_from_slice(&start[..bytes])).ok();
    }
    let whole = bytes.next_multiple_of(BLOCK);
    if at + whole as u64 > device.size().0 {
        return None;
    }
    let mut header = vec![0; whole];
    device.read_at(at, &mut header).ok()?;
    Header::decode(Bytes::from(header).slice(..bytes)).ok()
}

impl Found {
    fn take(&mut self, device: &dyn BlockDevice, at: u64, block: &[u8]) {
        // No counter is that high: the contents of a file may look like a header.
        let can_be = |header: &Header| header.generation.max(header.id.0) < MOST_COUNTED / 2;
        if let Some(header) = header_at(device, at, block).filter(can_be) {
            self.nodes.push(FoundNode::new(at, header));
        } else if let Some(Loose { uuid, generation, entries }) = loose_entries(block) {
            let (chunks, of_map) = self.of_all.entry(uuid).or_default();
            chunks.push((at, generation));
            for (node, sum, copies) in entries {
                let places = of_map.entry((node, sum)).or_default();
                for extents in copies.into_iter().filter(|extents| !extents.is_empty()) {
                    if !places.contains(&extents) {
                        places.push(extents);
                    }
                }
            }
        }
    }

    /// Drops the structures of other, earlier file systems on the device. A file system keeps its
    /// format version, so either all of its nodes have its UUID, or none has one.
    fn keep(&mut self, known: Option<Identity>) {
        let identity = known.unwrap_or_else(|| self.uuid());
        self.nodes.retain(|node| node.uuid == identity);
        (self.chunks, self.places) = std::mem::take(&mut self.of_all).remove(&identity).unwrap_or_default();
    }

    /// The UUID with the most nodes.
    pub fn uuid(&self) -> Identity {
        let mut counts: HashMap<[u8; 16], usize> = HashMap::new();
        self.nodes.iter().filter_map(|node| node.uuid).for_each(|uuid| *counts.entry(uuid).or_default() += 1);
        counts.into_iter().max_by_key(|(uuid, count)| (*count, *uuid)).map(|(uuid, _)| uuid)
    }

    /// The possible extents of a found node, the most likely first. They are those of maps that
    /// start at the node, then one extent from there on.
    pub fn extents(&self, node: &FoundNode, geometry: &Geometry) -> Vec<Extents> {
        let Some(first) = unit_of(geometry, node.at) else { return Vec::new() };
        let one = [Extent { first, count: geometry.units_for(node.bytes) }];
        let told = self.places.get(&(node.id, node.sum)).into_iter().flatten();
        let told = told.filter(|told| told.first().is_some_and(|extent| extent.first == first));
        let all = told.map(|told| &told[..]).chain([&one[..]]);
        let fits = |extents: &&[Extent]| {
            let units: u64 = extents.iter().map(|extent| u64::from(extent.count)).sum();
            let inside =
                |extent: &Extent| extent.first.checked_add(extent.count).is_some_and(|end| end <= geometry.units);
            units == u64::from(geometry.units_for(node.bytes)) && extents.iter().all(inside)
        };
        all.filter(fits).filter_map(Extents::new).collect()
    }

    /// The layout of the device, from found nodes whose units are in maps; else the default for its
    /// size. `None`: no node was found.
    pub fn geometry(&self, device_bytes: u64) -> Option<Geometry> {
        let mut at: HashMap<(NodeId, u64), Vec<u64>> = HashMap::new();
        self.nodes.iter().for_each(|node| at.entry((node.id, node.sum)).or_default().push(node.at));
        let mut pairs: Vec<(u64, u64)> = Vec::new();
        for (key, told) in &self.places {
            let mut units: Vec<u64> =
                told.iter().flat_map(|told| told.first()).map(|first| first.first.into()).collect();
            let mut bytes = at.remove(key).unwrap_or_default();
            // Copies can only be matched by their order.
            if units.len() == bytes.len() {
                units.sort_unstable();
                bytes.sort_unstable();
                pairs.extend(units.into_iter().zip(bytes));
            }
        }
        pairs.sort_unstable();
        let told = pairs.first().zip(pairs.last()).and_then(|(first, last)| {
            let units = last.0 - first.0;
            let unit = (last.1.checked_sub(first.1)?).checked_div(units)?;
            Some((unit, first.1.checked_sub(first.0.checked_mul(unit)?)?))
        });
        let first = self.nodes.iter().map(|node| node.at).min()?;
        let (unit, data_at) = told.unwrap_or_else(|| {
            let shared = self.nodes.iter().map(|node| node.at.trailing_zeros()).min().unwrap_or(12).clamp(12, 20);
            let usual = Geometry::plan(device_bytes, 1 << shared, None).map_or(u64::MAX, |usual| usual.data_at);
            (1 << shared, usual.min(first))
        });
        let log_at = (SLOTS_AT[1] + BLOCK as u64).checked_next_multiple_of(unit.max(1))?;
        let log_bytes = data_at.checked_sub(log_at)?;
        let planned = Geometry::plan(device_bytes, u32::try_from(unit).ok()?, Some(log_bytes)).ok()?;
        (planned.data_at == data_at).then_some(planned)
    }
}

impl FoundNode {
    pub fn new(at: u64, header: Header) -> Self {
        let Header { uuid, id, generation, sum, bytes, node } = header;
        let (height, lower, upper) = (node.height(), node.lower, node.upper);
        Self { at, uuid, id, generation, sum, bytes: bytes as u64, height, lower, upper }
    }
}

/// The unit that starts at an offset, if there is one.
fn unit_of(geometry: &Geometry, at: u64) -> Option<u32> {
    let from = at.checked_sub(geometry.data_at)?;
    let unit = u64::from(geometry.unit_bytes);
    (from.is_multiple_of(unit) && from / unit < u64::from(geometry.units)).then_some((from / unit) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found nodes may be in maps of several evergreens, or in invalid ones.
    #[test]
    fn impossible_places_yield_no_geometry() {
        let node = |id: u64, at: u64| {
            let (lower, upper) = (Bytes::new(), None);
            FoundNode { at, uuid: None, id: NodeId(id), generation: 1, sum: id, bytes: 4096, height: 0, lower, upper }
        };
        let cases: [(u64, [u32; 2], Option<u32>); 4] = [
            (4 << 20, [0, 256], Some(4096)),
            // These units prove nothing, so the alignment of the nodes decides.
            (1 << 50, [u32::MAX - 1, u32::MAX], Some(1 << 20)),
            (1 << 50, [7, 7], Some(1 << 20)),
            (1 << 50, [0, u32::MAX], None),
        ];
        for (last, units, unit_bytes) in cases {
            let mut found = Found { nodes: vec![node(1, 3 << 20), node(2, last)], ..Found::default() };
            for (id, first) in (1..).zip(units) {
                found.places.insert((NodeId(id), id), vec![vec![Extent { first, count: 1 }]]);
            }
            let told = found.geometry(1 << 34).map(|geometry| geometry.unit_bytes);
            assert_eq!(told, unit_bytes, "units {units:?}, the last at {last}");
        }
    }
}

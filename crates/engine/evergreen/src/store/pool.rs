//! Nodes are read from the units where the map of nodes says that they lie.

use super::figures::Counters;
use crate::{
    Result,
    disk::{Area, Damage, NodeId, NodeMap},
    tree::{Known, Source},
};

/// The nodes on a device.
pub(super) struct Pool {
    area: Area,
    /// Where each one lies that is not only in memory.
    pub(super) map: NodeMap,
    counters: Counters,
}

impl Pool {
    pub(super) fn new(area: Area, map: NodeMap, counters: Counters) -> Self {
        Self { area, map, counters }
    }
}

impl Source for Pool {
    fn known(&self, id: NodeId) -> Option<Known> {
        self.map.get(id).map(|place| Known { bytes: place.bytes as usize, header_sum: place.header_sum })
    }

    fn read(&self, id: NodeId, at: usize, bytes: usize) -> Result<bytes::Bytes> {
        let Some(place) = self.map.get(id) else {
            return Err(Damage::new("node map", "node", "none", "one, for it is named").at(self.place(id)));
        };
        self.area.read(&place.extents, at as u64, bytes)
    }

    fn read_row(&self, id: NodeId, at: usize, behind: &[NodeId]) -> Result<Vec<bytes::Bytes>> {
        let Some(place) = self.map.get(id) else { return Ok(vec![self.read(id, at, 0)?]) };
        let unit = self.area.geometry().unit_bytes as usize;
        let mut extents = place.extents.to_vec();
        // Of the whole row, where each node's bytes lie: first and behind the last.
        let mut parts = vec![(at, place.bytes as usize)];
        let mut room = place.extents.units() as usize * unit;
        for place in behind.iter().map_while(|id| self.map.get(*id)) {
            match (extents.last_mut(), &place.extents[..]) {
                (Some(last), [extent]) if last.end() == extent.first => last.count += extent.count,
                _ => break,
            }
            parts.push((room, room + place.bytes as usize));
            room += place.extents.units() as usize * unit;
        }
        let end = parts.last().map_or(at, |part| part.1);
        let bytes = self.area.read(&extents, at as u64, end - at)?;
        Ok(parts.into_iter().map(|(from, to)| bytes.slice(from - at..to - at)).collect())
    }

    fn note_read(&self, is_leaf: bool, bytes: usize) {
        self.counters.note_read(is_leaf, bytes);
    }

    fn place(&self, id: NodeId) -> String {
        let device = self.area.device().name();
        match self.map.get(id) {
            Some(place) => format!("{device}, node {id}, units {}", place.extents),
            None => format!("{device}, node {id}"),
        }
    }

    fn room_bytes(&self, bytes: usize) -> u64 {
        let geometry = self.area.geometry();
        u64::from(geometry.units_for(bytes as u64)) * u64::from(geometry.unit_bytes)
    }
}

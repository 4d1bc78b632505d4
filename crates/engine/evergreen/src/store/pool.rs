//! Nodes are read from the units in which they lie.

use super::figures::Counters;
use crate::{
    Result,
    disk::{Area, NodeId, NodeMap, Place},
    tree::{Known, Source},
};

/// The nodes on a device.
pub(super) struct Pool {
    area: Area,
    counters: Counters,
}

impl Pool {
    pub(super) fn new(area: Area, counters: Counters) -> Self {
        Self { area, counters }
    }
}

impl Source for Pool {
    type Place = Place;
    type Map = NodeMap;

    fn find(map: &NodeMap, id: NodeId) -> Option<&Place> {
        map.get(id)
    }

    fn known(&self, place: &Place) -> Known {
        Known { bytes: place.bytes as usize, header_sum: place.header_sum }
    }

    fn read(&self, place: &Place, at: usize, bytes: usize) -> Result<bytes::Bytes> {
        self.counters.read(&self.area, &place.extents, at, bytes)
    }

    fn read_row(&self, place: &Place, at: usize, behind: &[(NodeId, Place)]) -> Result<Vec<bytes::Bytes>> {
        let unit = self.area.geometry().unit_bytes as usize;
        let mut extents = place.extents.to_vec();
        // Of the whole row, where each node's bytes lie: first and behind the last.
        let mut parts = vec![(at, place.bytes as usize)];
        let mut room = place.extents.units() as usize * unit;
        for (_, place) in behind {
            match (extents.last_mut(), &place.extents[..]) {
                (Some(last), [extent]) if last.end() == extent.first => last.count += extent.count,
                _ => break,
            }
            parts.push((room, room + place.bytes as usize));
            room += place.extents.units() as usize * unit;
        }
        let end = parts.last().map_or(at, |part| part.1);
        let bytes = self.counters.read(&self.area, &extents, at, end - at)?;
        Ok(parts.into_iter().map(|(from, to)| bytes.slice(from - at..to - at)).collect())
    }

    fn note_read(&self, is_leaf: bool, bytes: usize) {
        self.counters.note_read(is_leaf, bytes);
    }

    fn note_flush(&self, height: u8, bytes: usize) {
        self.counters.note_flush(height, bytes);
    }

    fn note_passed_over(&self) {
        self.counters.note_passed_over(1);
    }

    fn describe(&self, id: NodeId, place: Option<&Place>) -> String {
        let device = self.area.device().name();
        match place {
            Some(place) => format!("{device}, node {id}, units {}", place.extents),
            None => format!("{device}, node {id}"),
        }
    }

    fn room_bytes(&self, bytes: usize) -> u64 {
        self.area.geometry().room_for(bytes as u64)
    }
}

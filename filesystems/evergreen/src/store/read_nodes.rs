//! Reads nodes from their units.

use super::{io_counts::Counters, second_copies::CopyWatch};
use crate::{
    Error, Result,
    disk::{Area, NodeId, NodeMap, Place},
    tree::{Known, Room, Source},
};

/// The nodes on a device.
pub(super) struct Pool {
    area: Area,
    counters: Counters,
    watch: CopyWatch,
}

impl Pool {
    pub(super) fn new(area: Area, counters: Counters, watch: CopyWatch) -> Self {
        Self { area, counters, watch }
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
        // The bytes of each node in the row: first byte and end.
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

    fn second_copy(&self, place: &Place) -> Option<Place> {
        place.second_copy()
    }

    fn note_bad_copy(&self, id: NodeId, why: &Error) {
        self.watch.note_bad(Some(id), why);
    }

    fn note_single(&self, id: NodeId) {
        self.watch.note_single(id);
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

    fn room(&self, bytes: usize, is_leaf: bool) -> Room {
        let once = self.area.geometry().room_for(bytes as u64);
        Room { once, all: self.watch.of_node(is_leaf).count() * once }
    }
}

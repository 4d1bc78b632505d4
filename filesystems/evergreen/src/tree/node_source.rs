//! The source of nodes: reads of a header and one part, or of a whole node.

use std::{iter, ops::Range, sync::Arc};

use bytes::Bytes;

use crate::{
    Error, Result,
    disk::{Damage, NodeId},
    node::{FIRST_READ_BYTES, Header, Node},
};

/// The facts about a stored node that its parent structure has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its length in bytes.
    pub(crate) bytes: usize,
    /// The xxh3 of its header.
    pub(crate) header_sum: u64,
}

/// The most bytes that nodes take on the device, without and with second copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) once: u64,
    pub(crate) all: u64,
}

impl Room {
    pub(super) fn add(&mut self, other: Self) {
        (self.once, self.all) = (self.once + other.once, self.all + other.all);
    }

    pub(super) fn remove(&mut self, other: Self) {
        (self.once, self.all) = (self.once - other.once, self.all - other.all);
    }
}

/// The source of nodes. A read receives the place of its node, so that it needs no lock.
pub(crate) trait Source: Send + Sync {
    /// The place of a node. Two places of a node are equal only if they have the same bytes.
    type Place: Clone + PartialEq + Send;
    /// The places of all nodes.
    type Map: Send;

    /// The place of a node; `None` if it is only in memory, or does not exist.
    fn find(map: &Self::Map, id: NodeId) -> Option<&Self::Place>;

    /// The facts about the node at a place.
    fn known(&self, place: &Self::Place) -> Known;

    /// Reads `bytes` bytes of the node at a place from `at` on.
    fn read(&self, place: &Self::Place, at: usize, bytes: usize) -> Result<Bytes>;

    /// Reads a node from byte `at` on, with those following nodes that are directly adjacent, in
    /// one request.
    fn read_row(&self, place: &Self::Place, at: usize, behind: &[(NodeId, Self::Place)]) -> Result<Vec<Bytes>>;

    /// The place of the second copy of a node, if it has one.
    fn second_copy(&self, _place: &Self::Place) -> Option<Self::Place> {
        None
    }

    /// Notes a read of the second copy, with the error of the first one.
    fn note_bad_copy(&self, _id: NodeId, _why: &Error) {}

    /// Notes that an inner node has a single copy, if the source counts these.
    fn note_single(&self, _id: NodeId) {}

    /// Counts the bytes of a read, once the kind of the node is known.
    fn note_read(&self, is_leaf: bool, bytes: usize);

    /// Counts the bytes that a flush moved from an inner node to a child.
    fn note_flush(&self, _height: u8, _bytes: usize) {}

    /// Notes a failed read that is not reported, because another read replaced it.
    fn note_passed_over(&self) {}

    /// Describes the place of a node.
    fn describe(&self, id: NodeId, place: Option<&Self::Place>) -> String;

    /// The most bytes that a node of this length takes on the device.
    fn room(&self, bytes: usize, is_leaf: bool) -> Room;
}

/// A node at its place.
pub(super) struct Lying<'a, S: Source> {
    pub(super) source: &'a S,
    pub(super) id: NodeId,
    pub(super) place: &'a S::Place,
}

impl<S: Source> Lying<'_, S> {
    /// Reads bytes of the first copy, or of the second one if that fails.
    fn read(&self, at: usize, bytes: usize) -> Result<Bytes> {
        let first = self.source.read(self.place, at, bytes);
        first.or_else(|error| self.by_second(error, |second| second.read(at, bytes)))
    }

    /// Repeats a failed action with the second copy. Errors: that of the first copy, if there is no
    /// second one or it fails, too.
    fn by_second<T>(&self, error: Error, act: impl FnOnce(Lying<'_, S>) -> Result<T>) -> Result<T> {
        let Some(place) = self.source.second_copy(self.place) else { return Err(error) };
        match act(Lying { source: self.source, id: self.id, place: &place }) {
            Ok(done) => {
                self.source.note_bad_copy(self.id, &error);
                Ok(done)
            }
            // A check reports both; here the error of the first copy counts.
            Err(_) => Err(error),
        }
    }

    fn known(&self) -> Known {
        self.source.known(self.place)
    }

    fn told(&self, damage: Damage) -> Error {
        Error::damaged(self.source.describe(self.id, Some(self.place)), &damage)
    }

    /// Reads the header, and the parts in the first bytes.
    pub(super) fn read_header(&self) -> Result<Arc<Node>> {
        let start = self.read(0, self.known().bytes.min(FIRST_READ_BYTES))?;
        let (mut node, more) = self.header(&start)?;
        self.source.note_read(node.height() == 0, start.len() + more);
        self.load_parts(&mut node, 0, &start)?;
        Ok(Arc::new(node))
    }

    /// Reads the whole node in one request.
    pub(super) fn read_whole(&self) -> Result<Arc<Node>> {
        let bytes = self.read(0, self.known().bytes)?;
        let (mut node, _) = self.header(&bytes)?;
        self.source.note_read(node.height() == 0, bytes.len());
        self.load_parts(&mut node, 0, &bytes)?;
        Ok(Arc::new(node))
    }

    /// Reads the missing ones of some parts in one request, with all bytes between them.
    pub(super) fn read_parts(&self, node: &Node, parts: Range<usize>) -> Result<Arc<Node>> {
        let away = || parts.clone().filter_map(|number| node.stored(number));
        let at = away().map(|stored| stored.at).min().unwrap_or(0);
        let end = away().map(|stored| stored.at + stored.bytes).max().unwrap_or(0);
        let bytes = self.read(at, end - at)?;
        self.source.note_read(node.height() == 0, bytes.len());
        let mut node = node.clone();
        self.load_parts(&mut node, at, &bytes)?;
        Ok(Arc::new(node))
    }

    /// Reads the missing parts of a leaf in one request, with the following nodes that are directly
    /// adjacent.
    pub(super) fn read_row(&self, node: Option<&Node>, behind: &[(NodeId, S::Place)]) -> Result<Vec<Arc<Node>>> {
        let at = node.map_or(0, |node| {
            let away = (0..node.parts()).filter_map(|number| node.stored(number));
            away.map(|stored| stored.at).min().unwrap_or(0)
        });
        let row = self.source.read_row(self.place, at, behind)?;
        let others = behind.iter().map(|(id, place)| Lying { source: self.source, id: *id, place });
        let mut nodes = Vec::with_capacity(row.len());
        for (number, (lying, bytes)) in iter::once(Lying { ..*self }).chain(others).zip(row).enumerate() {
            let (at, mut node) = match node.filter(|_| number == 0) {
                Some(node) => (at, node.clone()),
                None => (0, lying.header(&bytes)?.0),
            };
            self.source.note_read(node.height() == 0, bytes.len());
            lying.load_parts(&mut node, at, &bytes)?;
            nodes.push(Arc::new(node));
        }
        Ok(nodes)
    }

    /// Decodes the header from the first bytes of the node, and reads the rest if needed. Also
    /// returns the number of bytes of that read.
    fn header(&self, start: &Bytes) -> Result<(Node, usize)> {
        self.first_header(start).or_else(|error| {
            self.by_second(error, |second| {
                let start = second.read(0, start.len())?;
                second.first_header(&start)
            })
        })
    }

    fn first_header(&self, start: &Bytes) -> Result<(Node, usize)> {
        let known = self.known();
        let wrong =
            |field, found: String, expected: String| Err(self.told(Damage::new("node", field, found, expected)));
        let bytes = Header::bytes(start).map_err(|damage| self.told(damage))?;
        if bytes > known.bytes {
            return wrong("header bytes", bytes.to_string(), format!("at most {}, those of the node", known.bytes));
        }
        let all = if bytes > start.len() {
            Bytes::from([&start[..], &self.read(start.len(), bytes - start.len())?].concat())
        } else {
            start.slice(..bytes)
        };
        let header = Header::decode(all).map_err(|damage| self.told(damage))?;
        if header.id != self.id {
            let found = format!("{} of checkpoint {}", header.id, header.generation);
            return wrong("number", found, self.id.to_string());
        }
        if header.sum != known.header_sum {
            let found = format!("{:#018x} of checkpoint {}", header.sum, header.generation);
            return wrong("header sum", found, format!("{:#018x} as in the node map", known.header_sum));
        }
        if header.bytes != known.bytes {
            return wrong("bytes", header.bytes.to_string(), format!("{} as in the node map", known.bytes));
        }
        if header.node.height() > 0 && self.source.second_copy(self.place).is_none() {
            self.source.note_single(self.id);
        }
        Ok((header.node, bytes.saturating_sub(start.len())))
    }

    /// Loads all parts that are within `bytes`, which were read from `at` on. Each part has its own
    /// memory, which is freed with it.
    fn load_parts(&self, node: &mut Node, at: usize, bytes: &[u8]) -> Result<()> {
        for number in 0..node.parts() {
            if let Some(stored) = node.stored(number)
                && stored.at >= at
                && stored.at + stored.bytes <= at + bytes.len()
            {
                let part = Bytes::copy_from_slice(&bytes[stored.at - at..][..stored.bytes]);
                if let Err(damage) = node.load(number, part) {
                    self.by_second(self.told(damage), |second| {
                        let part = second.read(stored.at, stored.bytes)?;
                        node.load(number, part).map_err(|damage| second.told(damage))
                    })?;
                }
            }
        }
        Ok(())
    }
}

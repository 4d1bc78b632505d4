//! Where nodes are read from, and how: a header and one part, or all in one reading.

use std::{iter, ops::Range, sync::Arc};

use bytes::Bytes;

use crate::{
    Error, Result,
    disk::{Damage, NodeId},
    node::{FIRST_READ_BYTES, Header, Node},
};

/// What is known of a node's bytes on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// How many there are.
    pub(crate) bytes: usize,
    /// The xxh3 of its header.
    pub(crate) header_sum: u64,
}

/// The room that nodes take on the device at most: without second copies, and with them.
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

/// Where nodes are read from. A reading is told where its node lies, so that it needs no lock.
pub(crate) trait Source: Send + Sync {
    /// Where a node lies. Two places of one node are equal only if the same bytes lie there.
    type Place: Clone + PartialEq + Send;
    /// Where each one lies.
    type Map: Send;

    /// Where a node lies; none: it is in memory only, or not there.
    fn find(map: &Self::Map, id: NodeId) -> Option<&Self::Place>;

    /// What is known of the node at a place.
    fn known(&self, place: &Self::Place) -> Known;

    /// So many bytes of the node at a place from `at` on.
    fn read(&self, place: &Self::Place, at: usize, bytes: usize) -> Result<Bytes>;

    /// A node from byte `at` on, and as many of those that follow as lie directly behind it, in one request.
    fn read_row(&self, place: &Self::Place, at: usize, behind: &[(NodeId, Self::Place)]) -> Result<Vec<Bytes>>;

    /// The place of the second copy of a node, if it has one.
    fn second_copy(&self, _place: &Self::Place) -> Option<Self::Place> {
        None
    }

    /// Notes that something of a node was read from its second copy, and why not from the first one.
    fn note_bad_copy(&self, _id: NodeId, _why: &Error) {}

    /// Notes that an inner node has one copy, if that is noted.
    fn note_single(&self, _id: NodeId) {}

    /// Notes that so many bytes of a node were read, when it is known to be a leaf or not.
    fn note_read(&self, is_leaf: bool, bytes: usize);

    /// Notes that so many bytes went down from an inner node to a child.
    fn note_flush(&self, _height: u8, _bytes: usize) {}

    /// Notes that a reading failed of which nobody is told, for something else was read in its place.
    fn note_passed_over(&self) {}

    /// Where a node lies, in words.
    fn describe(&self, id: NodeId, place: Option<&Self::Place>) -> String;

    /// The room that a node of so many bytes takes.
    fn room(&self, bytes: usize, is_leaf: bool) -> Room;
}

/// A node where it lies.
pub(super) struct Lying<'a, S: Source> {
    pub(super) source: &'a S,
    pub(super) id: NodeId,
    pub(super) place: &'a S::Place,
}

impl<S: Source> Lying<'_, S> {
    /// Bytes of the first copy, or of the second one if the device does not return those.
    fn read(&self, at: usize, bytes: usize) -> Result<Bytes> {
        let first = self.source.read(self.place, at, bytes);
        first.or_else(|error| self.by_second(error, |second| second.read(at, bytes)))
    }

    /// Does with the second copy what failed with the first one. Errors: that of the first one, if there is no second or it fails, too.
    fn by_second<T>(&self, error: Error, act: impl FnOnce(Lying<'_, S>) -> Result<T>) -> Result<T> {
        let Some(place) = self.source.second_copy(self.place) else { return Err(error) };
        match act(Lying { source: self.source, id: self.id, place: &place }) {
            Ok(done) => {
                self.source.note_bad_copy(self.id, &error);
                Ok(done)
            }
            // Both are reported by a check; here the first is the one that counts.
            Err(_) => Err(error),
        }
    }

    fn known(&self) -> Known {
        self.source.known(self.place)
    }

    fn told(&self, damage: Damage) -> Error {
        Error::damaged(self.source.describe(self.id, Some(self.place)), &damage)
    }

    /// Reads its header; and, since they come with it, the parts that are in the first bytes.
    pub(super) fn read_header(&self) -> Result<Arc<Node>> {
        let start = self.read(0, self.known().bytes.min(FIRST_READ_BYTES))?;
        let (mut node, more) = self.header(&start)?;
        self.source.note_read(node.height() == 0, start.len() + more);
        self.load_parts(&mut node, 0, &start)?;
        Ok(Arc::new(node))
    }

    /// Reads all of it in one reading.
    pub(super) fn read_whole(&self) -> Result<Arc<Node>> {
        let bytes = self.read(0, self.known().bytes)?;
        let (mut node, _) = self.header(&bytes)?;
        self.source.note_read(node.height() == 0, bytes.len());
        self.load_parts(&mut node, 0, &bytes)?;
        Ok(Arc::new(node))
    }

    /// Reads what is missing of some of its parts in one reading, with all that lies between.
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

    /// Reads what is missing of a leaf in one reading, and with it all of those that follow and lie directly behind it.
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

    /// The node without its parts, of whose header `start` was read; what is missing of it is read now: and so many bytes that was.
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

    /// Takes all parts into memory that lie within bytes of the node that were read from `at` on. Each has its own memory, which
    /// goes when it goes.
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

//! The places of values on the device.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Core, Evergreen};
use crate::{
    Result,
    disk::{Extent, Geometry, NodeId},
    node::{Body, Buffer, Inner, Leaf, Node},
};

/// A value and its offset on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
    /// The offset, as if nodes had only values, from their first byte on, without keys and headers.
    /// A whole value in a buffer counts as stored in the inner node; an edited value counts as
    /// stored in its leaf.
    pub(crate) at: u64,
}

/// The state of the traversal.
struct Walk<'a> {
    core: &'a Core,
    geometry: Geometry,
    /// The buffers on the path to the current node, the root's first, each with the place of its
    /// first value.
    waiting: Vec<(Buffer, Place)>,
    sink: &'a mut dyn FnMut(Located),
}

/// The bytes of a node on the device.
#[derive(Clone)]
struct Place {
    /// Offsets and lengths.
    pieces: Vec<(u64, u64)>,
    /// The bytes of earlier values.
    skipped: u64,
}

impl Evergreen {
    /// Passes each value with its place to `sink`, in the order of keys. All changes must be in a
    /// checkpoint; new batches wait. Cost: reads all nodes.
    pub(crate) fn locate(&self, sink: &mut dyn FnMut(Located)) -> Result<()> {
        self.core.expect_working()?;
        // No flush may run meanwhile.
        let tree = self.core.tree();
        let (root, geometry) = (tree.shared().lock().root(), *self.core.area.geometry());
        Walk { core: &self.core, geometry, waiting: Vec::new(), sink }.visit(root)
    }
}

impl Evergreen {
    /// The area of nodes, and its free extents: offsets on the device and lengths.
    pub(crate) fn free_places(&self) -> ((u64, u64), Vec<(u64, u64)>) {
        let geometry = self.core.area.geometry();
        let unit = u64::from(geometry.unit_bytes);
        let state = self.core.lock();
        let place = |extent: Extent| (geometry.unit_at(extent.first), u64::from(extent.count) * unit);
        ((geometry.data_at, geometry.data_bytes()), state.space.free_extents().map(place).collect())
    }
}

impl Walk<'_> {
    fn visit(&mut self, id: NodeId) -> Result<()> {
        let node = self.core.shared.find(|view| view.whole(id))?;
        let place = self.place(id);
        match &node.body {
            Body::Leaf(leaf) => self.visit_leaf(&node, leaf, place),
            Body::Inner(inner) => self.visit_inner(inner, place)?,
        }
        self.core.trim();
        Ok(())
    }

    fn place(&self, id: NodeId) -> Place {
        let extents =
            self.core.shared.lock().cache.map().get(id).map(|place| place.extents.clone()).unwrap_or_default();
        let unit = u64::from(self.geometry.unit_bytes);
        let piece = |extent: &Extent| (self.geometry.unit_at(extent.first), u64::from(extent.count) * unit);
        Place { pieces: extents.iter().map(piece).collect(), skipped: 0 }
    }

    fn visit_inner(&mut self, inner: &Inner, mut place: Place) -> Result<()> {
        for child in inner.children() {
            let buffer = Buffer::clone(child.body.here());
            let bytes: usize = buffer.messages().values().map(|message| message.payload_bytes()).sum();
            self.waiting.push((buffer, place.clone()));
            self.visit(child.id)?;
            self.waiting.pop();
            place.skipped += bytes as u64;
        }
        Ok(())
    }

    fn visit_leaf(&mut self, node: &Node, leaf: &Leaf, mut place: Place) {
        let mut values: BTreeMap<Bytes, (Bytes, u64)> = BTreeMap::new();
        for (key, value) in leaf.parts().iter().flat_map(|part| part.body.here().entries()) {
            values.insert(key.clone(), (value.clone(), place.next(value.len())));
        }
        for (buffer, place) in self.waiting.iter().rev() {
            let mut place = place.clone();
            for (from, to) in buffer.ranges().iter() {
                let covered: Vec<Bytes> = values.range(from.clone()..to.clone()).map(|(key, _)| key.clone()).collect();
                covered.iter().for_each(|key| drop(values.remove(key)));
            }
            for (key, message) in buffer.messages() {
                let at = place.next(message.payload_bytes());
                if *key < node.lower || node.upper.as_ref().is_some_and(|upper| key >= upper) {
                    continue;
                }
                let old = values.remove(key);
                let at = old.as_ref().filter(|_| !message.is_whole()).map_or(at, |(_, at)| *at);
                if let Some(value) = message.apply(old.as_ref().map(|(value, _)| value)) {
                    values.insert(key.clone(), (value, at));
                }
            }
        }
        for (key, (value, at)) in values {
            (self.sink)(Located { key, value, at });
        }
    }
}

impl Place {
    /// Returns the place of the next value, of `bytes` bytes.
    fn next(&mut self, bytes: usize) -> u64 {
        let mut skipped = self.skipped;
        self.skipped += bytes as u64;
        for (at, length) in &self.pieces {
            if skipped < *length {
                return at + skipped;
            }
            skipped -= length;
        }
        0
    }
}

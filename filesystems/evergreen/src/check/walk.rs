//! The walk over all nodes from the root, which merges the messages on the path.

use std::{collections::BTreeSet, ops::ControlFlow};

use bytes::Bytes;

use super::CheckReport;
use crate::{
    MAX_KEY_BYTES, MAX_VALUE_BYTES, Message, Result,
    disk::{Area, Copies, Damage, Decoded, NodeId, NodeMap, Place, Superblock},
    node::{Body, Buffer, Header, Inner, Leaf, Node},
};

/// The receiver of keys and values.
pub(super) type Sink<'a> = dyn FnMut(&[u8], Bytes) -> ControlFlow<()> + 'a;

/// A walk.
pub(super) struct Walk<'a> {
    pub area: &'a Area,
    pub superblock: &'a Superblock,
    pub map: &'a NodeMap,
    pub report: &'a mut CheckReport,
    pub reached: BTreeSet<NodeId>,
    /// The buffers on the path to the current node, the root's first.
    waiting: Vec<Buffer>,
    /// Whether the sink needs no more entries.
    is_over: bool,
}

/// The facts about a child that its parent has.
struct Expected {
    id: NodeId,
    lower: Bytes,
    upper: Option<Bytes>,
    /// The height above the leaves; unknown for the root.
    height: Option<u8>,
}

impl<'a> Walk<'a> {
    pub fn new(area: &'a Area, superblock: &'a Superblock, map: &'a NodeMap, report: &'a mut CheckReport) -> Self {
        Self { area, superblock, map, report, reached: BTreeSet::new(), waiting: Vec::new(), is_over: false }
    }

    /// Walks over the tree, and passes keys with a value in order. Errors: `Device`.
    pub fn walk(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let root = Expected { id: self.superblock.root, lower: Bytes::new(), upper: None, height: None };
        self.visit(&root, sink)?;
        if self.is_over {
            return Ok(());
        }
        for (node, _) in self.map.iter().filter(|(node, _)| !self.reached.contains(node)) {
            self.report
                .find(format!("node {node}"), Damage::new("node map", "node", "there", "gone: no node names it"));
        }
        Ok(())
    }

    fn visit(&mut self, expected: &Expected, sink: &mut Sink<'_>) -> Result<()> {
        let id = expected.id;
        if !self.reached.insert(id) {
            self.find(id, "child", "named twice", "named by one node");
            return Ok(());
        }
        let Some(place) = self.map.get(id).cloned() else {
            self.find(id, "child", "not in the map of nodes", "in it");
            return Ok(());
        };
        let Some(node) = self.read(id, &place)? else { return Ok(()) };
        self.check_header(expected, &node);
        self.report.nodes += 1;
        self.report.levels = self.report.levels.max(u64::from(node.height()) + 1);
        match &node.body {
            Body::Leaf(leaf) => self.visit_leaf(id, &node, leaf, sink),
            Body::Inner(inner) => self.visit_inner(id, &node, inner, sink)?,
        }
        Ok(())
    }

    /// Reads a node with all its parts, each from any copy that has it whole. `None`: the node is
    /// damaged, and the report has it. Errors: `Device` if the device returns no copy.
    fn read(&mut self, id: NodeId, place: &Place) -> Result<Option<Node>> {
        let mut nodes: Vec<(Node, Vec<Option<Damage>>)> = Vec::new();
        let (mut wrong, mut failed, mut generation) = (Vec::new(), None, 0);
        for copy in place.copies() {
            match self.area.read(&copy.extents, 0, copy.bytes as usize) {
                Ok(bytes) => match self.read_copy(id, &copy, &bytes) {
                    Ok((header, parts)) => {
                        generation = header.generation;
                        if let Some(damage) = parts.iter().flatten().next() {
                            wrong.push((self.place_of(id, &copy), damage.to_string()));
                        }
                        nodes.push((header.node, parts));
                    }
                    Err(damage) => wrong.push((self.place_of(id, &copy), damage.to_string())),
                },
                Err(error) => {
                    wrong.push((self.place_of(id, &copy), error.to_string()));
                    failed = Some(error);
                }
            }
        }
        let Some(node) = whole(nodes) else {
            if let Some(error) = failed {
                return Err(error);
            }
            wrong.into_iter().for_each(|(place, what)| self.report.find(place, what));
            return Ok(None);
        };
        wrong.into_iter().for_each(|(place, what)| self.report.find_bad_copy(place, what));
        if generation > self.superblock.generation {
            let expected = format!("at most {}, that of the superblock", self.superblock.generation);
            self.find(id, "generation", &generation.to_string(), &expected);
        }
        let is_single = node.height() > 0 && place.second.is_empty() && self.superblock.copies == Copies::Two;
        self.report.copies.single += u64::from(is_single);
        Ok(Some(node))
    }

    /// Decodes a copy: the header with its whole parts, and the damage of each part.
    fn read_copy(&self, id: NodeId, place: &Place, bytes: &Bytes) -> Decoded<(Header, Vec<Option<Damage>>)> {
        let mut header = Header::bytes(bytes).and_then(|header| match bytes.get(..header) {
            Some(_) => Header::decode(bytes.slice(..header)),
            None => Err(Damage::new("node", "header bytes", header, format!("at most {}", bytes.len()))),
        })?;
        let whole = [
            ("number", header.id.0, id.0),
            ("header sum", header.sum, place.header_sum),
            ("bytes", header.bytes as u64, u64::from(place.bytes)),
        ];
        for (field, found, wanted) in whole {
            if found != wanted {
                return Err(Damage::new("node", field, found, format!("{wanted} as in the map of nodes")));
            }
        }
        if header.uuid.is_some_and(|uuid| uuid != self.superblock.uuid) {
            return Err(Damage::new("node", "identity", "another", "that of the superblock"));
        }
        let count = header.node.parts();
        let mut load = |number| {
            let stored = header.node.stored(number)?;
            header.node.load(number, bytes.slice(stored.at..stored.at + stored.bytes)).err()
        };
        let parts = (0..count).map(&mut load).collect();
        Ok((header, parts))
    }

    fn check_header(&mut self, expected: &Expected, node: &Node) {
        let id = expected.id;
        if node.lower != expected.lower {
            self.find(id, "lower bound", &shown(&node.lower), &shown(&expected.lower));
        }
        if node.upper != expected.upper {
            let shown = |bound: &Option<Bytes>| bound.as_ref().map_or("none".to_owned(), |bound| shown(bound));
            self.find(id, "upper bound", &shown(&node.upper), &shown(&expected.upper));
        }
        if expected.height.is_some_and(|height| height != node.height()) {
            let wanted = expected.height.unwrap_or(0);
            self.find(id, "height", &node.height().to_string(), &format!("{wanted}, 1 less than its parent"));
        }
    }

    fn visit_inner(&mut self, id: NodeId, node: &Node, inner: &Inner, sink: &mut Sink<'_>) -> Result<()> {
        let children = inner.children();
        for (number, child) in children.iter().enumerate() {
            let buffer = Buffer::clone(child.body.here());
            let upper = children.get(number + 1).map(|next| &next.lower).or(node.upper.as_ref());
            self.check_buffer(id, &buffer, &child.lower, upper);
            self.waiting.push(buffer);
            let height = Some(node.height() - 1);
            let expected = Expected { id: child.id, lower: child.lower.clone(), upper: upper.cloned(), height };
            self.visit(&expected, sink)?;
            self.waiting.pop();
            if self.is_over {
                break;
            }
        }
        Ok(())
    }

    /// Checks the normal form: ranges in order and not adjacent, at most one message for a key, no
    /// edit where a range covers the key. All keys must be within the child's bounds.
    fn check_buffer(&mut self, id: NodeId, buffer: &Buffer, lower: &Bytes, upper: Option<&Bytes>) {
        self.report.waiting += (buffer.ranges().iter().count() + buffer.messages().len()) as u64;
        let is_inside = |from: &Bytes, to: Option<&Bytes>| {
            from >= lower && upper.is_none_or(|upper| to.map_or(from < upper, |to| to <= upper))
        };
        let mut end: Option<&Bytes> = None;
        for (from, to) in buffer.ranges().iter() {
            if from >= to || end.is_some_and(|end| end >= from) {
                self.find(id, "range from", &shown(from), "after the previous range, and before its own end");
            }
            if !is_inside(from, Some(to)) {
                self.find(id, "range to", &shown(to), "within the bounds of the child");
            }
            end = Some(to);
        }
        for (key, message) in buffer.messages() {
            if !is_inside(key, None) {
                self.find(id, "key", &shown(key), "within the bounds of the child");
            }
            let covered = buffer.ranges().iter().any(|(from, to)| from <= key && key < to);
            if covered && !matches!(message, Message::Put(_)) {
                self.find(
                    id,
                    "message",
                    &format!("no value for {}", shown(key)),
                    "a put, because a range covers the key",
                );
            }
            let value = match message {
                Message::Put(value) => value.len(),
                Message::Delete => 0,
                Message::Edit(edit) => edit.least() as usize,
            };
            self.check_lengths(id, key, value);
        }
    }

    fn check_lengths(&mut self, id: NodeId, key: &Bytes, value: usize) {
        if key.len() > MAX_KEY_BYTES {
            self.find(id, "key", &format!("{} bytes", key.len()), &format!("at most {MAX_KEY_BYTES}"));
        }
        if value > MAX_VALUE_BYTES {
            let found = format!("{value} bytes for {}", shown(key));
            self.find(id, "value", &found, &format!("at most {MAX_VALUE_BYTES}"));
        }
    }

    fn visit_leaf(&mut self, id: NodeId, node: &Node, leaf: &Leaf, sink: &mut Sink<'_>) {
        self.report.leaves += 1;
        let mut entries: Vec<(Bytes, Bytes)> = Vec::new();
        for part in leaf.parts() {
            for (key, value) in part.body.here().entries() {
                let is_first = entries.is_empty() && *key >= node.lower;
                if !is_first && entries.last().is_none_or(|(last, _)| last >= key) {
                    self.find(id, "key", &shown(key), "after the previous key, and not before the lower bound");
                }
                if node.upper.as_ref().is_some_and(|upper| key >= upper) {
                    self.find(id, "key", &shown(key), "before the upper bound");
                }
                self.check_lengths(id, key, value.len());
                entries.push((key.clone(), value.clone()));
            }
        }
        for buffer in self.waiting.iter().rev() {
            entries = merged(&entries, buffer, &node.lower, node.upper.as_ref());
        }
        for (key, value) in entries {
            self.report.keys += 1;
            if value.len() > MAX_VALUE_BYTES {
                self.find(
                    id,
                    "value",
                    &format!("{} bytes for {}", value.len(), shown(&key)),
                    "at most 4096 after all messages",
                );
            }
            if sink(&key, value).is_break() {
                self.is_over = true;
                return;
            }
        }
    }

    fn find(&mut self, id: NodeId, field: &'static str, found: &str, expected: &str) {
        self.report.find(self.place(id), Damage::new("node", field, found, expected));
    }

    fn place(&self, id: NodeId) -> String {
        self.map.get(id).map_or_else(|| format!("node {id}"), |place| self.place_of(id, place))
    }

    fn place_of(&self, id: NodeId, place: &Place) -> String {
        match place.extents.first() {
            Some(extent) => format!("node {id} at byte {}", self.superblock.geometry.unit_at(extent.first)),
            None => format!("node {id}"),
        }
    }
}

/// Combines copies of a node, with each part from a copy that has it whole. `None`: a part is whole
/// in none.
fn whole(mut copies: Vec<(Node, Vec<Option<Damage>>)>) -> Option<Node> {
    let is_whole = |(_, parts): &(Node, Vec<Option<Damage>>)| parts.iter().all(Option::is_none);
    let best = copies.iter().position(is_whole).unwrap_or(0);
    let (mut node, parts) = (best < copies.len()).then(|| copies.swap_remove(best))?;
    for number in (0..parts.len()).filter(|number| parts[*number].is_some()) {
        let (other, _) = copies.iter().find(|(_, parts)| parts[number].is_none())?;
        node.take_part(number, other);
    }
    Some(node)
}

/// Applies a buffer to the entries of a leaf: ranges first, then messages.
fn merged(entries: &[(Bytes, Bytes)], buffer: &Buffer, lower: &Bytes, upper: Option<&Bytes>) -> Vec<(Bytes, Bytes)> {
    let covered = |key: &Bytes| buffer.ranges().iter().any(|(from, to)| from <= key && key < to);
    let mut values: std::collections::BTreeMap<Bytes, Bytes> =
        entries.iter().filter(|(key, _)| !covered(key)).cloned().collect();
    for (key, message) in
        buffer.messages().iter().filter(|(key, _)| *key >= lower && upper.is_none_or(|upper| *key < upper))
    {
        match message.apply(values.get(key)) {
            Some(value) => drop(values.insert(key.clone(), value)),
            None => drop(values.remove(key)),
        }
    }
    values.into_iter().collect()
}

/// A key as text.
fn shown(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

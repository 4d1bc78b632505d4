//! Rebuilds the tree from the root down: readable nodes stay, others are replaced.
//!
//! An empty leaf replaces an unreadable leaf. For an unreadable inner node, the nodes between its
//! bounds one level below become children, by their headers; newer ones are preferred to
//! overlapping ones. The messages of the inner node are lost. A node with a damaged part keeps the
//! other parts.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::{
    Loss, Lost,
    nodes::{Nodes, Read},
    scan::FoundNode,
};
use crate::{
    disk::{Extent, NodeId, Place},
    node::{Body, Buffer, Child, Inner, Leaf, Node},
};

/// A consistent tree.
#[derive(Default)]
pub(super) struct Rebuilt {
    /// The nodes that stay as they are.
    pub places: BTreeMap<NodeId, Place>,
    /// The nodes to write.
    pub edits: BTreeMap<NodeId, Node>,
    pub lost: Vec<Loss>,
    /// The header checksum and the length of each node without a loss, as it was.
    pub whole: BTreeMap<NodeId, (u64, u32)>,
    /// Descriptions of the nodes that are rewritten because of a copy.
    pub rewritten: Vec<String>,
    pub root: Option<NodeId>,
    /// The number of the next new node.
    pub next: u64,
    /// The units that the tree was built from.
    pub sources: Vec<Extent>,
}

/// Rebuilds the tree. `root`: the number of the root, if known. `next`: the first number that was
/// never used.
pub(super) fn rebuild(nodes: &mut Nodes<'_>, root: Option<NodeId>, next: u64) -> Rebuilt {
    let mut builder = Builder { reached: BTreeSet::new(), rebuilt: Rebuilt::default() };
    builder.rebuilt.next = next.max(nodes.last().saturating_add(1));
    let root = root.or_else(|| nodes.find_root());
    let id = root.unwrap_or_else(|| builder.new_id());
    builder.rebuilt.root = Some(builder.visit(nodes, id, Bytes::new(), None, None));
    builder.rebuilt
}

struct Builder {
    reached: BTreeSet<NodeId>,
    rebuilt: Rebuilt,
}

impl Builder {
    fn new_id(&mut self) -> NodeId {
        self.rebuilt.next += 1;
        NodeId(self.rebuilt.next - 1)
    }

    fn lose(&mut self, what: Lost, place: String, from: &Bytes, to: Option<&Bytes>) {
        self.rebuilt.lost.push(Loss { what, place, from: from.clone(), to: to.cloned() });
    }

    /// Rebuilds the subtree of a node between bounds. Returns its number, which is a new one if the
    /// node was reached before.
    fn visit(
        &mut self,
        nodes: &mut Nodes<'_>,
        id: NodeId,
        lower: Bytes,
        upper: Option<Bytes>,
        height: Option<u8>,
    ) -> NodeId {
        let is_first = self.reached.insert(id);
        let id = if is_first { id } else { self.new_id() };
        let is_wanted = |node: &Node| {
            let fits = height.map_or(node.height() > 0, |height| height == node.height());
            fits && node.lower == lower && node.upper == upper
        };
        let read = nodes.read(id, is_wanted).filter(|_| is_first);
        let Some(Read { place, mut node, bad, is_degraded, sources }) = read else {
            let height = height.unwrap_or_else(|| nodes.height_above(id));
            self.replace(nodes, id, lower, upper, height);
            return id;
        };
        self.rebuilt.sources.extend(sources);
        let name = format!("node {id} at byte {}", nodes.area.geometry().unit_at(place.extents[0].first));
        for number in &bad {
            let (from, what) = match &node.body {
                Body::Leaf(leaf) => (leaf.parts()[*number].first.clone(), Lost::Values),
                Body::Inner(inner) => (inner.children()[*number].lower.clone(), Lost::Changes),
            };
            self.lose(what, format!("{name}, part {number}"), &from, node.end(*number).cloned().as_ref());
        }
        if is_degraded && bad.is_empty() {
            self.rebuilt.rewritten.push(format!("{name}: a copy is damaged, both are rewritten"));
        }
        if bad.is_empty() {
            self.rebuilt.whole.insert(id, (place.header_sum, place.bytes));
        }
        let mut is_changed = is_degraded || !bad.is_empty();
        match &mut node.body {
            Body::Leaf(leaf) => {
                let kept = leaf.parts().iter().filter(|part| part.body.is_here()).cloned().collect();
                *leaf = Leaf::from_parts(kept);
            }
            Body::Inner(inner) => {
                let below = inner.height() - 1;
                for number in bad {
                    let child = &mut inner.children_mut()[number];
                    *child = Child::new(child.lower.clone(), child.id, Buffer::default());
                }
                for number in 0..inner.children().len() {
                    let child = &inner.children()[number];
                    let end = inner.end(number).or(upper.as_ref()).cloned();
                    let new = self.visit(nodes, child.id, child.lower.clone(), end, Some(below));
                    // Write the parents of new nodes as well. A node that is older than a node
                    // below it would count as outdated, if the map were lost.
                    is_changed |= new != child.id || self.rebuilt.edits.contains_key(&new);
                    inner.children_mut()[number].id = new;
                }
            }
        }
        if is_changed {
            self.rebuilt.edits.insert(id, node);
        } else {
            self.rebuilt.places.insert(id, place);
        }
        id
    }

    /// Replaces an unreadable node.
    fn replace(&mut self, nodes: &mut Nodes<'_>, id: NodeId, lower: Bytes, upper: Option<Bytes>, height: u8) {
        let body = if height == 0 {
            self.lose(Lost::Values, format!("node {id}"), &lower, upper.as_ref());
            Body::Leaf(Leaf::default())
        } else {
            self.lose(Lost::Changes, format!("node {id}"), &lower, upper.as_ref());
            Body::Inner(Inner::new(height, self.tile(nodes, &lower, upper.as_ref(), height - 1)))
        };
        self.rebuilt.edits.insert(id, Node { lower, upper, body });
    }

    /// Covers the keys between two bounds with nodes of a height, and with new nodes in the gaps.
    fn tile(&mut self, nodes: &mut Nodes<'_>, lower: &Bytes, upper: Option<&Bytes>, height: u8) -> Vec<Child> {
        let is_inside = |node: &&FoundNode| {
            let ends = upper.is_none_or(|upper| node.upper.as_ref().is_some_and(|end| end <= upper));
            node.height == height && node.lower >= *lower && ends && !self.reached.contains(&node.id)
        };
        let mut inside: Vec<FoundNode> = nodes.list().values().filter(is_inside).cloned().collect();
        inside.sort_by_key(|node| (std::cmp::Reverse(node.generation), node.id));
        let mut chosen: BTreeMap<Bytes, (NodeId, Option<Bytes>)> = BTreeMap::new();
        for node in inside {
            let before = chosen.range(..=node.lower.clone()).next_back();
            let is_behind = before.is_none_or(|(_, (_, end))| end.as_ref().is_some_and(|end| *end <= node.lower));
            let next = chosen.range(node.lower.clone()..).next();
            let is_before = next.is_none_or(|(first, _)| node.upper.as_ref().is_some_and(|end| end <= first));
            if is_behind && is_before {
                chosen.insert(node.lower, (node.id, node.upper));
            }
        }
        let (mut children, mut at) = (Vec::new(), Some(lower.clone()));
        let mut fill =
            |builder: &mut Self, nodes: &mut Nodes<'_>, from: Bytes, to: Option<Bytes>, id: Option<NodeId>| {
                let id = id.unwrap_or_else(|| builder.new_id());
                let id = builder.visit(nodes, id, from.clone(), to, Some(height));
                children.push(Child::new(from, id, Buffer::default()));
            };
        for (first, (id, end)) in chosen {
            if let Some(from) = at.filter(|from| *from < first) {
                fill(self, nodes, from, Some(first.clone()), None);
            }
            fill(self, nodes, first, end.clone(), Some(id));
            at = end;
        }
        if let Some(from) = at.filter(|from| upper.is_none_or(|upper| from < upper)) {
            fill(self, nodes, from, upper.cloned(), None);
        }
        children
    }
}

//! The outline of a tree, read from JSON and arranged by levels.

use serde_json::Value as Json;

/// A tree of nodes.
pub(super) struct Outline {
    /// In the order of keys, each node before its children.
    pub nodes: Vec<Node>,
    /// The number of leaves and of unreadable nodes: the width of each level, in places.
    pub places: usize,
    /// Bytes that a node holds before it is split, or before its messages are flushed to its
    /// children.
    pub node_bytes: f64,
    /// The superblock that has its root.
    pub generation: u64,
    /// Levels, the root's first.
    pub levels: Vec<Level>,
    /// Flushes since the mount, if they were counted: the source's levels above the leaves, the
    /// number of flushes, their bytes.
    pub flushes: Vec<(u64, u64, f64)>,
}

/// A node.
pub(super) struct Node {
    pub id: u64,
    pub height: u64,
    pub parent: Option<usize>,
    pub generation: u64,
    pub bytes: f64,
    /// Bytes of entries (leaf) or of waiting messages (inner node).
    pub weight: f64,
    /// Waiting for it in its parent: bytes, messages, deleted ranges.
    pub waiting: (f64, u64, u64),
    pub holds: Holds,
    pub extents: Vec<(f64, f64)>,
    pub damage: Option<String>,
    /// Its places along a level: the first one, and the first one after it.
    pub span: (usize, usize),
}

/// The kind of a node's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Contents,
    Metadata,
    Both,
}

/// All nodes of the same height.
pub(super) struct Level {
    pub height: u64,
    /// Their indexes in the list of nodes.
    pub nodes: Vec<usize>,
    /// The number of them that can be read.
    pub readable: u64,
    pub bytes: f64,
    pub weight: f64,
    /// Bytes of messages in them for the nodes below.
    pub messages: u64,
    pub ranges: u64,
    /// Nodes that the superblock's checkpoint wrote.
    pub newest: u64,
    /// Pieces on the device.
    pub pieces: u64,
}

impl Outline {
    /// Reads schema `senesce-evergreen-tree/1`; what is missing is zero.
    pub(super) fn read(tree: &Json) -> Self {
        let mut nodes: Vec<Node> = list(&tree["nodes"]).map(Node::read).collect();
        let places = place(&mut nodes);
        let generation = tree["superblock"].as_u64().unwrap_or(0);
        let node_bytes = tree["node_bytes"].as_f64().filter(|bytes| *bytes > 0.0).unwrap_or(1.0);
        let flush = |flush: &Json| {
            let whole = |key: &str| flush[key].as_u64().unwrap_or(0);
            (whole("height"), whole("count"), flush["bytes"].as_f64().unwrap_or(0.0))
        };
        let flushes = list(&tree["flushes"]).map(flush).collect();
        let levels = levels(&nodes, generation);
        Self { nodes, places, node_bytes, generation, levels, flushes }
    }

    /// The leaves that can be read, in the order of keys.
    pub(super) fn leaves(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.height == 0 && node.damage.is_none())
    }

    /// Nodes in which something cannot be read.
    pub(super) fn damaged(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.damage.is_some())
    }

    /// The fill of a node: 1 is full.
    pub(super) fn fill(&self, node: &Node) -> f64 {
        node.weight / self.node_bytes
    }

    /// The share of leaves, without the first, that start at the end of the leaf before; `None` for
    /// fewer than two leaves.
    pub(super) fn adjacent_share(&self) -> Option<f64> {
        let leaves: Vec<&Node> = self.leaves().filter(|leaf| !leaf.extents.is_empty()).collect();
        let follows = |pair: &&[&Node]| {
            let (at, length) = pair[0].extents[pair[0].extents.len() - 1];
            pair[1].extents[0].0 == at + length
        };
        let count = leaves.windows(2).filter(follows).count();
        (leaves.len() > 1).then(|| count as f64 / (leaves.len() - 1) as f64)
    }
}

impl Node {
    fn read(node: &Json) -> Self {
        let whole = |key: &str| node[key].as_u64().unwrap_or(0);
        let size = |key: &str| node[key].as_f64().unwrap_or(0.0);
        let extent = |extent: &Json| (extent[0].as_f64().unwrap_or(0.0), extent[1].as_f64().unwrap_or(0.0));
        Self {
            id: whole("id"),
            height: whole("height"),
            parent: node["parent"].as_u64().map(|at| at as usize),
            generation: whole("generation"),
            bytes: size("bytes"),
            weight: size("weight_bytes"),
            waiting: (size("waiting_bytes"), whole("waiting_messages"), whole("waiting_ranges")),
            holds: match node["holds"].as_str() {
                Some("contents") => Holds::Contents,
                Some("metadata") => Holds::Metadata,
                _ => Holds::Both,
            },
            extents: list(&node["extents"]).map(extent).collect(),
            damage: node["damage"].as_str().map(str::to_owned),
            span: (0, 0),
        }
    }
}

/// Assigns each node its places along a level and returns their number. A node has the places of
/// its children, or one place without children.
fn place(nodes: &mut [Node]) -> usize {
    let mut is_parent = vec![false; nodes.len()];
    for (at, node) in nodes.iter_mut().enumerate() {
        // A child that precedes its parent in the list is damage, and has no parent.
        node.parent = node.parent.filter(|parent| *parent < at);
        if let Some(parent) = node.parent {
            is_parent[parent] = true;
        }
    }
    let mut places = 0;
    for (node, is_parent) in nodes.iter_mut().zip(&is_parent) {
        node.span = (usize::MAX, 0);
        if !is_parent {
            node.span = (places, places + 1);
            places += 1;
        }
    }
    for at in (0..nodes.len()).rev() {
        let (span, parent) = (nodes[at].span, nodes[at].parent);
        if let Some(parent) = parent {
            let of_parent = &mut nodes[parent].span;
            *of_parent = (of_parent.0.min(span.0), of_parent.1.max(span.1));
        }
    }
    places
}

fn levels(nodes: &[Node], generation: u64) -> Vec<Level> {
    let highest = nodes.iter().map(|node| node.height).max();
    let level = |height: u64| {
        let of_level: Vec<usize> = (0..nodes.len()).filter(|at| nodes[*at].height == height).collect();
        let each = || of_level.iter().map(|at| &nodes[*at]);
        let below = || nodes.iter().filter(|node| node.parent.is_some_and(|parent| nodes[parent].height == height));
        Level {
            height,
            readable: each().filter(|node| node.damage.is_none()).count() as u64,
            bytes: each().map(|node| node.bytes).sum(),
            weight: each().map(|node| node.weight).sum(),
            messages: below().map(|node| node.waiting.1).sum(),
            ranges: below().map(|node| node.waiting.2).sum(),
            newest: each().filter(|node| node.generation == generation).count() as u64,
            pieces: each().map(|node| node.extents.len() as u64).sum(),
            nodes: of_level,
        }
    };
    let all = highest.into_iter().flat_map(|highest| (0..=highest).rev()).map(level);
    all.filter(|level| !level.nodes.is_empty()).collect()
}

fn list(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

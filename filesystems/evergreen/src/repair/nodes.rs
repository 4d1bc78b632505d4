//! The places of the nodes of a tree, and their readable parts: by a map, or by their headers.

use std::collections::HashMap;

use super::scan::{Found, FoundNode};
use crate::{
    disk::{Area, BLOCK, Copies, Extent, NodeId, NodeMap, Place, Superblock},
    node::{Body, Child, Header, Node},
};

/// The source of nodes.
pub(super) struct Nodes<'a> {
    pub area: &'a Area,
    /// The map, if there is one; then only its places are used.
    map: Option<&'a NodeMap>,
    found: &'a Found,
    /// Without a map: the newest version of each node up to the wanted generation. With a map:
    /// filled by the first call of `list`.
    newest: HashMap<NodeId, FoundNode>,
    is_listed: bool,
    /// Whether a node that is older than a node below it is ignored: it may be an outdated version.
    is_strict: bool,
    /// Without a map: the places of the nodes with each header, one or two copies.
    copies: HashMap<(NodeId, u64), Vec<FoundNode>>,
    /// The number of copies that inner nodes should have.
    wanted: Copies,
}

/// A readable node, from any copy.
pub(super) struct Read {
    /// The place of its whole copies.
    pub place: Place,
    pub node: Node,
    /// The parts that are whole in no copy.
    pub bad: Vec<usize>,
    /// Whether a copy is damaged or missing, so that the node must be rewritten.
    pub is_degraded: bool,
    /// The extents of all copies that were read.
    pub sources: Vec<Extent>,
}

impl<'a> Nodes<'a> {
    /// Nodes by a map.
    pub fn by_map(area: &'a Area, map: &'a NodeMap, found: &'a Found) -> Self {
        let (newest, copies) = (HashMap::new(), HashMap::new());
        let (is_listed, is_strict, wanted) = (false, false, Copies::One);
        Self { area, map: Some(map), found, newest, is_listed, is_strict, copies, wanted }
    }

    /// Nodes by the found headers. Skips later generations than that of the superblock, and numbers
    /// that it has not allocated.
    pub fn by_headers(area: &'a Area, found: &'a Found, superblock: &Superblock, is_strict: bool) -> Self {
        let (generation, wanted) = (superblock.generation, superblock.copies);
        let mut copies: HashMap<(NodeId, u64), Vec<FoundNode>> = HashMap::new();
        for node in &found.nodes {
            copies.entry((node.id, node.sum)).or_default().push(node.clone());
        }
        let mut newest: HashMap<NodeId, FoundNode> = HashMap::new();
        // A node may be written twice in one generation, after a failed checkpoint. A map names the
        // valid one.
        let rank = |node: &FoundNode| (node.generation, found.places.contains_key(&(node.id, node.sum)));
        let can_be = |node: &&FoundNode| node.generation <= generation && node.id.0 < superblock.next_node;
        for node in found.nodes.iter().filter(can_be) {
            match newest.get(&node.id) {
                Some(other) if rank(other) >= rank(node) => {}
                _ => drop(newest.insert(node.id, node.clone())),
            }
        }
        Self { area, map: None, found, newest, is_listed: true, is_strict, copies, wanted }
    }

    /// Finds the root by its bounds. Flushes start at the root, so it is as new as any node.
    pub fn find_root(&self) -> Option<NodeId> {
        let all = |node: &&FoundNode| node.height > 0 && node.lower.is_empty() && node.upper.is_none();
        self.newest.values().filter(all).max_by_key(|node| (node.generation, node.height)).map(|node| node.id)
    }

    /// The highest number of a node.
    pub fn last(&self) -> u64 {
        let mapped = self.map.into_iter().flat_map(|map| map.iter().map(|(id, _)| id.0));
        mapped.chain(self.newest.keys().map(|id| id.0)).max().unwrap_or(0)
    }

    pub fn list(&mut self) -> &HashMap<NodeId, FoundNode> {
        if let (Some(map), false) = (self.map, self.is_listed) {
            for (id, place) in map.iter() {
                let at = self.area.geometry().unit_at(place.extents[0].first);
                let mut headers = place.copies().filter_map(|copy| read_header(self.area, &copy));
                let header = headers.find(|header| (header.id, header.sum) == (id, place.header_sum));
                self.newest.extend(header.map(|header| (id, FoundNode::new(at, header))));
            }
            self.is_listed = true;
        }
        &self.newest
    }

    /// The height of an unreadable root: one above the highest node that is as new as the newest
    /// leaf. A flush rewrites all nodes on its path, so older nodes do not count.
    pub fn height_above(&mut self, root: NodeId) -> u8 {
        let has_map = self.map.is_some();
        let nodes = self.list();
        let leaf = nodes.values().filter(|node| node.height == 0).map(|node| node.generation).max().unwrap_or(0);
        let counts = |node: &&FoundNode| node.id != root && (has_map || node.generation >= leaf);
        nodes.values().filter(counts).map(|node| node.height).max().unwrap_or(0).saturating_add(1)
    }

    /// Reads a node that satisfies `is_wanted`, with the parts that are readable in any copy.
    pub fn read(&self, id: NodeId, is_wanted: impl Fn(&Node) -> bool) -> Option<Read> {
        let places = match self.map {
            Some(map) => map.get(id).into_iter().flat_map(Place::copies).collect(),
            None => self.newest.get(&id).map_or(Vec::new(), |node| self.places(node)),
        };
        let known = places.len();
        let read = places.into_iter().filter_map(|place| {
            let header = read_header(self.area, &place)?;
            let is_it =
                (header.id, header.sum) == (id, place.header_sum) && header.bytes as u64 == u64::from(place.bytes);
            if !is_it || !is_wanted(&header.node) || self.is_stale(id, &header.node) {
                return None;
            }
            let is_old = header.uuid.is_none();
            let (node, bad) = self.read_parts(&place, header.node);
            Some((place, node, bad, is_old))
        });
        let mut read: Vec<_> = read.collect();
        let sources = read.iter().flat_map(|(place, ..)| place.all()).collect();
        // Stable: among equal ones the first copy stays first.
        read.sort_by_key(|(_, _, bad, _)| bad.len());
        let mut whole: Vec<Place> = Vec::new();
        for (place, ..) in read.iter().filter(|(_, _, bad, _)| bad.is_empty()) {
            if !whole.iter().any(|other| other.extents[0] == place.extents[0]) {
                whole.push(place.clone());
            }
        }
        let mut read = read.into_iter();
        let (mut place, mut node, bad, is_old) = read.next()?;
        let others: Vec<_> = read.collect();
        let mut is_lost = |number: &usize| match others.iter().find(|(_, _, bad, _)| !bad.contains(number)) {
            Some((_, other, ..)) => {
                node.take_part(*number, other);
                false
            }
            None => true,
        };
        let bad: Vec<usize> = bad.into_iter().filter(&mut is_lost).collect();
        let wanted = match self.map {
            Some(_) => known,
            None if node.height() == 0 || is_old => 1,
            None => self.wanted.count() as usize,
        };
        let is_degraded = whole.len() < wanted;
        let mut whole = whole.into_iter();
        if let Some(first) = whole.next() {
            let second = whole.next().filter(|_| wanted > 1).map(|second| second.extents).unwrap_or_default();
            place = Place { second, ..first };
        }
        Some(Read { place, node, bad, is_degraded, sources })
    }

    /// Whether an inner node may be an older version: a child has other bounds than the node
    /// records, or is newer. A flush to a child always rewrites its parent, so a newer child proves
    /// it.
    fn is_stale(&self, id: NodeId, node: &Node) -> bool {
        let (Body::Inner(inner), Some(own)) = (&node.body, self.newest.get(&id).filter(|_| self.is_strict)) else {
            return false;
        };
        let is_other = |(number, child): (usize, &Child)| {
            let end = inner.end(number).or(node.upper.as_ref());
            let newer = |below: &FoundNode| below.generation > own.generation;
            self.newest
                .get(&child.id)
                .is_some_and(|below| newer(below) || below.lower != child.lower || below.upper.as_ref() != end)
        };
        inner.children().iter().enumerate().any(is_other)
    }

    /// The extents of all copies of the found nodes.
    pub fn extents(&self) -> Vec<Extent> {
        self.newest
            .values()
            .flat_map(|node| self.places(node))
            .flat_map(|place| place.all().collect::<Vec<_>>())
            .collect()
    }

    fn places(&self, node: &FoundNode) -> Vec<Place> {
        // No node is longer.
        let Ok(bytes) = u32::try_from(node.bytes) else { return Vec::new() };
        let place = |extents| Place { extents, second: Default::default(), bytes, header_sum: node.sum };
        let copies = self.copies.get(&(node.id, node.sum)).into_iter().flatten();
        copies.flat_map(|node| self.found.extents(node, self.area.geometry())).map(place).collect()
    }

    fn read_parts(&self, place: &Place, mut node: Node) -> (Node, Vec<usize>) {
        let mut bad = Vec::new();
        for number in 0..node.parts() {
            let Some(stored) = node.stored(number) else { continue };
            let bytes = self.area.read(&place.extents, stored.at as u64, stored.bytes);
            if bytes.ok().is_none_or(|bytes| node.load(number, bytes).is_err()) {
                bad.push(number);
            }
        }
        (node, bad)
    }
}

/// The header of a node at a place, if it is whole.
fn read_header(area: &Area, place: &Place) -> Option<Header> {
    let start = area.read(&place.extents, 0, (place.bytes as usize).min(BLOCK)).ok()?;
    let bytes = Header::bytes(&start).ok().filter(|bytes| *bytes <= place.bytes as usize)?;
    Header::decode(area.read(&place.extents, 0, bytes).ok()?).ok()
}

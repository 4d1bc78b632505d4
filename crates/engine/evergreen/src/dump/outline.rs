//! The outline of a tree: every node with its size, its place and what waits for it, for whoever draws it.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use senesce_block::BlockDevice;

use super::Media;
use crate::{
    Result,
    disk::{Decoded, Extent, NodeId, NodeMap, Place, Shape},
    node::{Child, Header, Node},
};

/// A tree as it lies on its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The superblock that names it.
    pub generation: u64,
    /// What it was made with.
    pub shape: Shape,
    /// The area of nodes: its first byte, and its length.
    pub area: (u64, u64),
    /// The root, then whatever is below it in the order of keys, each node before those below it.
    pub nodes: Vec<OutlinedNode>,
}

/// A node of an outline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutlinedNode {
    /// Its number.
    pub id: u64,
    /// Levels that it is above the leaves; of one that cannot be read, as its parent has it.
    pub height: u8,
    /// Its parent's place in the list; none of the root.
    pub parent: Option<usize>,
    /// The checkpoint that wrote it.
    pub generation: u64,
    /// Bytes of it on the device.
    pub bytes: u64,
    /// The most bytes that its parts take: the entries of a leaf, what waits in an inner node. This is what its limits are about.
    pub weight_bytes: u64,
    /// Where it lies, in the order of its bytes: first bytes of the device, and lengths.
    pub extents: Vec<(u64, u64)>,
    /// What its keys are of.
    pub holds: Holds,
    /// What waits for it in its parent.
    pub waiting: Waiting,
    /// Why it, or a part of it, cannot be read.
    pub damage: Option<String>,
}

/// What waits for a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The most bytes that it takes.
    pub bytes: u64,
    /// Messages for single keys; 0 if they cannot be read.
    pub messages: u64,
    /// Ranges that are deleted; 0 if they cannot be read.
    pub ranges: u64,
}

/// What the keys of a node are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Holds {
    /// Blocks of files.
    Contents,
    /// Inodes, names, extended attributes, and what the file system keeps about itself.
    Metadata,
    /// Both.
    #[default]
    Both,
}

impl Holds {
    /// By the bounds of a node: keys of blocks come before all others.
    fn between(lower: &[u8], upper: Option<&Bytes>) -> Self {
        const BEHIND_BLOCKS: &[u8] = b"e";
        match upper {
            _ if lower >= BEHIND_BLOCKS => Self::Metadata,
            Some(upper) if &upper[..] <= BEHIND_BLOCKS => Self::Contents,
            _ => Self::Both,
        }
    }
}

/// Outlines the tree of an evergreen that is not open. A node that cannot be read is told with what is wrong, and without what is below it.
///
/// Errors: no superblock or no map of nodes that can be read. Cost: reads inner nodes, and headers of leaves; memory for each node.
pub fn outline(device: &Arc<dyn BlockDevice>) -> Result<Outline> {
    let media = Media::open(device)?;
    let superblock = &media.superblock;
    let map = NodeMap::load(&media.area, superblock)?;
    let mut nodes: Vec<OutlinedNode> = Vec::new();
    let mut seen = HashSet::new();
    // The root is an inner node always.
    let mut open = vec![OutlinedNode { id: superblock.root.0, height: 1, ..OutlinedNode::default() }];
    while let Some(mut named) = open.pop() {
        let at = nodes.len();
        let found = match map.get(NodeId(named.id)) {
            _ if !seen.insert(named.id) => Err("it is named twice".to_owned()),
            None => Err("it is not in the map of nodes".to_owned()),
            Some(place) => {
                let unit = u64::from(superblock.geometry.unit_bytes);
                let run = |run: &Extent| (superblock.geometry.unit_at(run.first), u64::from(run.count) * unit);
                named.extents = place.extents.iter().map(run).collect();
                named.bytes = place.bytes.into();
                read(&media, place).map(|header| (header, place))
            }
        };
        match found {
            Ok((header, place)) => open.extend(fill(&mut named, &header, at, &media, place).into_iter().rev()),
            Err(why) => named.damage = Some(why),
        }
        nodes.push(named);
    }
    let (geometry, shape) = (superblock.geometry, superblock.shape);
    Ok(Outline { generation: superblock.generation, shape, area: (geometry.data_at, geometry.data_bytes()), nodes })
}

/// Takes over what a header says; gives the nodes below, of which no more is known than what their parent has for them.
fn fill(named: &mut OutlinedNode, header: &Header, at: usize, media: &Media, place: &Place) -> Vec<OutlinedNode> {
    let mut node = header.node.clone();
    named.height = node.height();
    named.generation = header.generation;
    named.weight_bytes = node.weight() as u64;
    named.holds = Holds::between(&node.lower, node.upper.as_ref());
    if node.height() == 0 {
        return Vec::new();
    }
    named.damage = load_buffers(media, place, &mut node);
    let height = node.height() - 1;
    let below = |child: &Child| {
        let mut waiting = Waiting { bytes: child.weight as u64, ..Waiting::default() };
        if child.body.is_here() {
            let buffer = child.body.here();
            (waiting.messages, waiting.ranges) = (buffer.messages().len() as u64, buffer.ranges().len() as u64);
        }
        OutlinedNode { id: child.id.0, height, parent: Some(at), waiting, ..OutlinedNode::default() }
    };
    node.inner().children().iter().map(below).collect()
}

/// Takes those parts of an inner node into memory that can be read; tells what is wrong with the first of the others.
fn load_buffers(media: &Media, place: &Place, node: &mut Node) -> Option<String> {
    let bytes = match super::node::read_copy(media, place) {
        Ok(bytes) => bytes,
        Err(error) => return Some(error.to_string()),
    };
    let mut damage = None;
    for number in 0..node.parts() {
        let Some(stored) = node.stored(number) else { continue };
        let end = stored.at + stored.bytes;
        let loaded = match end <= bytes.len() {
            true => node.load(number, bytes.slice(stored.at..end)).map_err(|damage| damage.to_string()),
            false => Err("it reaches behind the node's end".to_owned()),
        };
        if let Err(why) = loaded {
            damage.get_or_insert(format!("what waits for child {number}: {why}"));
        }
    }
    damage
}

/// The header of a node, or why it cannot be read.
fn read(media: &Media, place: &Place) -> std::result::Result<Header, String> {
    let header: Decoded<Header> = super::node::read_header(media, place).map_err(|error| error.to_string())?;
    header.map_err(|damage| damage.to_string())
}

//! The outline of a tree: every node with its size, its place and its waiting messages, for a
//! chart.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use senesce_block::BlockDevice;

use super::Media;
use crate::{
    Result,
    disk::{Decoded, Extent, NodeId, NodeMap, Place, Shape},
    node::{Child, Header, Node},
};

/// The tree of an evergreen on its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The generation of its superblock.
    pub generation: u64,
    /// The shape of the tree.
    pub shape: Shape,
    /// The area of nodes: offset and length in bytes.
    pub area: (u64, u64),
    /// The nodes: the root, then all below it in the order of keys, each node before its children.
    pub nodes: Vec<OutlinedNode>,
}

/// A node of an outline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutlinedNode {
    /// The number of the node.
    pub id: u64,
    /// The levels above the leaves; for an unreadable node as its parent implies.
    pub height: u8,
    /// The index of the parent in the list; `None` for the root.
    pub parent: Option<usize>,
    /// The generation of the checkpoint that wrote it.
    pub generation: u64,
    /// The length of the node on the device, in bytes.
    pub bytes: u64,
    /// The most bytes that its encoded parts take: the entries of a leaf, the buffers of an inner
    /// node. The limits of nodes apply to this.
    pub weight_bytes: u64,
    /// The extents in the order of its bytes: offsets on the device and lengths.
    pub extents: Vec<(u64, u64)>,
    /// The kind of data in the node.
    pub holds: Holds,
    /// The messages that wait for the node in its parent.
    pub waiting: Waiting,
    /// The reason why the node, or a part of it, cannot be read.
    pub damage: Option<String>,
}

/// The messages that wait for a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The most bytes that they take when encoded.
    pub bytes: u64,
    /// Messages for single keys; 0 if they cannot be read.
    pub messages: u64,
    /// Deleted ranges; 0 if they cannot be read.
    pub ranges: u64,
}

/// The kind of data in a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Holds {
    /// Blocks of files.
    Contents,
    /// Inodes, names, extended attributes, and records of the file system.
    Metadata,
    /// Both.
    #[default]
    Both,
}

impl Holds {
    /// The kind between the bounds of a node: the keys of blocks are before all others.
    fn between(lower: &[u8], upper: Option<&Bytes>) -> Self {
        const BEHIND_BLOCKS: &[u8] = b"e";
        match upper {
            _ if lower >= BEHIND_BLOCKS => Self::Metadata,
            Some(upper) if &upper[..] <= BEHIND_BLOCKS => Self::Contents,
            _ => Self::Both,
        }
    }
}

/// Outlines the tree of an evergreen that is not open. An unreadable node has its damage, and
/// nothing below it.
///
/// Errors: no readable superblock or map of nodes. Cost: reads inner nodes, and headers of leaves;
/// memory for each node.
pub fn outline(device: &Arc<dyn BlockDevice>) -> Result<Outline> {
    let media = Media::open(device)?;
    let superblock = &media.superblock;
    let map = NodeMap::load(&media.area, superblock)?;
    let mut nodes: Vec<OutlinedNode> = Vec::new();
    let mut seen = HashSet::new();
    // The root is always an inner node.
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

/// Sets the facts of a header. Returns the children, with the facts that their parent has.
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

/// Loads the readable parts of an inner node. Returns the damage of the first unreadable part.
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
            false => Err("it exceeds the node's end".to_owned()),
        };
        if let Err(why) = loaded {
            damage.get_or_insert(format!("buffer of child {number}: {why}"));
        }
    }
    damage
}

/// The header of a node, or the reason why it cannot be read.
fn read(media: &Media, place: &Place) -> std::result::Result<Header, String> {
    let header: Decoded<Header> = super::node::read_header(media, place).map_err(|error| error.to_string())?;
    header.map_err(|damage| damage.to_string())
}

//! Missing parts of nodes, and reads of them without a lock.

use std::{ops::Range, sync::Arc};

use super::node_source::{Lying, Source};
use crate::{
    Result,
    node::{Node, NodeId},
};

/// The missing part of a node.
#[derive(Debug)]
pub(crate) struct Want {
    pub(super) id: NodeId,
    /// The node, if a part of it is in memory.
    pub(super) node: Option<Arc<Node>>,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// The header.
    Header,
    /// These parts; the header is in memory.
    Parts(Range<usize>),
    /// All parts.
    Whole,
    /// All parts, and those following nodes that are directly adjacent.
    Row(Vec<NodeId>),
}

/// A read that is done without the lock.
pub(super) struct Load<S: Source> {
    pub(super) source: Arc<S>,
    /// The place of the node at the start of the read.
    pub(super) place: S::Place,
    /// The following nodes and their places.
    pub(super) behind: Vec<(NodeId, S::Place)>,
    pub(super) want: Want,
}

impl<S: Source> Load<S> {
    /// Reads the node, and the following ones if requested.
    pub(super) fn read(&self) -> Result<Vec<Arc<Node>>> {
        let lying = Lying { source: &*self.source, id: self.want.id, place: &self.place };
        let one = match (&self.want.node, &self.want.what) {
            (node, What::Row(_)) => match (lying.read_row(node.as_deref(), &self.behind), node) {
                (Ok(row), _) => return Ok(row),
                // A following node may be the unreadable one, and no caller requested it.
                (Err(_), node) => {
                    let alone = match node {
                        Some(node) => lying.read_parts(node, 0..node.parts()),
                        None => lying.read_whole(),
                    };
                    // Otherwise the caller receives the error.
                    if alone.is_ok() {
                        self.source.note_passed_over();
                    }
                    alone
                }
            },
            (None, What::Whole) => lying.read_whole(),
            (None, What::Header | What::Parts(_)) => lying.read_header(),
            (Some(node), What::Parts(parts)) => lying.read_parts(node, parts.clone()),
            (Some(node), What::Header | What::Whole) => lying.read_parts(node, 0..node.parts()),
        };
        one.map(|node| vec![node])
    }
}

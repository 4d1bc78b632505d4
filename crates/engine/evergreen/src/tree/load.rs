//! What is lacked in memory, and how it is read without a lock.

use std::{ops::Range, sync::Arc};

use super::source::{Lying, Source};
use crate::{
    Result,
    node::{Node, NodeId},
};

/// What is lacked of a node.
#[derive(Debug)]
pub(crate) struct Want {
    pub(super) id: NodeId,
    /// The node as it is in memory, if anything of it is.
    pub(super) node: Option<Arc<Node>>,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// Its header.
    Header,
    /// These parts of it; its header is there.
    Parts(Range<usize>),
    /// All of it.
    Whole,
    /// All of it, and of these that follow as many as lie directly behind it.
    Row(Vec<NodeId>),
}

/// One reading, to be done without a lock.
pub(super) struct Load<S: Source> {
    pub(super) source: Arc<S>,
    /// Where the node lay when it was begun.
    pub(super) place: S::Place,
    /// The nodes that follow, and where they lay.
    pub(super) behind: Vec<(NodeId, S::Place)>,
    pub(super) want: Want,
}

impl<S: Source> Load<S> {
    /// Reads it, and those that follow, if that is wanted.
    pub(super) fn read(&self) -> Result<Vec<Arc<Node>>> {
        let lying = Lying { source: &*self.source, id: self.want.id, place: &self.place };
        let one = match (&self.want.node, &self.want.what) {
            (node, What::Row(_)) => match (lying.read_row(node.as_deref(), &self.behind), node) {
                (Ok(row), _) => return Ok(row),
                // What lies behind it may be what cannot be read: nobody has asked for that yet.
                (Err(_), node) => {
                    let alone = match node {
                        Some(node) => lying.read_parts(node, 0..node.parts()),
                        None => lying.read_whole(),
                    };
                    // Else whoever asked is told.
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

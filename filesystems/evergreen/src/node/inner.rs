//! Inner nodes: children, and a buffer for each of them.

use std::sync::Arc;

use bytes::Bytes;

use super::{Buffer, NodeId, part::Part};
use crate::Message;

/// An inner node. Invariant: children in the order of their lower bounds, at least one.
#[derive(Clone, Debug)]
pub(crate) struct Inner {
    height: u8,
    children: Vec<Child>,
}

/// A child of an inner node.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    /// The lower bound of its keys; the next child's bound ends them.
    pub(crate) lower: Bytes,
    /// The number of the child's node.
    pub(crate) id: NodeId,
    /// The most bytes that the encoded buffer takes.
    pub(crate) weight: usize,
    /// The buffer.
    pub(crate) body: Part<Buffer>,
}

impl Child {
    /// A child with a buffer.
    pub(crate) fn new(lower: Bytes, id: NodeId, buffer: Buffer) -> Self {
        Self { lower, id, weight: buffer.weight(), body: Part::Here(Arc::new(buffer)) }
    }

    /// Takes the buffer, which must be in memory.
    pub(crate) fn take(&mut self) -> Buffer {
        self.weight = 0;
        Arc::unwrap_or_clone(std::mem::take(self.body.here_mut()))
    }

    /// Changes the buffer, which must be in memory.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Buffer)) {
        let buffer = Arc::make_mut(self.body.here_mut());
        change(buffer);
        self.weight = buffer.weight();
    }
}

impl Inner {
    /// A node at `height` levels above the leaves, 1 or more.
    pub(crate) fn new(height: u8, children: Vec<Child>) -> Self {
        Self { height, children }
    }

    /// The number of levels above the leaves.
    pub(crate) fn height(&self) -> u8 {
        self.height
    }

    /// Its children in order.
    pub(crate) fn children(&self) -> &[Child] {
        &self.children
    }

    pub(crate) fn children_mut(&mut self) -> &mut Vec<Child> {
        &mut self.children
    }

    /// The most bytes that the encoded buffers take.
    pub(crate) fn weight(&self) -> usize {
        self.children.iter().map(|child| child.weight).sum()
    }

    /// The index of the child whose range has the key.
    pub(crate) fn index(&self, key: &[u8]) -> usize {
        self.children.partition_point(|child| &child.lower[..] <= key).saturating_sub(1)
    }

    /// The upper bound of a child, if another child follows.
    pub(crate) fn end(&self, index: usize) -> Option<&Bytes> {
        self.children.get(index + 1).map(|child| &child.lower)
    }

    /// Distributes a buffer to the buffers of the children. All parts must be in memory.
    pub(crate) fn receive(&mut self, buffer: Buffer) {
        for (from, to) in buffer.ranges().iter() {
            let mut index = self.index(from);
            loop {
                let end = self.end(index).filter(|end| *end < to).cloned();
                let first = from.max(&self.children[index].lower).clone();
                let last = end.clone().unwrap_or_else(|| to.clone());
                self.children[index].change(|waiting| waiting.delete_range(first, last));
                if end.is_none() {
                    break;
                }
                index += 1;
            }
        }
        self.receive_messages(buffer.into_messages());
    }

    /// Distributes messages, each to another key, in the order of their keys.
    pub(crate) fn receive_messages(&mut self, messages: impl IntoIterator<Item = (Bytes, Message)>) {
        let mut messages = messages.into_iter().peekable();
        while let Some((key, _)) = messages.peek() {
            let index = self.index(key);
            let end = self.end(index).cloned();
            let part = std::iter::from_fn(|| messages.next_if(|(key, _)| end.as_ref().is_none_or(|end| key < end)));
            let part = part.collect();
            self.children[index].change(|waiting| waiting.receive_messages(part));
        }
    }

    /// Splits the node into nodes of about `target` children. They have equal shares; if
    /// `is_appended`, all but the last are full.
    pub(crate) fn split(self, target: usize, is_appended: bool) -> Vec<Inner> {
        let count = self.children.len();
        let each = if is_appended { target } else { count.div_ceil(count.div_ceil(target)) };
        self.children.chunks(each).map(|children| Inner::new(self.height, children.to_vec())).collect()
    }

    /// Appends a node whose children are all after the own ones.
    pub(crate) fn join(&mut self, right: Inner) {
        self.children.extend(right.children);
    }
}

//! Keys are read in order, step by step: between two steps anything may happen to the tree.

use std::sync::Arc;

use bytes::Bytes;

use super::{Source, View, cache::Found};
use crate::node::{Body, Buffer, Entry, overlay};

/// What one step of a scan gives.
#[derive(Debug)]
pub(crate) struct Step {
    /// Keys with values in order, perhaps none.
    pub(crate) entries: Vec<Entry>,
    /// Where the next step begins; none if it was the last one.
    pub(crate) next: Option<Bytes>,
    /// There, another basement begins.
    pub(crate) is_at_end: bool,
}

impl<S: Source> View<S> {
    /// Reads keys from `from` on, up to `to`: all of one basement, and `most` at most from it and from each node above. `is_long`: it has read all of a basement before;
    /// then what it will need of a node is read in one reading.
    pub(crate) fn scan_step(&mut self, from: &Bytes, to: &Bytes, most: usize, is_long: bool) -> Found<Step> {
        let mut id = self.root;
        let mut waiting: Vec<Arc<Buffer>> = vec![self.arrived.clone()];
        let mut limit = to.clone();
        let mut is_at_end = true;
        let mut entries = loop {
            match &self.cache.peek(id)?.body {
                Body::Inner(inner) => {
                    let (is_above_leaves, is_above_parents) = (inner.height() == 1, inner.height() == 2);
                    let index = inner.index(from);
                    let (next, weight) = (inner.children()[index].id, inner.children()[index].weight);
                    let left = index.checked_sub(1).map(|left| inner.children()[left].id);
                    limit = inner.end(index).map_or(limit.clone(), |end| limit.min(end.clone()));
                    if weight > 0 {
                        waiting.push(self.buffer_ahead(id, index)?);
                    }
                    if is_above_leaves {
                        self.come_to(next, left, from)?;
                    } else if is_above_parents {
                        self.come_to_parent(id, index)?;
                    }
                    // Of a leaf, all is wanted if the scan goes on behind it; of an inner node, what waits for each child.
                    if is_long && (!is_above_leaves || limit < *to && self.cache.get(next).is_none()) {
                        self.cache.whole(next)?;
                    }
                    id = next;
                }
                Body::Leaf(leaf) => {
                    let Some(index) = leaf.index(from) else { break Vec::new() };
                    if is_long {
                        let behind = leaf.parts().partition_point(|part| part.first < *to);
                        self.parts_ahead(id, index..behind)?;
                    }
                    let basement = self.basement_ahead(id, index)?;
                    let next = self.cache.get(id).and_then(|node| node.leaf().parts().get(index + 1));
                    limit = next.map_or(limit.clone(), |next| limit.min(next.first.clone()));
                    let within = basement.within(from, Some(&limit));
                    if let Some((key, _)) = within.get(most) {
                        limit = key.clone();
                        is_at_end = false;
                    }
                    break within[..within.len().min(most)].to_vec();
                }
            }
        };
        for buffer in &waiting {
            if let Some((key, _)) = buffer.messages_within(from, Some(&limit)).nth(most) {
                limit = key.clone();
                is_at_end = false;
            }
        }
        entries.truncate(entries.partition_point(|(key, _)| *key < limit));
        for buffer in waiting.iter().rev() {
            if buffer.touches(from, Some(&limit)) {
                entries = overlay(&entries, buffer, from, Some(&limit));
            }
        }
        let next = (limit < *to).then_some(limit);
        Ok(Step { entries, next, is_at_end })
    }
}

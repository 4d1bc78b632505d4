//! Scans: keys are read in order, step by step. The tree may change between two steps.

use std::sync::Arc;

use bytes::Bytes;

use super::{Source, View, cache::Found};
use crate::node::{Body, Buffer, Entry, overlay};

/// The result of one step of a scan.
#[derive(Debug)]
pub(crate) struct Step {
    /// Entries in order, perhaps none.
    pub(crate) entries: Vec<Entry>,
    /// The start of the next step; `None` after the last one.
    pub(crate) next: Option<Bytes>,
    /// Whether the next step starts in another basement.
    pub(crate) is_at_end: bool,
}

impl<S: Source> View<S> {
    /// Reads keys from `from` up to `to`. A step covers at most one basement, and at most `most`
    /// keys of it and of each node above. If `is_long`, the scan has already read a whole basement;
    /// then one read loads all needed parts of a node.
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
                    // A leaf is read whole if the scan continues after it; of an inner node all
                    // buffers are read.
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

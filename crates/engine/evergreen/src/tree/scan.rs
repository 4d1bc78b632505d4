//! Keys are read in order, step by step: between two steps anything may happen to the tree.

use std::sync::Arc;

use bytes::Bytes;

use super::{Source, Tree};
use crate::{
    Result,
    node::{Body, Buffer, Entry, overlay},
};

/// What one step of a scan gives.
#[derive(Debug)]
pub(crate) struct Step {
    /// Keys with values in order, perhaps none.
    pub(crate) entries: Vec<Entry>,
    /// Where the next step begins; none if it was the last one.
    pub(crate) next: Option<Bytes>,
}

impl<S: Source> Tree<S> {
    /// Reads keys from `from` on, up to `to`: about `most` at most, all of one basement. `is_long`: it is not the first step; then
    /// whole leaves are read, each in one reading.
    pub(crate) fn scan_step(&mut self, from: &Bytes, to: &Bytes, most: usize, is_long: bool) -> Result<Step> {
        let mut id = self.root;
        let mut waiting: Vec<Arc<Buffer>> = Vec::new();
        let mut limit = to.clone();
        let mut entries = loop {
            match &self.nodes.peek(id)?.body {
                Body::Inner(inner) => {
                    let index = inner.index(from);
                    let (next, weight) = (inner.children()[index].id, inner.children()[index].weight);
                    limit = inner.end(index).map_or(limit.clone(), |end| limit.min(end.clone()));
                    if weight > 0 {
                        waiting.push(self.nodes.buffer(id, index)?);
                    }
                    id = next;
                }
                Body::Leaf(leaf) => {
                    let Some(index) = leaf.index(from) else { break Vec::new() };
                    limit = leaf.parts().get(index + 1).map_or(limit.clone(), |next| limit.min(next.first.clone()));
                    if is_long {
                        self.nodes.whole(id)?;
                    }
                    let basement = self.nodes.basement(id, index)?;
                    let within = basement.within(from, Some(&limit));
                    if let Some((key, _)) = within.get(most) {
                        limit = key.clone();
                    }
                    break within[..within.len().min(most)].to_vec();
                }
            }
        };
        for buffer in waiting.iter().rev() {
            if buffer.touches(from, Some(&limit)) {
                entries = overlay(&entries, buffer, from, Some(&limit));
            }
        }
        let next = (limit < *to).then_some(limit);
        Ok(Step { entries, next })
    }
}

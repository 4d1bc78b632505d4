//! Lookup of one key.

use bytes::Bytes;

use super::{Source, View, cache::Found};
use crate::{
    Message,
    node::{Body, Known},
};

impl<S: Source> View<S> {
    /// Returns the value of a key. Cost: a header and one part of each node on the path, if they
    /// are not in memory. A [sequential reader](Self::basement_ahead) reads more at a time.
    pub(crate) fn get(&mut self, key: &[u8]) -> Found<Option<Bytes>> {
        let mut id = self.root;
        // Edits of a value in a lower node, the newest first.
        let mut edits: Vec<Message> = Vec::new();
        match self.arrived.get(key) {
            Known::All(value) => return Ok(value.map(|value| Bytes::copy_from_slice(value))),
            Known::Part(edit) => edits.push(edit.clone()),
            Known::Nothing => {}
        }
        let base = loop {
            match &self.cache.peek(id)?.body {
                Body::Inner(inner) => {
                    let index = inner.index(key);
                    let (next, weight) = (inner.children()[index].id, inner.children()[index].weight);
                    let left = index.checked_sub(1).map(|left| inner.children()[left].id);
                    let (is_above_leaves, is_above_parents) = (inner.height() == 1, inner.height() == 2);
                    if weight > 0 {
                        match self.buffer_ahead(id, index)?.get(key) {
                            Known::All(value) => break value.cloned(),
                            Known::Part(edit) => edits.push(edit.clone()),
                            Known::Nothing => {}
                        }
                    }
                    if is_above_leaves {
                        self.come_to(next, left, key)?;
                    } else if is_above_parents {
                        self.come_to_parent(id, index)?;
                    }
                    id = next;
                }
                Body::Leaf(leaf) => match leaf.index(key) {
                    None => break None,
                    Some(index) => break self.basement_ahead(id, index)?.get(key).cloned(),
                },
            }
        };
        let value = edits.iter().rev().fold(base, |value, edit| edit.apply(value.as_ref()));
        // A copy, so that the value does not keep the memory of the whole basement.
        Ok(value.map(|value| Bytes::copy_from_slice(&value)))
    }
}

//! Leaves: entries in the order of their keys, in parts (basements) that can be read alone.

use std::sync::Arc;

use bytes::Bytes;

use super::{Buffer, part::Part, weight::entry_weight};

/// A key and its value.
pub(crate) type Entry = (Bytes, Bytes);

/// The sizes of basements, in bytes of weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BasementSizes {
    /// A basement with less is joined with its neighbour, if it is rewritten anyway and both fit.
    pub(crate) least: usize,
    /// The most, unless the basement has a single entry.
    pub(crate) most: usize,
}

/// A basement. Invariants: not empty, ascending keys, no empty value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Basement {
    entries: Vec<Entry>,
    weight: usize,
}

/// A leaf: its basements in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaf {
    parts: Vec<LeafPart>,
}

/// What a leaf knows about a basement that it has not read.
#[derive(Clone, Debug)]
pub(crate) struct LeafPart {
    /// Its first key.
    pub(crate) first: Bytes,
    /// The most bytes that the encoded basement takes.
    pub(crate) weight: usize,
    /// The basement.
    pub(crate) body: Part<Basement>,
}

impl Basement {
    /// A basement of entries in order; there must be at least one.
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        let weight = entries.iter().map(|(key, value)| entry_weight(key, value)).sum();
        Self { entries, weight }
    }

    /// Its entries in order.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The most bytes that the encoded basement takes.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Bytes> {
        let found = self.entries.binary_search_by(|(other, _)| other[..].cmp(key)).ok()?;
        Some(&self.entries[found].1)
    }

    /// The entries from `from` up to `to`, or to the end.
    pub(crate) fn within(&self, from: &[u8], to: Option<&[u8]>) -> &[Entry] {
        let first = self.entries.partition_point(|(key, _)| &key[..] < from);
        let end = to.map_or(self.entries.len(), |to| self.entries.partition_point(|(key, _)| &key[..] < to));
        &self.entries[first..end.max(first)]
    }
}

impl Leaf {
    /// A leaf from its decoded parts.
    pub(crate) fn from_parts(parts: Vec<LeafPart>) -> Self {
        Self { parts }
    }

    /// The known facts of its basements.
    pub(crate) fn parts(&self) -> &[LeafPart] {
        &self.parts
    }

    pub(crate) fn parts_mut(&mut self) -> &mut [LeafPart] {
        &mut self.parts
    }

    /// The most bytes that the encoded basements take.
    pub(crate) fn weight(&self) -> usize {
        self.parts.iter().map(|part| part.weight).sum()
    }

    /// The index of the basement that may have the key; `None` if the leaf is empty.
    pub(crate) fn index(&self, key: &[u8]) -> Option<usize> {
        let behind = self.parts.partition_point(|part| &part.first[..] <= key);
        (!self.parts.is_empty()).then(|| behind.saturating_sub(1))
    }

    /// Applies a buffer. All basements must be in memory. Returns whether all messages were after
    /// the last key.
    pub(crate) fn receive(&mut self, buffer: &Buffer, sizes: BasementSizes) -> bool {
        let last = self.parts.last().and_then(|part| part.body.here().entries.last()).map(|(key, _)| key.clone());
        let is_appended = buffer.ranges().is_empty()
            && last.as_ref().is_none_or(|last| buffer.messages().first_key_value().is_none_or(|(key, _)| key > last));
        let old = std::mem::take(&mut self.parts);
        let mut packer = Packer { parts: Vec::with_capacity(old.len() + 1), sizes, is_last_new: false };
        if old.is_empty() {
            packer.add(overlay(&[], buffer, b"", None));
        }
        for (number, part) in old.iter().enumerate() {
            let from: &[u8] = if number == 0 { b"" } else { &part.first };
            let to = old.get(number + 1).map(|next| &next.first[..]);
            if buffer.touches(from, to) {
                let old = part.body.here().entries();
                packer.add(with_own_memory(overlay(old, buffer, from, to), old));
            } else {
                packer.keep(part.clone());
            }
        }
        self.parts = packer.parts;
        is_appended
    }

    /// Splits the leaf between basements into leaves of about `target` bytes. They have equal
    /// weights; if `is_appended`, all but the last are full. None exceeds `most`, unless it has a
    /// single basement.
    pub(crate) fn split(self, target: usize, most: usize, is_appended: bool) -> Vec<Leaf> {
        let weight = self.weight();
        let target = if is_appended { target } else { weight.div_ceil(weight.div_ceil(target.max(1)).max(1)) };
        let mut leaves: Vec<Leaf> = Vec::new();
        let mut filled = 0;
        for part in self.parts {
            // A basement goes to the side on which its larger half is.
            if leaves.is_empty() || filled + part.weight / 2 >= target || filled + part.weight > most {
                leaves.push(Leaf::default());
                filled = 0;
            }
            filled += part.weight;
            leaves.last_mut().expect("one was pushed").parts.push(part);
        }
        leaves
    }

    /// Appends a leaf whose keys are all after the own ones.
    pub(crate) fn join(&mut self, right: Leaf) {
        self.parts.extend(right.parts);
    }
}

/// Applies the messages of a buffer for keys from `from` up to `to` to `entries`, which have no
/// other keys.
pub(crate) fn overlay(entries: &[Entry], buffer: &Buffer, from: &[u8], to: Option<&[u8]>) -> Vec<Entry> {
    let is_cut = buffer.ranges().touch(from, to);
    let mut messages = buffer.messages_within(from, to).peekable();
    let mut new = Vec::with_capacity(entries.len());
    let mut push = |key: &Bytes, value: Option<Bytes>| {
        if let Some(value) = value {
            new.push((key.clone(), value));
        }
    };
    for (key, value) in entries {
        while let Some((before, message)) = messages.next_if(|(other, _)| *other < key) {
            push(before, message.apply(None));
        }
        let value = (!is_cut || !buffer.ranges().has(key)).then_some(value);
        match messages.next_if(|(other, _)| *other == key) {
            Some((_, message)) => push(key, message.apply(value)),
            None => push(key, value.cloned()),
        }
    }
    for (key, message) in messages {
        push(key, message.apply(None));
    }
    new
}

/// Copies the kept entries of `old`, if others of `old` are gone. Entries share the memory of the
/// buffer that was read, and one kept entry would keep all of it alive.
fn with_own_memory(mut new: Vec<Entry>, old: &[Entry]) -> Vec<Entry> {
    let mut stays = Vec::with_capacity(old.len());
    let mut rest = old.iter().peekable();
    for (number, (key, value)) in new.iter().enumerate() {
        while rest.next_if(|(other, _)| other < key).is_some() {}
        if rest.next_if(|(other, kept)| other == key && kept.as_ptr() == value.as_ptr()).is_some() {
            stays.push(number);
        }
    }
    if stays.len() == old.len() {
        return new;
    }
    let bytes = stays.iter().map(|&number| new[number].0.len() + new[number].1.len()).sum();
    let mut copy = Vec::with_capacity(bytes);
    for &number in &stays {
        copy.extend_from_slice(&new[number].0);
        copy.extend_from_slice(&new[number].1);
    }
    let (copy, mut at) = (Bytes::from(copy), 0);
    for number in stays {
        let entry = &mut new[number];
        let (key, value) = (at + entry.0.len(), at + entry.0.len() + entry.1.len());
        *entry = (copy.slice(at..key), copy.slice(key..value));
        at = value;
    }
    new
}

/// Packs entries, which come in order, into basements.
struct Packer {
    parts: Vec<LeafPart>,
    sizes: BasementSizes,
    is_last_new: bool,
}

impl Packer {
    /// Adds an unchanged basement.
    fn keep(&mut self, part: LeafPart) {
        if self.is_last_new && self.should_join(part.weight) {
            self.join(part.body.here().entries());
        } else {
            self.parts.push(part);
            self.is_last_new = false;
        }
    }

    /// Adds changed entries, perhaps none.
    fn add(&mut self, entries: Vec<Entry>) {
        let weight: usize = entries.iter().map(|(key, value)| entry_weight(key, value)).sum();
        if weight == 0 {
            return;
        }
        if self.should_join(weight) {
            return self.join(&entries);
        }
        let pieces = if weight <= self.sizes.most { 1 } else { weight.div_ceil((self.sizes.most / 4 * 3).max(1)) };
        let target = weight.div_ceil(pieces);
        let (mut piece, mut filled) = (Vec::new(), 0);
        for (key, value) in entries {
            let more = entry_weight(&key, &value);
            if !piece.is_empty() && (filled >= target || filled + more > self.sizes.most) {
                self.push(std::mem::take(&mut piece));
                filled = 0;
            }
            filled += more;
            piece.push((key, value));
        }
        self.push(piece);
    }

    fn should_join(&self, weight: usize) -> bool {
        self.parts
            .last()
            .is_some_and(|last| last.weight.min(weight) < self.sizes.least && last.weight + weight <= self.sizes.most)
    }

    fn join(&mut self, entries: &[Entry]) {
        let last = self.parts.pop().expect("it should join");
        self.push([last.body.here().entries(), entries].concat());
    }

    fn push(&mut self, entries: Vec<Entry>) {
        let basement = Basement::new(entries);
        let (first, weight) = (basement.entries[0].0.clone(), basement.weight);
        self.parts.push(LeafPart { first, weight, body: Part::Here(Arc::new(basement)) });
        self.is_last_new = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    /// A leaf of one basement whose entries share one allocation. Also returns the addresses of the
    /// allocation.
    fn read_leaf(entries: usize) -> (Leaf, std::ops::Range<usize>) {
        let all = Bytes::from(vec![7; entries * 100]);
        let start = all.as_ptr() as usize;
        let entry = |number: usize| (Bytes::from(format!("{number:03}")), all.slice(number * 100..(number + 1) * 100));
        let basement = Basement::new((0..entries).map(entry).collect());
        let (first, weight) = (basement.entries()[0].0.clone(), basement.weight());
        (
            Leaf::from_parts(vec![LeafPart { first, weight, body: Part::Here(Arc::new(basement)) }]),
            start..start + all.len(),
        )
    }

    #[test]
    fn kept_entries_release_the_read_buffer() {
        let sizes = BasementSizes { least: 1000, most: 1 << 20 };
        let (mut leaf, read) = read_leaf(30);
        let mut changed = Buffer::default();
        changed.send(Bytes::from("004"), Message::put(Bytes::from("new")));
        changed.send(Bytes::from("005"), Message::Delete);
        changed.send(Bytes::from("0055"), Message::put(Bytes::from("more")));
        changed.send(Bytes::from("007"), Message::patch(3, Bytes::from("patch")));
        leaf.receive(&changed, sizes);
        let entries: Vec<&Entry> = leaf.parts().iter().flat_map(|part| part.body.here().entries()).collect();
        assert_eq!(entries.len(), 30);
        for (key, value) in &entries {
            assert!(!read.contains(&(value.as_ptr() as usize)), "{key:?} still uses the read buffer");
            let want: &[u8] = match &key[..] {
                b"004" => b"new",
                b"0055" => b"more",
                b"007" => &[&[7; 3][..], b"patch", &[7; 92]].concat(),
                _ => &[7; 100],
            };
            assert_eq!(&value[..], want, "{key:?}");
        }
        assert!(entries.is_sorted_by_key(|(key, _)| key));

        let (mut leaf, read) = read_leaf(30);
        let mut added = Buffer::default();
        added.send(Bytes::from("0041"), Message::put(Bytes::from("new")));
        leaf.receive(&added, sizes);
        let is_read = |(_, value): &&Entry| read.contains(&(value.as_ptr() as usize));
        assert_eq!(
            leaf.parts()[0].body.here().entries().iter().filter(is_read).count(),
            30,
            "all entries still use it"
        );
    }
}

//! Blocks in memory, by their keys. If there are too many, clean blocks are evicted, roughly the
//! least recently used first (second chance). Dirty blocks stay until a consistency point.

use std::{cell::Cell, collections::VecDeque, hash::Hasher};

use super::{Key, places::Places};
use crate::format::{BLOCK, Block, page::Page};

/// Pages of evicted blocks that are kept for reuse, at most: a window of read-ahead.
const SPARE_PAGES: usize = 256;
/// Entries of the table of recent positions.
const RECENT: usize = 64;

/// The state of a block in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Equal to the devices.
    Clean,
    /// Changed, and all blocks above it are dirty too.
    Dirty,
    /// Changed, and the running consistency point has allocated its place.
    Placed,
}

struct Buffer {
    key: Key,
    data: Page,
    state: State,
    used: bool,
    /// Whether its key is in the queue of clean blocks.
    queued: bool,
    /// Whether it is being written to the devices: it stays in memory, clean or not.
    pinned: bool,
}

/// The position of a block in memory, valid until the block is removed. It saves a lookup of the
/// key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At(pub(super) u32);

/// All blocks in memory.
pub(crate) struct Cache {
    places: Places,
    /// The position of the last found block for each kind of file and level. Most lookups repeat.
    /// The key at the position shows whether the entry is valid.
    recent: [Cell<At>; RECENT],
    /// `None` where a block was removed.
    buffers: Vec<Option<Buffer>>,
    free: Vec<At>,
    /// Pages of removed blocks, for reuse.
    pub spare: Vec<Page>,
    /// Keys with the positions of their blocks at that time.
    clean: VecDeque<(Key, At)>,
}

/// A fast hash for keys of blocks. Each written block needs dozens of lookups. The keys are numbers
/// of the engine, so the hash need not resist attacks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        // The table uses the low bits, but a multiplication mixes only upwards.
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(29) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            places: Places::default(),
            recent: [const { Cell::new(At(0)) }; RECENT],
            buffers: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            clean: VecDeque::new(),
        }
    }
}

impl Cache {
    /// The position of a block, if it is in memory.
    #[inline]
    pub fn find(&self, key: Key) -> Option<At> {
        let recent = &self.recent[key.kind() % RECENT];
        let At(at) = recent.get();
        if let Some(Some(buffer)) = self.buffers.get(at as usize)
            && buffer.key == key
        {
            return Some(At(at));
        }
        let found = self.places.get(key)?;
        recent.set(found);
        Some(found)
    }

    fn at(&self, At(at): At) -> &Buffer {
        self.buffers[at as usize].as_ref().expect("positions of removed blocks are not used")
    }

    fn at_mut(&mut self, At(at): At) -> &mut Buffer {
        self.buffers[at as usize].as_mut().expect("positions of removed blocks are not used")
    }

    /// The contents of a block. Marks it as used, so that it stays longer.
    pub fn read(&mut self, at: At) -> &Block {
        let buffer = self.at_mut(at);
        buffer.used = true;
        &buffer.data
    }

    pub fn write(&mut self, at: At) -> &mut Block {
        &mut self.at_mut(at).data
    }

    pub fn state_at(&self, at: At) -> State {
        self.at(at).state
    }

    /// A block with its trailer space.
    pub fn page(&self, at: At) -> &Page {
        &self.at(at).data
    }

    pub fn page_mut(&mut self, at: At) -> &mut Page {
        &mut self.at_mut(at).data
    }

    pub fn contains(&self, key: Key) -> bool {
        self.find(key).is_some()
    }

    pub fn get(&mut self, key: Key) -> Option<&Block> {
        let at = self.find(key)?;
        Some(self.read(at))
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut Block> {
        let at = self.find(key)?;
        Some(self.write(at))
    }

    pub fn state(&self, key: Key) -> Option<State> {
        self.find(key).map(|at| self.state_at(at))
    }

    pub fn set_state(&mut self, key: Key, state: State) {
        if let Some(at) = self.find(key) {
            self.set_state_at(at, state);
        }
    }

    pub fn set_state_at(&mut self, at: At, state: State) {
        let buffer = self.at_mut(at);
        buffer.state = state;
        if state == State::Clean && !std::mem::replace(&mut buffer.queued, true) {
            let key = buffer.key;
            self.enqueue(key, at);
        }
    }

    /// Marks a block as clean but keeps it in memory until [`unpin`](Self::unpin), because it is
    /// being written. A change makes it dirty again.
    pub fn pin(&mut self, at: At) -> Key {
        self.set_state_at(at, State::Clean);
        let buffer = self.at_mut(at);
        buffer.pinned = true;
        buffer.key
    }

    /// Allows a pinned block to be evicted, if it is still in memory.
    pub fn unpin(&mut self, key: Key, At(at): At) {
        let buffer = self.buffers[at as usize].as_mut().filter(|buffer| buffer.key == key);
        let Some(buffer) = buffer else { return };
        buffer.pinned = false;
        if buffer.state == State::Clean {
            self.set_state_at(At(at), State::Clean);
        }
    }

    /// Adds a clean block.
    pub fn insert(&mut self, key: Key, data: impl Into<Page>) -> At {
        let data = data.into();
        if let Some(at) = self.find(key) {
            let buffer = self.at_mut(at);
            (buffer.data, buffer.state, buffer.used) = (data, State::Clean, true);
            if !std::mem::replace(&mut buffer.queued, true) {
                self.enqueue(key, at);
            }
            return at;
        }
        let buffer = Some(Buffer { key, data, state: State::Clean, used: true, queued: true, pinned: false });
        let at = match self.free.pop() {
            Some(at) => {
                self.buffers[at.0 as usize] = buffer;
                at
            }
            None => {
                self.buffers.push(buffer);
                At(self.buffers.len() as u32 - 1)
            }
        };
        self.places.insert(key, at);
        self.recent[key.kind() % RECENT].set(at);
        self.enqueue(key, at);
        at
    }

    pub fn remove(&mut self, key: Key) {
        if let Some(at) = self.places.remove(key) {
            let left = self.buffers[at.0 as usize].take().map(|buffer| buffer.data);
            self.spare.extend(left.filter(|_| self.spare.len() < SPARE_PAGES));
            self.free.push(at);
        }
    }

    /// Bytes of all blocks.
    pub fn bytes(&self) -> u64 {
        (self.places.len() * BLOCK) as u64
    }

    /// Bytes of the most blocks that were in memory at once.
    #[cfg(test)]
    pub fn most_bytes(&self) -> u64 {
        (self.buffers.len() * BLOCK) as u64
    }

    /// Adds a key to the queue. Keys of removed blocks stay in it until they outnumber the blocks;
    /// then the queue is rebuilt.
    fn enqueue(&mut self, key: Key, at: At) {
        self.clean.push_back((key, at));
        if self.clean.len() < 64 + 2 * self.places.len() {
            return;
        }
        self.buffers.iter_mut().flatten().for_each(|buffer| buffer.queued = false);
        let Self { clean, places, buffers, .. } = self;
        clean.retain(|(key, _)| {
            let buffer = places.get(*key).and_then(|at| buffers[at.0 as usize].as_mut());
            buffer.is_some_and(|buffer| buffer.state == State::Clean && !std::mem::replace(&mut buffer.queued, true))
        });
    }

    /// Removes all blocks of a space; none of them may be dirty.
    ///
    /// Cost: proportional to the number of blocks in memory.
    pub fn remove_space(&mut self, space: u32) {
        let keys: Vec<Key> = self.buffers.iter().flatten().map(|buffer| buffer.key).collect();
        keys.into_iter().filter(|key| key.space() == space).for_each(|key| self.remove(key));
    }

    /// Evicts clean blocks until all blocks together have at most `bytes`. Dirty blocks count, but
    /// stay.
    pub fn shrink(&mut self, bytes: u64) {
        let mut tries = 2 * self.clean.len();
        while self.bytes() > bytes && tries > 0 {
            tries -= 1;
            let Some((key, at)) = self.clean.pop_front() else { return };
            let is_there = self.buffers[at.0 as usize].as_ref().is_some_and(|buffer| buffer.key == key);
            let Some(at) = is_there.then_some(at).or_else(|| self.places.get(key)) else { continue };
            let buffer = self.at_mut(at);
            if buffer.state != State::Clean || buffer.pinned {
                buffer.queued = false; // queued again when it may be evicted
            } else if std::mem::take(&mut buffer.used) {
                self.clean.push_back((key, at));
            } else {
                self.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_blocks_are_evicted_and_dirty_ones_stay() {
        let key = |index| Key::new(0, 16, 0, index);
        let mut cache = Cache::default();
        for index in 0..8 {
            cache.insert(key(index), crate::format::zero_block());
        }
        cache.set_state(key(0), State::Dirty);
        cache.shrink(8 * BLOCK as u64);
        assert_eq!(cache.places.len(), 8);
        cache.shrink(4 * BLOCK as u64);
        assert_eq!(cache.places.len(), 4);
        assert!(cache.contains(key(0)) && cache.contains(key(7)));
        cache.shrink(0);
        assert_eq!(cache.places.len(), 1);
        cache.set_state(key(0), State::Clean);
        cache.shrink(0);
        assert_eq!(cache.places.len(), 0);
    }

    #[test]
    fn pinned_blocks_stay_until_unpinned() {
        let key = |index| Key::new(0, 16, 0, index);
        let mut cache = Cache::default();
        let at: Vec<At> = (0..4).map(|index| cache.insert(key(index), crate::format::zero_block())).collect();
        let pinned = [cache.pin(at[1]), cache.pin(at[3])];
        assert_eq!(pinned, [key(1), key(3)]);
        cache.shrink(0);
        assert_eq!((0..4).map(|index| cache.contains(key(index))).collect::<Vec<_>>(), [false, true, false, true]);
        // One pinned block was removed for another reason, and another block has its position.
        cache.remove(key(1));
        assert_eq!(cache.insert(key(7), crate::format::zero_block()), at[1]);
        cache.pin(at[1]);
        cache.unpin(key(1), at[1]);
        cache.unpin(key(3), at[3]);
        cache.shrink(0);
        assert!(cache.contains(key(7)) && !cache.contains(key(3)));
    }

    #[test]
    fn queue_length_stays_bounded() {
        let key = |index| Key::new(0, 16, 0, index);
        let mut cache = Cache::default();
        for round in 0..10_000 {
            cache.insert(key(round % 7), crate::format::zero_block());
            cache.set_state(key(round % 5), State::Dirty);
            cache.set_state(key(round % 5), State::Clean);
            if round % 3 == 0 {
                cache.remove(key(round % 7));
            }
            assert!(cache.clean.len() <= 64 + 2 * 7, "{} names of {} blocks", cache.clean.len(), cache.places.len());
        }
        // Every block is still in the queue.
        cache.shrink(0);
        assert_eq!(cache.places.len(), 0);
    }
}

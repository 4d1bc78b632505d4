//! Blocks in memory, under their names. Clean ones leave when there are too many, those unused for longest first
//! (by a second chance each); dirty ones stay until a consistency point.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
};

use super::Key;
use crate::format::{BLOCK, Block};

/// What is known of a block in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// As the devices have it.
    Clean,
    /// Changed, and all blocks above it are dirty too.
    Dirty,
    /// Changed, and the running consistency point has given it a place.
    Placed,
}

struct Buffer {
    data: Box<Block>,
    state: State,
    used: bool,
    /// Its name is in the queue of clean blocks.
    queued: bool,
}

/// All blocks in memory.
#[derive(Default)]
pub(crate) struct Cache {
    buffers: HashMap<Key, Buffer, BuildHasherDefault<KeyHasher>>,
    clean: VecDeque<Key>,
}

/// Names of blocks are looked up some dozens of times for each block that is written. They are numbers of the engine's own, so
/// a hash that resists an enemy, as the library's, is not wanted.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        // The table takes the place from the low bits, and multiplying mixes upwards only.
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

impl Cache {
    pub fn contains(&self, key: Key) -> bool {
        self.buffers.contains_key(&key)
    }

    pub fn get(&mut self, key: Key) -> Option<&Block> {
        let buffer = self.buffers.get_mut(&key)?;
        buffer.used = true;
        Some(&buffer.data)
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut Block> {
        self.buffers.get_mut(&key).map(|buffer| &mut *buffer.data)
    }

    pub fn state(&self, key: Key) -> Option<State> {
        self.buffers.get(&key).map(|buffer| buffer.state)
    }

    pub fn set_state(&mut self, key: Key, state: State) {
        if let Some(buffer) = self.buffers.get_mut(&key) {
            buffer.state = state;
            if state == State::Clean && !buffer.queued {
                buffer.queued = true;
                self.enqueue(key);
            }
        }
    }

    /// Adds a block as the devices have it.
    pub fn insert(&mut self, key: Key, data: Box<Block>) {
        let buffer = Buffer { data, state: State::Clean, used: true, queued: true };
        if self.buffers.insert(key, buffer).is_none_or(|before| !before.queued) {
            self.enqueue(key);
        }
    }

    pub fn remove(&mut self, key: Key) {
        self.buffers.remove(&key);
    }

    /// Names of blocks that left stay in the queue, until there are as many as blocks.
    fn enqueue(&mut self, key: Key) {
        self.clean.push_back(key);
        if self.clean.len() < 64 + 2 * self.buffers.len() {
            return;
        }
        self.buffers.values_mut().for_each(|buffer| buffer.queued = false);
        self.clean.retain(|key| {
            let buffer = self.buffers.get_mut(key);
            buffer.is_some_and(|buffer| buffer.state == State::Clean && !std::mem::replace(&mut buffer.queued, true))
        });
    }

    /// Lets all blocks of a space go; none of them may be dirty. Cost: linear in blocks in memory.
    pub fn remove_space(&mut self, space: u32) {
        self.buffers.retain(|key, _| key.space != space);
    }

    /// Lets clean blocks go until all that is kept is at most `bytes`. Dirty ones count, but stay.
    pub fn shrink(&mut self, bytes: u64) {
        let mut tries = 2 * self.clean.len();
        while (self.buffers.len() * BLOCK) as u64 > bytes && tries > 0 {
            tries -= 1;
            let Some(key) = self.clean.pop_front() else { return };
            match self.buffers.get_mut(&key) {
                Some(buffer) if buffer.state == State::Clean && buffer.used => {
                    buffer.used = false;
                    self.clean.push_back(key);
                }
                Some(buffer) if buffer.state == State::Clean => self.remove(key),
                Some(buffer) => buffer.queued = false, // comes back to the queue when it is clean again
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_blocks_leave_in_turn_and_dirty_ones_stay() {
        let key = |index| Key::new(0, 16, 0, index);
        let mut cache = Cache::default();
        for index in 0..8 {
            cache.insert(key(index), crate::format::zero_block());
        }
        cache.set_state(key(0), State::Dirty);
        cache.shrink(8 * BLOCK as u64);
        assert_eq!(cache.buffers.len(), 8);
        cache.shrink(4 * BLOCK as u64);
        assert_eq!(cache.buffers.len(), 4);
        assert!(cache.contains(key(0)) && cache.contains(key(7)));
        cache.shrink(0);
        assert_eq!(cache.buffers.len(), 1);
        cache.set_state(key(0), State::Clean);
        cache.shrink(0);
        assert_eq!(cache.buffers.len(), 0);
    }

    #[test]
    fn the_queue_does_not_grow_with_what_is_written_over_or_leaves() {
        let key = |index| Key::new(0, 16, 0, index);
        let mut cache = Cache::default();
        for round in 0..10_000 {
            cache.insert(key(round % 7), crate::format::zero_block());
            cache.set_state(key(round % 5), State::Dirty);
            cache.set_state(key(round % 5), State::Clean);
            if round % 3 == 0 {
                cache.remove(key(round % 7));
            }
            assert!(cache.clean.len() <= 64 + 2 * 7, "{} names of {} blocks", cache.clean.len(), cache.buffers.len());
        }
        // None was forgotten.
        cache.shrink(0);
        assert_eq!(cache.buffers.len(), 0);
    }
}

//! Blocks in memory, under their names. Clean ones leave when there are too many, those unused for longest first
//! (by a second chance each); dirty ones stay until a consistency point.

use std::collections::{HashMap, VecDeque};

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
}

/// All blocks in memory.
#[derive(Default)]
pub(crate) struct Cache {
    buffers: HashMap<Key, Buffer>,
    clean: VecDeque<Key>,
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
            if state == State::Clean && buffer.state != State::Clean {
                self.clean.push_back(key);
            }
            buffer.state = state;
        }
    }

    /// Adds a block as the devices have it.
    pub fn insert(&mut self, key: Key, data: Box<Block>) {
        self.clean.push_back(key);
        self.buffers.insert(key, Buffer { data, state: State::Clean, used: true });
    }

    pub fn remove(&mut self, key: Key) {
        self.buffers.remove(&key);
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
                _ => {} // became dirty or left; comes back to the queue when it is clean again
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
}

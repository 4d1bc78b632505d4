//! Blocks in memory, under their names. Clean ones leave when there are too many, those unused for longest first
//! (by a second chance each); dirty ones stay until a consistency point.

use std::{cell::Cell, collections::VecDeque, hash::Hasher};

use super::{Key, places::Places};
use crate::format::{BLOCK, Block, page::Page};

/// Blocks that left of which the memory is kept, at most: those of a window of reading ahead.
const SPARE_PAGES: usize = 256;
/// Places of blocks that were found last.
const RECENT: usize = 64;

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
    key: Key,
    data: Page,
    state: State,
    used: bool,
    /// Its name is in the queue of clean blocks.
    queued: bool,
    /// On its way to the devices: it stays, clean or not.
    pinned: bool,
}

/// Where a block is in memory, until it leaves: what is done to it then is done without looking for its name again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At(pub(super) u32);

/// All blocks in memory.
pub(crate) struct Cache {
    places: Places,
    /// Where the block was that was found last of each kind of files and level: mostly it is asked for again. What lies there
    /// tells by its name whether it is the one.
    recent: [Cell<At>; RECENT],
    /// `None` where a block left.
    buffers: Vec<Option<Buffer>>,
    free: Vec<At>,
    /// Memory of blocks that left, for those that come.
    pub spare: Vec<Page>,
    /// With where they were then.
    clean: VecDeque<(Key, At)>,
}

/// Names of blocks are looked up some dozens of times for each block that is written. They are numbers of the engine's own, so
/// a hash that resists an enemy, as the library's, is not wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHasher(u64);

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
    /// Where a block is, if it is in memory.
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
        self.buffers[at as usize].as_ref().expect("a block that left is not asked for")
    }

    fn at_mut(&mut self, At(at): At) -> &mut Buffer {
        self.buffers[at as usize].as_mut().expect("a block that left is not asked for")
    }

    /// What a block holds that somebody wants: it stays longer.
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

    /// A block with the room behind it.
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

    /// A block is as the devices will have it: who changes it makes it dirty, but it does not leave before it is
    /// [let go](Self::unpin).
    pub fn pin(&mut self, at: At) -> Key {
        self.set_state_at(at, State::Clean);
        let buffer = self.at_mut(at);
        buffer.pinned = true;
        buffer.key
    }

    /// A block that was pinned, if it is still there, may leave.
    pub fn unpin(&mut self, key: Key, At(at): At) {
        let buffer = self.buffers[at as usize].as_mut().filter(|buffer| buffer.key == key);
        let Some(buffer) = buffer else { return };
        buffer.pinned = false;
        if buffer.state == State::Clean {
            self.set_state_at(At(at), State::Clean);
        }
    }

    /// Adds a block as the devices have it.
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

    /// Bytes of as many blocks as there ever were at once.
    #[cfg(test)]
    pub fn most_bytes(&self) -> u64 {
        (self.buffers.len() * BLOCK) as u64
    }

    /// Names of blocks that left stay in the queue, until there are as many as blocks.
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

    /// Lets all blocks of a space go; none of them may be dirty. Cost: linear in blocks in memory.
    pub fn remove_space(&mut self, space: u32) {
        let keys: Vec<Key> = self.buffers.iter().flatten().map(|buffer| buffer.key).collect();
        keys.into_iter().filter(|key| key.space() == space).for_each(|key| self.remove(key));
    }

    /// Lets clean blocks go until all that is kept is at most `bytes`. Dirty ones count, but stay.
    pub fn shrink(&mut self, bytes: u64) {
        let mut tries = 2 * self.clean.len();
        while self.bytes() > bytes && tries > 0 {
            tries -= 1;
            let Some((key, at)) = self.clean.pop_front() else { return };
            let is_there = self.buffers[at.0 as usize].as_ref().is_some_and(|buffer| buffer.key == key);
            let Some(at) = is_there.then_some(at).or_else(|| self.places.get(key)) else { continue };
            let buffer = self.at_mut(at);
            if buffer.state != State::Clean || buffer.pinned {
                buffer.queued = false; // comes back to the queue when it may leave
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
    fn clean_blocks_leave_in_turn_and_dirty_ones_stay() {
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
    fn blocks_that_are_pinned_stay_until_they_are_let_go() {
        let key = |index| Key::new(0, 16, 0, index);
        let mut cache = Cache::default();
        let at: Vec<At> = (0..4).map(|index| cache.insert(key(index), crate::format::zero_block())).collect();
        let pinned = [cache.pin(at[1]), cache.pin(at[3])];
        assert_eq!(pinned, [key(1), key(3)]);
        cache.shrink(0);
        assert_eq!((0..4).map(|index| cache.contains(key(index))).collect::<Vec<_>>(), [false, true, false, true]);
        // One left for another reason, and another block has its place.
        cache.remove(key(1));
        assert_eq!(cache.insert(key(7), crate::format::zero_block()), at[1]);
        cache.pin(at[1]);
        cache.unpin(key(1), at[1]);
        cache.unpin(key(3), at[3]);
        cache.shrink(0);
        assert!(cache.contains(key(7)) && !cache.contains(key(3)));
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
            assert!(cache.clean.len() <= 64 + 2 * 7, "{} names of {} blocks", cache.clean.len(), cache.places.len());
        }
        // None was forgotten.
        cache.shrink(0);
        assert_eq!(cache.places.len(), 0);
    }
}

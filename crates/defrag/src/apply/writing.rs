//! Starts writes of moved contents, and limits the amount that is not finished.
//!
//! Otherwise moved contents stay in memory until the file system commits. A program that syncs a
//! file at that time then waits for all of them.

use std::{collections::VecDeque, fs::File};

use super::sys;

/// At most this amount of started writes is unfinished, bytes.
const MOST_BYTES: u64 = 2 << 20;

/// Ranges of files whose write has started, the oldest first.
pub(super) struct Writing<T> {
    ranges: VecDeque<(T, u64, u64)>,
    bytes: u64,
}

impl<T> Default for Writing<T> {
    fn default() -> Self {
        Self { ranges: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Writing<T> {
    /// Starts to write a range (start and length) of a file. `name` stands for the file.
    pub fn start(&mut self, file: &File, name: T, (start, length): (u64, u64)) {
        sys::start_writes(file, start, length);
        self.ranges.push_back((name, start, length));
        self.bytes += length;
    }

    /// Removes and returns the oldest ranges above the limit. The caller waits for their writes
    /// before it starts others.
    pub fn take_old(&mut self) -> Vec<(T, u64, u64)> {
        let mut old = Vec::new();
        while self.bytes > MOST_BYTES
            && let Some(range) = self.ranges.pop_front()
        {
            self.bytes -= range.2;
            old.push(range);
        }
        old
    }
}

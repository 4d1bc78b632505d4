//! Files are written together again where that saves requests. Only places change: see `fake.rs`.
//!
//! A window of a file is looked at, and what reading it would take if it were written now. It is only written if at least two requests
//! and a third of them are saved: a forecast may be wrong by one, where a tetris ends, and what was written well is left alone.

use std::ops::Range;

use senesce_fsapi::FileKind;

use super::{
    Store,
    layout::{Lying, WINDOW},
    volume,
};
use crate::{
    error::{Error, Result},
    format::BLOCK,
};

/// Blocks that change at most when a window is written, besides its own: those above it, and those above its inode.
const ABOVE_BLOCKS: u64 = 24;

/// How a block that is to lie elsewhere is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placing {
    /// It changes its place and keeps its VVBN: no snapshot sees a difference, or holds a block more.
    #[default]
    FakeDirty,
    /// As if its bytes were written again: it gets a new VVBN, snapshots hold the old block, and one that is shared is no longer.
    Traditional,
}

/// What was looked at and done to lay files better. Blocks are of contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefragCounts {
    /// Files that were looked at.
    pub files: u64,
    /// Their blocks.
    pub blocks: u64,
    /// Requests that reading these took, 256 blocks of a file at once.
    pub requests: u64,
    /// The same as it is foreseen, with what was moved.
    pub predicted: u64,
    /// Blocks that were made to move, or would be.
    pub moved: u64,
    /// Pointers that named an old place of a block that stays, and were put right.
    pub fixed: u64,
    /// Blocks that could not be read, or whose pointers could not; they stay where they are.
    pub unread: u64,
    /// Windows of 256 blocks that would be better elsewhere, but for which there is no space.
    pub no_space: u64,
}

impl DefragCounts {
    /// Mean length of a read chain as it was, in blocks; `None` if nothing was looked at.
    pub fn chain(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.blocks as f64 / self.requests as f64)
    }

    /// The same as it is foreseen.
    pub fn predicted_chain(&self) -> Option<f64> {
        (self.predicted > 0).then(|| self.blocks as f64 / self.predicted as f64)
    }
}

impl DefragCounts {
    /// The counts of a pass and of one after it over the same files: what the latter foresees, with all that moved.
    pub fn and_then(self, next: &Self) -> Self {
        Self { predicted: next.predicted, moved: self.moved + next.moved, fixed: self.fixed + next.fixed, ..self }
    }
}

impl std::ops::AddAssign for DefragCounts {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.blocks += other.blocks;
        self.requests += other.requests;
        self.predicted += other.predicted;
        self.moved += other.moved;
        self.fixed += other.fixed;
        self.unread += other.unread;
        self.no_space += other.no_space;
    }
}

/// Whether so many requests are enough fewer to write a window again.
fn is_worth(requests: u64, predicted: u64) -> bool {
    requests >= predicted + 2 && 2 * requests >= 3 * predicted
}

impl Store {
    /// The first regular file in use from an inode on.
    pub fn next_file(&mut self, space: u32, from: u64) -> Result<Option<u64>> {
        let (mut next, end) = (from.max(volume::FIRST_USER), self.volume(space)?.record.inodes);
        while let Some(ino) = self.find_bit(space, volume::INODE_MAP, next..end, true)? {
            match self.file_blocks(space, ino) {
                Ok(0) => next = ino + 1,
                // Whoever looks at one that cannot be read is told so, and goes on behind it.
                Ok(_) | Err(Error::Damaged { .. }) => return Ok(Some(ino)),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// How many blocks a regular file's tree may have to lay better; none of what is gone or something else.
    pub fn file_blocks(&mut self, space: u32, ino: u64) -> Result<u64> {
        let inode = if ino < volume::FIRST_USER { None } else { self.try_inode(space, ino)? };
        let file = inode.filter(|inode| inode.kind == FileKind::File && inode.parent == 0 && !inode.inline);
        Ok(file.map_or(0, |inode| inode.size.div_ceil(BLOCK as u64)))
    }

    /// The window of a file with the first block from `from` on that exists.
    pub fn next_window(&mut self, space: u32, ino: u64, from: u64) -> Result<Option<Range<u64>>> {
        let end = self.file_blocks(space, ino)?;
        let found = self.find_block(space, ino, from, end, true)?;
        Ok(found.map(|block| block / WINDOW * WINDOW).map(|start| start..(start + WINDOW).min(end)))
    }

    /// Makes a window of a file move if it is worth it; else puts its pointers right. Of a dry run only the counts are true.
    ///
    /// Errors: `NoSpace` before anything changed. Cost: looks at its pointers and the container map; reads the blocks if they move.
    pub fn improve(
        &mut self,
        space: u32,
        file: u64,
        blocks: Range<u64>,
        placing: Placing,
        dry_run: bool,
    ) -> Result<DefragCounts> {
        self.check_running()?;
        let lying = self.look_at_places(space, file, blocks.clone())?;
        let (count, requests) = (lying.len() as u64, self.count_requests(lying.iter().map(|block| block.at.pvbn)));
        let mut counts = DefragCounts { blocks: count, requests, predicted: requests, ..DefragCounts::default() };
        let best = count.div_ceil(crate::raid::CHAIN_SLOTS as u64);
        if is_worth(requests, best)
            && let Some((predicted, behind)) = self.predict(count)?
            && is_worth(requests, predicted)
        {
            (counts.predicted, counts.moved) = (predicted, count);
            if !dry_run {
                (counts.moved, counts.unread) = self.move_window(space, file, blocks, &lying, placing)?;
            }
            self.forecast = Some(behind);
            return Ok(counts);
        }
        let stale = lying.iter().filter(|block| block.told != block.at);
        if !dry_run && stale.clone().next().is_some() {
            self.reserve(Some(space), ABOVE_BLOCKS, false)?;
            for block in stale.clone() {
                self.put_place(block.key, block.vvbn, block.at)?;
                self.counts.fix_ups += 1;
            }
        }
        counts.fixed = stale.count() as u64;
        Ok(counts)
    }

    /// Says how many blocks move, and how many cannot be read.
    fn move_window(
        &mut self,
        space: u32,
        file: u64,
        blocks: Range<u64>,
        lying: &[Lying],
        placing: Placing,
    ) -> Result<(u64, u64)> {
        let count = lying.len() as u64;
        let references = if placing == Placing::Traditional { self.volume(space)?.counted_blocks(count) } else { 0 };
        self.reserve(Some(space), count + references + ABOVE_BLOCKS, false)?;
        self.read_chains(space, file, blocks)?;
        let (mut moved, mut unread) = (0, 0);
        for block in lying {
            let done = match placing {
                Placing::FakeDirty => self.fake_dirty(block.key),
                Placing::Traditional => self.modify(block.key).map(|_| true),
            };
            match done {
                Ok(is_moved) => moved += u64::from(is_moved),
                Err(Error::Damaged { .. }) => unread += 1,
                Err(error) => return Err(error),
            }
        }
        Ok((moved, unread))
    }
}

#[cfg(test)]
mod tests {
    use super::is_worth;

    #[test]
    fn what_was_written_well_is_left_alone() {
        // 256 blocks that begin in the middle of a tetris, and such that would begin at its start.
        assert!(!is_worth(5, 4) && !is_worth(17, 16) && !is_worth(2, 1) && !is_worth(1, 1));
        assert!(is_worth(3, 1) && is_worth(6, 4) && is_worth(256, 4) && is_worth(30, 20));
        assert!(!is_worth(30, 21));
    }
}

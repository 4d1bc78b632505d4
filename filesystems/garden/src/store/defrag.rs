//! Defragmentation: files are rewritten in one piece if that saves requests. Only places change,
//! see `fake.rs`.
//!
//! The pass predicts the requests for a window of a file if it were written now. It rewrites the
//! window only if that saves at least two requests and a third of them. The prediction may be wrong
//! by one at the end of a tetris, and a good layout stays.

use std::ops::Range;

use senesce_fsapi::FileKind;

use super::{
    Store,
    read_requests::{Lying, WINDOW},
    volume,
};
use crate::{
    error::{Error, Result},
    format::BLOCK,
};

/// The most other blocks that change when a window is written: those above it and above its inode.
const ABOVE_BLOCKS: u64 = 24;

/// How a block is moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placing {
    /// The block changes its place and keeps its VVBN. Snapshots see no difference and hold no
    /// additional block.
    #[default]
    FakeDirty,
    /// The block gets a new VVBN, as if its bytes were written again. Snapshots hold the old block,
    /// and a shared block is not shared any more.
    Traditional,
}

/// Counts of a defragmentation. Blocks are blocks of contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefragCounts {
    /// Visited files.
    pub files: u64,
    /// Blocks of these files.
    pub blocks: u64,
    /// Requests to read these blocks before, 256 blocks of a file at a time.
    pub requests: u64,
    /// Predicted requests after the moves.
    pub predicted: u64,
    /// Blocks that move, or would move in a dry run.
    pub moved: u64,
    /// Pointers with an old place of a block that stays. They were fixed, except in a dry run.
    pub fixed: u64,
    /// Blocks that stay because they or their pointers could not be read.
    pub unread: u64,
    /// Windows of 256 blocks that would be better elsewhere, but have no space.
    pub no_space: u64,
}

impl DefragCounts {
    /// The mean length of a read chain before, in blocks; `None` without requests.
    pub fn chain(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.blocks as f64 / self.requests as f64)
    }

    /// The predicted mean length of a read chain, in blocks; `None` without requests.
    pub fn predicted_chain(&self) -> Option<f64> {
        (self.predicted > 0).then(|| self.blocks as f64 / self.predicted as f64)
    }
}

impl DefragCounts {
    /// Combines the counts of a pass with those of the next pass over the same files: the
    /// prediction of the latter, and the moves of both.
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

/// Whether the prediction is enough better to rewrite a window.
fn is_worth(requests: u64, predicted: u64) -> bool {
    requests >= predicted + 2 && 2 * requests >= 3 * predicted
}

impl Store {
    /// The first regular file in use from inode `from` on.
    pub fn next_file(&mut self, space: u32, from: u64) -> Result<Option<u64>> {
        let (mut next, end) = (from.max(volume::FIRST_USER), self.volume(space)?.record.inodes);
        while let Some(ino) = self.find_bit(space, volume::INODE_MAP, next..end, true)? {
            match self.file_blocks(space, ino) {
                Ok(0) => next = ino + 1,
                // The caller skips an unreadable inode after an error.
                Ok(_) | Err(Error::Damaged { .. }) => return Ok(Some(ino)),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Blocks of a regular file that may be rearranged; 0 for other inodes.
    pub fn file_blocks(&mut self, space: u32, ino: u64) -> Result<u64> {
        let inode = if ino < volume::FIRST_USER { None } else { self.try_inode(space, ino)? };
        let file = inode.filter(|inode| inode.kind == FileKind::File && inode.parent == 0 && !inode.inline);
        Ok(file.map_or(0, |inode| inode.size.div_ceil(BLOCK as u64)))
    }

    /// The window of a file with the first existing block from `from` on.
    pub fn next_window(&mut self, space: u32, ino: u64, from: u64) -> Result<Option<Range<u64>>> {
        let end = self.file_blocks(space, ino)?;
        let found = self.find_block(space, ino, from, end, true)?;
        Ok(found.map(|block| block / WINDOW * WINDOW).map(|start| start..(start + WINDOW).min(end)))
    }

    /// Makes a window of a file move if that is worth it, or fixes its pointers. A dry run only
    /// counts.
    ///
    /// Errors: `NoSpace` before any change.
    ///
    /// Cost: reads its pointers and the container map; reads the blocks if they move.
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

    /// Returns the number of blocks that move, and of those that cannot be read.
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
    fn good_layouts_are_kept() {
        // 256 blocks that start in the middle of a tetris, against the same at its start.
        assert!(!is_worth(5, 4) && !is_worth(17, 16) && !is_worth(2, 1) && !is_worth(1, 1));
        assert!(is_worth(3, 1) && is_worth(6, 4) && is_worth(256, 4) && is_worth(30, 20));
        assert!(!is_worth(30, 21));
    }
}

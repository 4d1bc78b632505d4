//! Deduplication: blocks of files with equal bytes are found by fingerprint, compared byte by byte,
//! and shared.
//!
//! Only a pointer changes, never the contents of a file. So the log has no record of it, and it is
//! durable with the next consistency point. A pass visits the files of a volume in the order of
//! inodes. It remembers a bounded number of fingerprints, and later ones replace earlier ones. So
//! it may miss equal blocks, but never shares different ones.

use std::{collections::HashMap, ops::AddAssign};

use senesce_fsapi::FileKind;

use super::{Key, Store, volume};
use crate::{
    error::{Error, Result},
    format::{
        BLOCK, Block,
        page::Page,
        pointer::{Part, Pointer},
    },
};

/// Fingerprints that a pass remembers, at most: about 10 MiB with their places.
const REMEMBERED: u64 = 1 << 18;

/// The result of a step of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DedupStep {
    /// Blocks and inodes that were scanned.
    pub looked_at: u64,
    /// Blocks that became shared.
    pub shared: u64,
    /// Blocks with the fingerprint of another block but different bytes.
    pub different: u64,
    /// Blocks that could not be read; they stay as they are.
    pub unread: u64,
    /// Whether the pass has ended. Then the next step starts another one.
    pub is_done: bool,
}

impl AddAssign for DedupStep {
    fn add_assign(&mut self, other: Self) {
        self.looked_at += other.looked_at;
        self.shared += other.shared;
        self.different += other.different;
        self.unread += other.unread;
        self.is_done |= other.is_done;
    }
}

/// A scanned block: its fingerprint, file and number.
#[derive(Clone, Copy, Debug)]
struct Seen {
    fingerprint: u64,
    ino: u64,
    block: u64,
}

/// A pass over a volume: its position, and the remembered blocks.
#[derive(Debug, Default)]
pub(crate) struct Dedup {
    ino: u64,
    block: u64,
    /// By the fingerprint modulo [`REMEMBERED`].
    seen: HashMap<u64, Seen>,
}

/// A hash of a block for finding candidates.
pub(crate) type Fingerprint = fn(&Block) -> u64;

/// The fingerprint in use. It need not resist forgery, because bytes are compared.
pub(crate) fn fingerprint(data: &Block) -> u64 {
    xxhash_rust::xxh3::xxh3_64(data)
}

impl Store {
    /// Scans up to `most` blocks and inodes from the position of the last step. Stops early with
    /// `NoSpace` if a consistency point must come first.
    ///
    /// Errors: also those of maps that cannot be read.
    pub fn dedup_step(&mut self, space: u32, most: u64, fingerprint: Fingerprint) -> (DedupStep, Result<()>) {
        let mut step = DedupStep::default();
        let mut pass = match self.volume_mut(space) {
            Ok(volume) => volume.dedup.take().unwrap_or_default(),
            Err(error) => return (step, Err(error)),
        };
        let done = self.dedup_blocks(space, &mut pass, most, fingerprint, &mut step);
        if let (Ok(volume), false) = (self.volume_mut(space), step.is_done) {
            volume.dedup = Some(pass);
        }
        (step, done)
    }

    fn dedup_blocks(
        &mut self,
        space: u32,
        pass: &mut Dedup,
        most: u64,
        fingerprint: Fingerprint,
        step: &mut DedupStep,
    ) -> Result<()> {
        while step.looked_at < most {
            let inodes = self.volume(space)?.record.inodes;
            let from = pass.ino.max(volume::FIRST_USER);
            let Some(ino) = self.find_bit(space, volume::INODE_MAP, from..inodes, true)? else {
                step.is_done = true;
                return Ok(());
            };
            if ino != pass.ino {
                (pass.ino, pass.block) = (ino, 0);
            }
            match self.dedup_next(space, pass, fingerprint, step) {
                // A check reports damage. The pass continues with the next file.
                Err(Error::Damaged { .. }) if self.stopped.is_none() => {
                    step.unread += 1;
                    (pass.ino, pass.block) = (ino + 1, 0);
                }
                done => done?,
            }
            step.looked_at += 1;
        }
        Ok(())
    }

    /// Scans the next block of the current file, or moves to the next file.
    fn dedup_next(
        &mut self,
        space: u32,
        pass: &mut Dedup,
        fingerprint: Fingerprint,
        step: &mut DedupStep,
    ) -> Result<()> {
        let end = self.shareable_blocks(space, pass.ino)?;
        match self.find_block(space, pass.ino, pass.block, end, true)? {
            None => (pass.ino, pass.block) = (pass.ino + 1, 0),
            Some(block) => {
                self.dedup_block(Key::new(space, pass.ino, 0, block), &mut pass.seen, fingerprint, step)?;
                pass.block = block + 1;
            }
        }
        Ok(())
    }

    /// The blocks of an inode that may be shared; 0 unless it is a regular file.
    fn shareable_blocks(&mut self, space: u32, ino: u64) -> Result<u64> {
        let inode = self.try_inode(space, ino)?;
        let file = inode.filter(|inode| inode.kind == FileKind::File && inode.parent == 0 && !inode.inline);
        Ok(file.map_or(0, |inode| inode.size.div_ceil(BLOCK as u64)))
    }

    fn dedup_block(
        &mut self,
        key: Key,
        seen: &mut HashMap<u64, Seen>,
        fingerprint: Fingerprint,
        step: &mut DedupStep,
    ) -> Result<()> {
        let Some(own) = self.clean_pointer(key)? else { return Ok(()) };
        let Some(data) = self.read_past_cache(key, own, step) else { return Ok(()) };
        let fingerprint = fingerprint(&data);
        let this = Seen { fingerprint, ino: key.file(), block: key.index() };
        let entry = seen.get(&(fingerprint % REMEMBERED)).copied().filter(|seen| seen.fingerprint == fingerprint);
        let Some(earlier) = entry else {
            seen.insert(fingerprint % REMEMBERED, this);
            return Ok(());
        };
        let other = Key::new(key.space(), earlier.ino, 0, earlier.block);
        if other == key {
            return Ok(());
        }
        // The earlier block may be gone or changed now, so the bytes decide.
        let found = if other.index() < self.shareable_blocks(key.space(), other.file())? {
            self.clean_pointer(other)?
        } else {
            None
        };
        let Some(found) = found else {
            seen.insert(fingerprint % REMEMBERED, this);
            return Ok(());
        };
        if found.vvbn == own.vvbn {
            return Ok(());
        }
        match self.read_past_cache(other, found, step) {
            Some(earlier) if earlier == data => {}
            Some(_) => {
                step.different += 1;
                return Ok(());
            }
            None => return Ok(()),
        }
        if self.repoint(key, own, found)? {
            step.shared += 1;
        } else {
            // The earlier block has the most pointers that can be counted. This one replaces it as
            // the candidate.
            seen.insert(fingerprint % REMEMBERED, this);
        }
        Ok(())
    }

    /// Makes a pointer name another VVBN with the same bytes. Returns `false` if that has the most
    /// pointers already.
    fn repoint(&mut self, key: Key, own: Pointer, to: Pointer) -> Result<bool> {
        let Some(vvbn) = to.vvbn else { return Ok(false) };
        if self.owners(key.space(), vvbn)? == u16::MAX {
            return Ok(false);
        }
        let counts = self.volume(key.space())?.counted_blocks(1);
        self.reserve(Some(key.space()), 2 * counts + 32, false)?;
        self.touched = false;
        let done = self.share(key.space(), vvbn).and_then(|_| self.set_pointer(key, Some(to)));
        let done = done.and_then(|()| self.note_freed(key.space(), own));
        if let Err(error) = &done
            && self.touched
        {
            self.stop(error);
        }
        done.map(|()| true)
    }

    /// The pointer to a block that equals the drives. `None` for a block of a compression group,
    /// which can only be shared as a whole, and for a cold block, because reading it costs money.
    fn clean_pointer(&mut self, key: Key) -> Result<Option<Pointer>> {
        if self.is_dirty(key) {
            return Ok(None);
        }
        let pointer = self.pointer(key)?.filter(|pointer| pointer.part == Part::Whole);
        match pointer.and_then(|pointer| pointer.vvbn) {
            Some(vvbn) if self.sb.cold > 0 && self.is_cold(key.space(), vvbn)? => Ok(None),
            _ => Ok(pointer),
        }
    }

    /// Reads a block without caching it; `None` if that fails.
    fn read_past_cache(&mut self, key: Key, pointer: Pointer, step: &mut DedupStep) -> Option<Page> {
        if let Some(data) = self.cache.get(key) {
            return Some(data.into());
        }
        let read = self.fetch(key, pointer);
        step.unread += u64::from(read.is_err());
        read.ok()
    }
}

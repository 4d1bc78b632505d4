//! Blocks of files that hold the same: found by their fingerprints, held against each other byte by byte, and shared.
//!
//! Only a pointer changes, never what a file holds; so the log does not know of it, and it is durable with the next
//! consistency point. A pass goes over the files of a volume in the order of inodes. It remembers the fingerprints of
//! a bounded number of blocks, the later ones in place of the earlier ones, so it may miss what is the same, and never more.

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

/// Fingerprints that a pass remembers at once: with their places some 10 MiB.
const REMEMBERED: u64 = 1 << 18;

/// What a step of a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DedupStep {
    /// Blocks and inodes that were looked at.
    pub looked_at: u64,
    /// Blocks that are shared from now on, and were not.
    pub shared: u64,
    /// Blocks with the fingerprint of another one and other bytes.
    pub different: u64,
    /// Blocks that could not be read; they are left as they are.
    pub unread: u64,
    /// The pass has ended; the next step begins another one.
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

/// A block that was looked at: its fingerprint, its file, its number.
#[derive(Clone, Copy, Debug)]
struct Seen {
    fingerprint: u64,
    ino: u64,
    block: u64,
}

/// A pass over a volume: where it goes on, and what it remembers.
#[derive(Debug, Default)]
pub(crate) struct Dedup {
    ino: u64,
    block: u64,
    /// By the fingerprint's remainder.
    seen: HashMap<u64, Seen>,
}

/// What tells blocks apart, or not.
pub(crate) type Fingerprint = fn(&Block) -> u64;

/// The fingerprint that is used: it need not be hard to forge, for bytes are compared.
pub(crate) fn fingerprint(data: &Block) -> u64 {
    xxhash_rust::xxh3::xxh3_64(data)
}

impl Store {
    /// Looks at `most` blocks and inodes at most, going on where the last step ended. Ends early, with the error, if there
    /// must be a consistency point first.
    ///
    /// Errors: besides the early end, those of maps that cannot be read.
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
                // What is damaged is told to those who want it.
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

    /// The next block of the file at which the pass is, or its end.
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

    /// How many blocks of an inode there may be to share: none of what is no regular file.
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
        // It may be gone by now, or hold something else: the bytes decide.
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
            // It has as many pointers as there may be; this one takes over.
            seen.insert(fingerprint % REMEMBERED, this);
        }
        Ok(())
    }

    /// Lets a pointer name another VVBN whose block holds the same. `false` if that has too many pointers.
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

    /// The pointer to a block that is as the drives have it. One that was compressed with others cannot be shared without them, and
    /// to read one that is cold costs money.
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

    /// A block's contents, without keeping them in memory; `None` if it cannot be read.
    fn read_past_cache(&mut self, key: Key, pointer: Pointer, step: &mut DedupStep) -> Option<Page> {
        if let Some(data) = self.cache.get(key) {
            return Some(data.into());
        }
        let read = self.fetch(key, pointer);
        step.unread += u64::from(read.is_err());
        read.ok()
    }
}

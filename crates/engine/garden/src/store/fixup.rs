//! Putting right pointers of volumes that name the place that a block had before it moved.
//!
//! Such a pointer costs a failed read and a question to the container map, each time that the block comes from the drives after its
//! old place was written over. Putting it right costs writing the block that it is in, with all above it.

use std::collections::{BTreeMap, BTreeSet};

use super::{AGGREGATE, Key, Store, aggregate, volume};
use crate::{
    error::{Error, Result},
    format::pointer::Pointer,
};

/// Which pointers are put right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FixUp {
    /// None: they are found out by every read.
    #[default]
    Never,
    /// Those that a read found out, at the next consistency point.
    OnRead,
    /// Those that the steps of a scan meet.
    Scan,
}

/// Pointers that one consistency point puts right at most because they were read.
const MOST_NOTED: usize = 1024;
/// Blocks that change at most when a pointer is put right: those above it, and those above its inode.
const FIX_BLOCKS: u64 = 24;

/// What waits to be put right, and how far the scans of volumes are.
#[derive(Debug, Default)]
pub(crate) struct Fixing {
    noted: BTreeSet<Key>,
    scans: BTreeMap<u32, Position>,
}

impl Fixing {
    /// Exchanges the positions of the scans of volumes.
    pub fn exchange_scans(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.scans, &mut other.scans);
    }

    /// The pointers of a volume are others now.
    pub fn forget(&mut self, space: u32) {
        self.noted.retain(|key| key.space() != space);
        self.scans.remove(&space);
    }
}

/// The next pointer that a scan looks at.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    file: u64,
    level: u8,
    index: u64,
}

/// What a step of the scan for old places did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixUpStep {
    /// Pointers that were looked at.
    pub looked: u64,
    /// Pointers that named an old place and name the right one from the next consistency point on.
    pub fixed: u64,
    /// All pointers of the volume were looked at; the next step begins anew.
    pub ended: bool,
    /// It ended early, because there is no space for what would change.
    pub no_space: bool,
}

impl Store {
    /// A read found out that a pointer names an old place.
    pub(super) fn note_redirect(&mut self, key: Key) {
        self.counts.redirects += 1;
        let fixing = &mut self.gardener.fixing;
        let is_live = key.space() < aggregate::MAX_VOLUMES;
        if self.gardener.gardening.fix_up == FixUp::OnRead && is_live && fixing.noted.len() < MOST_NOTED {
            fixing.noted.insert(key);
        }
    }

    /// Puts right what reads found out, as far as there is space.
    pub(super) fn fix_noted(&mut self) -> Result<()> {
        for key in std::mem::take(&mut self.gardener.fixing.noted) {
            match self.fix(key) {
                Ok(_) => {}
                Err(Error::NoSpace { .. }) => break,
                // What cannot be read is told to whoever asks for it; a consistency point can do without.
                Err(Error::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Puts a pointer right, if it names an old place.
    ///
    /// Errors: `NoSpace`, before anything changed.
    fn fix(&mut self, key: Key) -> Result<bool> {
        // What is dirty gets a new pointer anyway. A file that is gone has none, and so has one whose contents are in its
        // inode by now: its bytes are its user's.
        if self.volume(key.space()).is_err() || self.is_dirty(key) {
            return Ok(false);
        }
        if self.try_inode(key.space(), key.file())?.is_none_or(|inode| inode.inline) {
            return Ok(false);
        }
        let Some(pointer) = self.pointer(key)? else { return Ok(false) };
        let Pointer { vvbn: Some(vvbn), at, .. } = pointer else { return Ok(false) };
        let Some(place) = self.container(key.space(), vvbn)?.filter(|place| *place != at) else { return Ok(false) };
        self.reserve(Some(key.space()), FIX_BLOCKS, false)?;
        self.set_pointer(key, Some(Pointer { at: place, ..pointer }))?;
        self.counts.fix_ups += 1;
        Ok(true)
    }

    /// Looks at as many pointers of a volume at most, going on where the last step ended, and puts right those that name an
    /// old place.
    ///
    /// Errors: those of reading; the next step goes on behind what cannot be read. Cost: reads the blocks of pointers, and the
    /// container map for each. An inode counts as a pointer.
    pub fn fix_up_step(&mut self, space: u32, pointers: u64) -> Result<FixUpStep> {
        self.check_running()?;
        let mut step = FixUpStep::default();
        let mut at = self.gardener.fixing.scans.remove(&space).unwrap_or_default();
        let done = self.fix_from(space, pointers.max(1), &mut at, &mut step);
        if !step.ended {
            at.index += u64::from(done.is_err());
            self.gardener.fixing.scans.insert(space, at);
        }
        done.map(|()| step)
    }

    fn fix_from(&mut self, space: u32, most: u64, at: &mut Position, step: &mut FixUpStep) -> Result<()> {
        while step.looked < most && self.find_pointer(space, most, at, step)? {
            match self.fix(Key::new(space, at.file, at.level, at.index)) {
                Ok(fixed) => step.fixed += u64::from(fixed),
                Err(Error::NoSpace { .. }) => {
                    step.no_space = true;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
            step.looked += 1;
            at.index += 1;
        }
        Ok(())
    }

    /// Goes on to the first pointer from a position on that is no hole; `false` behind the volume's last, or if the step has
    /// looked at enough.
    fn find_pointer(&mut self, space: u32, most: u64, at: &mut Position, step: &mut FixUpStep) -> Result<bool> {
        debug_assert_ne!(space, AGGREGATE);
        let files = self.volume(space)?.record.inodes;
        while step.looked < most {
            if let Some(inode) = self.try_inode(space, at.file)?.filter(|inode| !inode.inline) {
                while at.level <= inode.height {
                    let end = super::shape_of(space).capacity(inode.height - at.level);
                    while at.index < end {
                        let key = Key::new(space, at.file, at.level, at.index);
                        if self.pointer(key)?.is_some() {
                            return Ok(true);
                        }
                        at.index += self.hole_around(key, inode.height)?;
                    }
                    *at = Position { level: at.level + 1, index: 0, ..*at };
                }
            }
            step.looked += 1;
            let next = self.find_bit(space, volume::INODE_MAP, at.file + 1..files, true)?;
            let Some(file) = next else {
                step.ended = true;
                return Ok(false);
            };
            *at = Position { file, ..Position::default() };
        }
        Ok(false)
    }
}

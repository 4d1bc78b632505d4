//! Fix-ups: correcting pointers of volumes that name the place of a block before it moved.
//!
//! Once the old place is overwritten, each read through such a pointer costs a failed read and a
//! lookup in the container map. A fix-up costs a write of the block with the pointer and of all
//! blocks above.

use std::collections::{BTreeMap, BTreeSet};

use super::{AGGREGATE, Key, Store, aggregate, volume};
use crate::{
    error::{Error, Result},
    format::pointer::Pointer,
};

/// Which pointers are fixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FixUp {
    /// None. Each read detects them again.
    #[default]
    Never,
    /// Those that a read detected, at the next consistency point.
    OnRead,
    /// Those that the steps of a scan find.
    Scan,
}

/// Pointers noted by reads that one consistency point fixes, at most.
const MOST_NOTED: usize = 1024;
/// The most blocks that one fix-up changes: those above the pointer and above its inode.
const FIX_BLOCKS: u64 = 24;

/// The noted pointers, and the positions of the scans of volumes.
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

    /// Discards the state of a volume whose pointers changed as a whole.
    pub fn forget(&mut self, space: u32) {
        self.noted.retain(|key| key.space() != space);
        self.scans.remove(&space);
    }
}

/// The next pointer of a scan.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    file: u64,
    level: u8,
    index: u64,
}

/// The result of a step of the scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixUpStep {
    /// Pointers that were scanned.
    pub looked: u64,
    /// Pointers that named an old place. The fix is durable with the next consistency point.
    pub fixed: u64,
    /// Whether the scan has passed all pointers of the volume. Then the next step starts again.
    pub ended: bool,
    /// Whether the step ended early for lack of space.
    pub no_space: bool,
}

impl Store {
    /// Notes a pointer that a read found stale.
    pub(super) fn note_redirect(&mut self, key: Key) {
        self.counts.redirects += 1;
        let fixing = &mut self.gardener.fixing;
        let is_live = key.space() < aggregate::MAX_VOLUMES;
        if self.gardener.gardening.fix_up == FixUp::OnRead && is_live && fixing.noted.len() < MOST_NOTED {
            fixing.noted.insert(key);
        }
    }

    /// Fixes the noted pointers, as far as space suffices.
    pub(super) fn fix_noted(&mut self) -> Result<()> {
        for key in std::mem::take(&mut self.gardener.fixing.noted) {
            match self.fix(key) {
                Ok(_) => {}
                Err(Error::NoSpace { .. }) => break,
                // The next reader gets the error; a consistency point does not need this block.
                Err(Error::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Fixes a pointer, if it names an old place.
    ///
    /// Errors: `NoSpace`, before any change.
    fn fix(&mut self, key: Key) -> Result<bool> {
        // A dirty block gets a new pointer anyway. A deleted file has no pointers. Neither has a
        // file that is inline now: the bytes at that place are contents.
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

    /// Scans up to `pointers` pointers of a volume from the position of the last step, and fixes
    /// those that name an old place. An inode counts as a pointer.
    ///
    /// Errors: those of reading; the next step continues after the unreadable block.
    ///
    /// Cost: reads the blocks of pointers, and the container map for each pointer.
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

    /// Advances to the next pointer that is no hole; `false` at the end of the volume, or if the
    /// step has scanned enough.
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

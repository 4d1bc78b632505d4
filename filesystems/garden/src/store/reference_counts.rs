//! Shared blocks: the number of pointers of a volume to each VVBN, 16 bits each in a file of the
//! volume.
//!
//! 0 means one pointer, which is the one in the block's trailer; so it is for a block that was
//! never shared. Any other value is the number of pointers, and the trailer may name one that is
//! gone. So a block that was shared keeps 1 until it is freed. Most of the file is holes. An
//! operation that shares a block increments the number. A consistency point that frees a pointer
//! decrements it.

use super::{Key, Store, Volume, reserve::map_blocks, volume};
use crate::{
    error::Result,
    format::{
        BLOCK,
        bytes::{put, u16_at},
        pointer::Shape,
    },
};

/// Bytes of a count.
pub(crate) const COUNT: u64 = 2;
/// Counts in a block.
pub(crate) const PER_BLOCK: u64 = BLOCK as u64 / COUNT;

impl Store {
    /// The number of pointers to a VVBN that is or was shared; 0 if it never was.
    pub fn owners(&mut self, space: u32, vvbn: u64) -> Result<u16> {
        if self.volume(space)?.record.shared == 0 {
            return Ok(0); // the usual case, which reads no block of the file
        }
        let (key, at) = place(space, vvbn);
        Ok(u16_at(&self.get(key)?[..], at))
    }

    /// Adds a pointer to a VVBN. Returns `false` if the count is at its limit, so that the VVBN
    /// cannot be shared.
    pub fn share(&mut self, space: u32, vvbn: u64) -> Result<bool> {
        let owners = self.owners(space, vvbn)?;
        if owners == u16::MAX {
            return Ok(false);
        }
        self.set_owners(space, vvbn, owners.max(1) + 1)?;
        let record = &mut self.volume_mut(space)?.record;
        record.shared += u64::from(owners == 0);
        record.saved += 1;
        Ok(true)
    }

    /// Removes a pointer to a VVBN. Returns whether others are left.
    pub(super) fn unshare(&mut self, space: u32, vvbn: u64) -> Result<bool> {
        let owners = self.owners(space, vvbn)?;
        if owners == 0 {
            return Ok(false);
        }
        self.set_owners(space, vvbn, owners - 1)?;
        let record = &mut self.volume_mut(space)?.record;
        record.shared = record.shared.saturating_sub(u64::from(owners == 1));
        record.saved = record.saved.saturating_sub(u64::from(owners > 1));
        Ok(owners > 1)
    }

    fn set_owners(&mut self, space: u32, vvbn: u64, owners: u16) -> Result<()> {
        let (key, at) = place(space, vvbn);
        put(&mut self.modify(key)?[..], at, &owners.to_le_bytes());
        self.volume_mut(space)?.record_dirty = true;
        Ok(())
    }
}

impl Volume {
    /// The most blocks of the file that change when pointers are removed.
    pub(super) fn reference_blocks(&self) -> u64 {
        self.counted_blocks(self.record.shared)
    }

    /// The most blocks of the file that change with the counts of `vvbns` VVBNs.
    pub(crate) fn counted_blocks(&self, vvbns: u64) -> u64 {
        let all = map_blocks(Shape::Volume, self.record.blocks.div_ceil(PER_BLOCK));
        all.min(vvbns.saturating_mul(1 + u64::from(Shape::Volume.height(self.record.blocks.div_ceil(PER_BLOCK)))))
    }
}

fn place(space: u32, vvbn: u64) -> (Key, usize) {
    (Key::new(space, volume::REFERENCES, 0, vvbn / PER_BLOCK), (vvbn % PER_BLOCK * COUNT) as usize)
}

//! A block in memory.

use std::ops::{Deref, DerefMut};

use super::{
    BLOCK, Block, SLOT, block_sum,
    slot::{self, Context, Slot},
};

/// A block with room for its trailer behind it: it is read from a drive and written to one without being copied.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    slot: Slot,
    /// The checksum of the block, if it is known.
    sum: Option<u32>,
}

impl Page {
    /// Zeros.
    pub fn zeros() -> Self {
        slot::zero_slot().into()
    }

    /// Any contents, to be read into.
    pub fn any() -> Self {
        Slot::any().into()
    }

    /// A block whose checksum may be known.
    pub fn of(block: &Block, sum: Option<u32>) -> Self {
        Self { sum, ..block.into() }
    }

    /// What was read into [`memory`](Self::memory), and is what its trailer says.
    pub fn known(mut self) -> Self {
        self.sum = Some(slot::sum(&self.slot));
        self
    }

    /// All of it, to be read into.
    pub fn memory(&mut self) -> &mut [u8; SLOT] {
        self.sum = None;
        &mut self.slot
    }

    /// Ends with the trailer that says where it belongs, and is then as it lies on a drive.
    pub fn seal(&mut self, context: &Context) -> &[u8; SLOT] {
        let sum = self.sum.unwrap_or_else(|| block_sum(&self[..]));
        slot::seal(&mut self.slot, sum, context);
        self.sum = Some(sum);
        &self.slot
    }

    /// Fills all of the block, whose checksum may be known.
    pub fn put(&mut self, block: &Block, sum: Option<u32>) {
        **self = *block;
        self.sum = sum;
    }

    /// As it lies on a drive, if nothing changed since it was sealed.
    pub fn slot(&self) -> &[u8; SLOT] {
        &self.slot
    }
}

impl Deref for Page {
    type Target = Block;

    fn deref(&self) -> &Block {
        self.slot.first_chunk().unwrap_or_else(|| unreachable!("a slot is longer than a block"))
    }
}

impl DerefMut for Page {
    fn deref_mut(&mut self) -> &mut Block {
        self.sum = None;
        self.slot.first_chunk_mut().unwrap_or_else(|| unreachable!("a slot is longer than a block"))
    }
}

impl From<Slot> for Page {
    fn from(slot: Slot) -> Self {
        Self { slot, sum: None }
    }
}

impl From<&Block> for Page {
    fn from(block: &Block) -> Self {
        let mut slot = Slot::any();
        slot[..BLOCK].copy_from_slice(block);
        slot[BLOCK..].fill(0);
        slot.into()
    }
}

impl From<Box<Block>> for Page {
    fn from(block: Box<Block>) -> Self {
        Self::from(&*block)
    }
}

/// What lies behind the block is not compared.
impl PartialEq for Page {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl PartialEq<Box<Block>> for Page {
    fn eq(&self, other: &Box<Block>) -> bool {
        **self == **other
    }
}

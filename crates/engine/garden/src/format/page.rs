//! A block in memory.

use std::ops::{Deref, DerefMut};

use super::{
    Block, SLOT,
    slot::{self, Context, Slot},
};

/// A block with room for its trailer behind it: it is read from a drive and written to one without being copied.
#[derive(Clone, Debug)]
pub(crate) struct Page(Slot);

impl Page {
    /// Zeros.
    pub fn zeros() -> Self {
        Self(slot::zero_slot())
    }

    /// Ends with the trailer that says where it belongs, and is then as it lies on a drive.
    pub fn seal(&mut self, context: &Context) -> &[u8; SLOT] {
        slot::seal(&mut self.0, context);
        &self.0
    }

    /// As it lies on a drive, if nothing changed since it was sealed.
    pub fn slot(&self) -> &[u8; SLOT] {
        &self.0
    }
}

impl Deref for Page {
    type Target = Block;

    fn deref(&self) -> &Block {
        self.0.first_chunk().unwrap_or_else(|| unreachable!("a slot is longer than a block"))
    }
}

impl DerefMut for Page {
    fn deref_mut(&mut self) -> &mut Block {
        self.0.first_chunk_mut().unwrap_or_else(|| unreachable!("a slot is longer than a block"))
    }
}

impl From<Slot> for Page {
    fn from(slot: Slot) -> Self {
        Self(slot)
    }
}

impl From<&Block> for Page {
    fn from(block: &Block) -> Self {
        let mut bytes = Vec::with_capacity(SLOT);
        bytes.extend_from_slice(block);
        bytes.resize(SLOT, 0);
        Self(bytes.into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("it has {SLOT} bytes")))
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

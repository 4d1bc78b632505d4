//! A block in memory.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

use super::{
    BLOCK, Block, SLOT, block_sum,
    slot::{self, Context, Slot},
};

/// Ownership of the memory of a block.
#[derive(Clone, Debug)]
enum Memory {
    Own(Slot),
    /// Another reader has a reference, or had one. A change of the block copies it first.
    Shared(Arc<Slot>),
    /// A temporary state of the conversions between the other two.
    Moving,
}

impl Memory {
    fn get(&self) -> &[u8; SLOT] {
        match self {
            Self::Own(slot) => slot,
            Self::Shared(slot) => slot,
            Self::Moving => unreachable!("a state within a conversion"),
        }
    }

    #[inline]
    fn get_mut(&mut self) -> &mut [u8; SLOT] {
        if !matches!(self, Self::Own(_)) {
            self.own();
        }
        match self {
            Self::Own(slot) => slot,
            _ => unreachable!("the memory is owned now"),
        }
    }

    #[cold]
    fn own(&mut self) {
        *self = match std::mem::replace(self, Self::Moving) {
            Self::Shared(slot) => Self::Own(Arc::try_unwrap(slot).unwrap_or_else(|slot| Slot::clone(&slot))),
            other => other,
        };
    }

    fn share(&mut self) -> Arc<Slot> {
        let shared = match std::mem::replace(self, Self::Moving) {
            Self::Own(slot) => Arc::new(slot),
            Self::Shared(slot) => slot,
            Self::Moving => unreachable!("a state within a conversion"),
        };
        *self = Self::Shared(shared.clone());
        shared
    }
}

/// A block with space for its trailer. A drive reads and writes it without a copy.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    slot: Memory,
    /// The checksum of the block, if it is known.
    sum: Option<u32>,
}

impl Page {
    /// A block of zeros.
    pub fn zeros() -> Self {
        Slot::zeros().into()
    }

    /// A block with unspecified contents, to be overwritten by a read.
    pub fn any() -> Self {
        Slot::any().into()
    }

    /// A copy of `block`, and its checksum if known.
    pub fn of(block: &Block, sum: Option<u32>) -> Self {
        Self { sum, ..block.into() }
    }

    /// Adopts the checksum in the trailer. The caller has read the slot into
    /// [`memory`](Self::memory) and checked it.
    pub fn known(mut self) -> Self {
        self.sum = Some(slot::sum(self.slot.get()));
        self
    }

    /// All bytes of the slot, for a read into it.
    pub fn memory(&mut self) -> &mut [u8; SLOT] {
        self.sum = None;
        self.slot.get_mut()
    }

    /// Writes the trailer for this place and returns the slot as a drive stores it.
    pub fn seal(&mut self, context: &Context) -> &[u8; SLOT] {
        let sum = self.sum.unwrap_or_else(|| block_sum(&self[..]));
        slot::seal(self.slot.get_mut(), sum, context);
        self.sum = Some(sum);
        self.slot.get()
    }

    /// Replaces the contents of the block; `sum` is its checksum if known.
    pub fn put(&mut self, block: &Block, sum: Option<u32>) {
        **self = *block;
        self.sum = sum;
    }

    /// The slot as a drive stores it, if nothing changed since it was sealed.
    pub fn slot(&self) -> &[u8; SLOT] {
        self.slot.get()
    }

    /// Shares the slot with a reader. Until the reader drops it, a change copies the block first;
    /// the shared bytes never change.
    pub fn share(&mut self) -> Arc<Slot> {
        self.slot.share()
    }
}

impl Deref for Page {
    type Target = Block;

    fn deref(&self) -> &Block {
        self.slot.get().first_chunk().unwrap_or_else(|| unreachable!("a slot is longer than a block"))
    }
}

impl DerefMut for Page {
    fn deref_mut(&mut self) -> &mut Block {
        self.sum = None;
        self.slot.get_mut().first_chunk_mut().unwrap_or_else(|| unreachable!("a slot is longer than a block"))
    }
}

impl From<Slot> for Page {
    fn from(slot: Slot) -> Self {
        Self { slot: Memory::Own(slot), sum: None }
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

/// The trailer is not compared.
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

#[cfg(test)]
mod tests {
    use super::{super::BLOCK, *};

    #[test]
    fn shared_blocks_are_copied_only_while_shared() {
        let mut page = Page::of(&[1; BLOCK], None);
        let place = |page: &Page| page.slot().as_ptr();
        let first = place(&page);
        let shared = page.share();
        assert_eq!((shared.as_ptr(), place(&page)), (first, first), "sharing copies nothing");
        page[0] = 2;
        assert!(page[0] == 2 && shared[0] == 1 && place(&page) != first);
        let second = place(&page);
        drop((page.share(), page.share()));
        page.put(&[3; BLOCK], None);
        assert!(page[BLOCK - 1] == 3 && place(&page) == second, "no reader is left");
    }
}

//! A block in memory.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

use super::{
    BLOCK, Block, SLOT, block_sum,
    slot::{self, Context, Slot},
};

/// Whose the memory of a block is.
#[derive(Clone, Debug)]
enum Memory {
    Own(Slot),
    /// Somebody else reads it too, or did: whoever changes the block leaves that as it is.
    Shared(Arc<Slot>),
    /// Nowhere else than on the way from one to the other.
    Moving,
}

impl Memory {
    fn get(&self) -> &[u8; SLOT] {
        match self {
            Self::Own(slot) => slot,
            Self::Shared(slot) => slot,
            Self::Moving => unreachable!("nobody sees it so"),
        }
    }

    #[inline]
    fn get_mut(&mut self) -> &mut [u8; SLOT] {
        if !matches!(self, Self::Own(_)) {
            self.own();
        }
        match self {
            Self::Own(slot) => slot,
            _ => unreachable!("it is its own now"),
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
            Self::Moving => unreachable!("nobody sees it so"),
        };
        *self = Self::Shared(shared.clone());
        shared
    }
}

/// A block with room for its trailer behind it: it is read from a drive and written to one without being copied.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    slot: Memory,
    /// The checksum of the block, if it is known.
    sum: Option<u32>,
}

impl Page {
    /// Zeros.
    pub fn zeros() -> Self {
        Slot::zeros().into()
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
        self.sum = Some(slot::sum(self.slot.get()));
        self
    }

    /// All of it, to be read into.
    pub fn memory(&mut self) -> &mut [u8; SLOT] {
        self.sum = None;
        self.slot.get_mut()
    }

    /// Ends with the trailer that says where it belongs, and is then as it lies on a drive.
    pub fn seal(&mut self, context: &Context) -> &[u8; SLOT] {
        let sum = self.sum.unwrap_or_else(|| block_sum(&self[..]));
        slot::seal(self.slot.get_mut(), sum, context);
        self.sum = Some(sum);
        self.slot.get()
    }

    /// Fills all of the block, whose checksum may be known.
    pub fn put(&mut self, block: &Block, sum: Option<u32>) {
        **self = *block;
        self.sum = sum;
    }

    /// As it lies on a drive, if nothing changed since it was sealed.
    pub fn slot(&self) -> &[u8; SLOT] {
        self.slot.get()
    }

    /// The same for somebody who reads it while others go on: until then, who changes the block changes a copy. Its bytes stay where
    /// they are.
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

#[cfg(test)]
mod tests {
    use super::{super::BLOCK, *};

    #[test]
    fn what_is_shared_stays_as_it_was_and_is_copied_only_while_somebody_reads_it() {
        let mut page = Page::of(&[1; BLOCK], None);
        let place = |page: &Page| page.slot().as_ptr();
        let first = place(&page);
        let shared = page.share();
        assert_eq!((shared.as_ptr(), place(&page)), (first, first), "nothing was copied");
        page[0] = 2;
        assert!(page[0] == 2 && shared[0] == 1 && place(&page) != first);
        let second = place(&page);
        drop((page.share(), page.share()));
        page.put(&[3; BLOCK], None);
        assert!(page[BLOCK - 1] == 3 && place(&page) == second, "nobody reads it any more");
    }
}

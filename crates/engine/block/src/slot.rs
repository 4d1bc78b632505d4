//! Memory of blocks with their trailers, which come and go by the ten thousand: an allocator for things of one size.
//!
//! The kernel is asked for the pages of many slots at once: one by one, as they are touched, each costs an interrupt. They are
//! not large pages of the processor's. These make addresses cheaper to find, but little is gained by that where blocks are copied whole; and
//! in a virtual machine whose host takes back large pages that lie idle, each costs a millisecond when it is touched first.

use std::{
    alloc::{Layout, handle_alloc_error},
    fmt,
    mem::ManuallyDrop,
    ops::{Deref, DerefMut},
    ptr::{NonNull, null_mut},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

/// Bytes of a slot: a block of 4,096 bytes and a trailer of 64.
pub const SLOT_BYTES: usize = 4096 + 64;
/// Bytes of addresses that the kernel is asked for at once.
const REGION: usize = 32 << 20;
/// Bytes of memory that it is asked for at once.
const STEP: usize = 256 << 10;

/// The bytes of a slot. Memory that one leaves is kept for those that come: a process has it for as many slots as it ever had at
/// once. Cost: a lock to make and to drop one.
pub struct Slot(NonNull<[u8; SLOT_BYTES]>);

// SAFETY: nobody else has the bytes of a slot, as with a box.
unsafe impl Send for Slot {}
// SAFETY: shared slots are only read.
unsafe impl Sync for Slot {}

impl Slot {
    /// Zeros.
    pub fn zeros() -> Self {
        let mut memory = memory();
        if let Some(mut left) = memory.left.pop().map(ManuallyDrop::into_inner) {
            drop(memory);
            left.fill(0);
            return left;
        }
        memory.take_fresh()
    }

    /// Bytes of any contents, to be written whole.
    pub fn any() -> Self {
        let mut memory = memory();
        memory.left.pop().map_or_else(|| memory.take_fresh(), ManuallyDrop::into_inner)
    }
}

/// Memory that no slot has.
struct Memory {
    /// Of slots that are gone.
    left: Vec<ManuallyDrop<Slot>>,
    /// Zeros that none ever had.
    fresh: NonNull<u8>,
    fresh_bytes: usize,
    /// Of these, the last ones, which the kernel has given no memory for yet.
    untouched_bytes: usize,
}

// SAFETY: what `fresh` points to is nobody else's.
unsafe impl Send for Memory {}

static MEMORY: Mutex<Memory> =
    Mutex::new(Memory { left: Vec::new(), fresh: NonNull::dangling(), fresh_bytes: 0, untouched_bytes: 0 });

fn memory() -> MutexGuard<'static, Memory> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    fn take_fresh(&mut self) -> Slot {
        if self.fresh_bytes < SLOT_BYTES {
            self.ask();
        }
        if self.fresh_bytes - SLOT_BYTES < self.untouched_bytes {
            self.touch();
        }
        let slot = self.fresh.cast();
        // SAFETY: there are so many bytes, as was just seen.
        self.fresh = unsafe { self.fresh.add(SLOT_BYTES) };
        self.fresh_bytes -= SLOT_BYTES;
        Slot(slot)
    }

    /// Asks the kernel for addresses. What was left of the last ones is too little for a slot.
    fn ask(&mut self) {
        let (access, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: new memory, where the kernel has none yet.
        let mapped = unsafe { mmap_anonymous(null_mut(), REGION, access, private) };
        let mapped = mapped.ok().and_then(|start| NonNull::new(start.cast()));
        self.fresh = mapped.unwrap_or_else(|| handle_alloc_error(Layout::new::<[u8; REGION]>()));
        (self.fresh_bytes, self.untouched_bytes) = (REGION, REGION);
    }

    /// Asks it for memory for the next slots.
    fn touch(&mut self) {
        // SAFETY: within the region, of which so many bytes are left.
        let start = unsafe { self.fresh.add(self.fresh_bytes - self.untouched_bytes) };
        // SAFETY: nothing lies there yet. A kernel that does not know this gives memory when it is touched.
        let _ = unsafe { madvise(start.as_ptr().cast(), STEP, Advice::LinuxPopulateWrite) };
        self.untouched_bytes -= STEP;
    }
}

const _: () = assert!(REGION.is_multiple_of(STEP) && SLOT_BYTES <= STEP);

impl Drop for Slot {
    fn drop(&mut self) {
        memory().left.push(ManuallyDrop::new(Slot(self.0)));
    }
}

impl Deref for Slot {
    type Target = [u8; SLOT_BYTES];

    fn deref(&self) -> &Self::Target {
        // SAFETY: the bytes were zeros or a slot's, and are this one's alone.
        unsafe { self.0.as_ref() }
    }
}

impl DerefMut for Slot {
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: as above.
        unsafe { self.0.as_mut() }
    }
}

impl From<&[u8; SLOT_BYTES]> for Slot {
    fn from(bytes: &[u8; SLOT_BYTES]) -> Self {
        let mut slot = Self::any();
        *slot = *bytes;
        slot
    }
}

impl Clone for Slot {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Slot {}

impl fmt::Debug for Slot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More slots than a region has, some of which leave and come again on other threads.
    #[test]
    fn each_slot_has_bytes_of_its_own_and_zeros_are_zeros() {
        let make = |byte: u8, count: usize| -> Vec<Slot> {
            let slot = |_| {
                let mut slot = Slot::zeros();
                assert!(slot.iter().all(|&byte| byte == 0));
                slot.fill(byte);
                slot
            };
            (0..count).map(slot).collect()
        };
        let mut slots = make(1, REGION / SLOT_BYTES);
        drop(slots.split_off(REGION / SLOT_BYTES / 2));
        let others = [2, 3].map(|byte| std::thread::spawn(move || make(byte, REGION / SLOT_BYTES / 2)));
        for (byte, slots) in (2..).zip(others.map(|thread| thread.join().unwrap())) {
            assert!(slots.iter().flat_map(|slot| slot.iter()).all(|&found| found == byte));
        }
        assert!(slots.iter().flat_map(|slot| slot.iter()).all(|&found| found == 1));
        assert_eq!(slots[0].clone(), slots[1]);
        assert_ne!(Slot::zeros(), slots[0]);
    }
}

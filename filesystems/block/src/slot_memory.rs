//! Memory for blocks with their trailers, which are allocated and freed very often: an allocator
//! for one size.
//!
//! One request to the kernel maps the pages of many slots, because single page faults cost an
//! interrupt each. Huge pages are not used. They make address translation cheaper, which gains
//! little for copies of whole blocks. In a virtual machine whose host reclaims idle huge pages, the
//! first access to each costs a millisecond.

use std::{
    alloc::{Layout, handle_alloc_error},
    fmt,
    mem::ManuallyDrop,
    ops::{Deref, DerefMut},
    ptr::{NonNull, null_mut},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

/// The bytes of a slot: a block of 4,096 bytes and a trailer of 64.
pub const SLOT_BYTES: usize = 4096 + 64;
/// The bytes of address space that are requested at a time.
const REGION: usize = 32 << 20;
/// The bytes of memory that are requested at a time.
const STEP: usize = 256 << 10;

/// The bytes of a slot. Memory of dropped slots is reused, so a process keeps memory for the
/// largest number of slots that it ever had. Cost: a lock to make and to drop a slot.
pub struct Slot(NonNull<[u8; SLOT_BYTES]>);

// SAFETY: a slot owns its bytes, like a box.
unsafe impl Send for Slot {}
// SAFETY: shared slots are only read.
unsafe impl Sync for Slot {}

impl Slot {
    /// A slot of zeros.
    pub fn zeros() -> Self {
        let mut memory = memory();
        if let Some(mut left) = memory.left.pop().map(ManuallyDrop::into_inner) {
            drop(memory);
            left.fill(0);
            return left;
        }
        memory.take_fresh()
    }

    /// A slot of arbitrary bytes, which the caller overwrites.
    pub fn any() -> Self {
        let mut memory = memory();
        memory.left.pop().map_or_else(|| memory.take_fresh(), ManuallyDrop::into_inner)
    }
}

/// The memory that no slot uses.
struct Memory {
    /// Dropped slots.
    left: Vec<ManuallyDrop<Slot>>,
    /// Fresh zeros.
    fresh: NonNull<u8>,
    fresh_bytes: usize,
    /// The fresh bytes at the end that have no memory yet.
    untouched_bytes: usize,
}

// SAFETY: no other code uses the memory of `fresh`.
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
        // SAFETY: there are at least this number of bytes, by the checks above.
        self.fresh = unsafe { self.fresh.add(SLOT_BYTES) };
        self.fresh_bytes -= SLOT_BYTES;
        Slot(slot)
    }

    /// Requests address space. The rest of the last region is too small for a slot.
    fn ask(&mut self) {
        let (access, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let mapped = unsafe { mmap_anonymous(null_mut(), REGION, access, private) };
        let mapped = mapped.ok().and_then(|start| NonNull::new(start.cast()));
        self.fresh = mapped.unwrap_or_else(|| handle_alloc_error(Layout::new::<[u8; REGION]>()));
        (self.fresh_bytes, self.untouched_bytes) = (REGION, REGION);
    }

    /// Requests memory for the next slots.
    fn touch(&mut self) {
        // SAFETY: within the region, which has at least this number of bytes left.
        let start = unsafe { self.fresh.add(self.fresh_bytes - self.untouched_bytes) };
        // SAFETY: the range is not in use. A kernel that does not support this allocates at the
        // first access.
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
        // SAFETY: the bytes are initialized, and only this slot uses them.
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

    /// More slots than a region has; some are dropped and allocated again by other threads.
    #[test]
    fn slots_are_separate_and_zeros_are_zero() {
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

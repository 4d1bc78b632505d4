//! A device in memory for large runs with trivial payloads: a block that repeats one word takes
//! little memory.

use std::{
    io::{IoSlice, IoSliceMut},
    mem::size_of,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use senesce_core::Bytes;

use crate::{BlockDevice, BlockOperation, BlockResult, SLOT_BYTES as SLOT, Slot, check_range::check_range};

/// The bytes of a slot's payload.
const PAYLOAD: usize = 4096;
/// The bytes of the trailer after the payload.
const TRAILER: usize = SLOT - PAYLOAD;
const WORD: usize = 8;

/// The word that a payload repeats, and the trailer.
type Repeated = [u8; WORD + TRAILER];

/// A device in memory of slots with 4,096 bytes of payload and a trailer of 64. A slot whose
/// payload repeats one word of 8 bytes is kept as that word and the trailer. A slot of zeros takes
/// nothing, and all others are kept whole.
///
/// It is a byte array like every other device; requests that are not aligned to slots only take
/// longer. The XOR of slots that repeat a word also repeats one, so parity of such slots stays
/// small. Flushes do nothing, because no write is lost.
#[derive(Debug)]
pub struct CompactDevice {
    name: String,
    size: Bytes,
    slots: RwLock<Slots>,
}

/// The representation of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Zeros,
    Repeated(u32),
    Whole(u32),
}

/// All slots. Memory: 4 bytes for each, and its contents.
#[derive(Debug)]
struct Slots {
    /// 0 for zeros. Else a number from 1 on: of a whole slot if the top bit is set, else of a
    /// repeated word.
    places: Vec<u32>,
    repeated: Pool<Repeated>,
    whole: Pool<Slot>,
}

/// Numbered items; numbers of removed items are reused.
#[derive(Debug)]
struct Pool<T> {
    things: Vec<T>,
    free: Vec<u32>,
}

const WHOLE: u32 = 1 << 31;

impl CompactDevice {
    /// A device of zeros. Panics for 2^31 slots or more, which is 8 TiB.
    pub fn new(name: impl Into<String>, size: Bytes) -> Self {
        let count = size.0.div_ceil(SLOT as u64);
        assert!(count < u64::from(WHOLE), "a compact device of {count} slots; less than 2^31");
        let places = vec![0; count as usize];
        let slots = Slots { places, repeated: Pool::new(), whole: Pool::new() };
        Self { name: name.into(), size, slots: RwLock::new(slots) }
    }

    /// All contents.
    pub fn contents(&self) -> Vec<u8> {
        let mut all = vec![0; self.size.0 as usize];
        self.read().copy_out(0, &mut all);
        all
    }

    /// The memory of the contents.
    pub fn allocated(&self) -> Bytes {
        let slots = self.read();
        let numbers = slots.places.len() + slots.repeated.free.len() + slots.whole.free.len();
        let kept = slots.repeated.things.len() * size_of::<Repeated>() + slots.whole.in_use() * SLOT;
        Bytes((numbers * size_of::<u32>() + kept) as u64)
    }

    // If a thread panicked during a write, the write is partial, as on a real device.
    fn read(&self) -> RwLockReadGuard<'_, Slots> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Slots> {
        self.slots.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Pool<T> {
    fn new() -> Self {
        Self { things: Vec::new(), free: Vec::new() }
    }

    fn in_use(&self) -> usize {
        self.things.len() - self.free.len()
    }

    fn add(&mut self, thing: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.things[number as usize] = thing;
            return number;
        }
        if self.things.len() == self.things.capacity() {
            // Doubling the capacity would waste memory.
            self.things.reserve_exact((self.things.len() / 8).max(64));
        }
        self.things.push(thing);
        self.things.len() as u32 - 1
    }
}

impl Slots {
    fn kept(&self, slot: usize) -> Kept {
        match self.places[slot] {
            0 => Kept::Zeros,
            place if place & WHOLE != 0 => Kept::Whole((place & !WHOLE) - 1),
            place => Kept::Repeated(place - 1),
        }
    }

    fn copy_out(&self, offset: u64, out: &mut [u8]) {
        let mut done = 0;
        for (slot, first, bytes) in pieces(offset, out.len()) {
            let out = &mut out[done..done + bytes];
            done += bytes;
            match self.kept(slot) {
                Kept::Zeros => out.fill(0),
                Kept::Whole(number) => {
                    out.copy_from_slice(&self.whole.things[number as usize][first..first + bytes]);
                }
                Kept::Repeated(number) => {
                    let kept = &self.repeated.things[number as usize];
                    match out.first_chunk_mut::<SLOT>() {
                        Some(out) => expand(kept, out),
                        None => {
                            let mut all = [0; SLOT];
                            expand(kept, &mut all);
                            out.copy_from_slice(&all[first..first + bytes]);
                        }
                    }
                }
            }
        }
    }

    fn copy_in(&mut self, offset: u64, data: &[u8]) {
        let mut done = 0;
        for (slot, first, bytes) in pieces(offset, data.len()) {
            let data = &data[done..done + bytes];
            done += bytes;
            match data.first_chunk::<SLOT>() {
                Some(data) => self.set(slot, data),
                None => {
                    let mut all = [0; SLOT];
                    self.copy_out((slot * SLOT) as u64, &mut all);
                    all[first..first + bytes].copy_from_slice(data);
                    self.set(slot, &all);
                }
            }
        }
    }

    fn set(&mut self, slot: usize, data: &[u8; SLOT]) {
        let small = contract(data);
        match (self.kept(slot), small) {
            (Kept::Repeated(number), Some(small)) if small != [0; WORD + TRAILER] => {
                self.repeated.things[number as usize] = small;
            }
            (Kept::Whole(number), None) => *self.whole.things[number as usize] = *data,
            (_, small) => {
                self.clear(slot);
                self.places[slot] = match small {
                    Some(small) if small == [0; WORD + TRAILER] => 0,
                    Some(small) => self.repeated.add(small) + 1,
                    None => (self.whole.add(Slot::from(data)) + 1) | WHOLE,
                };
            }
        }
    }

    fn clear(&mut self, slot: usize) {
        match self.kept(slot) {
            Kept::Zeros => {}
            Kept::Repeated(number) => self.repeated.free.push(number),
            Kept::Whole(number) => self.whole.free.push(number),
        }
        self.places[slot] = 0;
    }
}

/// The pieces of a range: slot, first byte in it, bytes.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let mut at = offset;
    let end = offset + len as u64;
    std::iter::from_fn(move || {
        let (slot, first) = ((at / SLOT as u64) as usize, (at % SLOT as u64) as usize);
        let bytes = (SLOT - first).min((end - at) as usize);
        at += bytes as u64;
        (bytes > 0).then_some((slot, first, bytes))
    })
}

/// The word and the trailer, if the payload repeats one word.
fn contract(slot: &[u8; SLOT]) -> Option<Repeated> {
    if slot[WORD..PAYLOAD] != slot[..PAYLOAD - WORD] {
        return None;
    }
    let mut kept = [0; WORD + TRAILER];
    kept[..WORD].copy_from_slice(&slot[..WORD]);
    kept[WORD..].copy_from_slice(&slot[PAYLOAD..]);
    Some(kept)
}

fn expand(kept: &Repeated, slot: &mut [u8; SLOT]) {
    let (payload, trailer) = slot.split_at_mut(PAYLOAD);
    for word in payload.as_chunks_mut::<WORD>().0 {
        word.copy_from_slice(&kept[..WORD]);
    }
    trailer.copy_from_slice(&kept[WORD..]);
}

impl BlockDevice for CompactDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> Bytes {
        self.size
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        check_range(self, BlockOperation::Read, offset, out.len() as u64)?;
        self.read().copy_out(offset, out);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        check_range(self, BlockOperation::Write, offset, data.len() as u64)?;
        self.write().copy_in(offset, data);
        Ok(())
    }

    fn read_parts_at(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> BlockResult<()> {
        check_range(self, BlockOperation::Read, offset, parts.iter().map(|part| part.len() as u64).sum())?;
        let (slots, mut at) = (self.read(), offset);
        for part in parts {
            slots.copy_out(at, part);
            at += part.len() as u64;
        }
        Ok(())
    }

    fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> BlockResult<()> {
        check_range(self, BlockOperation::Write, offset, parts.iter().map(|part| part.len() as u64).sum())?;
        let (mut slots, mut at) = (self.write(), offset);
        for part in parts {
            slots.copy_in(at, part);
            at += part.len() as u64;
        }
        Ok(())
    }

    fn flush(&self) -> BlockResult<()> {
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        check_range(self, BlockOperation::Discard, offset, len)?;
        let mut slots = self.write();
        for (slot, _, bytes) in pieces(offset, len as usize) {
            if bytes == SLOT {
                slots.clear(slot);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slot that repeats a word, with a trailer of one byte value.
    fn repeated(word: u64, trailer: u8) -> [u8; SLOT] {
        let mut slot = [trailer; SLOT];
        slot[..PAYLOAD].copy_from_slice(&word.to_le_bytes().repeat(PAYLOAD / WORD));
        slot
    }

    fn kept(device: &CompactDevice) -> (usize, usize) {
        let slots = device.read();
        (slots.repeated.in_use(), slots.whole.in_use())
    }

    #[test]
    fn slots_are_kept_in_the_smallest_form() {
        let device = CompactDevice::new("compact", Bytes(3 * SLOT as u64));
        let slot = |number: u64| number * SLOT as u64;
        let (one, other) = (repeated(0x0102_0304_0506_0708, 9), repeated(0xff00_0000_0000_00ff, 3));
        device.write_at(slot(0), &[one, other].concat()).unwrap();
        assert_eq!(kept(&device), (2, 0));
        let sum: Vec<u8> = one.iter().zip(&other).map(|(one, other)| one ^ other).collect();
        device.write_at(slot(2), &sum).unwrap();
        assert_eq!(kept(&device), (3, 0), "a sum repeats a word as well");
        assert_eq!(device.contents(), [&one[..], &other, &sum].concat());
        assert_eq!(device.allocated(), Bytes(3 * (4 + 72)));

        // One changed byte makes a slot whole; the old byte makes it small again. The write crosses
        // two slots.
        device.write_at(slot(1) - 1, &[9, 7]).unwrap();
        assert_eq!(kept(&device), (2, 1));
        device.write_at(slot(1), &other[..1]).unwrap();
        assert_eq!(kept(&device), (3, 0));
        device.write_at(slot(0), &[0; 3 * SLOT]).unwrap();
        assert_eq!(kept(&device), (0, 0));
        device.write_at(slot(2), &repeated(0, 1)).unwrap();
        device.write_at(slot(0), &one).unwrap();
        assert_eq!(kept(&device), (2, 0), "zeros with a trailer are kept");
        assert_eq!(device.read().repeated.things.len(), 3, "numbers are reused");
        device.discard(slot(0), 2 * SLOT as u64).unwrap();
        assert_eq!(kept(&device), (1, 0));
    }
}

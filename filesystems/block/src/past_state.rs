//! Devices that can be read in a past state while writes continue.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard},
};

use senesce_core::Bytes;

use crate::{BlockDevice, BlockError, BlockOperation, BlockProblem, BlockResult, check_range::check_range};

/// The bytes that are saved as one piece before the first write to it.
const PIECE_BYTES: u64 = 64 << 10;

/// Freezes all of its devices at one moment. Clones refer to the same freezer.
#[derive(Clone, Debug, Default)]
pub struct Freezer(Arc<RwLock<Option<Arc<Saved>>>>);

/// The old contents of the pieces that were written since the moment.
#[derive(Debug)]
struct Saved {
    most_bytes: u64,
    pieces: Mutex<Pieces>,
}

#[derive(Debug, Default)]
struct Pieces {
    /// By device and number of the piece.
    kept: BTreeMap<(usize, u64), Vec<u8>>,
    bytes: u64,
    /// The reason why the moment cannot be read any more.
    lost: Option<LostMoment>,
}

/// The reason why a moment cannot be read any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostMoment {
    /// The reason, as text.
    pub why: String,
    /// Whether the memory for overwritten data was too small.
    pub is_full: bool,
}

/// A moment of all devices of a freezer. Dropping it ends the moment and frees its memory.
#[derive(Debug)]
pub struct Moment {
    freezer: Freezer,
    saved: Arc<Saved>,
}

/// A device of a [`Freezer`]. Requests go to the device below. During a moment, the first write to
/// a piece of 64 KiB saves its old contents.
#[derive(Debug)]
pub struct FreezableDevice<D> {
    below: Arc<D>,
    number: usize,
    freezer: Freezer,
}

/// A device in its state at a [`Moment`]. It is read-only; use an
/// [`OverlayDevice`](crate::OverlayDevice) for writes.
#[derive(Debug)]
pub struct FrozenDevice<D> {
    below: Arc<D>,
    number: usize,
    saved: Arc<Saved>,
}

impl Freezer {
    /// Starts a moment, after the writes in progress; later writes are not part of it. `None`:
    /// another moment is active.
    ///
    /// Up to `most_bytes` of overwritten data are kept in memory. If more is overwritten, reads of
    /// the moment fail. Writes never fail because of a moment.
    pub fn freeze(&self, most_bytes: Bytes) -> Option<Moment> {
        let mut now = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if now.is_some() {
            return None;
        }
        let saved = Arc::new(Saved { most_bytes: most_bytes.0, pieces: Mutex::default() });
        *now = Some(saved.clone());
        Some(Moment { freezer: self.clone(), saved })
    }

    fn read(&self) -> RwLockReadGuard<'_, Option<Arc<Saved>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Moment {
    /// The reason why the moment cannot be read, if so. Then data read since its start is not
    /// consistent.
    pub fn lost(&self) -> Option<LostMoment> {
        self.saved.pieces().lost.clone()
    }

    /// Makes all later reads of the moment fail, so that work on it stops early.
    pub fn give_up(&self, why: &str) {
        self.saved.pieces().lose(why);
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        *self.freezer.0.write().unwrap_or_else(PoisonError::into_inner) = None;
        // Devices of the moment may outlive it.
        self.saved.pieces().lose("the moment has ended");
    }
}

impl<D: BlockDevice> FreezableDevice<D> {
    /// A device of a freezer. Each device needs its own `number`.
    pub fn new(below: D, freezer: &Freezer, number: usize) -> Self {
        Self { below: Arc::new(below), number, freezer: freezer.clone() }
    }

    /// The device in its state at a moment of its freezer.
    pub fn at(&self, moment: &Moment) -> FrozenDevice<D> {
        FrozenDevice { below: self.below.clone(), number: self.number, saved: moment.saved.clone() }
    }

    /// Saves the data that a change overwrites. The change runs while the guard exists, so that no
    /// moment starts during it.
    fn save(&self, offset: u64, len: u64) -> RwLockReadGuard<'_, Option<Arc<Saved>>> {
        let moment = self.freezer.read();
        if let Some(saved) = &*moment {
            saved.save(&*self.below, self.number, offset, len);
        }
        moment
    }
}

impl Saved {
    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn save(&self, device: &dyn BlockDevice, number: usize, offset: u64, len: u64) {
        let size = device.size().0;
        let Some(end) = offset.checked_add(len).filter(|&end| end <= size && len > 0) else { return };
        let mut pieces = self.pieces();
        for piece in offset / PIECE_BYTES..=(end - 1) / PIECE_BYTES {
            if pieces.lost.is_some() {
                return;
            }
            if pieces.kept.contains_key(&(number, piece)) {
                continue;
            }
            let first = piece * PIECE_BYTES;
            let bytes = PIECE_BYTES.min(size - first);
            if pieces.bytes + bytes > self.most_bytes {
                let most = Bytes(self.most_bytes);
                pieces.lose_as(&format!("more than {most} were overwritten during the moment"), true);
                return;
            }
            let mut copy = vec![0; bytes as usize];
            if let Err(error) = device.read_at(first, &mut copy) {
                pieces.lose(&format!("overwritten data could not be saved: {error}"));
                return;
            }
            pieces.bytes += bytes;
            pieces.kept.insert((number, piece), copy);
        }
    }
}

impl Pieces {
    fn lose(&mut self, why: &str) {
        self.lose_as(why, false);
    }

    fn lose_as(&mut self, why: &str, is_full: bool) {
        self.lost.get_or_insert_with(|| LostMoment { why: why.to_owned(), is_full });
        self.kept.clear();
        self.bytes = 0;
    }
}

impl<D: BlockDevice> BlockDevice for FreezableDevice<D> {
    fn name(&self) -> &str {
        self.below.name()
    }

    fn size(&self) -> Bytes {
        self.below.size()
    }

    fn alignment(&self) -> u32 {
        self.below.alignment()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        self.below.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        let _moment = self.save(offset, data.len() as u64);
        self.below.write_at(offset, data)
    }

    fn read_parts_at(&self, offset: u64, parts: &mut [io::IoSliceMut<'_>]) -> BlockResult<()> {
        self.below.read_parts_at(offset, parts)
    }

    fn write_parts_at(&self, offset: u64, parts: &[io::IoSlice<'_>]) -> BlockResult<()> {
        let _moment = self.save(offset, parts.iter().map(|part| part.len() as u64).sum());
        self.below.write_parts_at(offset, parts)
    }

    fn write_durably_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        let _moment = self.save(offset, data.len() as u64);
        self.below.write_durably_at(offset, data)
    }

    fn flush(&self) -> BlockResult<()> {
        self.below.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        let _moment = self.save(offset, len);
        self.below.discard(offset, len)
    }
}

impl<D: BlockDevice> FrozenDevice<D> {
    fn refuse<T>(&self, operation: BlockOperation, offset: u64, len: u64, why: &str) -> BlockResult<T> {
        let problem = BlockProblem::System(io::Error::other(why.to_owned()));
        Err(BlockError::new(self.name(), operation, offset, len, problem))
    }
}

impl<D: BlockDevice> BlockDevice for FrozenDevice<D> {
    fn name(&self) -> &str {
        self.below.name()
    }

    fn size(&self) -> Bytes {
        self.below.size()
    }

    fn alignment(&self) -> u32 {
        self.below.alignment()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        let len = out.len() as u64;
        check_range(self, BlockOperation::Read, offset, len)?;
        // A write to an unsaved piece waits for this lock. So the device still has the contents of
        // the moment.
        let pieces = self.saved.pieces();
        if let Some(LostMoment { why, .. }) = &pieces.lost {
            return self.refuse(BlockOperation::Read, offset, len, why);
        }
        self.below.read_at(offset, out)?;
        let end = offset + len;
        let touched = (self.number, offset / PIECE_BYTES)..=(self.number, end / PIECE_BYTES);
        for (&(_, piece), copy) in pieces.kept.range(touched) {
            let first = piece * PIECE_BYTES;
            let (from, to) = (first.max(offset), (first + copy.len() as u64).min(end));
            if from < to {
                let copied = &copy[(from - first) as usize..(to - first) as usize];
                out[(from - offset) as usize..(to - offset) as usize].copy_from_slice(copied);
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        self.refuse(BlockOperation::Write, offset, data.len() as u64, "it is read-only")
    }

    fn flush(&self) -> BlockResult<()> {
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        self.refuse(BlockOperation::Discard, offset, len, "it is read-only")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultDevice, MemoryDevice};

    const SIZE: u64 = 3 * PIECE_BYTES + 512;

    fn two() -> (Freezer, [FreezableDevice<FaultDevice<MemoryDevice>>; 2]) {
        let freezer = Freezer::default();
        let device = |number| {
            let below = FaultDevice::new(MemoryDevice::new(format!("disk {number}"), Bytes(SIZE)));
            FreezableDevice::new(below, &freezer, number)
        };
        let devices = [device(0), device(1)];
        (freezer, devices)
    }

    fn all(device: &dyn BlockDevice) -> Vec<u8> {
        let mut bytes = vec![0; SIZE as usize];
        device.read_at(0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn moments_do_not_see_later_writes() {
        let (freezer, devices) = two();
        for (number, device) in devices.iter().enumerate() {
            for at in (0..SIZE).step_by(512) {
                device.write_at(at, &[(at / 512) as u8 ^ number as u8; 512]).unwrap();
            }
        }
        let before = devices.each_ref().map(|device| all(device));
        let moment = freezer.freeze(Bytes(1 << 20)).unwrap();
        let frozen = devices.each_ref().map(|device| device.at(&moment));
        let mut random = 7u64;
        for _ in 0..300 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let device = &devices[(random >> 60) as usize % 2];
            let len = (random >> 20) % 70_000;
            let offset = (random >> 33) % (SIZE - len);
            match random >> 50 & 3 {
                0 => device.discard(offset, len).unwrap(),
                1 => {
                    let data = vec![random as u8; len as usize];
                    let (one, other) = data.split_at(data.len() / 3);
                    device.write_parts_at(offset, &[io::IoSlice::new(one), io::IoSlice::new(other)]).unwrap();
                }
                _ => device.write_at(offset, &vec![random as u8; len as usize]).unwrap(),
            }
            let (device, at) = ((random >> 40) as usize % 2, (random >> 17) % (SIZE - 1000));
            let mut some = [0; 1000];
            frozen[device].read_at(at, &mut some).unwrap();
            assert!(some == before[device][at as usize..][..1000]);
        }
        assert!(before.iter().zip(&devices).all(|(before, device)| *before != all(device)), "both devices changed");
        assert!(before.iter().zip(&frozen).all(|(before, frozen)| *before == all(frozen)));
        assert!(freezer.freeze(Bytes(1 << 20)).is_none(), "one moment at a time");
        assert!(frozen[0].write_at(0, &[1]).is_err() && frozen[0].discard(0, 1).is_err());
        assert!(frozen[0].read_at(SIZE, &mut [0]).is_err());
        drop(moment);
        assert!(frozen[0].read_at(0, &mut [0]).unwrap_err().to_string().contains("the moment has ended"));
        assert!(freezer.freeze(Bytes(1 << 20)).is_some());
    }

    #[test]
    fn lost_moments_fail_reads_but_no_writes() {
        let (freezer, devices) = two();
        let moment = freezer.freeze(Bytes(2 * PIECE_BYTES)).unwrap();
        let frozen = devices[0].at(&moment);
        devices[0].write_at(0, &[1; 2 * PIECE_BYTES as usize]).unwrap();
        assert_eq!(all(&frozen), vec![0; SIZE as usize]);
        devices[1].write_at(0, &[1; 8]).unwrap();
        let error = frozen.read_at(0, &mut [0; 8]).unwrap_err().to_string();
        assert!(error.contains("more than 128 KiB were overwritten"), "{error}");
        assert_eq!(all(&devices[1])[..8], [1; 8]);
        drop(moment);

        let moment = freezer.freeze(Bytes(1 << 20)).unwrap();
        devices[0].below.inject("fail read 1..").unwrap();
        devices[0].write_at(0, &[2; 8]).unwrap();
        let error = devices[1].at(&moment).read_at(0, &mut [0; 8]).unwrap_err().to_string();
        assert!(error.contains("could not be saved"), "{error}");
    }

    #[test]
    fn writes_out_of_range_fail_as_below() {
        let (freezer, devices) = two();
        let _moment = freezer.freeze(Bytes(1 << 20)).unwrap();
        assert!(devices[0].write_at(SIZE, &[1]).is_err());
        assert!(devices[0].write_at(u64::MAX, &[1]).is_err());
        devices[0].write_at(0, &[]).unwrap();
    }
}

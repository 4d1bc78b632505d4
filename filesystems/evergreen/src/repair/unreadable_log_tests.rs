//! Unreadable blocks of the log.

use std::{
    cell::OnceCell,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use senesce_block::{BlockDevice, BlockError, BlockOperation, BlockProblem, BlockResult, FaultDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::conformance::{Tree, find_difference};

use super::{
    protected_units::kept_units,
    repair, start_superblocks,
    test_support::{Bench, example_of, shared, tree, version_1},
};
use crate::{EvergreenFs, Limits, disk::BLOCK, log::Replay};

/// The offset on the device after the last frame of the log.
fn end_of_log(bench: &Bench) -> u64 {
    let (geometry, superblock) = (bench.superblock.geometry, &bench.superblock);
    let mut replay =
        Replay::new(bench.device.clone(), &geometry, superblock.uuid, superblock.replay).of_version(superblock.version);
    assert!(replay.by_ref().all(|batch| batch.is_ok()));
    geometry.log_at + replay.reached().position % geometry.log_bytes
}

#[test]
fn unreadable_blocks_after_the_log_are_repaired() {
    let (device, moments) = example_of(3);
    let end = end_of_log(&Bench::new(&device));
    let far = end + 5 * BLOCK as u64;
    for (name, faults) in [
        ("beside each other", format!("fail read at {end}+8192")),
        ("apart", format!("fail read at {end}+4096; fail read at {far}+4096")),
    ] {
        let faulty = Arc::new(FaultDevice::new(Bench::new(&device).device));
        faulty.inject(&faults).unwrap();
        let device: Arc<dyn BlockDevice> = faulty;
        assert!(EvergreenFs::open_on(device.clone(), Limits::default()).is_err(), "{name}");
        let report = repair(&device, false).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(report.is_done && report.lost.is_empty() && report.files.lost.is_empty(), "{name}: {report:#?}");
        // The repaired state does not need these blocks.
        for _ in 0..3 {
            assert_eq!(find_difference(moments.last().unwrap(), &tree(&device)), None, "{name}");
        }
    }
}

#[test]
fn unreadable_unused_block_needs_no_repair_of_nodes() {
    let (device, moments) = example_of(3);
    let end = end_of_log(&Bench::new(&device));
    for at in [end, end + BLOCK as u64] {
        let bench = Bench::new(&device);
        let faulty = Arc::new(FaultDevice::new(bench.device.clone()));
        faulty.inject(&format!("fail read at {at}+4096")).unwrap();
        let shared: Arc<dyn BlockDevice> = faulty;
        let report = repair(&shared, false).unwrap();
        assert!(!report.is_needed && report.check.is_clean(), "block at {at}: {report:#?}");
        let fs = EvergreenFs::open_on(shared.clone(), Limits::default()).unwrap();
        // Opening reports the unreadable block.
        let is_at_end = at == end;
        assert_eq!(fs.store().take_copy_news().is_some_and(|news| news.contains("does not return")), is_at_end);
        drop(fs);
        assert_eq!(find_difference(moments.last().unwrap(), &tree(&shared)), None, "block at {at}");
    }
}

/// A device that fails the reads of a range from read number `from` on.
struct Failing {
    below: Arc<dyn BlockDevice>,
    range: Range<u64>,
    from: u64,
    read: AtomicU64,
}

impl Failing {
    fn new(below: &Arc<dyn BlockDevice>, range: Range<u64>, from: u64) -> Arc<Self> {
        Arc::new(Self { below: below.clone(), range, from, read: AtomicU64::new(0) })
    }
}

impl BlockDevice for Failing {
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
        let does_touch = offset < self.range.end && self.range.start < offset + len;
        if does_touch && self.read.fetch_add(1, Relaxed) + 1 >= self.from {
            let (operation, problem) = (BlockOperation::Read, BlockProblem::Injected);
            return Err(BlockError::new(self.name(), operation, offset, len, problem));
        }
        self.below.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        self.below.write_at(offset, data)
    }

    fn flush(&self) -> BlockResult<()> {
        self.below.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        self.below.discard(offset, len)
    }
}

/// Repairs a device without its map. Reads of the last frame, or of the one before it, fail from
/// each read number on.
fn repair_as_blocks_begin_to_fail(device: &Arc<MemoryDevice>, blocks: Range<u64>, want: &Tree) {
    let spoiled = || {
        let bench = Bench::new(device);
        bench.spoil_map();
        bench.device
    };
    let whole = Failing::new(&spoiled(), blocks.clone(), u64::MAX);
    assert!(!repair(&(whole.clone() as Arc<dyn BlockDevice>), false).unwrap().has_lost());
    let reads = whole.read.load(Relaxed);
    assert!(reads > 5, "{reads} readings of {blocks:?}");
    let mut refused = 0;
    for from in 2..=reads {
        let below = spoiled();
        let device: Arc<dyn BlockDevice> = Failing::new(&below, blocks.clone(), from);
        match repair(&device, false) {
            // It reports the blocks that failed from the start.
            Ok(report) if report.has_lost() => assert!(from < 5, "reading {from}: {report:#?}"),
            Ok(_) => assert_eq!(find_difference(want, &tree(&below)), None, "reading {from}"),
            Err(_) => {
                refused += 1;
                let report = repair(&below, false).unwrap();
                assert!(report.is_done && !report.has_lost(), "reading {from}: {report:#?}");
                assert_eq!(find_difference(want, &tree(&below)), None, "reading {from}, repaired later");
            }
        }
    }
    assert!(refused > 0, "of {reads} readings");
}

#[test]
fn log_blocks_failing_during_repair_lose_nothing() {
    let (device, moments) = example_of(3);
    let end = end_of_log(&Bench::new(&device));
    let block = BLOCK as u64;
    // The last frame is a block and its parity; the previous one is directly before it.
    for blocks in [end - 2 * block..end, end - 4 * block..end - 2 * block] {
        repair_as_blocks_begin_to_fail(&device, blocks, moments.last().unwrap());
    }
    // In version 1 frames have no parity, so one block suffices.
    let device = version_1();
    let end = end_of_log(&Bench::new(&device));
    repair_as_blocks_begin_to_fail(&device, end - block..end, &tree(&shared(&device)));
}

#[test]
fn nodes_of_an_unreadable_map_are_kept() {
    let (device, _) = example_of(3);
    let bench = Bench::new(&device);
    let bases = start_superblocks::of_slots(&*bench.device);
    let kept = |device: &Arc<dyn BlockDevice>| kept_units(device, &bench.superblock, &[], &bases, &OnceCell::new());
    let want = kept(&bench.device);
    let older = &bases.iter().find(|base| base.superblock != bench.superblock).unwrap().superblock;
    let faulty = FaultDevice::new(bench.device.clone());
    let (at, bytes) = (older.geometry.unit_at(older.map.extents[0].first), older.map.bytes);
    faulty.inject(&format!("fail read at {at}+{bytes}")).unwrap();
    let found = kept(&(Arc::new(faulty) as Arc<dyn BlockDevice>));
    let is_kept = |unit: u32| found.iter().any(|extent| (extent.first..extent.end()).contains(&unit));
    assert!(want.iter().all(|extent| (extent.first..extent.end()).all(is_kept)), "{want:?}, {found:?}");
}

#[test]
fn nodes_are_kept_if_one_map_read_fails() {
    let (device, _) = example_of(3);
    let bench = Bench::new(&device);
    let bases = start_superblocks::of_slots(&*bench.device);
    let kept = |device: &Arc<dyn BlockDevice>| kept_units(device, &bench.superblock, &[], &bases, &OnceCell::new());
    let want = kept(&bench.device);
    assert!(bases.len() == 2 && want.len() > 50, "{} bases, {} extents", bases.len(), want.len());
    for number in 1..=2 {
        let faulty = FaultDevice::new(bench.device.clone());
        faulty.inject(&format!("fail read {number}")).unwrap();
        let faulty: Arc<dyn BlockDevice> = Arc::new(faulty);
        assert_eq!(kept(&faulty), want, "read {number}");
    }
}

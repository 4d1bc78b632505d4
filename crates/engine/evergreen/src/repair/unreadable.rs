//! Blocks of the log that the device does not return.

use std::sync::Arc;

use senesce_block::{BlockDevice, FaultDevice};
use senesce_fsapi::conformance::find_difference;

use super::{
    bases,
    bench::{Bench, example_of, tree},
    kept::kept_units,
    repair,
};
use crate::{EvergreenFs, Limits, disk::BLOCK, log::Replay};

/// The byte of the device behind the last frame of the log.
fn end_of_log(bench: &Bench) -> u64 {
    let (geometry, superblock) = (bench.superblock.geometry, &bench.superblock);
    let mut replay = Replay::new(bench.device.clone(), &geometry, superblock.uuid, superblock.replay);
    assert!(replay.by_ref().all(|batch| batch.is_ok()));
    geometry.log_at + replay.reached().position % geometry.log_bytes
}

#[test]
fn unreadable_blocks_behind_the_log_are_repaired() {
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
        // Also if the device still does not return them.
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
        // Opening reports it.
        let is_at_end = at == end;
        assert_eq!(fs.store().take_copy_news().is_some_and(|news| news.contains("does not return")), is_at_end);
        drop(fs);
        assert_eq!(find_difference(moments.last().unwrap(), &tree(&shared)), None, "block at {at}");
    }
}

#[test]
fn what_a_map_names_is_kept_though_one_read_of_it_fails() {
    let (device, _) = example_of(3);
    let bench = Bench::new(&device);
    let bases = bases::of_slots(&*bench.device);
    let kept = |device: &Arc<dyn BlockDevice>| kept_units(device, &bench.superblock, &[], &bases, &[]);
    let want = kept(&bench.device);
    assert!(bases.len() == 2 && want.len() > 50, "{} bases, {} extents", bases.len(), want.len());
    for number in 1..=2 {
        let faulty = FaultDevice::new(bench.device.clone());
        faulty.inject(&format!("fail read {number}")).unwrap();
        let faulty: Arc<dyn BlockDevice> = Arc::new(faulty);
        assert_eq!(kept(&faulty), want, "read {number}");
    }
}

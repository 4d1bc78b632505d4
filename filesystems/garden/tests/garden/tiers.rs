//! Cold blocks in objects keep their contents, whatever the store does.

use std::{
    ops::Range,
    sync::{Arc, Mutex},
};

use senesce_core::Seed;
use senesce_fsapi::{
    FallocateMode, FileSystem, FsError, FsResult, Ino,
    conformance::{SequenceOptions, Subject, run_sequence},
};
use senesce_garden::{DefragFiles, Limits, Packing, Placing, Tiering};
use senesce_objects::{AZURE_HOT, FaultObjects, MemoryObjects, ObjectResult, ObjectStore, PriceList, S3_STANDARD};

use crate::{
    damage::flip,
    guard::guard,
    rig::{FIXED_SLOTS, LARGE, SLOT, SMALL, TIGHT, VOLUME, caller, shared},
    tier_rig::{ALL, Store, Tiered, bytes, read, why},
};

const BLOCK: usize = 4096;

#[test]
fn cold_blocks_leave_the_drives_unchanged() {
    let mut tiered = Tiered::new(&SMALL);
    let data = bytes(300, 1);
    let ino = tiered.make(b"file", &data);
    tiered.garden().create_snapshot(VOLUME, b"before", caller(2).now).unwrap();
    let before = tiered.garden().report();
    let done = tiered.garden().tier(ALL).unwrap();
    assert_eq!((done.tiered, done.objects, done.unread), (300, 1, 0));
    let after = tiered.garden().report();
    // All its blocks become free, except for the records, and no block of the volume is written.
    assert!(after.free > before.free + 290, "{} free, {} before", after.free, before.free);
    assert_eq!(after.counts.volume_writes, before.counts.volume_writes);
    let cold = tiered.garden().cold();
    assert_eq!((cold.objects, cold.blocks, cold.live, cold.deletable), (1, 300, 300, 0));
    assert_eq!(tiered.garden().diff(VOLUME, b"before", None).unwrap(), []);

    let looked = tiered.looked();
    assert_eq!(looked.findings, []);
    assert_eq!((looked.objects, looked.cold_blocks, looked.cold_unread, looked.orphan_objects), (1, 300, 0, 0));
    tiered.open();
    assert_eq!(tiered.read(ino, 0, data.len()).unwrap(), data);
    // Blocks that are still on the drives are read there. Otherwise a chain of 64 is one request.
    assert_eq!(tiered.garden().report().counts.object_gets, 0);
    tiered.forget_drives();
    assert_eq!(tiered.read(ino, 0, data.len()).unwrap(), data);
    let counts = tiered.garden().report().counts;
    assert_eq!((counts.cold_reads, counts.redirects), (300, 0));
    assert!(counts.object_gets < 15, "{counts:?}");
    // Old pointers of the snapshot lead there as well.
    let snapshot = tiered.garden().snapshot(VOLUME, b"before").unwrap();
    tiered.make(b"other", &bytes(200, 9));
    tiered.garden().consistency_point().unwrap();
    assert_eq!(read(&snapshot, ino, 0, data.len()).unwrap(), data);
    // A second pass finds the blocks written since, and a third one none.
    assert_eq!(tiered.garden().tier(ALL).unwrap().tiered, 200);
    assert_eq!(tiered.garden().tier(ALL).unwrap().tiered, 0);
    assert_eq!(tiered.findings(), [""; 0]);
}

#[test]
fn age_and_memory_decide_what_is_cold() {
    let tiered = Tiered::new(&SMALL);
    let (old, young) = (bytes(20, 1), bytes(10, 2));
    tiered.make(b"old", &old);
    tiered.garden().consistency_point().unwrap();
    for number in 0..8 {
        tiered.make(&[b'a' + number], &young[..1000]);
        tiered.garden().consistency_point().unwrap();
    }
    let ino = tiered.make(b"young", &young);
    let tier = |age, with_cached| tiered.garden().tier(Tiering { age, with_cached }).unwrap().tiered;
    // The files were written in nine points. This call makes the last of them.
    assert_eq!(tier(20, true), 0);
    assert_eq!(tier(0, false), 0, "all of it is in memory");
    assert_eq!(tier(9, true), 20);
    // There was another point, so the small files are 1, 2, ... points older than the youngest.
    assert_eq!(tier(3, true), 7);
    assert_eq!(tier(0, true), 11);
    assert_eq!(tiered.read(ino, 0, 10 * BLOCK).unwrap(), young);
    assert_eq!(tiered.findings(), [""; 0]);
}

#[test]
fn only_cold_contents_need_the_store() {
    let mut tiered = Tiered::new(&SMALL);
    let data = bytes(100, 3);
    let ino = tiered.make(b"cold", &data);
    tiered.garden().tier(ALL).unwrap();
    let warm = tiered.make(b"warm", &bytes(300, 4));
    tiered.garden().consistency_point().unwrap();
    for (block, away) in [(5, "not given"), (6, "fails")] {
        tiered.forget_drives();
        tiered.with_store = away == "fails";
        tiered.store.fail_after(0, u64::MAX);
        tiered.open();
        let told = why(tiered.read(ino, 0, 10).unwrap_err());
        let key = "garden-73656e657363652067617264656e2031/0000000000";
        assert!(told.contains(key), "{told}");
        let hint = if tiered.with_store { "call" } else { "--objects" };
        assert!(told.contains(hint), "{told}");
        // Names, sizes, and all warm contents.
        assert_eq!(tiered.fs().lookup(Ino::ROOT, b"cold").unwrap().size, data.len() as u64);
        assert_eq!(tiered.read(warm, 0, 300 * BLOCK).unwrap(), bytes(300, 4));
        // A partial write needs the rest of the block, a whole one does not.
        let at = block * BLOCK;
        why(tiered.write(ino, at as u64 + 1, &[7; 10]).unwrap_err());
        let punched = tiered.fs().allocate(&caller(3), ino, FallocateMode::Punch, BLOCK as u64 - 10, 2 * BLOCK as u64);
        why(punched.unwrap_err());
        tiered.write(ino, at as u64, &data[..BLOCK]).unwrap();
        assert_eq!(tiered.read(ino, at as u64, BLOCK).unwrap(), data[..BLOCK]);
        tiered.garden().consistency_point().unwrap();
        // The log is replayed without the store.
        tiered.write(ino, at as u64, &data[at..at + BLOCK]).unwrap();
        tiered.open();
        tiered.garden().delete_objects().unwrap();
        tiered
            .garden()
            .begin_tier(VOLUME, ALL)
            .map(|mut tier| tiered.garden().tier_step(&mut tier, 1000))
            .map(drop)
            .ok();
        tiered.garden().consistency_point().unwrap();
        tiered.store.heal();
        assert_eq!(tiered.looked().findings, [], "{away}");
    }
    tiered.with_store = true;
    tiered.open();
    assert_eq!(tiered.read(ino, 0, data.len()).unwrap(), data);
}

#[test]
fn blocks_that_move_during_tiering_have_one_place() {
    for point in [false, true] {
        let mut tiered = Tiered::new(&SMALL);
        let data = bytes(100, 12);
        let ino = tiered.make(b"file", &data);
        let garden = tiered.garden();
        let mut tier = garden.begin_tier(VOLUME, ALL).unwrap();
        garden.tier_step(&mut tier, 60).unwrap();
        assert_eq!((tier.counts().tiered, tier.is_done()), (0, false));
        let moved: u64 = (0..4).map(|area| garden.move_area(0, area).unwrap().blocks).sum();
        assert!(moved > 100, "{moved}");
        if point {
            garden.consistency_point().unwrap();
        }
        garden.tier_step(&mut tier, u64::MAX).unwrap();
        // Blocks that have moved by then stay. Blocks that only wait to move leave.
        let tiered_blocks = tier.counts().tiered;
        assert!(tier.is_done() && if point { tiered_blocks < 60 } else { tiered_blocks > 50 }, "{tiered_blocks}");
        assert_eq!(tiered.findings(), [""; 0]);
        tiered.forget_drives();
        assert_eq!(tiered.read(ino, 0, data.len()).unwrap(), data);
        assert_eq!(tiered.garden().cold().live, tiered_blocks);
    }
}

#[test]
fn two_passes_over_a_volume_are_independent() {
    let mut tiered = Tiered::new(&SMALL);
    let data = bytes(100, 13);
    let ino = tiered.make(b"file", &data);
    let garden = tiered.garden();
    let mut first = garden.begin_tier(VOLUME, ALL).unwrap();
    garden.tier_step(&mut first, 60).unwrap();
    let mut second = garden.begin_tier(VOLUME, ALL).unwrap();
    garden.tier_step(&mut second, 10).unwrap();
    garden.tier_step(&mut first, u64::MAX).unwrap();
    assert!(first.is_done() && first.counts().tiered == 100, "{first:?}");
    garden.tier_step(&mut second, u64::MAX).unwrap();
    // It holds some blocks that have left since. They do not get a second object.
    assert!(second.is_done() && second.counts().tiered == 0, "{second:?}");
    assert_eq!(tiered.findings(), [""; 0]);
    tiered.forget_drives();
    assert_eq!(tiered.read(ino, 0, data.len()).unwrap(), data);
    assert_eq!(tiered.garden().cold().live, 100);
}

#[test]
fn tiered_blocks_are_scrubbed_until_the_next_point() {
    let tiered = Tiered::new(&SMALL);
    let ino = tiered.make(b"file", &bytes(100, 14));
    let garden = tiered.garden();
    // The last consistency point still has them, and power may be lost.
    let position = tiered.fs().extents(ino).unwrap()[0].physical / BLOCK as u64;
    let (drive, stripe) = (position / (SMALL.stripes + 1), position % (SMALL.stripes + 1));
    let mut tier = garden.begin_tier(VOLUME, ALL).unwrap();
    garden.tier_step(&mut tier, u64::MAX).unwrap();
    assert_eq!(tier.counts().tiered, 100);
    flip(&tiered.devices[drive as usize], (FIXED_SLOTS + stripe) * SLOT + 1234);
    let scrubbed = garden.scrub_step(u64::MAX).unwrap();
    let places: Vec<&str> = scrubbed.repaired.iter().map(|finding| &finding.place[..]).collect();
    assert_eq!(places, [format!("drive {drive}, stripe {stripe} of RAID group 0")]);
    assert_eq!((scrubbed.lost, scrubbed.parity_repaired), (vec![], vec![]));
    assert_eq!(tiered.looked().findings, [], "at the last point");
    assert_eq!(tiered.findings(), [""; 0]);
}

#[test]
fn cold_blocks_have_no_extents() {
    let tiered = Tiered::new(&SMALL);
    let ino = tiered.make(b"file", &bytes(100, 15));
    tiered.garden().tier(ALL).unwrap();
    tiered.write(ino, 40 * BLOCK as u64, &bytes(10, 16)).unwrap();
    let extents = tiered.fs().extents(ino).unwrap();
    assert_eq!(extents.iter().map(|extent| extent.length).sum::<u64>(), 10 * BLOCK as u64, "{extents:?}");
    assert_eq!(extents[0].logical, 40 * BLOCK as u64);
}

#[test]
fn partial_write_in_the_log_needs_the_store() {
    let mut tiered = Tiered::new(&SMALL);
    let mut data = bytes(20, 11);
    let ino = tiered.make(b"file", &data);
    tiered.garden().tier(ALL).unwrap();
    tiered.forget_drives();
    data[BLOCK + 7..BLOCK + 10].copy_from_slice(b"new");
    tiered.write(ino, BLOCK as u64 + 7, b"new").unwrap();
    tiered.with_store = false;
    let told = tiered.open_garden().map(drop).unwrap_err().to_string();
    assert!(told.contains("a cold block cannot be read"), "{told}");
    tiered.with_store = true;
    tiered.open();
    assert_eq!(tiered.read(ino, 0, data.len()).unwrap(), data);
    assert_eq!(tiered.findings(), [""; 0]);
}

#[test]
fn object_is_deleted_after_a_durable_point() {
    let mut tiered = Tiered::new(&SMALL);
    let data = bytes(40, 5);
    let ino = tiered.make(b"file", &data);
    tiered.garden().tier(ALL).unwrap();
    let keys = |tiered: &Tiered| tiered.store.inner().list("garden-73656e657363652067617264656e2031").unwrap().len();
    tiered.garden().create_snapshot(VOLUME, b"s", caller(2).now).unwrap();
    tiered.write(ino, 0, &bytes(30, 6)).unwrap();
    tiered.garden().consistency_point().unwrap();
    assert_eq!(tiered.garden().cold().live, 40, "the snapshot needs them");
    let snapshot = tiered.garden().snapshot(VOLUME, b"s").unwrap();
    assert_eq!(read(&snapshot, ino, 0, 40 * BLOCK).unwrap(), data);
    tiered.garden().delete_snapshot(VOLUME, b"s").unwrap();
    tiered.garden().reclaim_step(u64::MAX).unwrap();
    tiered.garden().consistency_point().unwrap();
    let cold = tiered.garden().cold();
    assert_eq!((cold.blocks, cold.live), (40, 10));
    assert_eq!(tiered.findings(), [""; 0]);
    tiered.fs().unlink(&caller(3), Ino::ROOT, b"file").unwrap();
    assert_eq!((tiered.garden().delete_objects().unwrap(), keys(&tiered)), (0, 1), "not durable yet");
    tiered.garden().consistency_point().unwrap();
    assert_eq!(tiered.garden().cold().deletable, 1);
    // The deletion continues after an opening, and is repeated if power was lost before it was
    // recorded.
    tiered.open();
    assert_eq!((tiered.garden().delete_objects().unwrap(), keys(&tiered)), (1, 0));
    tiered.open();
    assert_eq!(tiered.garden().delete_objects().unwrap(), 1);
    assert_eq!(tiered.findings(), [""; 0]);
    assert_eq!(tiered.garden().cold(), senesce_garden::ColdReport::default());
    tiered.open();
    assert_eq!(tiered.garden().delete_objects().unwrap(), 0);
}

#[test]
fn damaged_object_is_reported_and_not_used() {
    let mut tiered = Tiered::new(&SMALL);
    let ino = tiered.make(b"file", &bytes(8, 7));
    tiered.garden().tier(ALL).unwrap();
    tiered.forget_drives();
    let key = &tiered.store.list("garden-73656e657363652067617264656e2031").unwrap()[0];
    let whole = tiered.store.get_range(key, 0..1 << 22).unwrap();
    let at = (16 << 10) + 3 * 4160;
    let flipped = |at: usize| {
        let mut bad = whole.clone();
        bad[at] ^= 4;
        bad
    };
    // A block, its trailer, a neighbouring block in its place, and a short object.
    let mut moved = whole.clone();
    moved.copy_within(at + 4160..at + 8320, at);
    for bad in [flipped(at + 77), flipped(at + 4096 + 20), moved, whole[..at + 100].to_vec()] {
        tiered.store.inner().damage(key, &bad);
        tiered.open();
        let told = match tiered.read(ino, 3 * BLOCK as u64, BLOCK) {
            Err(FsError::Corrupt { what }) => what,
            other => panic!("{other:?}"),
        };
        assert!(told.contains("block 3 of object garden-"), "{told}");
        assert_eq!(tiered.read(ino, 2 * BLOCK as u64, BLOCK).unwrap(), bytes(8, 7)[2 * BLOCK..3 * BLOCK]);
        assert!(!tiered.looked().findings.is_empty());
    }
    tiered.store.inner().damage(key, &flipped(100));
    assert!(tiered.looked().findings[0].to_string().contains("checksum"));
    tiered.store.inner().delete(key).unwrap();
    assert!(tiered.looked().findings[0].to_string().contains("there is no such object"));
    tiered.store.inner().damage(key, &whole);
    assert_eq!(tiered.looked().findings, []);
}

#[test]
fn clones_share_cold_blocks_and_release_them() {
    let mut tiered = Tiered::new(&SMALL);
    let data = bytes(60, 8);
    let ino = tiered.make(b"file", &data);
    tiered.garden().tier(ALL).unwrap();
    tiered.garden().create_snapshot(VOLUME, b"s", caller(2).now).unwrap();
    tiered.garden().clone_volume(VOLUME, b"s", b"clone").unwrap();
    tiered.forget_drives();
    // The clone overwrites some blocks, the origin all of them.
    let clone = tiered.garden().volume(b"clone").unwrap();
    clone.write(&caller(3), ino, 0, &bytes(10, 9)).unwrap();
    tiered.write(ino, 0, &bytes(60, 10)).unwrap();
    tiered.garden().consistency_point().unwrap();
    assert_eq!(tiered.garden().cold().live, 60);
    let mut wanted = bytes(10, 9);
    wanted.extend_from_slice(&data[10 * BLOCK..]);
    assert_eq!(read(&clone, ino, 0, 60 * BLOCK).unwrap(), wanted);
    // Blocks that the clone wrote go to objects as well, from its own container.
    let none = Tiering { age: u16::MAX, ..ALL };
    assert_eq!(tiered.garden().tier(none).unwrap().tiered, 0, "the clone reads blocks of the snapshot");
    assert_eq!(tiered.garden().tier(ALL).unwrap().tiered, 70);
    assert_eq!(tiered.findings(), [""; 0]);
    drop(clone);
    tiered.garden().delete_volume(b"clone").unwrap();
    tiered.garden().delete_snapshot(VOLUME, b"s").unwrap();
    assert_eq!(tiered.garden().reclaim_step(u64::MAX).unwrap(), 0);
    tiered.garden().consistency_point().unwrap();
    assert_eq!(tiered.garden().cold().live, 60);
    assert!(tiered.garden().delete_objects().unwrap() > 0);
    tiered.open();
    assert_eq!(tiered.read(ino, 0, 60 * BLOCK).unwrap(), bytes(60, 10));
    assert_eq!(tiered.findings(), [""; 0]);
}

#[test]
fn objects_are_rewritten_when_the_prices_justify_it() {
    let tiered = Tiered::new(&LARGE);
    let ino = tiered.make(b"file", &bytes(1004, 1));
    tiered.garden().tier(ALL).unwrap();
    assert_eq!(tiered.garden().cold().blocks, 1004);
    let mut living = 1004;
    // An object pays for a whole PUT and a new head, so less than the formula's 191 and 159.
    for (prices, most) in [(S3_STANDARD, 182), (AZURE_HOT, 149)] {
        // With one block too many, and with the limit.
        for (keep, emptied) in [(most + 1, 0), (most, 1)] {
            tiered.write(ino, keep as u64 * BLOCK as u64, &bytes(living - keep, 2)).unwrap();
            tiered.garden().consistency_point().unwrap();
            living = keep;
            let before = tiered.garden().report().counts;
            let gets = tiered.store.counts().gets;
            let done = tiered.garden().defrag_objects(&prices).unwrap();
            assert_eq!((done.emptied, done.puts), (emptied, emptied), "{} with {keep}", prices.name);
            assert_eq!(done.blocks, emptied * keep as u64);
            assert!(done.saved_in_a_month >= done.cost);
            // One GET for each block, and one for the list of blocks.
            assert_eq!(tiered.store.counts().gets - gets, emptied * (1 + keep as u64));
            assert_eq!(tiered.garden().report().counts.volume_writes, before.volume_writes);
        }
        tiered.garden().consistency_point().unwrap();
        assert_eq!(tiered.garden().delete_objects().unwrap(), 1);
        let cold = tiered.garden().cold();
        assert_eq!((cold.objects, cold.blocks, cold.live), (1, most as u64, most as u64));
        // The next turn starts with a full object again.
        if prices == S3_STANDARD {
            tiered.write(ino, 0, &bytes(1004, 1)).unwrap();
            tiered.garden().tier(ALL).unwrap();
            living = 1004;
        }
    }
    assert_eq!(tiered.findings(), [""; 0]);
}

/// A store that runs a closure during one read.
struct Meddled {
    store: Store,
    meddle: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl ObjectStore for Meddled {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn put(&self, key: &str, bytes: &[u8]) -> ObjectResult<()> {
        self.store.put(key, bytes)
    }

    fn get_range(&self, key: &str, range: Range<u64>) -> ObjectResult<Vec<u8>> {
        // The list of blocks is read before.
        let meddle = if range.start > 0 { self.meddle.lock().unwrap().take() } else { None };
        if let Some(meddle) = meddle {
            meddle();
        }
        self.store.get_range(key, range)
    }

    fn delete(&self, key: &str) -> ObjectResult<()> {
        self.store.delete(key)
    }

    fn list(&self, under: &str) -> ObjectResult<Vec<String>> {
        self.store.list(under)
    }
}

#[test]
fn aggregate_is_usable_while_objects_are_rewritten() {
    let devices = shared(SMALL.devices());
    drop(Tiered::on(&SMALL, devices.clone(), Limits::default()));
    let store: Store = Arc::new(FaultObjects::new(MemoryObjects::default()));
    let door = Arc::new(Meddled { store: store.clone(), meddle: Mutex::new(None) });
    let mut tiered = Tiered::behind(devices, store, door.clone(), Limits::default());
    let mut data = bytes(100, 17);
    let ino = tiered.make(b"file", &data);
    tiered.garden().tier(ALL).unwrap();
    data[10 * BLOCK..].copy_from_slice(&bytes(90, 18));
    tiered.write(ino, 10 * BLOCK as u64, &data[10 * BLOCK..]).unwrap();
    tiered.garden().consistency_point().unwrap();
    // It would wait forever if the aggregate were locked. The block has changed before the new
    // object is recorded.
    let (fs, new) = (tiered.garden().volume(VOLUME).unwrap(), bytes(1, 19));
    data[5 * BLOCK..6 * BLOCK].copy_from_slice(&new);
    *door.meddle.lock().unwrap() = Some(Box::new(move || {
        fs.write(&caller(3), ino, 5 * BLOCK as u64, &new).unwrap();
        fs.extents(ino).unwrap(); // makes a consistency point
    }));
    let free = PriceList { name: "free requests", date: "never", gb_month: 1000, put: 0, get: 0 };
    let done = tiered.garden().defrag_objects(&free).unwrap();
    assert!(door.meddle.lock().unwrap().is_none());
    assert_eq!((done.emptied, done.blocks), (1, 9));
    assert_eq!(tiered.findings(), [""; 0]);
    tiered.forget_drives();
    assert_eq!(tiered.read(ino, 0, data.len()).unwrap(), data);
}

/// A subject whose contents all go to objects at each check, with gardening.
struct Restless {
    tiered: Tiered,
    round: u64,
}

impl Subject for Restless {
    fn file_system(&self) -> &dyn FileSystem {
        self.tiered.fs()
    }

    fn reopen(&mut self) -> FsResult<()> {
        self.tiered.open();
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        self.round += 1;
        self.garden_some().map_err(|error| error.to_string())?;
        match &self.tiered.findings()[..] {
            [] => Ok(()),
            findings => Err(findings.join("\n")),
        }
    }
}

impl Restless {
    fn garden_some(&self) -> senesce_garden::Result<()> {
        let garden = self.tiered.garden();
        // Blocks that wait to move, or to be rewritten, may leave in between.
        garden.move_area(0, self.round % 5)?;
        garden.tier(ALL)?;
        garden.fix_up_step(VOLUME, 500)?;
        garden.dedup_step(VOLUME, 500)?;
        garden.defragment(VOLUME, DefragFiles::All, Placing::default())?;
        if self.round.is_multiple_of(3) {
            garden.defrag_objects(&S3_STANDARD)?;
        }
        let scrubbed = garden.scrub_step(4000)?;
        assert_eq!((scrubbed.repaired, scrubbed.lost), (vec![], vec![]));
        Ok(())
    }
}

#[test]
fn sequences_with_everything_in_objects() {
    for (seed, packing) in [(300, Packing::default()), (301, Packing::USUAL), (302, Packing::default())] {
        let make = || -> Box<dyn Subject> {
            let tiered = Tiered::on(&LARGE, guard(&shared(LARGE.devices())), TIGHT);
            tiered.garden().set_packing(VOLUME, packing).unwrap();
            Box::new(Restless { tiered, round: 0 })
        };
        let options = SequenceOptions {
            boundaries: vec![0, 1, 160, 4096, 8192, 40_960, 256 * 4096],
            operations: 150,
            compare_every: 15,
            ..SequenceOptions::default()
        };
        run_sequence(&make, Seed(seed), &options).unwrap();
    }
}

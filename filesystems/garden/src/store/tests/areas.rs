//! Scores of areas: they match the bitmap at all times, with lists, without lists, and after
//! openings.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use proptest::prelude::*;
use senesce_block::{BlockDevice, BlockResult};
use senesce_core::Bytes;
use senesce_fsapi::{Caller, FileSystem, Ino};

use super::{Devices, Small, findings, make, newest_slot, open};
use crate::{
    Medium,
    format::{
        SLOT,
        bytes::u64_at,
        pointer::Physical,
        slot::{self, Kind},
        top_areas::TopAreas,
    },
    store::{AGGREGATE, Store, aggregate},
};

fn small() -> Small {
    Small { groups: vec![3, 2], stripes: 96, aa_stripes: 8, tetris_stripes: 4 }
}

/// Counted scores equal the bitmap, others are upper bounds, and the best area is the best.
fn check_scores(store: &mut Store) {
    let mut best = None;
    for group in 0..store.raid.geometry.groups.len() {
        for area in 0..store.raid.geometry.areas(group) as u32 {
            let mut free = 0;
            for range in store.area_blocks(group, area) {
                let pending = range.clone().filter(|pvbn| store.pending.contains_key(pvbn)).count() as u64;
                let used = store.count_bits(AGGREGATE, aggregate::BITMAP, range.clone()).unwrap();
                free += range.end - range.start - used - pending;
            }
            let known = store.alloc.groups[group].get(area).unwrap();
            assert!(
                known.free == free || !known.counted && known.free > free,
                "{group} {area}: {known:?}, {free} free"
            );
            if free > best.map_or(0, |(_, _, most)| most) {
                best = Some((group, u64::from(area), free));
            }
        }
    }
    assert_eq!(store.best_area(Medium::Hdd).ok(), best.map(|(group, area, _)| (group, area)));
}

#[derive(Clone, Debug)]
enum Step {
    Take(usize),
    /// Frees blocks, from this percentage of the list of allocated ones on.
    Give(usize, usize),
    Point,
    Reopen,
    Count(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..60usize).prop_map(Step::Take),
        4 => (0..100usize, 1..50usize).prop_map(|(at, count)| Step::Give(at, count)),
        2 => Just(Step::Point),
        1 => Just(Step::Reopen),
        1 => (0..4u64).prop_map(Step::Count),
    ];
    prop::collection::vec(step, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn scores_match_the_bitmap(steps in steps()) {
        let devices = small().format();
        let mut garden = open(&devices);
        let (mut taken, mut durable) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Take(count) => {
                    let mut store = garden.shared().lock();
                    for _ in 0..count.min((store.allocatable() as usize).saturating_sub(80)) {
                        taken.push(store.alloc_pvbn(Medium::Hdd).unwrap());
                    }
                }
                Step::Give(at, count) => {
                    let mut store = garden.shared().lock();
                    for _ in 0..count.min(taken.len()) {
                        let pvbn = taken.remove(at * (taken.len() - 1) / 100);
                        store.free_pvbn(Physical::block(pvbn, 0)).unwrap();
                    }
                }
                Step::Point => {
                    garden.shared().lock().consistency_point().unwrap();
                    durable.clone_from(&taken);
                }
                Step::Reopen => {
                    drop(garden);
                    garden = open(&devices);
                    prop_assert_eq!(garden.report().counts.areas_counted, 0);
                    taken.clone_from(&durable);
                }
                Step::Count(most) => {
                    let before = garden.report().area_free.iter().flatten().filter(|free| free.is_none()).count() as u64;
                    prop_assert_eq!(garden.count_areas(most).unwrap(), before.saturating_sub(most));
                }
            }
            check_scores(&mut garden.shared().lock());
        }
    }
}

/// Counts reads of blocks of one file of the aggregate.
struct Watched {
    device: Arc<dyn BlockDevice>,
    file: u64,
    reads: Arc<AtomicU64>,
}

impl BlockDevice for Watched {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn size(&self) -> Bytes {
        self.device.size()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        self.device.read_at(offset, out)?;
        for slot in out.as_chunks::<SLOT>().0 {
            let is_file = slot::decode(slot).is_ok_and(|of| (of.kind, of.owner) == (Kind::Aggregate, self.file));
            self.reads.fetch_add(u64::from(is_file), Relaxed);
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        self.device.write_at(offset, data)
    }

    fn flush(&self) -> BlockResult<()> {
        self.device.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        self.device.discard(offset, len)
    }
}

fn watch(devices: &Devices, file: u64) -> (Devices, Arc<AtomicU64>) {
    let reads = Arc::new(AtomicU64::new(0));
    let watched = |device: &Arc<dyn BlockDevice>| {
        Arc::new(Watched { device: device.clone(), file, reads: reads.clone() }) as Arc<dyn BlockDevice>
    };
    (devices.iter().map(watched).collect(), reads)
}

/// An aggregate of 700 areas of two blocks, more than a list holds, in various states of use.
fn used() -> Devices {
    let (devices, garden, fs) = Small { groups: vec![2], stripes: 700, aa_stripes: 1, tetris_stripes: 1 }.garden();
    let caller = Caller::default();
    for number in 0..40 {
        let ino = make(&fs, &format!("{number}"));
        fs.write(&caller, ino, 0, &[number; 5 * 4096]).unwrap();
        if number % 8 == 0 {
            garden.consistency_point().unwrap();
        }
    }
    for number in (0..40).step_by(3) {
        fs.unlink(&caller, Ino::ROOT, format!("{number}").as_bytes()).unwrap();
    }
    garden.consistency_point().unwrap();
    devices
}

#[test]
fn opening_finds_the_best_area_without_the_bitmap() {
    let devices = used();
    assert_eq!(findings(&devices), Vec::<String>::new());
    let (watched, reads) = watch(&devices, aggregate::BITMAP);
    let garden = open(&watched);
    assert_eq!(reads.load(Relaxed), 0);
    let known = |garden: &crate::Garden| garden.report().area_free[0].iter().flatten().count() as u64;
    let listed = known(&garden);
    assert!((64..=507).contains(&listed), "{listed}");
    assert_eq!(garden.count_areas(100).unwrap(), 600 - listed);
    assert_eq!(known(&garden), listed + 100);
    check_scores(&mut garden.shared().lock());
    assert!(reads.load(Relaxed) > 0);
    assert_eq!(garden.count_areas(u64::MAX).unwrap(), 0);
    check_scores(&mut garden.shared().lock());
}

#[test]
fn damaged_or_old_list_costs_only_a_scan() {
    let good = used();
    let (_, log) = (&good[0], good.last().unwrap());
    let expected: Vec<Option<u64>> = {
        let garden = open(&good);
        garden.count_areas(u64::MAX).unwrap();
        garden.report().area_free.concat()
    };
    let (drive, offset) = newest_slot(&good, aggregate::TOP_AREAS);
    let mut whole = slot::Slot::zeros();
    good[drive].read_at(offset, &mut whole[..]).unwrap();
    let context = slot::decode(&whole).unwrap();
    // Bytes with a wrong checksum, a list of another consistency point, an empty list.
    let damages: [&dyn Fn(&mut slot::Slot); 3] = [
        &|bytes| bytes[100] ^= 1,
        &|bytes| {
            let mut block = slot::payload(bytes);
            block[16] = (u64_at(&block[..], 16) - 1) as u8;
            *bytes = slot::encode(&block, &context);
        },
        &|bytes| *bytes = slot::encode(&crate::format::zero_block(), &context),
    ];
    for damage in damages {
        let mut bytes = whole.clone();
        damage(&mut bytes);
        good[drive].write_at(offset, &bytes[..]).unwrap();
        // Without parity, which would repair the list.
        let without: Devices = good[..2].iter().chain([log]).cloned().collect();
        let garden = open(&without);
        assert_eq!(garden.report().counts.areas_counted, 700);
        assert_eq!(garden.report().area_free.concat(), expected);
        check_scores(&mut garden.shared().lock());
        assert!(
            findings(&good)
                .iter()
                .any(|finding| finding.contains("file 3 of the aggregate") || finding.contains("top areas"))
        );
    }
    // The next consistency point writes a correct list.
    let garden = open(&good[..2].iter().chain([log]).cloned().collect());
    garden.shared().lock().consistency_point().unwrap();
    drop(garden);
    let garden = open(&good[..2].iter().chain([log]).cloned().collect());
    assert_eq!(garden.report().counts.areas_counted, 0);
}

#[test]
fn check_finds_wrong_lists() {
    let devices = used();
    let (drive, offset) = newest_slot(&devices, aggregate::TOP_AREAS);
    let mut whole = slot::Slot::zeros();
    devices[drive].read_at(offset, &mut whole[..]).unwrap();
    let context = slot::decode(&whole).unwrap();
    for (at, byte, field) in
        [(12, 1, "group"), (16, 99, "consistency point"), (24, 0xbb, "areas"), (32, 0, "rest"), (44, 3, "free")]
    {
        let mut block = slot::payload(&whole);
        assert_ne!(block[at], byte);
        block[at] = byte;
        devices[drive].write_at(offset, &slot::encode(&block, &context)[..]).unwrap();
        let found = findings(&devices);
        assert!(found.iter().any(|finding| finding.contains(&format!("top areas: {field} is"))), "{field}: {found:?}");
    }
}

/// Lists with valid checksums and arbitrary contents: all free blocks can still be allocated, each
/// once.
#[test]
fn wrong_lists_do_not_prevent_allocation() {
    let devices = used();
    let (drive, offset) = newest_slot(&devices, aggregate::TOP_AREAS);
    let mut whole = slot::Slot::zeros();
    devices[drive].read_at(offset, &mut whole[..]).unwrap();
    let (context, truth) = (slot::decode(&whole).unwrap(), TopAreas::decode(&slot::payload(&whole)).unwrap());
    let full = |area: u32| (area, 1_000_000);
    let lies = [
        TopAreas { listed: (0..507).map(full).collect(), ..truth.clone() },
        TopAreas { listed: vec![], rest: 0, ..truth.clone() },
        TopAreas { listed: vec![], rest: u32::MAX, ..truth.clone() },
        TopAreas { listed: vec![(699, 1)], rest: 1, ..truth.clone() },
    ];
    for lie in lies {
        devices[drive].write_at(offset, &slot::encode(&lie.encode(), &context)[..]).unwrap();
        let garden = open(&devices);
        assert_eq!(garden.report().counts.areas_counted, 0);
        let mut store = garden.shared().lock();
        let free = store.allocatable();
        for left in (0..free).rev() {
            store.alloc_pvbn(Medium::Hdd).unwrap();
            assert_eq!(store.allocatable(), left);
        }
        assert!(store.alloc_pvbn(Medium::Hdd).is_err());
    }
}

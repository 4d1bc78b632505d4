//! One RAID group on devices that count and fail: every width, every missing drive, every set of
//! written blocks.

use std::{collections::BTreeMap, sync::Arc};

use senesce_block::{BlockDevice, BlockOperation, FaultDevice, MemoryDevice};
use senesce_core::Bytes;

use super::{stripes::StripePlan, *};
use crate::{
    Group, Medium,
    format::{SLOT, zero_block},
    log::Unfinished,
};

const STRIPES: u64 = 3;

type Devices = Vec<Arc<FaultDevice<MemoryDevice>>>;

/// A group whose blocks all have version 0.
fn make(data_drives: u16) -> (Raid, Devices) {
    let group = Group { data_drives, parity: true, medium: Medium::Hdd, area_stripes: 2, stripes: STRIPES };
    let geometry = Geometry::new(vec![group], 2).unwrap();
    let device = |number| MemoryDevice::new(format!("drive {number}"), Bytes(geometry.drive_bytes(0)));
    let devices: Devices = (0..=data_drives).map(|number| Arc::new(FaultDevice::new(device(number)))).collect();
    let drives = devices.iter().map(|device| Drive::Here(device.clone())).collect();
    let mut raid = Raid::new(geometry, drives).unwrap();
    let all: Vec<Place> = (0..STRIPES).flat_map(|stripe| row(data_drives, stripe)).collect();
    let writes = all.iter().map(|place| (*place, slot_of(&raid, *place, 0))).collect();
    write(&mut raid, &writes);
    (raid, devices)
}

fn row(data_drives: u16, stripe: u64) -> Vec<Place> {
    (0..usize::from(data_drives)).map(|drive| Place { group: 0, stripe, drive }).collect()
}

fn want(pvbn: u64, version: u16) -> Want {
    Want { kind: Kind::Aggregate, level: None, owner: 7, block: pvbn, tag: version }
}

fn slot_of(raid: &Raid, place: Place, version: u16) -> Slot {
    let pvbn = raid.geometry.pvbn(place);
    let mut block = zero_block();
    block.fill(pvbn as u8 ^ version.to_le_bytes()[0].wrapping_mul(31));
    let (kind, owner, cp) = (Kind::Aggregate, 7, version.into());
    let context = Context { kind, level: 0, tag: version, owner, block: pvbn, pvbn, cp, hint_file: 0, hint_block: 0 };
    slot::encode(&block, &context)
}

/// The blocks of a stripe whose bits are set.
fn masked(raid: &Raid, stripe: u64, mask: u32, version: u16) -> BTreeMap<Place, Slot> {
    let places = row(raid.geometry.groups[0].data_drives, stripe).into_iter();
    let is_set = |place: &Place| mask >> place.drive & 1 == 1;
    places.filter(is_set).map(|place| (place, slot_of(raid, place, version))).collect()
}

fn write_mask(raid: &mut Raid, stripe: u64, mask: u32, version: u16) {
    let writes = masked(raid, stripe, mask, version);
    write(raid, &writes);
}

fn write(raid: &mut Raid, writes: &BTreeMap<Place, Slot>) {
    let plans = plan(raid, writes);
    let places: Vec<Place> = writes.keys().copied().collect();
    raid.write(&places, &mut Given(writes.values().collect()), plans).unwrap();
}

fn plan(raid: &mut Raid, writes: &BTreeMap<Place, Slot>) -> Vec<StripePlan> {
    let places: Vec<Place> = writes.keys().copied().collect();
    let old = raid.read_old(&places);
    raid.plan(&places, old).unwrap()
}

/// Slots that need no sealing.
struct Given<'a>(Vec<&'a Slot>);

impl Slots for Given<'_> {
    fn seal(&mut self, number: usize) -> &[u8; SLOT] {
        self.0[number]
    }

    fn sealed(&self, number: usize) -> &[u8; SLOT] {
        self.0[number]
    }
}

/// Checks all blocks: those of the mask have the given version, the others version 0.
fn check_all(raid: &mut Raid, stripe: u64, mask: u32, version: u16, context: &str) {
    let places: Vec<Place> = (0..STRIPES).flat_map(|at| row(raid.geometry.groups[0].data_drives, at)).collect();
    for place in places {
        let is_new = place.stripe == stripe && mask >> place.drive & 1 == 1;
        let version = if is_new { version } else { 0 };
        let pvbn = raid.geometry.pvbn(place);
        let got = raid.read(pvbn, &want(pvbn, version));
        assert_eq!(got, Ok(slot_of(raid, place, version).into()), "{context}, {place:?}");
    }
}

fn is_parity_right(raid: &Raid) -> bool {
    let rows = raid.read_rows(0, 0, STRIPES);
    rows.iter().all(|row| row.sum_without(None).iter().all(|&byte| byte == 0))
}

#[test]
fn stripe_writes_read_as_few_blocks_as_possible() {
    for n in 1..=8_u16 {
        for w in 1..=n {
            let (mut raid, devices) = make(n);
            let reads = || devices.iter().map(|device| device.requests(BlockOperation::Read)).sum::<u64>();
            let before = reads();
            write_mask(&mut raid, 1, (1 << w) - 1, 1);
            let least = if w == n { 0 } else { (n - w).min(w + 1) };
            assert_eq!(reads() - before, u64::from(least), "{w} of {n}");
            assert_eq!(raid.counts().data.parity_reads.blocks, u64::from(least), "{w} of {n}");
            assert!(is_parity_right(&raid), "{w} of {n}");
        }
    }
}

#[test]
fn reads_and_writes_work_without_any_one_drive() {
    for n in 1..=4_u16 {
        for missing in 0..=usize::from(n) {
            for mask in 1..1_u32 << n {
                let (mut raid, _devices) = make(n);
                raid.fail(missing, Error::invalid("a test")).unwrap();
                write_mask(&mut raid, 1, mask, 1);
                check_all(&mut raid, 1, mask, 1, &format!("drive {missing} of {n} missing, {mask:b} written"));
            }
        }
    }
}

#[test]
fn failing_drive_is_taken_out_without_loss() {
    for faults in ["fail read 1..; fail write 1..", "fail write 1..", "fail read 1.."] {
        for failing in 0..=3 {
            for mask in 1..1_u32 << 3 {
                let (mut raid, devices) = make(3);
                devices[failing].inject(faults).unwrap();
                let context = format!("drive {failing}: {faults}, {mask:b} written");
                write_mask(&mut raid, 1, mask, 1);
                check_all(&mut raid, 1, mask, 1, &context);
                let is_written = failing == 3 || mask >> failing & 1 == 1;
                let must_be_out = faults.contains("read") && failing < 3 || faults.contains("write") && is_written;
                let is_out = raid.missing() == [failing as u32];
                assert!(is_out || !must_be_out, "{context}: {:?}", raid.missing());
                check_all(&mut raid, 1, mask, 1, &context);
                let second = raid.fail((failing + 1) % 4, Error::invalid("the second"));
                assert_eq!(second.is_err(), is_out, "{context}");
            }
        }
    }
}

#[test]
fn block_is_rewritten_after_two_failed_reads() {
    let (mut raid, devices) = make(3);
    let place = Place { group: 0, stripe: 2, drive: 1 };
    let pvbn = raid.geometry.pvbn(place);
    let reads = devices[1].requests(BlockOperation::Read);
    devices[1].inject(&format!("fail read {}; fail read {}", reads + 1, reads + 2)).unwrap();
    assert_eq!(raid.read(pvbn, &want(pvbn, 0)), Ok(slot_of(&raid, place, 0).into()));
    assert_eq!((raid.counts().repairs, raid.missing()), (1, vec![]));
}

#[test]
fn foreign_block_does_not_enter_parity() {
    for mask in 1..7_u32 {
        let (mut raid, devices) = make(3);
        // One drive that is not written holds a block of another stripe.
        let drive = (0..3).find(|drive| mask >> drive & 1 == 0).unwrap();
        let foreign = slot_of(&raid, Place { group: 0, stripe: 0, drive }, 0);
        devices[drive].write_at(slot_offset(1), &foreign[..]).unwrap();
        write_mask(&mut raid, 1, mask, 1);
        let pvbn = raid.geometry.pvbn(Place { group: 0, stripe: 1, drive });
        let repaired = match raid.read(pvbn, &want(pvbn, 0)) {
            Ok(block) => block,
            Err(why) => raid.repair(pvbn, &want(pvbn, 0), why).unwrap(),
        };
        let place = Place { group: 0, stripe: 1, drive };
        assert_eq!(repaired, slot::payload(&slot_of(&raid, place, 0)), "{mask:b} written");
        assert!(is_parity_right(&raid), "{mask:b} written");
    }
}

#[test]
fn restored_block_is_returned_when_write_back_fails() {
    let (mut raid, devices) = make(3);
    let place = Place { group: 0, stripe: 2, drive: 1 };
    let pvbn = raid.geometry.pvbn(place);
    devices[1].write_at(slot_offset(2), &[0xa5; SLOT]).unwrap();
    devices[1].inject("fail write 1..").unwrap();
    let why = raid.read(pvbn, &want(pvbn, 0)).unwrap_err();
    let given = raid.repair(pvbn, &want(pvbn, 0), why).unwrap();
    assert_eq!(given, slot::payload(&slot_of(&raid, place, 0)));
    assert_eq!((raid.counts().repairs, raid.missing()), (1, vec![1]));
}

/// Power is lost between blocks and their parity. A block that stays was overwritten on its drive;
/// the log has the sum.
#[test]
fn recovery_uses_sums_of_the_log() {
    for (mask, stale) in (1..7_u32).flat_map(|mask| (0..3).map(move |drive| (mask, drive))) {
        if mask >> stale & 1 == 1 {
            continue;
        }
        let (mut raid, devices) = make(3);
        let writes = masked(&raid, 1, mask, 1);
        let mut plans = plan(&mut raid, &writes);
        let kept = plans.iter_mut().map(|plan| ((0, plan.stripe), plan.kept.take().unwrap())).collect();
        for (place, slot) in &writes {
            devices[place.drive].write_at(slot_offset(1), &slot[..]).unwrap();
        }
        devices[stale].write_at(slot_offset(1), &[0; SLOT]).unwrap();
        let stripes = vec![StripeRange { group: 0, first: 1, count: 1 }];
        raid.recover(&Unfinished { cp: Some(1), stripes, kept, without: vec![] }).unwrap();
        let place = Place { group: 0, stripe: 1, drive: stale };
        let pvbn = raid.geometry.pvbn(place);
        let why = raid.read(pvbn, &want(pvbn, 0)).unwrap_err();
        let repaired = raid.repair(pvbn, &want(pvbn, 0), why);
        assert_eq!(repaired.unwrap(), slot::payload(&slot_of(&raid, place, 0)), "{mask:b} written, {stale} stale");
        check_all(&mut raid, 1, mask, 1, &format!("{mask:b} written, {stale} stale"));
    }
}

/// A read fails during the correction of parity, and the next read of the block succeeds. Parity
/// must match the bytes that it returns.
#[test]
fn recovery_clears_blocks_that_it_cannot_read() {
    for (failing, writes_fail) in (0..3).flat_map(|drive| [(drive, false), (drive, true)]) {
        let context = format!("drive {failing}, writes fail: {writes_fail}");
        let (mut raid, devices) = make(4);
        let writes = masked(&raid, 1, 0b0111, 1);
        let mut plans = plan(&mut raid, &writes);
        let kept = plans.iter_mut().map(|plan| ((0, plan.stripe), plan.kept.take().unwrap())).collect();
        for (place, slot) in &writes {
            devices[place.drive].write_at(slot_offset(1), &slot[..]).unwrap();
        }
        let next = devices[failing].requests(BlockOperation::Read) + 1;
        devices[failing].inject(&format!("fail read {next}")).unwrap();
        if writes_fail {
            devices[failing].inject("fail write 1..").unwrap();
        }
        let stripes = vec![StripeRange { group: 0, first: 1, count: 1 }];
        raid.recover(&Unfinished { cp: Some(1), stripes, kept, without: vec![] }).unwrap();
        assert_eq!(raid.missing(), if writes_fail { vec![failing as u32] } else { vec![] }, "{context}");
        // The block that stays is unchanged, also when restored without its drive.
        devices.iter().for_each(|device| device.heal());
        let stays = Place { group: 0, stripe: 1, drive: 3 };
        if !writes_fail {
            assert!(is_parity_right(&raid), "{context}");
            assert_eq!(raid.rebuild_slot(0, 3, 1).as_deref(), Some(&*slot_of(&raid, stays, 0)), "{context}");
        }
    }
}

#[test]
fn recovery_reports_stripes_that_it_cannot_correct() {
    let (mut raid, devices) = make(4);
    let writes = masked(&raid, 1, 0b0111, 1);
    let mut plans = plan(&mut raid, &writes);
    let kept = plans.iter_mut().map(|plan| ((0, plan.stripe), plan.kept.take().unwrap())).collect();
    raid.fail(0, Error::invalid("it is gone")).unwrap();
    devices[1].inject("fail read 1..").unwrap();
    devices[1].inject("fail write 1..").unwrap();
    let stripes = vec![StripeRange { group: 0, first: 1, count: 1 }];
    let found = raid.recover(&Unfinished { cp: Some(1), stripes, kept, without: vec![] }).unwrap();
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["RAID group 0, stripe 1: stripe: parity is not corrected, expected that of its blocks"]);
}

/// A drive that is being filled does not hold a stripe yet, and another drive fails to read it:
/// that one failed.
#[test]
fn read_failure_names_the_failed_drive_during_filling() {
    let (mut raid, devices) = make(3);
    raid.drives[1] = Drive::Filling { device: devices[1].clone(), done: 1 };
    let (sender, failures) = std::sync::mpsc::channel();
    raid.watch(Some(sender));
    devices[2].inject("fail read 1..").unwrap();
    let pvbn = raid.geometry.pvbn(Place { group: 0, stripe: 2, drive: 1 });
    assert!(raid.read(pvbn, &want(pvbn, 0)).is_err());
    let failed: Vec<u32> = failures.try_iter().map(|failure| failure.drive).collect();
    assert_eq!(failed, [2]);
}

//! Consistency points that are written in the background.

use std::{
    io::{IoSlice, IoSliceMut},
    ops::Range,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use senesce_block::{BlockDevice, BlockResult, FaultDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::{FileSystem, FsError, Ino, NewNode, SetAttributes};
use senesce_garden::{Acknowledge, Limits};

use crate::{
    guard::guard,
    rig::{Devices, Rig, Shape, caller, findings},
};

const SHAPE: Shape = Shape { groups: &[(1, false)], media: &[], stripes: 4096, log_bytes: 1 << 20 };
/// Little memory, so that unpinned blocks are evicted.
const LIMITS: Limits = Limits { cache_bytes: 64 << 12, dirty_bytes: 128 << 12 };
const BLOCK: usize = 4096;

/// A device whose writes wait while it is shut.
struct Gate {
    inner: MemoryDevice,
    is_shut: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set_shut(&self, is_shut: bool) {
        *self.is_shut.lock().unwrap() = is_shut;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let shut = self.is_shut.lock().unwrap();
        let waited = self.changed.wait_timeout_while(shut, Duration::from_secs(60), |is_shut| *is_shut).unwrap().1;
        assert!(!waited.timed_out(), "a write waits for ever");
    }
}

impl BlockDevice for Gate {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> Bytes {
        self.inner.size()
    }

    fn alignment(&self) -> u32 {
        self.inner.alignment()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        self.inner.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        self.pass();
        self.inner.write_at(offset, data)
    }

    fn read_parts_at(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> BlockResult<()> {
        self.inner.read_parts_at(offset, parts)
    }

    fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> BlockResult<()> {
        self.pass();
        self.inner.write_parts_at(offset, parts)
    }

    fn flush(&self) -> BlockResult<()> {
        self.inner.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        self.inner.discard(offset, len)
    }
}

fn block(number: usize, turn: u8) -> Vec<u8> {
    (0..BLOCK).map(|at| (at / 8 + number * 7) as u8 ^ turn).collect()
}

fn write(rig: &Rig, ino: Ino, number: usize, turn: u8) -> Result<usize, FsError> {
    rig.fs().write(&caller(2), ino, (number * BLOCK) as u64, &block(number, turn))
}

fn fill(rig: &Rig, ino: Ino, numbers: Range<usize>, turn: u8) {
    for number in numbers {
        assert_eq!(write(rig, ino, number, turn).unwrap(), BLOCK);
    }
}

fn assert_holds(rig: &Rig, ino: Ino, number: usize, turn: u8, told: &str) {
    let mut got = vec![0; BLOCK];
    rig.fs().read(ino, (number * BLOCK) as u64, &mut got).unwrap();
    assert!(got == block(number, turn), "{told}: block {number}");
}

fn file(rig: &Rig, name: &[u8]) -> Ino {
    rig.fs().make_node(&caller(1), Ino::ROOT, name, &NewNode::file(0o644)).unwrap().ino
}

#[test]
fn blocks_of_a_background_point_stay_usable() {
    let mut devices = SHAPE.devices();
    let (log, drive) = (devices.pop().unwrap(), devices.pop().unwrap());
    let drive = Arc::new(Gate { inner: drive, is_shut: Mutex::new(false), changed: Condvar::new() });
    let all: Devices = vec![drive.clone(), Arc::new(log)];
    let mut rig = Rig::on(&SHAPE, guard(&all), LIMITS);
    let (ino, cut, gone) = (file(&rig, b"file"), file(&rig, b"cut"), file(&rig, b"gone"));
    rig.garden().consistency_point().unwrap();
    rig.garden().set_acknowledge(Acknowledge::Done).unwrap();
    fill(&rig, cut, 0..16, 0);
    fill(&rig, gone, 0..16, 0);
    drive.set_shut(true);
    // Together with the blocks of the background point, these exceed the limit of dirty bytes, but
    // not twice the limit.
    fill(&rig, ino, 0..180, 0);
    (0..180).for_each(|number| assert_holds(&rig, ino, number, 0, "on the way"));
    fill(&rig, ino, 10..30, 1);
    let shorter = SetAttributes { size: Some(3 * BLOCK as u64), ..SetAttributes::default() };
    rig.fs().set_attributes(&caller(3), cut, &shorter).unwrap();
    rig.fs().unlink(&caller(3), Ino::ROOT, b"gone").unwrap();
    drive.set_shut(false);
    let copy = file(&rig, b"copy");
    rig.fs().clone_range(&caller(4), (ino, 0), (copy, 0), 180 * BLOCK as u64).unwrap();
    rig.fs().sync_all().unwrap();
    for opened in [false, true] {
        if opened {
            rig.open().unwrap();
            assert_eq!(findings(&all), Vec::<String>::new());
        }
        for number in 0..180 {
            let turn = u8::from((10..30).contains(&number));
            assert_holds(&rig, ino, number, turn, "after it");
            assert_holds(&rig, copy, number, turn, "a copy");
        }
        (0..3).for_each(|number| assert_holds(&rig, cut, number, 0, "cut"));
        assert_eq!(rig.fs().attributes(cut).unwrap().size, 3 * BLOCK as u64);
        assert!(matches!(rig.fs().lookup(Ino::ROOT, b"gone"), Err(FsError::NotFound)));
    }
}

#[test]
fn failed_background_point_is_reported_by_sync() {
    let mut devices = SHAPE.devices();
    let (log, drive) = (devices.pop().unwrap(), devices.pop().unwrap());
    let drive = Arc::new(FaultDevice::new(drive));
    let all: Devices = vec![drive.clone(), Arc::new(log)];
    let mut rig = Rig::on(&SHAPE, guard(&all), LIMITS);
    let ino = file(&rig, b"file");
    fill(&rig, ino, 0..20, 0);
    rig.garden().consistency_point().unwrap();
    rig.garden().set_acknowledge(Acknowledge::Done).unwrap();
    drive.inject("fail write 1..").unwrap();
    for number in (0..170).cycle().take(2000) {
        if write(&rig, ino, number, 1).is_err() {
            break;
        }
    }
    assert!(rig.fs().sync_all().is_err());
    assert!(rig.garden().consistency_point().is_err(), "a consistency point fails too");
    assert!(write(&rig, ino, 0, 1).is_err());
    drive.heal();
    rig.open().unwrap();
    (0..20).for_each(|number| assert_holds(&rig, ino, number, 0, "synced data"));
    assert_eq!(findings(&all), Vec::<String>::new());
}

//! Contents of volumes, over many sizes, volumes and openings.

use std::sync::{
    Arc, Condvar, Mutex,
    atomic::{AtomicU64, Ordering},
};

use senesce_block::{BlockDevice, BlockResult, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::{FallocateMode, FileSystem, FsError, Ino, NewNode, SeekTo, SetAttributes};
use senesce_garden::{Limits, VolumeOptions};

use crate::rig::{Devices, LARGE, Rig, SMALL, Shape, TIGHT, caller, format, open};

fn make(fs: &dyn FileSystem, name: &str) -> Ino {
    fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino
}

fn read(fs: &dyn FileSystem, ino: Ino, offset: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0xee; len];
    let got = fs.read(ino, offset, &mut out).unwrap();
    out.truncate(got);
    out
}

/// The ends of each height of tree: in the inode, 10 blocks, 10 * 256, 10 * 256^2, 10 * 256^3.
const ENDS: [u64; 5] = [160, 10 << 12, 10 << 20, 10 << 28, 10 << 36];

#[test]
fn trees_of_every_height_keep_their_contents() {
    let mut rig = Rig::new(&LARGE, TIGHT);
    let ino = make(rig.fs(), "sparse");
    let places: Vec<u64> = ENDS.iter().flat_map(|end| [end - 1, *end, end + 1]).collect();
    for (number, &place) in places.iter().enumerate() {
        assert_eq!(rig.fs().write(&caller(2), ino, place, &[number as u8 + 1]).unwrap(), 1);
    }
    for reopened in [false, true] {
        if reopened {
            rig.open().unwrap();
        }
        let fs = rig.fs();
        for (number, &place) in places.iter().enumerate() {
            assert_eq!(read(fs, ino, place, 1), [number as u8 + 1], "at {place}");
        }
        assert_eq!(read(fs, ino, 5 << 12, 100), [0; 100]);
        assert_eq!(fs.seek(ino, 2 << 12, SeekTo::Data).unwrap(), 9 << 12);
        assert_eq!(fs.seek(ino, (10 << 28) + 4096, SeekTo::Data).unwrap(), (10 << 36) - 4096);
        // A block on each side of each end, and one at the first.
        assert_eq!(fs.attributes(ino).unwrap().allocated, 9 << 12);
    }
    // Truncation through the same heights: the cut part is gone, the rest stays.
    for end in ENDS.iter().rev() {
        for size in [end + 1, *end, end - 1] {
            let change = SetAttributes { size: Some(size), ..SetAttributes::default() };
            rig.fs().set_attributes(&caller(3), ino, &change).unwrap();
            rig.garden().consistency_point().unwrap();
            let kept = places.iter().filter(|place| **place < size).count();
            for (number, &place) in places.iter().enumerate().take(kept) {
                assert_eq!(read(rig.fs(), ino, place, 1), [number as u8 + 1], "at {place}, cut to {size}");
            }
            assert_eq!(read(rig.fs(), ino, size, 1), [0_u8; 0]);
        }
    }
}

#[test]
fn reads_skip_the_map_while_nothing_moved() {
    let rig = Rig::new(&LARGE, TIGHT);
    let ino = make(rig.fs(), "file");
    let data: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
    assert_eq!(rig.fs().write(&caller(2), ino, 5, &data).unwrap(), data.len());
    rig.garden().consistency_point().unwrap();
    assert_eq!(read(rig.fs(), ino, 5, data.len()), data);
    let counts = rig.garden().report().counts;
    assert!(counts.volume_reads > 600, "{counts:?}");
    assert_eq!((counts.map_lookups, counts.redirects), (0, 0));
}

#[test]
fn whole_stripes_are_written_without_reading() {
    let shape = Shape { log_bytes: 64 << 20, ..LARGE };
    let rig = Rig::new(&shape, Limits::default());
    let before = rig.garden().report().raid;
    let ino = make(rig.fs(), "file");
    rig.fs().write(&caller(2), ino, 0, &vec![7; 8 << 20]).unwrap();
    rig.garden().consistency_point().unwrap();
    let after = rig.garden().report().raid;
    let full = after.full_stripes - before.full_stripes;
    let partial = after.partial_stripes - before.partial_stripes;
    let writes = after.since(before).data.writes;
    assert!(full > 16 * partial, "{full} whole stripes, {partial} in part");
    // A tetris of this aggregate has 16 stripes, which is the length of the runs on each drive.
    assert!(writes.mean().unwrap() >= 16.0, "{writes:?}");
}

#[test]
fn deleting_all_files_restores_the_free_space() {
    let rig = Rig::new(&LARGE, TIGHT);
    rig.garden().consistency_point().unwrap();
    let before = rig.garden().report().free;
    for round in 0..2 {
        let directory = rig.fs().make_node(&caller(1), Ino::ROOT, b"d", &NewNode::directory(0o755)).unwrap().ino;
        for number in 0..400 {
            let name = format!("a name of some length {number}");
            let ino = rig.fs().make_node(&caller(1), directory, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
            rig.fs().write(&caller(1), ino, 0, &vec![1; number * 97]).unwrap();
        }
        rig.garden().consistency_point().unwrap();
        assert!(rig.garden().report().free < before - 1000);
        for number in 0..400 {
            let name = format!("a name of some length {number}");
            rig.fs().unlink(&caller(1), directory, name.as_bytes()).unwrap();
        }
        rig.fs().rmdir(&caller(1), Ino::ROOT, b"d").unwrap();
        rig.garden().consistency_point().unwrap();
        assert_eq!(rig.garden().report().free, before, "round {round}");
    }
}

#[test]
fn three_hundred_volumes_share_an_aggregate() {
    let shape = Shape { stripes: 8192, ..LARGE };
    let devices = crate::rig::shared(shape.devices());
    format(&shape, &devices);
    let garden = open(&devices, Limits::default()).unwrap();
    let name = |number: u32| format!("volume {number}").into_bytes();
    for number in 0..300 {
        // Together their sizes are far larger than the aggregate.
        let options = VolumeOptions { blocks: 20_000, inodes: 1000, seed: number.into() };
        garden.create_volume(&name(number), &options).unwrap();
        let fs = garden.volume(&name(number)).unwrap();
        let ino = make(&fs, "file");
        fs.write(&caller(1), ino, 0, format!("contents of {number}").repeat(300).as_bytes()).unwrap();
    }
    drop(garden);
    let garden = open(&devices, Limits::default()).unwrap();
    assert_eq!(garden.volumes().len(), 300);
    for number in 0..300 {
        let fs = garden.volume(&name(number)).unwrap();
        let ino = fs.lookup(Ino::ROOT, b"file").unwrap().ino;
        let want = format!("contents of {number}").repeat(300);
        assert_eq!(read(&fs, ino, 0, 10_000), want.as_bytes());
    }
    let twice = garden.create_volume(&name(7), &VolumeOptions { blocks: 1000, inodes: 100, seed: 1 });
    assert_eq!(twice.unwrap_err().to_string(), "a volume volume 7 exists");
}

#[test]
fn same_operations_give_the_same_bytes() {
    let run = || {
        let devices: Vec<Arc<MemoryDevice>> = SMALL.devices().into_iter().map(Arc::new).collect();
        let shared: Devices = devices.iter().map(|device| device.clone() as _).collect();
        let mut rig = Rig::on(&SMALL, shared, TIGHT);
        for number in 0..60 {
            let ino = make(rig.fs(), &format!("file {number}"));
            rig.fs().write(&caller(1), ino, number, &vec![number as u8; 500 * number as usize]).unwrap();
            if number % 3 == 0 {
                rig.fs().unlink(&caller(2), Ino::ROOT, format!("file {number}").as_bytes()).unwrap();
            }
            if number == 40 {
                rig.open().unwrap();
            }
        }
        rig.garden().consistency_point().unwrap();
        devices
    };
    let (one, other) = (run(), run());
    for (one, other) in one.iter().zip(&other) {
        assert!(one.same_contents(other));
    }
}

#[test]
fn reservation_larger_than_the_space_is_refused() {
    let rig = Rig::new(&SMALL, TIGHT);
    let ino = make(rig.fs(), "file");
    let how = FallocateMode::Reserve { keep_size: false };
    let refused = rig.fs().allocate(&caller(1), ino, how, 0, 1 << 30);
    assert!(matches!(refused, Err(FsError::NoSpace)), "{refused:?}");
    rig.fs().allocate(&caller(1), ino, how, 0, 1 << 20).unwrap();
    assert_eq!(rig.fs().attributes(ino).unwrap().size, 1 << 20);
}

/// A log whose next flush waits until it is released.
struct Gate {
    device: MemoryDevice,
    /// Whether flushes wait, and whether one does.
    state: Mutex<(bool, bool)>,
    changed: Condvar,
    flushes: AtomicU64,
}

impl BlockDevice for Gate {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn size(&self) -> Bytes {
        self.device.size()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        self.device.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        self.device.write_at(offset, data)
    }

    fn flush(&self) -> BlockResult<()> {
        self.flushes.fetch_add(1, Ordering::SeqCst);
        let mut state = self.state.lock().unwrap();
        while state.0 {
            state.1 = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap();
        }
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        self.device.discard(offset, len)
    }
}

#[test]
fn waiting_operations_share_the_next_flush() {
    let mut devices = SMALL.devices();
    let gate = Arc::new(Gate {
        device: devices.pop().unwrap(),
        state: Mutex::new((false, false)),
        changed: Condvar::new(),
        flushes: AtomicU64::new(0),
    });
    let mut devices = crate::rig::shared(devices);
    devices.push(gate.clone());
    let rig = Rig::on(&SMALL, devices, TIGHT);
    gate.state.lock().unwrap().0 = true;
    let before = gate.flushes.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| make(rig.fs(), "first"));
        drop(gate.changed.wait_while(gate.state.lock().unwrap(), |state| !state.1).unwrap());
        for number in 0..5 {
            let fs = rig.fs();
            scope.spawn(move || make(fs, &format!("file {number}")));
        }
        // An applied operation is not yet durable: others see it, and its caller waits.
        while (0..5).any(|number| rig.fs().lookup(Ino::ROOT, format!("file {number}").as_bytes()).is_err()) {
            std::thread::yield_now();
        }
        gate.state.lock().unwrap().0 = false;
        gate.changed.notify_all();
    });
    assert_eq!(gate.flushes.load(Ordering::SeqCst) - before, 2);
}

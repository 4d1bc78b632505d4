//! A store that accepts requests and does not answer: only operations that need a cold block wait
//! for it.

use std::{
    ops::Range,
    sync::{Arc, Condvar, Mutex, MutexGuard, mpsc},
    thread::{self, Scope, ScopedJoinHandle},
    time::Duration,
};

use senesce_fsapi::{FallocateMode, FileSystem, FsError, FsResult, Ino, SetAttributes};
use senesce_garden::{Limits, Packing};
use senesce_objects::{FaultObjects, MemoryObjects, ObjectResult, ObjectStore, PriceList};

use crate::{
    packing,
    rig::{LARGE, SMALL, Shape, VOLUME, caller, shared},
    tier_rig::{ALL, Store, Tiered, bytes, read, why},
};

const BLOCK: usize = 4096;
const COLD: usize = 300;
const FREE: PriceList = PriceList { name: "free requests", date: "never", gb_month: 1000, put: 0, get: 0 };
/// The timeout of a test that would hang. No successful test waits so long.
const STUCK: Duration = Duration::from_secs(120);

#[derive(Default)]
struct State {
    /// The number of next ranges that get no answer until `open`.
    silent: usize,
    /// Whether a range is read before the wait, and not after it.
    reads_first: bool,
    waiting: usize,
    open: bool,
}

/// A store that does not answer until `answer`.
pub struct Silent {
    store: Store,
    state: Mutex<State>,
    changed: Condvar,
}

impl Silent {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Withholds the answers to the next ranges.
    pub fn hush(&self, ranges: usize, reads_first: bool) {
        *self.lock() = State { silent: ranges, reads_first, ..State::default() };
    }

    /// Waits until this many requests wait for an answer.
    pub fn wait_for(&self, waiting: usize) {
        let state = self.lock();
        let (state, late) = self.changed.wait_timeout_while(state, STUCK, |state| state.waiting < waiting).unwrap();
        let few = state.waiting;
        drop(state);
        if late.timed_out() {
            self.answer();
            panic!("{few} of {waiting} asked");
        }
    }

    pub fn answer(&self) {
        let mut state = self.lock();
        (state.silent, state.open) = (0, true);
        drop(state);
        self.changed.notify_all();
    }
}

impl ObjectStore for Silent {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn put(&self, key: &str, bytes: &[u8]) -> ObjectResult<()> {
        self.store.put(key, bytes)
    }

    fn get_range(&self, key: &str, range: Range<u64>) -> ObjectResult<Vec<u8>> {
        let mut state = self.lock();
        if state.silent == 0 {
            drop(state);
            return self.store.get_range(key, range);
        }
        (state.silent, state.waiting) = (state.silent - 1, state.waiting + 1);
        let first = state.reads_first.then(|| self.store.get_range(key, range.clone()));
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |state| !state.open).unwrap());
        first.unwrap_or_else(|| self.store.get_range(key, range))
    }

    fn delete(&self, key: &str) -> ObjectResult<()> {
        self.store.delete(key)
    }

    fn list(&self, under: &str) -> ObjectResult<Vec<String>> {
        self.store.list(under)
    }
}

/// A garden with a cold file, a warm one, and a store that can withhold answers.
struct Garden {
    tiered: Tiered,
    store: Arc<Silent>,
    cold: Ino,
    data: Vec<u8>,
    warm: Ino,
}

const WARM: usize = 20;

impl Garden {
    fn new(packing: Packing) -> Self {
        Self::on(&LARGE, packing)
    }

    fn on(shape: &Shape, packing: Packing) -> Self {
        let devices = shared(shape.devices());
        drop(Tiered::on(shape, devices.clone(), Limits::default()));
        let memory: Store = Arc::new(FaultObjects::new(MemoryObjects::default()));
        let store = Arc::new(Silent { store: memory.clone(), state: Mutex::default(), changed: Condvar::new() });
        let mut tiered = Tiered::behind(devices, memory, store.clone(), Limits::default());
        tiered.garden().set_packing(VOLUME, packing).unwrap();
        let data = match packing.group_blocks {
            0 => bytes(COLD, 1),
            _ => packing::bytes(1, COLD as u64, 10),
        };
        let cold = tiered.make(b"cold", &data);
        tiered.garden().tier(ALL).unwrap();
        let warm = tiered.make(b"warm", &bytes(WARM, 2));
        tiered.forget_drives();
        tiered.garden().create_snapshot(VOLUME, b"before", caller(2).now).unwrap();
        Self { tiered, store, cold, data, warm }
    }

    /// Asserts that warm reads, changes, syncs, consistency points and snapshots finish.
    fn goes_on(&self, round: u8) {
        self.is_done(|| {
            let tiered = &self.tiered;
            assert!(tiered.read(self.warm, 0, WARM * BLOCK).unwrap() == bytes(WARM, 2));
            let new = tiered.make(&[b'n', round], &bytes(30, round));
            tiered.fs().sync(new).unwrap();
            tiered.fs().unlink(&caller(3), Ino::ROOT, &[b'n', round]).unwrap();
            tiered.garden().sync().unwrap();
            tiered.garden().create_snapshot(VOLUME, &[b's', round], caller(3).now).unwrap();
            tiered.garden().commit_checkpoint().unwrap();
        });
    }

    /// Asserts that `act` finishes before the store answers.
    fn is_done(&self, act: impl FnOnce() + Send) {
        let (sender, done) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                act();
                sender.send(()).unwrap();
            });
            if done.recv_timeout(STUCK).is_err() {
                self.store.answer();
                panic!("others wait for the object store");
            }
        });
    }

    /// Starts `act` on a thread, and returns when it waits for the store.
    fn begin<'scope, 'env, T: Send + 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        act: impl FnOnce() -> T + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, T> {
        let one = scope.spawn(act);
        self.store.wait_for(1);
        one
    }

    fn write(&mut self, from: usize, part: &[u8]) {
        self.tiered.write(self.cold, from as u64, part).unwrap();
        self.data[from..from + part.len()].copy_from_slice(part);
    }

    fn assert(&mut self) {
        assert_eq!(self.tiered.findings(), [""; 0]);
        for _ in 0..2 {
            assert!(self.tiered.read(self.cold, 0, self.data.len()).unwrap() == self.data);
            self.tiered.open();
        }
    }
}

#[test]
fn others_continue_while_a_read_waits() {
    let mut garden = Garden::new(Packing::default());
    let fs = garden.tiered.garden().snapshot(VOLUME, b"before").unwrap();
    garden.store.hush(3, false);
    let asked = garden.tiered.garden().report().counts;
    thread::scope(|scope| {
        // The same block, another one, and one of a snapshot: each waits alone.
        let one = |block: usize| {
            let tiered = &garden.tiered;
            move || tiered.read(garden.cold, (block * BLOCK) as u64, BLOCK).unwrap()
        };
        let readers = [scope.spawn(one(7)), scope.spawn(one(200))];
        let snapshot = scope.spawn(|| read(&fs, garden.cold, 7 * BLOCK as u64, BLOCK).unwrap());
        garden.store.wait_for(3);
        garden.goes_on(1);
        garden.store.answer();
        for (reader, block) in readers.into_iter().zip([7, 200]) {
            assert!(reader.join().unwrap() == garden.data[block * BLOCK..(block + 1) * BLOCK]);
        }
        assert!(snapshot.join().unwrap() == garden.data[7 * BLOCK..8 * BLOCK]);
    });
    let counts = garden.tiered.garden().report().counts;
    assert_eq!((counts.object_gets - asked.object_gets, counts.cold_reads - asked.cold_reads), (3, 3));
    // Neither the map lookups nor the redirects grow.
    assert_eq!((counts.redirects, counts.map_lookups), (asked.redirects, asked.map_lookups));
    garden.assert();
}

#[test]
fn sequential_reader_does_not_wait_for_prefetch() {
    let mut garden = Garden::new(Packing::default());
    // The first blocks are warm.
    let part = bytes(16, 3);
    garden.write(0, &part);
    garden.tiered.garden().consistency_point().unwrap();
    garden.store.hush(1000, false);
    garden.is_done(|| {
        for block in 0..16 {
            let got = garden.tiered.read(garden.cold, (block * BLOCK) as u64, BLOCK).unwrap();
            assert!(got == part[block * BLOCK..(block + 1) * BLOCK]);
        }
    });
    thread::scope(|scope| {
        let (tiered, cold) = (&garden.tiered, garden.cold);
        let reader = garden.begin(scope, move || tiered.read(cold, 16 * BLOCK as u64, 100 * BLOCK).unwrap());
        garden.goes_on(1);
        garden.store.answer();
        assert!(reader.join().unwrap() == garden.data[16 * BLOCK..116 * BLOCK]);
    });
    garden.assert();
}

#[test]
fn blocks_that_moved_during_the_wait_are_read() {
    // The answer has the earlier contents, or the store is asked after the object is gone.
    for reads_first in [false, true] {
        for written in [false, true] {
            let mut garden = Garden::new(Packing::default());
            garden.tiered.garden().delete_snapshot(VOLUME, b"before").unwrap();
            while garden.tiered.garden().reclaim_step(1000).unwrap() > 0 {}
            garden.write(10 * BLOCK, &bytes(COLD - 10, 4));
            garden.tiered.garden().consistency_point().unwrap();
            garden.store.hush(1, reads_first);
            let new = bytes(1, 5);
            let wanted = if written { new.clone() } else { garden.data[5 * BLOCK..6 * BLOCK].to_vec() };
            thread::scope(|scope| {
                let (tiered, cold) = (&garden.tiered, garden.cold);
                let reader = garden.begin(scope, move || tiered.read(cold, 5 * BLOCK as u64, BLOCK).unwrap());
                garden.is_done(|| {
                    if written {
                        tiered.write(cold, 5 * BLOCK as u64, &new).unwrap();
                    }
                    let done = tiered.garden().defrag_objects(&FREE).unwrap();
                    assert_eq!((done.emptied, done.blocks), (1, 10 - u64::from(written)));
                    tiered.garden().consistency_point().unwrap();
                    assert_eq!(tiered.garden().delete_objects().unwrap(), 1);
                });
                garden.goes_on(1);
                garden.store.answer();
                assert!(reader.join().unwrap() == wanted, "{reads_first}, {written}");
            });
            garden.data[5 * BLOCK..6 * BLOCK].copy_from_slice(&wanted);
            garden.assert();
        }
    }
}

#[test]
fn file_truncated_or_deleted_during_a_read() {
    let mut garden = Garden::new(Packing::default());
    garden.store.hush(2, false);
    thread::scope(|scope| {
        let (tiered, cold) = (&garden.tiered, garden.cold);
        let reader = garden.begin(scope, move || tiered.read(cold, 20 * BLOCK as u64, BLOCK).unwrap());
        let cut = SetAttributes { size: Some(20 * BLOCK as u64 + 9), ..Default::default() };
        // Truncation needs the block that it cuts.
        let cutter = scope.spawn(move || tiered.fs().set_attributes(&caller(3), cold, &cut).unwrap());
        garden.store.wait_for(2);
        garden.goes_on(1);
        garden.store.answer();
        assert_eq!(cutter.join().unwrap().size, 20 * BLOCK as u64 + 9);
        let got = reader.join().unwrap();
        assert!(got == garden.data[20 * BLOCK..][..9] || got == garden.data[20 * BLOCK..21 * BLOCK]);
    });
    garden.data.truncate(20 * BLOCK + 9);
    garden.assert();
    garden.tiered.open();
    garden.store.hush(1, false);
    thread::scope(|scope| {
        let (tiered, cold) = (&garden.tiered, garden.cold);
        let reader = garden.begin(scope, move || tiered.read(cold, 0, BLOCK));
        tiered.fs().unlink(&caller(3), Ino::ROOT, b"cold").unwrap();
        garden.goes_on(2);
        garden.store.answer();
        let done: FsResult<Vec<u8>> = reader.join().unwrap();
        assert!(matches!(done, Err(FsError::Stale | FsError::NotFound)), "{done:?}");
    });
    assert_eq!(garden.tiered.findings(), [""; 0]);
}

/// Changes of parts of cold blocks.
const CHANGES: [Change; 4] =
    [Change::Write(5 * BLOCK + 9, 40), Change::Write(4 * BLOCK + 9, 10 * BLOCK), Change::Punch, Change::Cut];

#[derive(Clone, Copy, Debug)]
enum Change {
    Write(usize, usize),
    Punch,
    Cut,
}

impl Change {
    fn make(self, garden: &Garden) {
        let (fs, cold) = (garden.tiered.fs(), garden.cold);
        match self {
            Self::Write(from, len) => garden.tiered.write(cold, from as u64, &vec![7; len]).unwrap(),
            Self::Punch => fs.allocate(&caller(3), cold, FallocateMode::Punch, 9, 7 * BLOCK as u64).unwrap(),
            Self::Cut => {
                let cut = SetAttributes { size: Some(10 * BLOCK as u64 + 9), ..Default::default() };
                fs.set_attributes(&caller(3), cold, &cut).map(drop).unwrap();
            }
        }
    }

    fn apply(self, data: &mut Vec<u8>) {
        match self {
            Self::Write(from, len) => data[from..from + len].fill(7),
            Self::Punch => data[9..9 + 7 * BLOCK].fill(0),
            Self::Cut => data.truncate(10 * BLOCK + 9),
        }
    }
}

#[test]
fn change_waits_for_cold_blocks_before_any_effect() {
    let ways = [Packing::default(), Packing { group_blocks: 8, compaction: false }];
    for (packing, change) in ways.into_iter().flat_map(|packing| CHANGES.map(|change| (packing, change))) {
        let mut garden = Garden::new(packing);
        garden.store.hush(1, false);
        // Next to the changed range, and in the same block.
        let [beside, within] = [bytes(1, 8), bytes(1, 9)];
        thread::scope(|scope| {
            let changer = garden.begin(scope, || change.make(&garden));
            let tiered = &garden.tiered;
            garden.goes_on(1);
            if packing.group_blocks == 0 {
                tiered.write(garden.cold, 0, &beside).unwrap();
                tiered.write(garden.cold, 5 * BLOCK as u64, &within).unwrap();
                garden.goes_on(2);
            }
            garden.store.answer();
            changer.join().unwrap();
        });
        if packing.group_blocks == 0 {
            garden.data[..BLOCK].copy_from_slice(&beside);
            garden.data[5 * BLOCK..6 * BLOCK].copy_from_slice(&within);
        }
        change.apply(&mut garden.data);
        assert!(garden.tiered.read(garden.cold, 0, garden.data.len() + 1).unwrap() == garden.data, "{change:?}");
        // After replay of the log.
        garden.tiered.open();
        garden.assert();
    }
}

#[test]
fn store_error_fails_only_the_waiting_operations() {
    let mut garden = Garden::new(Packing::default());
    garden.store.hush(2, false);
    thread::scope(|scope| {
        let (tiered, cold) = (&garden.tiered, garden.cold);
        let reader = garden.begin(scope, move || tiered.read(cold, 20 * BLOCK as u64, BLOCK));
        let writer = scope.spawn(move || tiered.write(cold, 30 * BLOCK as u64 + 1, b"part"));
        garden.store.wait_for(2);
        tiered.store.fail_after(0, u64::MAX);
        garden.goes_on(1);
        garden.store.answer();
        why(reader.join().unwrap().unwrap_err());
        why(writer.join().unwrap().unwrap_err());
        garden.goes_on(2);
        tiered.store.heal();
    });
    garden.assert();
}

#[test]
fn waiting_change_may_make_another_consistency_point() {
    // Space is so short that a log of this length never requests a point.
    let mut garden = Garden::on(&Shape { log_bytes: 8 << 20, ..SMALL }, Packing::default());
    garden.tiered.garden().delete_snapshot(VOLUME, b"before").unwrap();
    while garden.tiered.garden().reclaim_step(1000).unwrap() > 0 {}
    let tiered = &garden.tiered;
    let fill = tiered.make(b"fill", b"");
    let mut blocks = 0;
    while tiered.write(fill, blocks * BLOCK as u64, &bytes(1, 4)).is_ok() {
        blocks += 1;
    }
    blocks -= 100;
    let cut = SetAttributes { size: Some(blocks * BLOCK as u64), ..Default::default() };
    tiered.fs().set_attributes(&caller(3), fill, &cut).unwrap();
    tiered.garden().consistency_point().unwrap();
    let point = || tiered.garden().report().cp;
    // Overwrites other blocks until there is no space for one more without a consistency point.
    let until_point = |most: u64| {
        let before = point();
        let fits = |block: &u64| {
            tiered.write(fill, block * BLOCK as u64, &bytes(1, 5)).unwrap();
            point() == before
        };
        (0..blocks.min(most)).take_while(fits).count() as u64
    };
    let most = until_point(u64::MAX);
    assert!((2..blocks).contains(&most), "{most} of {blocks}");
    let shorten = || {
        tiered.garden().consistency_point().unwrap();
        assert_eq!(until_point(most), most);
    };
    shorten();
    garden.store.hush(1, false);
    let points = point();
    thread::scope(|scope| {
        let zero = FallocateMode::Zero { keep_size: true };
        let (fs, cold) = (tiered.fs(), garden.cold);
        let zeroer = garden.begin(scope, move || fs.allocate(&caller(3), cold, zero, 9, 9));
        assert_eq!(point(), points + 1);
        garden.is_done(shorten);
        garden.store.answer();
        zeroer.join().unwrap().unwrap();
    });
    garden.data[9..18].fill(0);
    garden.assert();
}

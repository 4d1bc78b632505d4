//! An object store that says nothing delays nothing but what is done with objects.

use std::{
    ops::Range,
    sync::{Condvar, Mutex},
};

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Bytes, Clock, ManualClock, Nanos};
use senesce_fsapi::{Caller, Ino, NewNode};
use senesce_garden::{Accepted, FormatOptions, Gardening, VolumeOptions};
use senesce_objects::{MemoryObjects, ObjectResult, ObjectStore};

use super::{
    super::{load_sampling::Machine, sync_timing::SYNC},
    *,
};

/// A store that answers changes only when the test lets it.
#[derive(Default)]
struct Stuck {
    memory: MemoryObjects,
    /// Whether it is stuck, and how many wait.
    state: Mutex<(bool, u64)>,
    changed: Condvar,
}

impl Stuck {
    fn wait(&self) {
        let mut state = self.state.lock().unwrap();
        state.1 += 1;
        let mut state = self.changed.wait_while(state, |state| state.0).unwrap();
        state.1 -= 1;
    }

    fn waiting(&self) -> u64 {
        self.state.lock().unwrap().1
    }

    fn set(&self, is_stuck: bool) {
        self.state.lock().unwrap().0 = is_stuck;
        self.changed.notify_all();
    }

    /// Lets it be stuck until what this gives is dropped, be it because a test fails: it would hang
    /// else.
    fn stick(&self) -> Sticking<'_> {
        self.set(true);
        Sticking(self)
    }
}

struct Sticking<'a>(&'a Stuck);

impl Drop for Sticking<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl ObjectStore for Stuck {
    fn name(&self) -> &str {
        "stuck"
    }

    fn put(&self, key: &str, bytes: &[u8]) -> ObjectResult<()> {
        self.wait();
        self.memory.put(key, bytes)
    }

    fn get_range(&self, key: &str, range: Range<u64>) -> ObjectResult<Vec<u8>> {
        self.memory.get_range(key, range)
    }

    fn delete(&self, key: &str) -> ObjectResult<()> {
        self.wait();
        self.memory.delete(key)
    }

    fn list(&self, under: &str) -> ObjectResult<Vec<String>> {
        self.memory.list(under)
    }
}

/// A machine that has nothing to do.
struct Idle;

impl Machine for Idle {
    fn processors(&self) -> Option<(u64, u64)> {
        None
    }

    fn drives(&self) -> Option<u64> {
        None
    }
}

struct Lab {
    devices: Vec<Arc<MemoryDevice>>,
    store: Arc<Stuck>,
}

impl Lab {
    fn new() -> Self {
        let device = |name: &str, bytes| Arc::new(MemoryDevice::new(name.to_owned(), Bytes(bytes)));
        let mut devices: Vec<_> = (0..5).map(|number| device(&format!("drive {number}"), 1028 * 4160)).collect();
        devices.push(device("log", 4 << 20));
        let lab = Self { devices, store: Arc::default() };
        let options = FormatOptions {
            uuid: [1; 16],
            groups: vec![(4, true)],
            media: Vec::new(),
            aa_stripes: vec![64],
            tetris_stripes: 16,
            zeroed: true,
        };
        let (drives, log) = lab.split();
        Garden::format(&options, drives, log).unwrap();
        let options = VolumeOptions { blocks: 3000, inodes: 100, seed: 1 };
        lab.open().create_volume(b"main", &options).unwrap();
        lab
    }

    fn split(&self) -> (Vec<Arc<dyn BlockDevice>>, Arc<dyn BlockDevice>) {
        let mut all: Vec<Arc<dyn BlockDevice>> = self.devices.iter().map(|device| device.clone() as _).collect();
        let log = all.pop().unwrap();
        (all, log)
    }

    fn open(&self) -> Garden {
        let (drives, log) = self.split();
        Garden::open_with(&drives, log, Limits::default(), Some(self.store.clone()), Accepted::NOTHING).unwrap()
    }

    fn write(garden: &Garden, name: &[u8], blocks: u8) -> Ino {
        let (fs, by) = (garden.volume(b"main").unwrap(), Caller::default());
        let ino = fs.make_node(&by, Ino::ROOT, name, &NewNode::file(0o644)).unwrap().ino;
        for block in 0..blocks {
            fs.write(&by, ino, u64::from(block) << 12, &[block; 4096]).unwrap();
        }
        ino
    }

    /// An operation that is acknowledged while a client waits for the store is durable in time, and
    /// in a consistency point.
    fn assert_goes_on(&self, garden: &Garden, chores: &mut Chores) {
        garden.set_acknowledge(senesce_garden::Acknowledge::Done).unwrap();
        for (name, every) in [(b"new", Duration::from_secs(3600)), (b"old", Duration::ZERO)] {
            Self::write(garden, name, 9);
            let (alarm, before) = (Alarm::of_this_thread(), Instant::now().checked_sub(SYNC).unwrap());
            alarm.note_change();
            chores.due = Due::new(every, before);
            chores.due.observe(&alarm, before);
            chores.do_some(garden, &alarm);
            // Beside the one that is open, as a loss of power would leave it.
            let (drives, log) = self.split();
            let fork = |device: &Arc<dyn BlockDevice>| {
                let mut bytes = vec![0; device.size().0 as usize];
                device.read_at(0, &mut bytes).unwrap();
                let copy: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(device.name(), device.size()));
                copy.write_at(0, &bytes).unwrap();
                copy
            };
            let drives: Vec<_> = drives.iter().map(fork).collect();
            let lost = Garden::open(&drives, fork(&log), Limits::default()).unwrap();
            assert_eq!(lost.volume(b"main").unwrap().lookup(Ino::ROOT, name).unwrap().size, 9 << 12);
        }
        assert_eq!(self.store.waiting(), 1);
    }
}

#[test]
fn deleting_objects_that_waits_for_the_store_delays_no_sync() {
    let lab = Lab::new();
    let garden = lab.open();
    let fs = garden.volume(b"main").unwrap();
    Lab::write(&garden, b"cold", 100);
    garden.tier(Tiering { age: 0, with_cached: true }).unwrap();
    fs.unlink(&Caller::default(), Ino::ROOT, b"cold").unwrap();
    let passes = Passes::default();
    thread::scope(|scope| {
        let sticking = lab.store.stick();
        let mut chores = Chores::new(&garden, 1, true);
        let beside = BackgroundTasks {
            deletes: Some(Instant::now()),
            by_load: None::<AdaptiveMaintenance<SystemClock, Kernel>>,
        };
        chores.beside = beside.begin(scope, &garden, &passes);
        chores.due = Due::new(Duration::ZERO, Instant::now());
        chores.do_some(&garden, &Alarm::of_this_thread());
        while lab.store.waiting() == 0 {
            thread::yield_now();
        }
        assert_eq!(garden.cold().deletable, 1);
        lab.assert_goes_on(&garden, &mut chores);
        drop(sticking);
    });
    assert_eq!(garden.cold().objects, 0);
}

#[test]
fn tiering_by_load_that_waits_for_the_store_delays_no_sync() {
    let lab = Lab::new();
    let garden = lab.open();
    Lab::write(&garden, b"cold", 100);
    garden.consistency_point().unwrap();
    let clock = Arc::new(ManualClock::default());
    let timed = Arc::new(Timed::new(Arc::new(garden.volume(b"main").unwrap()), clock.clone()));
    let points = Arc::new(Points::new(clock.clone()));
    let objects = ObjectGardening { tiering: Tiering { age: 0, with_cached: true }, prices: None };
    let by_load = AdaptiveMaintenance::new(
        &garden,
        Gardening::default(),
        (timed, points),
        (clock.clone(), Idle),
        None,
        Some(objects),
    );
    let passes = Passes::default();
    thread::scope(|scope| {
        let sticking = lab.store.stick();
        let mut chores = Chores::new(&garden, 1, true);
        chores.beside = BackgroundTasks { deletes: None, by_load: Some(by_load) }.begin(scope, &garden, &passes);
        while lab.store.waiting() == 0 {
            clock.set(Nanos(clock.now().0 + 100_000_000));
            thread::yield_now();
        }
        lab.assert_goes_on(&garden, &mut chores);
        drop(sticking);
    });
    assert_eq!(garden.cold().live, 100);
}

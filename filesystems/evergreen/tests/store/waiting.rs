//! Readers wait for no other thread, and batches of a store with background work wait for neither
//! flushes nor checkpoints.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Duration,
};

use senesce_block::{BlockDevice, BlockResult, MemoryDevice};
use senesce_core::Bytes as Size;
use senesce_evergreen::{Batch, Evergreen, KeyValue, MakeOptions, disk::Shape};

use crate::rig::{LITTLE, TINY, key, made};

/// One level above the leaves, for the keys of these tests.
const FLAT: MakeOptions = MakeOptions { shape: Shape { fanout: 16, ..TINY.shape }, ..TINY };
/// Longer than any operation, except a deadlock.
const FOREVER: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
}

/// A device that holds requests of a kind, optionally of one thread, until they are released.
struct Gated {
    inner: Arc<MemoryDevice>,
    gate: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Default)]
struct Gate {
    /// The held kind, and the name of the thread, if only one is held.
    held: Option<(Kind, Option<&'static str>)>,
    waiting: usize,
    /// Whether a request was held until the time limit.
    is_stuck: bool,
}

impl Gated {
    fn new(inner: Arc<MemoryDevice>) -> Arc<Self> {
        Arc::new(Self { inner, gate: Mutex::default(), changed: Condvar::new() })
    }

    fn hold(&self, kind: Kind, thread: Option<&'static str>) {
        self.gate.lock().unwrap().held = Some((kind, thread));
    }

    fn let_go(&self) {
        let is_stuck = {
            let mut gate = self.gate.lock().unwrap();
            gate.held = None;
            gate.is_stuck
        };
        self.changed.notify_all();
        assert!(!is_stuck, "a thread waited for a held request");
    }

    /// Waits until this number of requests is held.
    fn expect(&self, waiting: usize) {
        let gate = self.gate.lock().unwrap();
        let gate = self.wait_while(gate, |gate| gate.waiting < waiting);
        let came = gate.waiting;
        drop(gate);
        if came < waiting {
            self.let_go();
            panic!("{came} concurrent requests; expected {waiting}");
        }
    }

    fn pass(&self, kind: Kind) {
        let mut gate = self.gate.lock().unwrap();
        let thread = std::thread::current();
        let is_held = |gate: &Gate| {
            gate.held.is_some_and(|(held, name)| held == kind && name.is_none_or(|name| thread.name() == Some(name)))
        };
        if is_held(&gate) {
            gate.waiting += 1;
            self.changed.notify_all();
            gate = self.wait_while(gate, |gate| is_held(gate));
            gate.is_stuck |= is_held(&gate);
            gate.waiting -= 1;
        }
    }

    fn wait_while<'a>(
        &self,
        gate: MutexGuard<'a, Gate>,
        mut condition: impl FnMut(&mut Gate) -> bool,
    ) -> MutexGuard<'a, Gate> {
        self.changed.wait_timeout_while(gate, FOREVER, |gate| condition(gate)).unwrap().0
    }
}

impl BlockDevice for Gated {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> Size {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        self.pass(Kind::Read);
        self.inner.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        self.pass(Kind::Write);
        self.inner.write_at(offset, data)
    }

    fn flush(&self) -> BlockResult<()> {
        self.inner.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        self.inner.discard(offset, len)
    }
}

fn put(store: &Evergreen, number: u64, byte: u8) {
    let mut batch = Batch::new();
    batch.put(key(number), vec![byte; 300]);
    store.apply(batch).unwrap();
}

fn byte(store: &Evergreen, number: u64) -> u8 {
    store.get(&key(number)).unwrap().unwrap()[0]
}

/// A store with 90 keys in some leaves, opened with only the root in memory.
fn cold() -> (Arc<Gated>, Evergreen) {
    let device = made(8 << 20, &FLAT);
    let store = Evergreen::open(device.clone(), LITTLE).unwrap();
    (0..90).for_each(|number| put(&store, number, 1));
    // Later batches flush the earlier ones down to the leaves.
    (0..90).for_each(|number| put(&store, number, 2));
    store.checkpoint().unwrap();
    drop(store);
    let device = Gated::new(device);
    let store = Evergreen::open(device.clone(), LITTLE).unwrap();
    (device, store)
}

#[test]
fn readers_do_not_wait_for_other_reads() {
    let (device, store) = cold();
    std::thread::scope(|scope| {
        device.hold(Kind::Read, None);
        // Different leaves, because the keys are in three directories.
        let readers: Vec<_> = [0, 43, 89]
            .map(|number| {
                scope.spawn({
                    let store = &store;
                    move || byte(store, number)
                })
            })
            .into_iter()
            .collect();
        device.expect(2);
        device.let_go();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), 2);
        }
    });
}

#[test]
fn readers_and_batches_do_not_wait_for_checkpoints() {
    let (device, store) = cold();
    put(&store, 7, 3);
    std::thread::scope(|scope| {
        device.hold(Kind::Write, None);
        let checkpoint = scope.spawn(|| store.checkpoint());
        device.expect(1);
        assert_eq!((byte(&store, 7), byte(&store, 80)), (3, 2));
        put(&store, 8, 4);
        assert_eq!(byte(&store, 8), 4);
        device.let_go();
        checkpoint.join().unwrap().unwrap();
    });
    assert_eq!((byte(&store, 7), byte(&store, 8)), (3, 4));
}

#[test]
fn readers_do_not_wait_for_reads_of_flushes() {
    let (device, store) = cold();
    // The last leaf is completely in memory.
    assert_eq!(byte(&store, 89), 2);
    std::thread::scope(|scope| {
        device.hold(Kind::Read, Some("writer"));
        let write = || (0..60).for_each(|number| put(&store, number / 3 * 3, 5));
        let writer = std::thread::Builder::new().name("writer".to_owned()).spawn_scoped(scope, write).unwrap();
        device.expect(1);
        assert_eq!(byte(&store, 89), 2);
        assert_eq!(byte(&store, 0), 5, "it waits above the leaf");
        device.let_go();
        writer.join().unwrap();
    });
    assert_eq!(byte(&store, 57), 5);
}

#[test]
fn batches_with_background_work_do_not_wait_for_flush_reads() {
    let (device, store) = cold();
    store.start_background();
    std::thread::scope(|scope| {
        device.hold(Kind::Read, Some("worker"));
        let work = || {
            while store.wait_for_work() {
                while store.work().unwrap() {}
            }
        };
        let worker = std::thread::Builder::new().name("worker".to_owned()).spawn_scoped(scope, work).unwrap();
        // More than the limit of the root, and less than twice the limit.
        (0..11).for_each(|number| put(&store, number * 5, 6));
        device.expect(1);
        put(&store, 3, 7);
        assert_eq!((byte(&store, 3), byte(&store, 50)), (7, 6));
        device.let_go();
        // Now the batches flush themselves, because too much waits.
        (0..90).for_each(|number| put(&store, number, 8));
        store.stop_background();
        worker.join().unwrap();
    });
    assert!((0..90).all(|number| byte(&store, number) == 8));
}

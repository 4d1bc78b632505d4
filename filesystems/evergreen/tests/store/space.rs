//! Little space: a batch is refused before it has any effect, a checkpoint always fits, and deleted
//! space is usable again.

use std::sync::Arc;

use bytes::Bytes;
use senesce_block::MemoryDevice;
use senesce_core::{Rng, Seed};
use senesce_evergreen::{
    Batch, Claim, Error, Evergreen, KeyValue, Limits, MakeOptions, ModelStore,
    disk::{KeyOrder, Shape},
};

use crate::rig::{TINY, entries, made};

/// Small units in relation to nodes, as by default.
const SMALL: MakeOptions = MakeOptions {
    shape: Shape { node_bytes: 64 << 10, basement_bytes: 8 << 10, fanout: 8, key_order: KeyOrder::BirthPath },
    ..TINY
};
const LIMITS: Limits = Limits { cache_bytes: 256 << 10, dirty_bytes: 256 << 10 };
const VALUE: usize = 900;

struct Full {
    device: Arc<MemoryDevice>,
    store: Evergreen,
    model: ModelStore,
}

fn name(number: u64) -> Bytes {
    Bytes::from(format!("file {number:07}"))
}

impl Full {
    fn new(bytes: u64) -> Self {
        Self::with(bytes, &SMALL, LIMITS)
    }

    fn with(bytes: u64, options: &MakeOptions, limits: Limits) -> Self {
        let device = made(bytes, options);
        let store = Evergreen::open(device.clone(), limits).unwrap();
        Self { device, store, model: ModelStore::new(u64::MAX, 0) }
    }

    fn apply(&self, batch: Batch) -> Result<(), Error> {
        self.store.apply(batch.clone())?;
        self.model.apply(batch).map(drop)
    }

    /// Writes a file at a number, or replaces it if one exists.
    fn write(&self, number: u64, seed: u64, is_new: bool) -> Result<(), Error> {
        let mut value = vec![0; VALUE];
        Rng::for_purpose(Seed(seed), "value").fill(&mut value);
        let mut batch = Batch::new();
        batch.put(name(number), value);
        batch.claim.bytes = if is_new { (VALUE + name(number).len()) as i64 } else { 0 };
        self.apply(batch)
    }

    /// Deletes files one by one, or all of them at once.
    fn delete(&self, numbers: std::ops::Range<u64>, is_at_once: bool) {
        let claim = |count: u64| Claim { bytes: -((count * (VALUE + name(0).len()) as u64) as i64), is_removal: true };
        if is_at_once {
            let mut batch = Batch::new();
            batch.delete_range(name(numbers.start), name(numbers.end));
            batch.claim = claim(numbers.end - numbers.start);
            return self.apply(batch).unwrap();
        }
        for number in numbers {
            let mut batch = Batch::new();
            batch.delete(name(number));
            batch.claim = claim(1);
            self.apply(batch).unwrap();
        }
    }

    /// The number of files that fit, from a number on.
    fn fill(&self, from: u64) -> u64 {
        for number in from.. {
            match self.write(number, number, true) {
                Ok(()) => {}
                Err(Error::NoSpace { .. }) => return number - from,
                Err(error) => panic!("{error}"),
            }
        }
        unreachable!()
    }

    fn percent(&self) -> u64 {
        self.store.live().bytes * 100 / (self.store.live().most * 10 / 9)
    }

    /// Makes a checkpoint, reopens, and compares the contents.
    fn reopened(self) -> Self {
        self.reopened_within(LIMITS)
    }

    fn reopened_within(self, limits: Limits) -> Self {
        self.store.checkpoint().unwrap();
        self.store.sync().unwrap();
        let Self { device, store, model } = self;
        let live = store.live();
        drop(store);
        let store = Evergreen::open(device.clone(), limits).unwrap();
        assert_eq!(store.live(), live);
        assert!(entries(&store).unwrap() == model.entries());
        Self { device, store, model }
    }
}

#[test]
fn store_is_filled_and_emptied_repeatedly() {
    let mut full = Full::new(20 << 20);
    let most = full.fill(0);
    assert!(full.percent() >= 85, "{most} files, {}%", full.percent());
    for round in 0..3 {
        full = full.reopened();
        let (from, to) = (most * round / 8, most * (round + 3) / 8);
        full.delete(from..to, round % 2 == 0);
        for number in from..to {
            let written = full.write(number, round, true);
            assert!(written.is_ok(), "round {round}, file {number}: {} % are live: {written:?}", full.percent());
        }
    }
    full.delete(0..most, true);
    full = full.reopened();
    let again = full.fill(0);
    assert!(again >= most * 98 / 100, "{most} files at first, {again} then");
}

#[test]
fn full_store_can_be_overwritten() {
    let full = Full::new(12 << 20);
    let most = full.fill(0);
    full.delete(most * 95 / 100..most, false);
    let mut rng = Rng::for_purpose(Seed(3), "overwrite");
    for number in 0..3 * most {
        let written = full.write(rng.below(most * 95 / 100), number, false);
        assert!(written.is_ok(), "{number} of {most} files: {} % are live: {written:?}", full.percent());
    }
    full.reopened();
}

#[test]
fn small_device_holds_its_stated_limit() {
    for (bytes, options) in [(24 << 20, MakeOptions::suited([3; 16], 24 << 20)), (96 << 20, MakeOptions::new([3; 16]))]
    {
        let store = Evergreen::open(made(bytes, &options), Limits::default()).unwrap();
        let most = store.live().most;
        let error = (0..)
            .find_map(|number: u64| {
                let mut batch = Batch::new();
                batch.put(name(number), vec![number as u8; 4096]);
                batch.claim.bytes = (4096 + name(number).len()) as i64;
                store.apply(batch).err()
            })
            .unwrap();
        assert!(matches!(error, Error::NoSpace { .. }), "{error}");
        let live = store.live().bytes;
        assert!(live > most * 99 / 100, "of {bytes} bytes {most} can be claimed; {live} are when there is no space");
        assert!(most > bytes * 2 / 5, "{most} of {bytes}");
    }
}

#[test]
fn nodes_are_a_256th_of_a_small_device() {
    let nodes = |bytes: u64| MakeOptions::suited([3; 16], bytes).shape.node_bytes >> 10;
    let sizes = [1 << 20, 40 << 20, 320 << 20, (1 << 30) - 1, 1 << 30, 1 << 40];
    assert_eq!(sizes.map(nodes), [64, 128, 1024, 2048, 4096, 4096], "KiB");
    let usual = MakeOptions::new([3; 16]);
    assert_eq!(format!("{:?}", MakeOptions::suited([3; 16], 1 << 30)), format!("{usual:?}"));
}

#[test]
fn full_store_opens_after_a_power_loss() {
    let full = Full::new(12 << 20);
    let most = full.fill(0);
    let mut rng = Rng::for_purpose(Seed(5), "full");
    let mut done = 0;
    for number in 0..300 {
        // Whether a batch is refused or not, the store continues.
        match full.write(rng.below(most), number, false) {
            Ok(()) => done += 1,
            Err(Error::NoSpace { .. }) => {}
            Err(error) => panic!("{number}: {error}"),
        }
        if number % 20 == 0 {
            full.store.sync().unwrap();
            let fork = Arc::new(full.device.fork());
            let store = Evergreen::open(fork, LIMITS).unwrap();
            assert!(entries(&store).unwrap() == full.model.entries(), "{number}");
        }
    }
    assert!(done > 30, "{done} of 300 were done");
}

#[test]
fn checkpoint_of_a_full_store_always_fits() {
    // Trees of several levels, small nodes, also in relation to units, and many dirty nodes between
    // two checkpoints.
    let shape = |node_bytes, fanout| Shape { node_bytes, basement_bytes: node_bytes / 4, fanout, ..SMALL.shape };
    let shapes = [shape(64 << 10, 8), shape(16 << 10, 4), shape(8 << 10, 4)];
    for (case, shape) in (0..).zip(shapes) {
        let (options, limits) = (MakeOptions { shape, ..SMALL }, Limits { dirty_bytes: 1 << 20, ..LIMITS });
        let full = Full::with(8 << 20, &options, limits);
        let mut next = full.fill(0);
        let mut rng = Rng::for_purpose(Seed(case), "adversary");
        let (mut asked, mut done) = (0_u64, 0_u64);
        for round in 0..60 {
            for _ in 0..rng.between(1, 60) {
                let number = rng.below(next);
                // Writes missing files like existing ones, so the claim is less than the live
                // bytes.
                asked += 1;
                done += match (rng.below(8), full.write(number, round, false)) {
                    (0, _) => {
                        full.delete(number..number + 1, false);
                        1
                    }
                    (1, _) => {
                        let written = full.write(next, round, true);
                        next += u64::from(written.is_ok());
                        u64::from(written.is_ok())
                    }
                    (_, Ok(())) => 1,
                    (_, Err(Error::NoSpace { .. })) => 0,
                    (_, Err(error)) => panic!("{error}"),
                };
            }
            full.store.checkpoint().unwrap_or_else(|error| panic!("case {case}, round {round}: {error}"));
        }
        assert!(done * 5 > asked, "case {case}: {done} of {asked} were done");
        full.reopened_within(limits);
    }
}

#[test]
fn basements_and_units_follow_the_size_of_nodes() {
    for (node, basement, unit) in
        [(8 << 20, 128, 64), (4 << 20, 128, 64), (1 << 20, 32, 16), (64 << 10, 4, 4), (16 << 10, 4, 4)]
    {
        let MakeOptions { shape, unit_bytes, .. } = MakeOptions::with_nodes([3; 16], node);
        assert_eq!((shape.node_bytes, shape.basement_bytes >> 10, unit_bytes >> 10), (node, basement, unit));
        shape.validate().unwrap();
    }
    // Units are powers of two for any size of nodes.
    assert_eq!(MakeOptions::with_nodes([3; 16], 3_000_000).unit_bytes, 32 << 10);
}

/// A damaged claim can have any value, and a repair frees it at once.
#[test]
fn claims_of_any_size_are_counted() {
    let device = made(4 << 20, &TINY);
    let store = Evergreen::open(device.clone(), LIMITS).unwrap();
    let claim = |bytes, is_removal| {
        let mut batch = Batch::new();
        batch.put(&b"key"[..], &b"value"[..]);
        batch.claim = Claim { bytes, is_removal };
        store.apply(batch)
    };
    assert!(matches!(claim(i64::MAX, true), Err(Error::NoSpace { .. })));
    claim(1000, false).unwrap();
    for bytes in [i64::MIN, -i64::MAX, i64::MIN / 3 * 2] {
        claim(bytes, true).unwrap();
        assert_eq!(store.live().bytes, 0);
    }
    store.sync().unwrap();
    drop(store);
    assert_eq!(Evergreen::open(device, LIMITS).unwrap().live().bytes, 0);
}

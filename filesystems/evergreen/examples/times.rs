//! Times of single operations: opening with a log of 256 MiB, removal of a large file, rename of a
//! directory. Also whether readers wait for each other or for a checkpoint.
//!
//! `cargo run --release -p senesce-evergreen --example times`; `... --example times recover` runs
//! only the first one.
//!
//! Devices are memory. Times are those of the thread on a processor (Linux:
//! /proc/thread-self/schedstat), so that other threads and the time of a device do not count.
//! Removal and rename include a sync.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use senesce_block::{BlockDevice, BlockResult, MemoryDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_evergreen::{Batch, Evergreen, EvergreenFs, KeyValue, Limits, MakeOptions};
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode, RenameMode};

type Failure = Box<dyn std::error::Error>;

const MIB: u64 = 1 << 20;
const CALLER: Caller = Caller { uid: 0, gid: 0, now: senesce_fsapi::Timestamp { seconds: 1, nanoseconds: 0 } };

fn main() -> Result<(), Failure> {
    recover("blocks of 4 KiB", 4096)?;
    recover("values of 100 bytes", 100)?;
    if std::env::args().any(|part| part == "recover") {
        return Ok(());
    }
    remove_and_rename()?;
    for readers in [1, 4, 16] {
        read_at_once(readers)?;
    }
    Ok(())
}

/// Opens with 256 MiB of log. Its batches have one value each, at random among 128 MiB of values.
fn recover(what: &str, bytes: usize) -> Result<(), Failure> {
    const LOG: u64 = 256 * MIB;
    // No checkpoint runs before the device is opened again.
    let limits = Limits { dirty_bytes: 4096 * MIB, ..Limits::default() };
    let device = Arc::new(MemoryDevice::new("memory", Bytes(3 * 1024 * MIB)));
    Evergreen::make(device.clone(), &MakeOptions { log_bytes: Some(1024 * MIB), ..MakeOptions::new([1; 16]) })?;
    let store = Evergreen::open(device.clone(), limits)?;
    let mut rng = Rng::for_purpose(Seed(1), "times");
    let (mut value, mut batches, mut logged) = (vec![0; bytes], 0, 0);
    while logged < LOG {
        rng.fill(&mut value);
        let mut batch = Batch::new();
        batch.put(format!("directory/{:012}", rng.below(128 * MIB / bytes as u64)), value.clone());
        // The record of one value: its length, 13 bytes of the batch, 5 of the change, key and
        // value.
        logged += 4 + 13 + 5 + 22 + bytes as u64;
        store.apply(batch)?;
        batches += 1;
        if batches % 1024 == 0 {
            store.sync()?;
        }
    }
    store.sync()?;
    drop(store);
    let began = processor_ns()?;
    let store = Evergreen::open(device, Limits::default())?;
    println!(
        "opened with {} MiB of log, {batches} batches of {what}, with a checkpoint: {:.0} ms",
        logged >> 20,
        (processor_ns()? - began) as f64 / 1e6
    );
    drop(store);
    Ok(())
}

/// A file with the number of nodes that 4 GiB have with nodes of 4 MiB.
fn remove_and_rename() -> Result<(), Failure> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("memory", Bytes(1536 * MIB)));
    EvergreenFs::make_on(device.clone(), &MakeOptions::with_nodes([1; 16], 512 << 10))?;
    let fs = EvergreenFs::open_on(device.clone(), Limits::default())?;
    let large = fs.make_node(&CALLER, Ino::ROOT, b"large", &NewNode::file(0o644))?.ino;
    let data = vec![7; MIB as usize];
    for at in 0..512 {
        fs.write(&CALLER, large, at * MIB, &data)?;
    }
    let directory = fs.make_node(&CALLER, Ino::ROOT, b"directory", &NewNode::directory(0o755))?.ino;
    for number in 0..1000 {
        let name = format!("file {number}");
        let ino = fs.make_node(&CALLER, directory, name.as_bytes(), &NewNode::file(0o644))?.ino;
        fs.write(&CALLER, ino, 0, &[1; 2048])?;
    }
    fs.store().checkpoint()?;
    drop(fs);
    let fs = EvergreenFs::open_on(device, Limits::default())?;
    let timed = |what: &str, act: &dyn Fn() -> Result<(), Failure>| -> Result<(), Failure> {
        let (before, began) = (fs.store().figures(), processor_ns()?);
        act()?;
        let (after, ns) = (fs.store().figures(), processor_ns()? - began);
        let leaves = after.leaf_reads - before.leaf_reads;
        println!("{what}: {:.2} ms, {leaves} reads of leaves", ns as f64 / 1e6);
        Ok(())
    };
    timed("a directory of 1000 files renamed, cold", &|| {
        fs.rename(&CALLER, (Ino::ROOT, b"directory"), (Ino::ROOT, b"other"), RenameMode::Replace)?;
        Ok(fs.sync_all()?)
    })?;
    timed("it renamed back", &|| {
        fs.rename(&CALLER, (Ino::ROOT, b"other"), (Ino::ROOT, b"directory"), RenameMode::Replace)?;
        Ok(fs.sync_all()?)
    })?;
    timed("512 MiB in nodes of 512 KiB removed", &|| {
        fs.unlink(&CALLER, Ino::ROOT, b"large")?;
        Ok(fs.sync_all()?)
    })?;
    timed("the next change, which frees its nodes", &|| {
        fs.make_node(&CALLER, Ino::ROOT, b"next", &NewNode::file(0o644))?;
        Ok(fs.sync_all()?)
    })?;
    timed("a checkpoint then", &|| Ok(fs.store().checkpoint()?))
}

/// A device whose requests take two milliseconds each, with any number in flight.
struct Slow {
    inner: MemoryDevice,
    /// The reads in flight: now, at most, and the sum at the start of each read.
    reading: AtomicU64,
    most: AtomicU64,
    sum: AtomicU64,
    count: AtomicU64,
}

const TAKES: Duration = Duration::from_millis(2);

impl BlockDevice for Slow {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> Bytes {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        let reading = self.reading.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(reading, SeqCst);
        self.sum.fetch_add(reading, SeqCst);
        self.count.fetch_add(1, SeqCst);
        std::thread::sleep(TAKES);
        let done = self.inner.read_at(offset, out);
        self.reading.fetch_sub(1, SeqCst);
        done
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        std::thread::sleep(10 * TAKES);
        self.inner.write_at(offset, data)
    }

    fn flush(&self) -> BlockResult<()> {
        self.inner.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        self.inner.discard(offset, len)
    }
}

/// Reads blocks at random from many leaves, with a small cache, during a checkpoint.
fn read_at_once(readers: u64) -> Result<(), Failure> {
    const BLOCKS: u64 = 8192;
    let inner = MemoryDevice::new("memory", Bytes(256 * MIB));
    let key = |number: u64| format!("directory/{number:012}");
    let limits = Limits { cache_bytes: 4 << 20, ..Limits::default() };
    let loaded = Arc::new(inner.fork());
    Evergreen::make(loaded.clone(), &MakeOptions::with_nodes([1; 16], 256 << 10))?;
    let store = Evergreen::open(loaded.clone(), limits)?;
    for number in 0..BLOCKS {
        let mut batch = Batch::new();
        batch.put(key(number), vec![1; 4096]);
        store.apply(batch)?;
    }
    store.checkpoint()?;
    drop(store);
    let count = || AtomicU64::new(0);
    let slow = Arc::new(Slow { inner: loaded.fork(), reading: count(), most: count(), sum: count(), count: count() });
    let store = Evergreen::open(slow.clone(), limits)?;
    for number in 0..256 {
        let mut batch = Batch::new();
        batch.put(key(number * 31), vec![2; 4096]);
        store.apply(batch)?;
    }
    for counter in [&slow.most, &slow.sum, &slow.count] {
        counter.store(0, SeqCst);
    }
    let (is_writing, meanwhile) = (AtomicBool::new(true), AtomicU64::new(0));
    std::thread::scope(|scope| -> Result<(), Failure> {
        let work: Vec<_> = (0..readers)
            .map(|reader| {
                let (store, is_writing, meanwhile) = (&store, &is_writing, &meanwhile);
                scope.spawn(move || -> senesce_evergreen::Result<()> {
                    let mut rng = Rng::for_purpose(Seed(reader), "readers");
                    for _ in 0..100 {
                        store.get(key(rng.below(BLOCKS)).as_bytes())?;
                        meanwhile.fetch_add(u64::from(is_writing.load(SeqCst)), SeqCst);
                    }
                    Ok(())
                })
            })
            .collect();
        store.checkpoint()?;
        is_writing.store(false, SeqCst);
        for reader in work {
            reader.join().expect("a reader does not panic")?;
        }
        Ok(())
    })?;
    let (most, sum, count) = (slow.most.load(SeqCst), slow.sum.load(SeqCst), slow.count.load(SeqCst));
    println!(
        "{readers} readers of 100 blocks each: {most} readings at once at most, {:.1} on the average; {} blocks were read while a \
         checkpoint was written",
        sum as f64 / count.max(1) as f64,
        meanwhile.load(SeqCst)
    );
    Ok(())
}

/// The processor time of this thread up to now, in nanoseconds. A yield updates the count.
fn processor_ns() -> Result<u64, Failure> {
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().ok_or("/proc/thread-self/schedstat is empty")?.parse()?)
}

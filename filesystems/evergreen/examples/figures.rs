//! Reads and writes of the tree: loaded in order, overwritten, aged, and with a quarter deleted.
//!
//! ```text
//! cargo run --release -p senesce-evergreen --example figures -- \
//!     [MiB of values, 256] [seed] [copies of metadata, 2]
//! ```
//!
//! Values are incompressible blocks of 4096 bytes, each a batch of its own, under keys like those
//! of blocks of files. The device is memory. Requests and bytes are those of the device, so the log
//! and the map of nodes count; the log is synced every 4 MiB. Times are those of the thread on a
//! processor (Linux: /proc/thread-self/schedstat), so that other threads do not count.

use std::{ops::ControlFlow, sync::Arc};

use bytes::Bytes;
use senesce_block::{MemoryDevice, RequestCounts, TracedDevice};
use senesce_core::{Bytes as Size, ManualClock, Rng, Seed};
use senesce_evergreen::{Batch, Evergreen, Figures, Flushes, KeyValue, Limits, MakeOptions, Message, disk::Copies};

type Failure = Box<dyn std::error::Error>;
type Device = Arc<TracedDevice<MemoryDevice>>;

const BLOCK: usize = 4096;
/// The blocks of a file.
const FILE: u64 = 256;
/// A quarter of the stored bytes, at 256 MiB.
const LIMITS: Limits = Limits { cache_bytes: 64 << 20, dirty_bytes: 64 << 20 };

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mib: u64 = arguments.next().map_or(Ok(256), |text| text.parse())?;
    let seed = Seed(arguments.next().map_or(Ok(1), |text| text.parse())?);
    let copies = if arguments.next().as_deref() == Some("1") { Copies::One } else { Copies::Two };
    let blocks = (mib << 20) / BLOCK as u64;
    let mut rng = Rng::for_purpose(seed, "figures");

    let (device, store) = made(mib, copies)?;
    let load = written(&device, || {
        for number in 0..blocks {
            let mut batch = Batch::new();
            batch.put(key(number), value(&mut rng));
            store.apply(batch)?;
            sync_at_times(&store, number)?;
        }
        Ok(store.checkpoint()?)
    })?;
    let user = blocks as f64 * BLOCK as f64;
    println!(
        "load of {mib} MiB in order: {:.3} bytes written for each byte, {}",
        load.bytes as f64 / user,
        load.told()
    );
    print_writes(&store.figures());
    drop(store);

    let fresh = scan(&device, blocks)?;
    println!("scan of it, fresh: {}", fresh.told());

    let store = Evergreen::open(device.clone(), LIMITS)?;
    let before = store.figures();
    let count = 65_536;
    let patched = written(&device, || {
        for number in 0..count {
            sync_at_times(&store, number)?;
            let mut batch = Batch::new();
            batch.send(key(rng.below(blocks)), Message::patch(rng.below(4000) as u32, Bytes::from_static(b"four")));
            store.apply(batch)?;
        }
        Ok(store.sync()?)
    })?;
    let leaf_reads = store.figures().leaf_reads - before.leaf_reads;
    println!("{count} random writes of 4 bytes: {leaf_reads} leaves read, {}", patched.told());

    let before = store.figures();
    let written_over = written(&device, || {
        for number in 0..blocks {
            sync_at_times(&store, number)?;
            let mut batch = Batch::new();
            batch.put(key(rng.below(blocks)), value(&mut rng));
            store.apply(batch)?;
        }
        Ok(store.checkpoint()?)
    })?;
    let amplification = written_over.bytes as f64 / user;
    println!(
        "each block written over, in random order: {amplification:.2} bytes written for each byte, {}",
        written_over.told()
    );
    print_writes(&difference(&store.figures(), &before));

    // Deletes and creates files, out of order and interleaved.
    let files = blocks / FILE;
    for _ in 0..2 * files {
        let file = rng.below(files) * FILE;
        let mut batch = Batch::new();
        batch.delete_range(key(file), key(file + FILE));
        store.apply(batch)?;
        let other = rng.below(files) * FILE;
        for number in 0..FILE {
            for file in [file, other] {
                let mut batch = Batch::new();
                batch.put(key(file + number), value(&mut rng));
                store.apply(batch)?;
            }
        }
    }
    store.checkpoint()?;
    drop(store);
    let aged = scan(&device, blocks)?;
    println!("scan of it, aged: {}", aged.told());
    let nodes = |scan: &Scan| scan.figures.leaf_reads + scan.figures.inner_reads;
    println!(
        "reading all, aged over fresh: {:.3} in node reads, {:.3} in requests",
        nodes(&aged) as f64 / nodes(&fresh) as f64,
        aged.reads as f64 / fresh.reads as f64
    );

    let store = Evergreen::open(device.clone(), Limits { cache_bytes: 32 << 20, ..LIMITS })?;
    let (before, reads) = (store.figures(), device.counts());
    let gets = 2000;
    for _ in 0..gets {
        store.get(&key(rng.below(blocks)))?;
    }
    let (after, read) = (difference(&store.figures(), &before), device.counts());
    println!(
        "{gets} random blocks, cold: {:.2} leaf reads of {:.0} KiB and {:.2} of inner nodes, {:.0} KiB in all each",
        after.leaf_reads as f64 / gets as f64,
        after.leaf_read_bytes as f64 / 1024.0 / after.leaf_reads.max(1) as f64,
        after.inner_reads as f64 / gets as f64,
        (read.bytes_read - reads.bytes_read) as f64 / 1024.0 / gets as f64,
    );
    drop(store);

    let store = Evergreen::open(device.clone(), LIMITS)?;
    let before = store.figures();
    let quarter = written(&device, || {
        let mut batch = Batch::new();
        batch.delete_range(key(blocks / 3), key(blocks / 3 + blocks / 4));
        store.apply(batch)?;
        Ok(store.checkpoint()?)
    })?;
    let leaf_reads = store.figures().leaf_reads - before.leaf_reads;
    println!("a quarter deleted, with a checkpoint: {leaf_reads} leaves read, {}", quarter.told());
    drop((device, store));
    for between in [64, mib] {
        load_unlogged(mib, between, copies)?;
    }
    Ok(())
}

/// Loads in order, with a sync after each `between` MiB, which is long enough not to be logged.
fn load_unlogged(mib: u64, between: u64, copies: Copies) -> Result<(), Failure> {
    let (device, store) = made(mib, copies)?;
    let mut rng = Rng::for_purpose(Seed(1), "unlogged");
    let blocks = (mib << 20) / BLOCK as u64;
    let load = written(&device, || {
        for number in 0..blocks {
            let mut batch = Batch::new();
            batch.put(key(number), value(&mut rng));
            store.apply(batch)?;
            if (number + 1) % (between * 256) == 0 {
                store.sync()?;
            }
        }
        Ok(store.checkpoint()?)
    })?;
    println!(
        "load of {mib} MiB in order, synced after {between} MiB: {:.3} bytes written for each byte, {}; {} MiB were not logged",
        load.bytes as f64 / (mib << 20) as f64,
        load.told(),
        store.figures().unlogged_bytes >> 20
    );
    print_writes(&store.figures());
    Ok(())
}

fn made(mib: u64, copies: Copies) -> Result<(Device, Evergreen), Failure> {
    let size = Size((mib << 20) * 3);
    let device = Arc::new(TracedDevice::new(MemoryDevice::new("memory", size), Arc::new(ManualClock::default())));
    // The log of a device of 16 GiB.
    Evergreen::make(device.clone(), &MakeOptions { log_bytes: Some(256 << 20), copies, ..MakeOptions::new([1; 16]) })?;
    Ok((device.clone(), Evergreen::open(device, LIMITS)?))
}

/// Syncs now and then, so that the log is written.
fn sync_at_times(store: &Evergreen, number: u64) -> Result<(), Failure> {
    if number % 1024 == 1023 {
        store.sync()?;
    }
    Ok(())
}

fn key(number: u64) -> Bytes {
    let (file, block) = (number / FILE, number % FILE);
    Bytes::from(format!("d/project/directory {:03}/file {file:08}/{block:06}", file / 40))
}

fn value(rng: &mut Rng) -> Bytes {
    let mut value = vec![0; BLOCK];
    rng.fill(&mut value);
    value.into()
}

struct Written {
    bytes: u64,
    requests: u64,
    milliseconds: f64,
}

impl Written {
    fn told(&self) -> String {
        format!("{} MiB in {} requests, {:.0} ms", self.bytes >> 20, self.requests, self.milliseconds)
    }
}

fn written(device: &Device, act: impl FnOnce() -> Result<(), Failure>) -> Result<Written, Failure> {
    let (before, began) = (device.counts(), processor_ns()?);
    act()?;
    let (milliseconds, after): (f64, RequestCounts) = ((processor_ns()? - began) as f64 / 1e6, device.counts());
    device.take_requests();
    let (bytes, requests) = (after.bytes_written - before.bytes_written, after.writes - before.writes);
    Ok(Written { bytes, requests, milliseconds })
}

struct Scan {
    figures: Figures,
    reads: u64,
    milliseconds: f64,
}

impl Scan {
    fn told(&self) -> String {
        let Figures { leaf_reads, leaf_read_bytes, inner_reads, inner_read_bytes, .. } = self.figures;
        format!(
            "{leaf_reads} leaf reads of {} KiB, {inner_reads} of inner nodes of {} KiB, {} requests, {:.0} ms",
            leaf_read_bytes / 1024 / leaf_reads.max(1),
            inner_read_bytes / 1024 / inner_reads.max(1),
            self.reads,
            self.milliseconds
        )
    }
}

/// Scans all keys in order, cold.
fn scan(device: &Device, blocks: u64) -> Result<Scan, Failure> {
    let store = Evergreen::open(device.clone(), LIMITS)?;
    let (before, reads, began) = (store.figures(), device.counts().reads, processor_ns()?);
    let mut count = 0;
    store.scan(b"", &[0xff], &mut |_, _| {
        count += 1;
        ControlFlow::Continue(())
    })?;
    assert_eq!(count, blocks, "the scan returns all blocks");
    let milliseconds = (processor_ns()? - began) as f64 / 1e6;
    Ok(Scan { figures: difference(&store.figures(), &before), reads: device.counts().reads - reads, milliseconds })
}

fn difference(after: &Figures, before: &Figures) -> Figures {
    Figures {
        leaf_reads: after.leaf_reads - before.leaf_reads,
        leaf_read_bytes: after.leaf_read_bytes - before.leaf_read_bytes,
        inner_reads: after.inner_reads - before.inner_reads,
        inner_read_bytes: after.inner_read_bytes - before.inner_read_bytes,
        read_requests: after.read_requests - before.read_requests,
        leaf_writes: after.leaf_writes - before.leaf_writes,
        leaf_write_bytes: after.leaf_write_bytes - before.leaf_write_bytes,
        inner_writes: after.inner_writes - before.inner_writes,
        inner_write_bytes: after.inner_write_bytes - before.inner_write_bytes,
        map_write_bytes: after.map_write_bytes - before.map_write_bytes,
        checkpoints: after.checkpoints - before.checkpoints,
        unlogged_bytes: after.unlogged_bytes - before.unlogged_bytes,
        reads_passed_over: after.reads_passed_over - before.reads_passed_over,
        flushes: std::array::from_fn(|level| Flushes {
            count: after.flushes[level].count - before.flushes[level].count,
            bytes: after.flushes[level].bytes - before.flushes[level].bytes,
        }),
    }
}

fn print_writes(figures: &Figures) {
    println!(
        "  {} leaves of {} MiB, {} inner nodes of {} MiB, maps of {} KiB, {} checkpoints",
        figures.leaf_writes,
        figures.leaf_write_bytes >> 20,
        figures.inner_writes,
        figures.inner_write_bytes >> 20,
        figures.map_write_bytes >> 10,
        figures.checkpoints
    );
}

/// The processor time of this thread, in nanoseconds.
fn processor_ns() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().ok_or("/proc/thread-self/schedstat is empty")?.parse()?)
}

//! Processor time of the garden for each kind of event on this host: the profile `measured` of the
//! simulation.
//!
//! `cargo run --release -p senesce-garden --example costs`; docs/results/simulation.md has the
//! figures and their circumstances.
//!
//! Time is the thread's own processor time (Linux: /proc/thread-self/schedstat). So other threads
//! do not count, except for their use of the caches. Drives are in memory: a chain includes copying
//! to and from them. Each figure is the median of nine rounds. Differences of figures are printed
//! unchanged, also below zero.

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode};
use senesce_garden::{FormatOptions, Garden, Limits, VolumeFs, VolumeOptions};

const BLOCK: u64 = 4096;
const SLOT: usize = 4160;
/// Blocks of the file: 64 MiB.
const BLOCKS: u64 = 16_384;
/// Blocks of a long read.
const LONG: u64 = 64;
const ROUNDS: usize = 9;
/// Stripes of an allocation area.
const AREA: u64 = 1024;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let all = 1 << 30;
    let (warm, warm_file, warm_garden) = make(all)?;
    let (cold, cold_file, _cold_garden) = make(1 << 20)?;
    let mut rng = Rng::for_purpose(Seed(1), "costs");
    let mut read = |fs: &VolumeFs, ino, blocks: u64, count: u64| {
        let mut out = vec![0; (blocks * BLOCK) as usize];
        median(count, || {
            let first = rng.below(BLOCKS / blocks) * blocks;
            fs.read(ino, first * BLOCK, &mut out).map(drop)
        })
    };
    read(&warm, warm_file, LONG, 2000)?; // fills the cache
    let (hit, hits) = (read(&warm, warm_file, 1, 4000)?, read(&warm, warm_file, LONG, 400)?);
    let (miss, misses) = (read(&cold, cold_file, 1, 4000)?, read(&cold, cold_file, LONG, 400)?);
    let (write, point) = writes(&warm, warm_file, &warm_garden)?;
    let (xor, check) = (xor()?, checksum()?);
    let (compression, decompression) = packing()?;
    let (lookup, fix, moved) = gardening(&warm_garden)?;

    let each = |one: f64, long: f64| (long - one) / (LONG - 1) as f64;
    let cache_hit = each(hit, hits);
    let front_end = hit - cache_hit;
    let context_check = each(miss, misses);
    println!(
        "read of 1 and {LONG} blocks from the cache: {hit:.0} and {hits:.0} ns; from drives: {miss:.0} and {misses:.0} ns"
    );
    println!(
        "write of a block: {write:.0} ns; consistency point: {point:.0} ns a block; checksum of a block: {check:.0} ns"
    );
    println!("front_end: {front_end:.0} ns");
    println!("cache_hit: {cache_hit:.0} ns");
    println!("log_append: {:.0} ns", write - front_end);
    println!("block_clean: {:.0} ns", point - xor);
    println!("chain_issue: {:.0} ns", miss - front_end - context_check);
    println!("xor: {xor:.0} ns");
    println!("context_check: {context_check:.0} ns");
    println!("map_lookup: {lookup:.0} ns");
    println!("relocation: {:.0} ns (of {moved:.0}, with reading the block)", moved - context_check - lookup);
    println!("compression: {compression:.0} ns");
    println!("decompression: {decompression:.0} ns");
    println!("fix_up: {fix:.0} ns");
    Ok(())
}

/// The times of a container map lookup, of a fix-up without its lookup, and of the relocation of a
/// block with its read.
fn gardening(garden: &Garden) -> Result<(f64, f64, f64), Failure> {
    let (mut lookups, mut fixes, mut moves) = (Vec::new(), Vec::new(), Vec::new());
    let scan = || -> Result<(f64, u64, u64), Failure> {
        let (before, mut looked, mut fixed) = (processor_time()?, 0, 0);
        loop {
            let step = garden.fix_up_step(b"volume", u64::MAX)?;
            (looked, fixed) = (looked + step.looked, fixed + step.fixed);
            if step.ended || step.no_space {
                return Ok((processor_time()? - before, looked, fixed));
            }
        }
    };
    scan()?;
    for _ in 0..3 {
        let (time, looked, _) = scan()?;
        let lookup = time / looked as f64;
        let (mut time, mut blocks) = (0.0, 0);
        for area in 0..16_384 / AREA {
            let before = processor_time()?;
            let moves = garden.move_area(0, area)?;
            time += processor_time()? - before;
            blocks += moves.blocks;
            garden.consistency_point()?;
        }
        let (scanned, looked, fixed) = scan()?;
        garden.consistency_point()?;
        lookups.push(lookup);
        moves.push(time / blocks as f64);
        fixes.push((scanned - lookup * looked as f64) / fixed as f64);
    }
    Ok((middle(lookups), middle(fixes), middle(moves)))
}

/// A volume with a file, on five drives in memory.
fn make(cache_bytes: u64) -> Result<(VolumeFs, Ino, Garden), Failure> {
    let drive = |number| MemoryDevice::new(format!("drive {number}"), Bytes((4 + 16_384) * SLOT as u64));
    let drives: Vec<Arc<dyn BlockDevice>> =
        (0..5).map(|number| Arc::new(drive(number)) as Arc<dyn BlockDevice>).collect();
    let log: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("log", Bytes(512 << 20)));
    let groups = vec![(4, true)];
    let options = FormatOptions {
        uuid: [1; 16],
        groups,
        media: vec![],
        aa_stripes: vec![AREA as u32],
        tetris_stripes: 64,
        zeroed: true,
    };
    Garden::format(&options, drives.clone(), log.clone())?;
    let garden = Garden::open(&drives, log, Limits { cache_bytes, dirty_bytes: 256 << 20 })?;
    garden.create_volume(b"volume", &VolumeOptions { blocks: 3 * BLOCKS, inodes: 4096, seed: 1 })?;
    let fs = garden.volume(b"volume")?;
    let ino = fs.make_node(&Caller::default(), Ino::ROOT, b"file", &NewNode::file(0o600))?.ino;
    let mut bytes = vec![0; (LONG * BLOCK) as usize];
    Rng::for_purpose(Seed(2), "contents").fill(&mut bytes);
    for first in (0..BLOCKS).step_by(LONG as usize) {
        fs.write(&Caller::default(), ino, first * BLOCK, &bytes)?;
    }
    garden.consistency_point()?;
    Ok((fs, ino, garden))
}

/// The time of a write of one block, without consistency points, and the time of a consistency
/// point per block.
fn writes(fs: &VolumeFs, ino: Ino, garden: &Garden) -> Result<(f64, f64), Failure> {
    let (mut rng, mut bytes) = (Rng::for_purpose(Seed(3), "writes"), vec![0; BLOCK as usize]);
    let (mut each, mut points) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        rng.fill(&mut bytes);
        // Every second block, each once, in random order: no block is written twice before the
        // point.
        let mut blocks: Vec<u64> = (0..BLOCKS / 2).map(|block| 2 * block).collect();
        rng.shuffle(&mut blocks);
        blocks.truncate(4096);
        let before = processor_time()?;
        for block in &blocks {
            fs.write(&Caller::default(), ino, block * BLOCK, &bytes)?;
        }
        let written = processor_time()?;
        garden.consistency_point()?;
        each.push((written - before) / blocks.len() as f64);
        points.push((processor_time()? - written) / blocks.len() as f64);
    }
    Ok((middle(each), middle(points)))
}

/// The time of the XOR of two slots.
fn xor() -> Result<f64, Failure> {
    let (mut sum, other) = (vec![1u8; SLOT], vec![2u8; SLOT]);
    median(200_000, || {
        std::hint::black_box(&mut sum).iter_mut().zip(std::hint::black_box(&other)).for_each(|(a, b)| *a ^= b);
        Ok::<_, Failure>(())
    })
}

/// The time of the checksum of a block, for comparison. Cleaning and checking include it.
fn checksum() -> Result<f64, Failure> {
    let block = vec![3u8; BLOCK as usize];
    median(200_000, || {
        std::hint::black_box(crc32c::crc32c(std::hint::black_box(&block)));
        Ok::<_, Failure>(())
    })
}

/// The times of compression and decompression per block of a group of two, with the calls of the
/// garden. The pages are those of experiments E9 and E10: a fifth of each 512 bytes is random, and
/// the rest is zeros.
fn packing() -> Result<(f64, f64), Failure> {
    const PAGES: usize = 512;
    const PAGE: usize = 2 * BLOCK as usize;
    let mut rng = Rng::for_purpose(Seed(4), "pages");
    let mut pages = vec![0; PAGES * PAGE];
    pages.chunks_exact_mut(512).for_each(|piece| rng.fill(&mut piece[..102]));
    let compress = |page: &[u8]| -> std::io::Result<Vec<u8>> {
        let mut out = vec![0; PAGE];
        let length = zstd::bulk::compress_to_buffer(page, &mut out[..], 1)?;
        out.truncate(length);
        Ok(out)
    };
    let packed: Vec<Vec<u8>> = pages.chunks_exact(PAGE).map(compress).collect::<std::io::Result<_>>()?;
    let mut at = 0;
    let compression = median(4000, || {
        at = (at + 1) % PAGES;
        compress(&pages[at * PAGE..][..PAGE]).map(|out| drop(std::hint::black_box(out)))
    })?;
    let decompression = median(4000, || {
        at = (at + 1) % PAGES;
        zstd::bulk::decompress(&packed[at], PAGE).map(|out| drop(std::hint::black_box(out)))
    })?;
    Ok((compression / 2.0, decompression / 2.0))
}

/// Nanoseconds of one of `count` calls, the median of the rounds.
fn median<E: Into<Failure>>(count: u64, mut call: impl FnMut() -> Result<(), E>) -> Result<f64, Failure> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let before = processor_time()?;
        for _ in 0..count {
            call().map_err(Into::into)?;
        }
        rounds.push((processor_time()? - before) / count as f64);
    }
    Ok(middle(rounds))
}

fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Processor time of this thread in nanoseconds.
fn processor_time() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().ok_or("no time in schedstat")?.parse::<u64>()? as f64)
}

//! How chains shrink without cleaning, and with it: a file is written over at random, or as OLTP writes, on 20 data drives in memory.
//!
//! `cargo run --release -p senesce-garden --example placement -- [random|oltp] [areas] [turnovers] [fill in thousandths] [cache in MiB]
//! [quota]`
//!
//! The quota is how many blocks cleaning may move, in hundredths of those written; 0, which is the default, is no cleaning.
//!
//! Tetris and allocation areas are 64 stripes deep, a consistency point is as large as an eighth of all areas, eight at most.
//! Blocks, chains and reads for parity are counted on the real structures, with their metadata. Memory: 6 MB for each area.
//!
//! With 256 areas, the same on every machine: random 1.71 blocks a write chain and 1.03 parity reads a block from the second turnover
//! on; OLTP 10.3 and 0.45 in the seventh. A model of the placement alone, larger, had said 1.73, and 11.7 and 0.65.

mod aggregate;

use std::{ops::Range, sync::Arc};

use aggregate::{BLOCK, DRIVES, Failure, STRIPES, VOLUME};
use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode};
use senesce_garden::{Cleaning, Counts, Gardening, RaidCounts};

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let is_oltp = arguments.next().is_some_and(|name| name == "oltp");
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse::<u64>());
    let (areas, turnovers, fill) = (number(64)?, number(7)?, number(765)?);
    let (cache, quota) = (number(1024)?, number(0)?);

    let raw = areas * STRIPES * DRIVES;
    let drive = |name, size| Arc::new(MemoryDevice::new(name, size)) as Arc<dyn BlockDevice>;
    let garden = aggregate::make(areas, &drive, Bytes(512 << 20), |_| cache << 20)?;
    let fs = garden.volume(VOLUME)?;
    let ino = fs.make_node(&Caller::default(), Ino::ROOT, b"file", &NewNode::file(0o600))?.ino;
    // Pointers of the file and of its container take one block of 170.
    let blocks = raw * fill / 1000 * 169 / 170;
    let full = vec![1; (64 * BLOCK) as usize];
    for first in (0..blocks).step_by(64) {
        let bytes = &full[..(64.min(blocks - first) * BLOCK) as usize];
        fs.write(&Caller::default(), ino, first * BLOCK, bytes)?;
    }
    garden.consistency_point()?;
    let report = garden.report();
    println!("{areas} areas, {blocks} blocks of a file, {} of {raw} in use", raw - report.free);
    print("written once", report.raid);
    if quota > 0 {
        let cleaning = Some(Cleaning { quota_percent: quota, ..Cleaning::default() });
        garden.set_gardening(Gardening { cleaning, ..Gardening::default() });
    }
    let mut oltp = Oltp::new(blocks);
    let mut rng = Rng::for_purpose(Seed(1), "placement");
    let mut before = report;
    for turnover in 1..=turnovers {
        let mut written = 0;
        while written < blocks {
            let (first, count) = if is_oltp { oltp.next() } else { (rng.below(blocks), 1) };
            fs.write(&Caller::default(), ino, first * BLOCK, &full[..(count * BLOCK) as usize])?;
            written += count;
        }
        let now = garden.report();
        print(&format!("turnover {turnover}"), now.raid.since(before.raid));
        if quota > 0 {
            print_cleaning(&before.counts, &now.counts);
        }
        before = now;
    }
    Ok(())
}

fn print(what: &str, counts: RaidCounts) {
    let writes = counts.data.writes;
    let reads = counts.data.parity_reads;
    println!(
        "{what}: write chain {:.2}, parity reads {:.3} a block in chains of {:.2}, {} blocks, {} full and {} partial stripes, {} blocks read",
        writes.mean().unwrap_or(0.0),
        reads.blocks as f64 / writes.blocks.max(1) as f64,
        reads.mean().unwrap_or(0.0),
        writes.blocks,
        counts.full_stripes,
        counts.partial_stripes,
        counts.data.reads.blocks,
    );
}

fn print_cleaning(before: &Counts, now: &Counts) {
    let moved = now.relocations - before.relocations;
    println!(
        "    {:.3} blocks moved for each written, {} areas cleaned, {} ready ones and {} others taken",
        moved as f64 / (now.volume_writes - before.volume_writes).max(1) as f64,
        now.areas_cleaned - before.areas_cleaned,
        now.ready_areas_taken - before.ready_areas_taken,
        now.other_areas_taken - before.other_areas_taken,
    );
}

/// The writes of an OLTP load in eight streams over three parts of the file (45, 45 and 10 %), one of them sequential.
struct Oltp {
    rng: Rng,
    blocks: u64,
    walks: [Walk; 3],
    /// The end of the sequential stream, and where it begins anew.
    sequential: Range<u64>,
}

impl Oltp {
    fn new(blocks: u64) -> Self {
        let part = |from: u64, to: u64| blocks * from / 10_000..blocks * to / 10_000;
        // 15 to 20 % and 70 to 75 % of the first part, 47 to 52 % of the second.
        let walks = [part(675, 900), part(3150, 3375), part(6615, 6840)].map(Walk::new);
        Self { rng: Rng::for_purpose(Seed(2), "OLTP"), blocks, walks, sequential: 0..0 }
    }

    /// The first block and the number of blocks of the next write.
    fn next(&mut self) -> (u64, u64) {
        loop {
            // Streams by their operations in thousands: two uniform ones, three walks, the sequential one.
            let stream = self.rng.weighted(&[35, 18, 281, 210, 70, 281]);
            let is_read = self.rng.chance([50, 30, 50, 50, 30, 0][stream], 100);
            let part = self.blocks * 45 / 100;
            match stream {
                0 | 1 if is_read => {}
                0 => return (self.rng.below(part), 1),
                1 => return (part + self.rng.below(part), 1),
                2..5 => {
                    let walk = &mut self.walks[stream - 2];
                    if let Some(block) = walk.step(&mut self.rng, is_read) {
                        return (block, 1);
                    }
                }
                _ => {
                    let count = [1, 2, 4, 8, 16][self.rng.weighted(&[10, 6, 5, 2, 2])];
                    let part = self.blocks * 9 / 10..self.blocks;
                    let len = part.end - part.start;
                    if self.sequential.start + count > self.sequential.end {
                        let start = part.start + self.rng.below(len * 7 / 10);
                        self.sequential = start..start + (len * 3 / 10).max(16);
                    }
                    let first = self.sequential.start;
                    self.sequential.start += count;
                    return (first, count);
                }
            }
        }
    }
}

/// A walk in leaves of eight blocks, mostly not far.
struct Walk {
    blocks: Range<u64>,
    leaf: u64,
    read: u64,
    again: Option<u64>,
    cursors: Vec<u8>,
}

impl Walk {
    fn new(blocks: Range<u64>) -> Self {
        let cursors = vec![0; ((blocks.end - blocks.start) / 8).max(1) as usize];
        Self { read: blocks.start, blocks, leaf: 0, again: None, cursors }
    }

    /// One operation; the block, if it writes.
    fn step(&mut self, rng: &mut Rng, is_read: bool) -> Option<u64> {
        let leaves = self.cursors.len() as u64;
        let mut near = 64;
        while near < leaves && rng.chance(44, 100) {
            near *= 2;
        }
        let first = self.leaf / near * near;
        self.leaf = first + rng.below(near.min(leaves - first));
        let start = self.blocks.start + self.leaf * 8;
        if is_read {
            let cursor = &mut self.cursors[self.leaf as usize];
            self.read = start + u64::from(*cursor);
            *cursor = (*cursor + 1) % 8;
            return None;
        }
        let block =
            self.again.take().unwrap_or_else(|| if rng.chance(1, 2) { start + rng.below(8) } else { self.read });
        self.again = rng.chance(15, 100).then_some(block);
        Some(block)
    }
}

//! The cost of reading a randomly written file in order, and the effect of rewriting it: the
//! structural part of E6 and E7, on 20 data drives in memory.
//!
//! `cargo run --release -p senesce-garden --example reading -- ARGUMENTS`, where the arguments are
//! `[areas] [fill in thousandths] [turnovers] [csc|off] [read ahead]`.
//!
//! The file is written once in order. Then each turnover overwrites all its blocks in a new random
//! order, with continuous cleaning and its defaults, or without cleaning. Then the file is read in
//! order, 64 KiB per call, with almost nothing in memory: unchanged, with write after read until a
//! pass rewrites nothing, and after defragmentation. There is a consistency point after each 256th
//! of all blocks written, and after each 16 MiB read.

mod aggregate;

use std::sync::Arc;

use aggregate::{BLOCK, DRIVES, Failure, STRIPES, VOLUME};
use senesce_block::{BlockDevice, CompactDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode};
use senesce_garden::{
    AggregateReport, Cleaning, DefragFiles, FixUp, Garden, Gardening, Placing, VolumeFs, WriteAfterRead,
};

/// Blocks of one read.
const CALL: u64 = 16;
/// Blocks that are read between consistency points.
const POINT: u64 = 4096;
const MOST_PASSES: u32 = 8;

struct Rig {
    garden: Garden,
    fs: VolumeFs,
    file: Ino,
    blocks: u64,
    /// The number of writes of each block.
    written: Vec<u32>,
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| arguments.get(at).map_or(Ok(default), |text| text.parse::<u64>());
    let (areas, fill, turnovers) = (number(0, 128)?, number(1, 765)?, number(2, 2)?);
    let cleaning = arguments.get(3).is_none_or(|word| word == "csc").then(Cleaning::default);
    let mut rig = make(areas, fill)?;
    rig.garden.set_read_ahead(number(4, 256)?);
    let base = Gardening { cleaning, fix_up: FixUp::OnRead, ..Gardening::default() };
    rig.garden.set_gardening(base);
    let mut rng = Rng::for_purpose(Seed(1), "reading");
    let mut order: Vec<u64> = (0..rig.blocks).collect();
    rig.write(&order)?;
    println!("{areas} areas, {} blocks of a file, {} of {} in use", rig.blocks, rig.used(), areas * STRIPES * DRIVES);
    let fresh = rig.pass("fresh")?;
    for _ in 0..turnovers {
        rng.shuffle(&mut order);
        rig.write(&order)?;
    }
    // Removes the redirects of the last turnover, which are not measured.
    rig.fix_up()?;
    let before = rig.pass("written at random")?;
    rig.garden.set_gardening(Gardening { write_after_read: Some(WriteAfterRead::default()), ..base });
    let mut last = before;
    for number in 1..=MOST_PASSES {
        let rewritten = rig.garden.report().counts.rewritten_after_read;
        last = rig.pass(&format!("write after read, pass {number}"))?;
        if rig.garden.report().counts.rewritten_after_read == rewritten {
            break;
        }
    }
    rig.garden.set_gardening(base);
    for run in ["defragmented", "once more"] {
        let done = rig.garden.defragment(VOLUME, DefragFiles::All, Placing::FakeDirty)?;
        println!("  {run}: {} blocks moved, {} requests, {} foreseen", done.moved, done.requests, done.predicted);
    }
    let after = rig.pass("defragmented")?;
    println!(
        "requests for a GiB, before over after: {:.2} by write after read, {:.2} by defragmenting",
        before / last,
        before / after
    );
    println!("and over those of the fresh file: {:.2}, {:.2}", last / fresh, after / fresh);
    Ok(())
}

impl Rig {
    /// Writes blocks in an order.
    fn write(&mut self, order: &[u64]) -> Result<(), Failure> {
        // A 256th of all blocks is the ratio of a point to eight areas of 2,048. One consistency
        // point writes its blocks sorted, in any order of writes.
        let point = self.garden.report().blocks / 256;
        for (number, &block) in (1..).zip(order) {
            if number % point == 0 {
                self.garden.consistency_point()?;
            }
            self.written[block as usize] += 1;
            let data = word(block, self.written[block as usize]).repeat(BLOCK as usize / 8);
            self.fs.write(&Caller::default(), self.file, block * BLOCK, &data)?;
        }
        Ok(self.garden.consistency_point()?)
    }

    fn fix_up(&self) -> Result<(), Failure> {
        while !self.garden.fix_up_step(VOLUME, u64::MAX)?.ended {}
        Ok(self.garden.consistency_point()?)
    }

    fn used(&self) -> u64 {
        let report = self.garden.report();
        report.blocks - report.free
    }

    /// Reads the file in order, and returns the number of requests per GiB.
    fn pass(&self, what: &str) -> Result<f64, Failure> {
        let mut buffer = vec![0; (CALL * BLOCK) as usize];
        let before = self.garden.report();
        for first in (0..self.blocks).step_by(CALL as usize) {
            let len = (CALL.min(self.blocks - first) * BLOCK) as usize;
            self.fs.read(self.file, first * BLOCK, &mut buffer[..len])?;
            for (block, data) in (first..).zip(buffer[..len].chunks_exact(BLOCK as usize)) {
                if data[..8] != word(block, self.written[block as usize]) {
                    return Err(format!("block {block} holds something else").into());
                }
            }
            if first % POINT == 0 {
                self.garden.consistency_point()?;
            }
        }
        // The counts include reads of maps by cleaning and placement. They are few.
        let now = self.garden.report();
        self.garden.consistency_point()?;
        Ok(self.tell(what, &before, &now))
    }

    fn tell(&self, what: &str, before: &AggregateReport, now: &AggregateReport) -> f64 {
        let (raid, counts) = (now.raid.since(before.raid), (&before.counts, &now.counts));
        let reads = raid.data.reads;
        let per_gib = reads.requests as f64 * (1 << 30) as f64 / (self.blocks * BLOCK) as f64;
        println!(
            "{what}: read chain {:.2}, {per_gib:.0} requests a GiB; {} redirects; {} blocks rewritten, {} put off, {} moved by cleaning; write chain {:.2}",
            reads.mean().unwrap_or(0.0),
            counts.1.redirects - counts.0.redirects,
            counts.1.rewritten_after_read - counts.0.rewritten_after_read,
            counts.1.rewrites_put_off - counts.0.rewrites_put_off,
            counts.1.relocations - counts.0.relocations,
            raid.data.writes.mean().unwrap_or(0.0),
        );
        per_gib
    }
}

/// The word that a block repeats.
fn word(block: u64, written: u32) -> [u8; 8] {
    ((block << 32 | u64::from(written)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).to_le_bytes()
}

fn make(areas: u64, fill: u64) -> Result<Rig, Failure> {
    let raw = areas * STRIPES * DRIVES;
    let drive = |name, size| Arc::new(CompactDevice::new(name, size)) as Arc<dyn BlockDevice>;
    // Three hundredths of the blocks besides the dirty ones.
    let garden = aggregate::make(areas, &drive, Bytes(256 << 20), |dirty| dirty + raw * 3 / 100 * BLOCK)?;
    let fs = garden.volume(VOLUME)?;
    let file = fs.make_node(&Caller::default(), Ino::ROOT, b"file", &NewNode::file(0o600))?.ino;
    let blocks = raw * fill / 1000 * 169 / 170;
    Ok(Rig { garden, fs, file, blocks, written: vec![0; blocks as usize] })
}

//! What compression and compaction save, what writing over at random leaves of it, and what recompaction brings back: E9 and E10 as far as
//! they are structure, on 20 data drives in memory.
//!
//! `cargo run --release -p senesce-garden --example packing -- [percent|mixed|rows|ends] [MiB] [KiB of a group: 8, 16, 32 or 0] [pages a point] [lowest saved %]`
//!
//! A file of pages of 8 KiB is written once in order. Then pages drawn at random are written over with contents of the same kind, until no more than the
//! given part is saved, a turnover changes it by less than a fifth of a point, or eight turnovers were written. There is a consistency point after as
//! many pages as are given. Then chunks are written together, in two passes with the usual threshold, and one that takes every block of which
//! a chunk is gone. All is read and compared, and checked at the end.
//!
//! Kinds of contents, the same for all experiments:
//! - a number, such as 80: of each 512 bytes that many percent are zeros and the others random, as load generators make compressible buffers;
//! - `mixed`: the same, with a number from 60 to 100 drawn for each page;
//! - `ends`: of each 4 KiB a part drawn up to 40 percent is random, and zeros follow; for compaction alone, with groups of 0;
//! - `rows`: text in rows of 128 bytes, each with its number, a date, one of 16 states, one of 1,000 names, eight random digits, and blanks.

use std::{io::Write, sync::Arc};

use senesce_block::{BlockDevice, CompactDevice, MemoryDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode};
use senesce_garden::{
    FormatOptions, Garden, Limits, Packing, RECOMPACTED_BELOW_PERCENT, VolumeFs, VolumeOptions, check,
};

const DRIVES: u64 = 20;
const STRIPES: u64 = 64;
const SLOT: u64 = 4160;
const PAGE: usize = 8192;
/// Pages that are written from one consistency point to the next, if nothing is said.
const POINT: u64 = 2048;
const MOST_TURNOVERS: u64 = 8;
/// A turnover that changes what is saved by fewer points is the last one.
const REST: f64 = 0.2;
const VOLUME: &[u8] = b"volume";

type Failure = Box<dyn std::error::Error>;

#[derive(Clone, Copy)]
enum Kind {
    Zeros(usize),
    Mixed,
    Ends,
    Rows,
}

struct Rig {
    garden: Garden,
    fs: VolumeFs,
    file: Ino,
    drives: Vec<Arc<dyn BlockDevice>>,
    log: Arc<dyn BlockDevice>,
    kind: Kind,
    /// How often each page was written.
    written: Vec<u32>,
    /// Pages from one consistency point to the next, and how many were written since the last one.
    point: u64,
    since: u64,
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| arguments.get(at).map_or(Ok(default), |text| text.parse::<u64>());
    let kind = match arguments.first().map(String::as_str) {
        None => Kind::Zeros(80),
        Some("mixed") => Kind::Mixed,
        Some("ends") => Kind::Ends,
        Some("rows") => Kind::Rows,
        Some(percent) => Kind::Zeros(percent.parse()?),
    };
    let (mib, group, point, lowest) = (number(1, 256)?, number(2, 8)?, number(3, POINT)?, number(4, 27)?);
    let mut rig = make(kind, mib, (group / 4) as u8, point)?;
    let pages = rig.written.len() as u64;
    println!("{pages} pages of 8 KiB, groups of {group} KiB, {} blocks of data drives", rig.garden.report().blocks);
    println!(
        "{:<28} {:>8} {:>8} {:>7} {:>8} {:>9} {:>7}",
        "", "blocks", "taken", "saved", "chunks", "compacted", "a block"
    );
    for page in 0..pages {
        rig.write(page)?;
    }
    let mut saved = rig.tell("written in order")?;
    let mut rng = Rng::for_purpose(Seed(1), "packing");
    for turnover in 1..=MOST_TURNOVERS {
        let before = saved;
        for quarter in 1..=4 {
            if saved > lowest as f64 {
                for _ in 0..pages / 4 {
                    rig.write(rng.below(pages))?;
                }
                saved =
                    rig.tell(&format!("written over {}.{:02} times", turnover - 1 + quarter / 4, quarter % 4 * 25))?;
            }
        }
        if saved <= lowest as f64 || before - saved < REST {
            break;
        }
    }
    for (pass, below) in [(1, RECOMPACTED_BELOW_PERCENT), (2, RECOMPACTED_BELOW_PERCENT), (3, 100)] {
        let before = rig.garden.report().counts;
        let step = rig.garden.recompact_step(VOLUME, u64::MAX, below)?;
        rig.garden.consistency_point()?;
        let after = rig.garden.report().counts;
        rig.tell(&format!("recompacted, pass {pass} below {below} %"))?;
        println!(
            "    {} compacted blocks read, {} given up, {} chunks moved into {} blocks",
            step.read,
            step.rewritten,
            step.chunks,
            after.compacted_blocks_written - before.compacted_blocks_written
        );
    }
    rig.compare()?;
    drop(rig.garden);
    let report = check(&rig.drives, &rig.log)?;
    println!("all pages hold what was written; {} findings, {} more", report.findings.len(), report.more_findings);
    Ok(())
}

impl Rig {
    fn write(&mut self, page: u64) -> Result<(), Failure> {
        let count = &mut self.written[page as usize];
        *count += 1;
        let bytes = contents(self.kind, page, *count);
        self.fs.write(&Caller::default(), self.file, page * PAGE as u64, &bytes)?;
        self.since += 1;
        if self.since == self.point {
            self.garden.consistency_point()?;
            self.since = 0;
        }
        Ok(())
    }

    fn tell(&self, what: &str) -> Result<f64, Failure> {
        let found = self.garden.survey_packing(VOLUME)?;
        let saved = found.saved_percent().unwrap_or(0.0);
        println!(
            "{what:<28} {:>8} {:>8} {saved:>6.1}% {:>8} {:>9} {:>7.2}",
            found.blocks,
            found.taken(),
            found.chunks,
            found.compacted,
            found.chunks_a_block().unwrap_or(0.0)
        );
        Ok(saved)
    }

    fn compare(&self) -> Result<(), Failure> {
        let mut found = vec![0; PAGE];
        for (page, &count) in (0..).zip(&self.written) {
            self.fs.read(self.file, page * PAGE as u64, &mut found)?;
            if found != contents(self.kind, page, count) {
                return Err(format!("page {page} does not hold what was written").into());
            }
        }
        Ok(())
    }
}

fn contents(kind: Kind, page: u64, written: u32) -> Vec<u8> {
    let mut rng = Rng::for_purpose(Seed(page << 24 | u64::from(written)), "a page");
    let mut bytes = vec![0; PAGE];
    let zeros = match kind {
        Kind::Zeros(percent) => percent,
        Kind::Mixed => 60 + rng.below(41) as usize,
        Kind::Ends => {
            for block in bytes.chunks_exact_mut(PAGE / 2) {
                let random = rng.below(PAGE as u64 / 5) as usize;
                rng.fill(&mut block[..random]);
            }
            return bytes;
        }
        Kind::Rows => {
            for (number, row) in (0..).zip(bytes.chunks_exact_mut(128)) {
                row.fill(b' ');
                let at = page * 64 + number;
                let (day, second) = (1 + at / 86_400 % 28, at % 86_400);
                let (state, name, digits) = (rng.below(16), rng.below(1000), rng.below(100_000_000));
                let mut rest: &mut [u8] = row;
                // A row is longer than all its columns.
                let _ = write!(
                    rest,
                    "{at:012} 2026-11-{day:02} {:02}:{:02}:{:02} state-{state:02} name-{name:04} {digits:08}",
                    second / 3600,
                    second / 60 % 60,
                    second % 60
                );
            }
            return bytes;
        }
    };
    for piece in bytes.chunks_exact_mut(512) {
        rng.fill(&mut piece[..512 * (100 - zeros) / 100]);
    }
    bytes
}

fn make(kind: Kind, mib: u64, group_blocks: u8, point: u64) -> Result<Rig, Failure> {
    let pages = mib << 20 >> 13;
    // As much as the file takes if nothing is saved, and a fifth more.
    let areas = (pages * 2 * 6 / 5).div_ceil(STRIPES * DRIVES) + 8;
    let drive = |number| CompactDevice::new(format!("drive {number}"), Bytes((3 + areas * STRIPES) * SLOT));
    let drives: Vec<Arc<dyn BlockDevice>> =
        (0..=DRIVES).map(|number| Arc::new(drive(number)) as Arc<dyn BlockDevice>).collect();
    let log: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("log", Bytes(128 << 20)));
    let options = FormatOptions {
        uuid: [1; 16],
        groups: vec![(DRIVES as u16, true)],
        media: vec![],
        aa_stripes: STRIPES as u32,
        tetris_stripes: STRIPES as u32,
        zeroed: true,
    };
    Garden::format(&options, drives.clone(), log.clone())?;
    let limits = Limits { cache_bytes: 64 << 20, dirty_bytes: 2 * POINT * PAGE as u64 };
    let garden = Garden::open(&drives, log.clone(), limits)?;
    let blocks = areas * STRIPES * DRIVES;
    garden.create_volume(VOLUME, &VolumeOptions { blocks, inodes: 1024, seed: 1 })?;
    garden.set_packing(VOLUME, Packing { group_blocks, compaction: true })?;
    let fs = garden.volume(VOLUME)?;
    let file = fs.make_node(&Caller::default(), Ino::ROOT, b"file", &NewNode::file(0o600))?.ino;
    Ok(Rig { garden, fs, file, drives, log, kind, written: vec![0; pages as usize], point, since: 0 })
}

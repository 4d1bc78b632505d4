//! An aggregate in memory with a file of compressible pages, with compression and compaction on.

mod contents;

use std::sync::Arc;

use senesce_block::{BlockDevice, CompactDevice, MemoryDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode};
use senesce_garden::{
    AggregateReport, FixUpStep, Garden, Limits, Packing, PackingSurvey, RecompactStep, VolumeFs, VolumeOptions, check,
};

use crate::{Error, Fact, Point, Result, Scale, Setup, setup::BLOCK, tell_count};

pub use contents::{Kind, PAGE};

const VOLUME: &[u8] = b"volume";
/// Bytes of the file for each area of the scale.
const BYTES_AN_AREA: u64 = 64 * PAGE as u64;
/// Parts of a turnover. Overwriting can stop after each of them.
const PARTS: u64 = 32;
/// Consistency points while the file is written once.
const POINTS: u64 = 8;

/// An open aggregate with such a file.
pub struct PackedRig {
    setup: Setup,
    garden: Garden,
    fs: VolumeFs,
    file: Ino,
    drives: Vec<Arc<dyn BlockDevice>>,
    log: Arc<dyn BlockDevice>,
    kind: Kind,
    /// The number of writes of each page.
    written: Vec<u32>,
    /// Pages written since the last consistency point.
    since: u64,
}

impl PackedRig {
    /// Overwriting stops at these savings, in percent: the published value before recompaction.
    pub const PUBLISHED_REST: f64 = 27.0;
    /// The most turnovers of overwriting.
    pub const MOST_TURNOVERS: u64 = 8;
    /// Overwriting stops if a turnover changes the savings by fewer points.
    pub const REST_POINTS: f64 = 0.2;

    /// Pages of the file at a scale: 128 MiB at an eighth.
    pub fn pages_of(kind: Kind, scale: Scale) -> u64 {
        scale.areas * BYTES_AN_AREA / kind.page_bytes() as u64
    }

    /// Makes the aggregate and writes a file of `pages` pages once, in order.
    pub fn new(kind: Kind, pages: u64) -> Result<Self> {
        Self::on(kind, pages, &|name, size| Arc::new(CompactDevice::new(name, size)))
    }

    /// Does the same on drives that `make` returns by name and size. They must hold zeros.
    pub fn on(kind: Kind, pages: u64, make: &dyn Fn(String, Bytes) -> Arc<dyn BlockDevice>) -> Result<Self> {
        let setup = Self::setup_for(kind, pages);
        let drives = setup.drives(make);
        let point = pages / POINTS * kind.page_bytes() as u64;
        let log: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("log", Bytes(2 * ((16 << 20) + 3 * point))));
        Garden::format(&setup.format_options(), drives.clone(), log.clone())?;
        let limits = Limits { cache_bytes: (16 << 20) + 3 * point, dirty_bytes: 2 * point.max(1 << 20) };
        let garden = Garden::open(&drives, log.clone(), limits)?;
        garden.create_volume(VOLUME, &VolumeOptions { blocks: setup.blocks(), inodes: 1024, seed: 1 })?;
        garden.set_packing(VOLUME, Packing { group_blocks: kind.group_blocks(), compaction: true })?;
        let fs = garden.volume(VOLUME)?;
        let file = fs.make_node(&Caller::default(), Ino::ROOT, b"file", &NewNode::file(0o600))?.ino;
        let mut rig = Self { setup, garden, fs, file, drives, log, kind, written: vec![0; pages as usize], since: 0 };
        (0..pages).try_for_each(|page| rig.write(page))?;
        Ok(rig)
    }

    /// Reopens the aggregate with a cache of the same relative size as in other experiments.
    pub fn reopen(&mut self) -> Result<()> {
        self.garden.consistency_point()?;
        let waiting = 2 * (self.pages() / POINTS * self.kind.page_bytes() as u64).max(1 << 20);
        let cache_bytes = self.setup.blocks() * self.setup.cache_percent / 100 * BLOCK + waiting;
        self.garden = Garden::open(&self.drives, self.log.clone(), Limits { cache_bytes, dirty_bytes: waiting })?;
        self.fs = self.garden.volume(VOLUME)?;
        self.since = 0;
        Ok(())
    }

    /// The aggregate of the file.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The number of the file's inode.
    pub fn file(&self) -> u64 {
        self.file.0
    }

    /// The counters of the garden.
    pub fn report(&self) -> AggregateReport {
        self.garden.report()
    }

    /// The counts between two reports, without clients.
    pub fn count(before: &AggregateReport, now: &AggregateReport) -> Point {
        let mut point = Point::default();
        point.note(now, before);
        point
    }

    /// The aggregate for a file of `pages` pages: its size without savings, plus a fifth and eight
    /// areas.
    fn setup_for(kind: Kind, pages: u64) -> Setup {
        let mut setup = Setup { areas: 1, ..Setup::published(Scale::FULL) };
        setup.areas = (pages * (kind.page_bytes() as u64 / BLOCK) * 6 / 5).div_ceil(setup.blocks()) + 8;
        setup
    }

    /// The settings, in words.
    pub fn facts(kind: Kind, pages: u64) -> Vec<Fact> {
        let Setup { data_drives, areas, area_stripes, seed, .. } = Self::setup_for(kind, pages);
        let bytes = kind.page_bytes();
        vec![
            Fact::new("drives", format!("{data_drives} of data and 1 of parity")),
            Fact::new("areas", format!("{areas} of {area_stripes} stripes, as deep as a tetris")),
            Fact::new("file", format!("{} pages of {bytes} bytes, written in order", tell_count(pages))),
            Fact::new(
                "consistency point",
                format!("after {} pages, {POINTS} for as many as there are", (pages / POINTS).max(1)),
            ),
            Fact::new("packing", format!("groups of {} blocks compressed, chunks compacted", kind.group_blocks())),
            Fact::new("gardening", "none but recompaction"),
            Fact::new("seed", seed.to_string()),
        ]
    }

    /// Pages of the file.
    pub fn pages(&self) -> u64 {
        self.written.len() as u64
    }

    /// Writes a page with new contents.
    pub fn write(&mut self, page: u64) -> Result<()> {
        let count = &mut self.written[page as usize];
        *count += 1;
        let bytes = self.kind.make(page, *count);
        self.fs.write(&Caller::default(), self.file, page * self.kind.page_bytes() as u64, &bytes)?;
        self.since += 1;
        if self.since >= (self.pages() / POINTS).max(1) {
            self.garden.consistency_point()?;
            self.since = 0;
        }
        Ok(())
    }

    /// The current savings, without metadata.
    pub fn survey(&self) -> Result<PackingSurvey> {
        Ok(self.garden.survey_packing(VOLUME)?)
    }

    /// Overwrites random pages until the savings are level or reach the published value.
    pub fn overwrite(&mut self, scale: Scale) -> Result<()> {
        let saved = |rig: &Self| Ok::<_, Error>(rig.survey()?.saved_percent().unwrap_or(f64::NAN));
        let mut rng = Rng::for_purpose(Seed(1), "packing");
        let mut before = saved(self)?;
        for part in 1..=(PARTS * Self::MOST_TURNOVERS * scale.turnover_percent / 100).max(1) {
            for _ in 0..self.pages() / PARTS {
                self.write(rng.below(self.pages()))?;
            }
            let now = saved(self)?;
            if now <= Self::PUBLISHED_REST || part % PARTS == 0 && before - now < Self::REST_POINTS {
                break;
            }
            if part % PARTS == 0 {
                before = now;
            }
        }
        Ok(())
    }

    /// Reads a page. Errors: `WrongData` if it does not hold the last write to it.
    pub fn read(&self, page: u64) -> Result<()> {
        let mut found = vec![0; self.kind.page_bytes()];
        self.fs.read(self.file, page * self.kind.page_bytes() as u64, &mut found)?;
        match differ(&found, &self.kind.make(page, self.written[page as usize])) {
            Some((found, wanted)) => {
                let block = page * (self.kind.page_bytes() as u64 / BLOCK);
                Err(Error::WrongData { block, found, wanted })
            }
            None => Ok(()),
        }
    }

    /// Moves the chunks of blocks with fewer than `below_percent` percent left, among the next
    /// `most` VVBNs.
    pub fn recompact_step(&self, most: u64, below_percent: u64) -> Result<RecompactStep> {
        Ok(self.garden.recompact_step(VOLUME, most, below_percent)?)
    }

    /// Corrects stale pointers among the next `most` VVBNs.
    pub fn fix_up_step(&self, most: u64) -> Result<FixUpStep> {
        Ok(self.garden.fix_up_step(VOLUME, most)?)
    }

    /// Makes a consistency point.
    pub fn consistency_point(&self) -> Result<()> {
        Ok(self.garden.consistency_point()?)
    }

    /// Recompacts all blocks with fewer than `below_percent` percent of their chunks left.
    pub fn recompact(&self, below_percent: u64) -> Result<()> {
        self.recompact_step(u64::MAX, below_percent)?;
        self.consistency_point()
    }

    /// Compares all pages with the last writes to them, and checks the aggregate.
    pub fn verify(self) -> Result<()> {
        (0..self.pages()).try_for_each(|page| self.read(page))?;
        drop((self.fs, self.garden));
        let report = check(&self.drives, &self.log)?;
        match report.findings.first() {
            None => Ok(()),
            Some(finding) => Err(Error::Check { finding: finding.to_string() }),
        }
    }
}

/// The first pair of different words.
fn differ(found: &[u8], wanted: &[u8]) -> Option<(u64, u64)> {
    let words = found.as_chunks::<8>().0.iter().zip(wanted.as_chunks::<8>().0);
    let mut words = words.map(|(found, wanted)| (u64::from_le_bytes(*found), u64::from_le_bytes(*wanted)));
    words.find(|(found, wanted)| found != wanted)
}

//! An aggregate in memory, and a file in it whose pages compress, with compression and compaction on.

mod contents;

use std::sync::Arc;

use senesce_block::{BlockDevice, CompactDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode};
use senesce_garden::{Garden, Limits, Packing, PackingSurvey, VolumeFs, VolumeOptions, check};

use crate::{Error, Result, Scale, Setup};

pub use contents::{Kind, PAGE};

const VOLUME: &[u8] = b"volume";
/// There are as many consistency points while the file is written once.
const POINTS: u64 = 8;

/// Such a file.
pub struct PackedRig {
    garden: Garden,
    fs: VolumeFs,
    file: Ino,
    drives: Vec<Arc<dyn BlockDevice>>,
    log: Arc<dyn BlockDevice>,
    kind: Kind,
    /// How often each page was written.
    written: Vec<u32>,
    /// Pages that were written since the last consistency point.
    since: u64,
}

impl PackedRig {
    /// Makes it and writes the file once, in order: so many pages.
    pub fn new(kind: Kind, pages: u64) -> Result<Self> {
        // As much as the file takes if nothing is saved, and a fifth more.
        let mut setup = Setup { areas: 1, ..Setup::published(Scale::FULL) };
        setup.areas = (pages * 2 * 6 / 5).div_ceil(setup.blocks()) + 8;
        let drives = setup.drives(&|name, size| Arc::new(CompactDevice::new(name, size)));
        let point = pages / POINTS * PAGE as u64;
        let log: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("log", Bytes(2 * ((16 << 20) + 3 * point))));
        Garden::format(&setup.format_options(), drives.clone(), log.clone())?;
        let limits = Limits { cache_bytes: (16 << 20) + 3 * point, dirty_bytes: 2 * point.max(1 << 20) };
        let garden = Garden::open(&drives, log.clone(), limits)?;
        garden.create_volume(VOLUME, &VolumeOptions { blocks: setup.blocks(), inodes: 1024, seed: 1 })?;
        garden.set_packing(VOLUME, Packing { group_blocks: kind.group_blocks(), compaction: true })?;
        let fs = garden.volume(VOLUME)?;
        let file = fs.make_node(&Caller::default(), Ino::ROOT, b"file", &NewNode::file(0o600))?.ino;
        let mut rig = Self { garden, fs, file, drives, log, kind, written: vec![0; pages as usize], since: 0 };
        (0..pages).try_for_each(|page| rig.write(page))?;
        Ok(rig)
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
        self.fs.write(&Caller::default(), self.file, page * PAGE as u64, &bytes)?;
        self.since += 1;
        if self.since >= (self.pages() / POINTS).max(1) {
            self.garden.consistency_point()?;
            self.since = 0;
        }
        Ok(())
    }

    /// What is saved now, without metadata.
    pub fn survey(&self) -> Result<PackingSurvey> {
        Ok(self.garden.survey_packing(VOLUME)?)
    }

    /// Writes chunks together anew, of blocks of which less than so many percent are left.
    pub fn recompact(&self, below_percent: u64) -> Result<()> {
        self.garden.recompact_step(VOLUME, u64::MAX, below_percent)?;
        Ok(self.garden.consistency_point()?)
    }

    /// Compares all pages with what was written to them last, and checks the aggregate.
    pub fn verify(self) -> Result<()> {
        let mut found = vec![0; PAGE];
        for (page, &count) in (0..).zip(&self.written) {
            found.fill(0);
            self.fs.read(self.file, page * PAGE as u64, &mut found)?;
            let wanted = self.kind.make(page, count);
            if let Some((found, wanted)) = differ(&found, &wanted) {
                return Err(Error::WrongData { block: 2 * page, found, wanted });
            }
        }
        drop((self.fs, self.garden));
        let report = check(&self.drives, &self.log)?;
        match report.findings.first() {
            None => Ok(()),
            Some(finding) => Err(Error::Check { finding: finding.to_string() }),
        }
    }
}

/// The first words that are not the same.
fn differ(found: &[u8], wanted: &[u8]) -> Option<(u64, u64)> {
    let words = found.as_chunks::<8>().0.iter().zip(wanted.as_chunks::<8>().0);
    let mut words = words.map(|(found, wanted)| (u64::from_le_bytes(*found), u64::from_le_bytes(*wanted)));
    words.find(|(found, wanted)| found != wanted)
}

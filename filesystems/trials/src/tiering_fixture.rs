//! An aggregate in memory with an object store below it, and the payments of its owner.

use std::sync::Arc;

use senesce_block::{BlockDevice, CompactDevice, MemoryDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode};
use senesce_garden::{Accepted, Garden, Limits, Tiering, VolumeFs, VolumeOptions};
use senesce_objects::{FaultObjects, MemoryObjects, ObjectCounts, PriceList};

use crate::{Error, Fact, Result, Scale, Setup, setup::BLOCK};

/// Blocks of a full object.
pub const OBJECT_BLOCKS: u64 = 1004;
/// Drives that hold data, and their stripes for each object of the file: its size and 60 % more.
const DRIVES: u16 = 4;
const STRIPES_AN_OBJECT: u64 = 410;
const POINTS_A_DAY: u16 = 4;

/// A file whose blocks are in objects after a day without a write. Twins of the same size get the
/// same writes.
pub struct TieringFixture {
    garden: Garden,
    fs: VolumeFs,
    file: Ino,
    store: Arc<FaultObjects<MemoryObjects>>,
    rng: Rng,
    blocks: u64,
    counted: ObjectCounts,
    paid: f64,
}

impl TieringFixture {
    /// Makes the aggregate, and a file of `objects` objects.
    pub fn new(objects: u64) -> Result<Self> {
        let setup = Self::setup(objects);
        let drives = setup.drives(&|name, size| Arc::new(CompactDevice::new(name, size)));
        let log: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("log", Bytes(64 << 20)));
        Garden::format(&setup.format_options(), drives.clone(), log.clone())?;
        let store = Arc::new(FaultObjects::new(MemoryObjects::default()));
        let limits = Limits { cache_bytes: 4 << 20, ..Limits::default() };
        let garden = Garden::open_with(&drives, log, limits, Some(store.clone()), Accepted::NOTHING)?;
        garden.create_volume(b"main", &VolumeOptions { blocks: setup.blocks(), inodes: 64, seed: 1 })?;
        let fs = garden.volume(b"main")?;
        let file = fs.make_node(&Caller::default(), Ino::ROOT, b"file", &NewNode::file(0o600))?.ino;
        let (rng, counted) = (Rng::for_purpose(Seed(1), "ledger"), ObjectCounts::default());
        let blocks = objects * OBJECT_BLOCKS;
        let mut twin = Self { garden, fs, file, store, rng, blocks, counted, paid: 0.0 };
        (0..blocks).try_for_each(|block| twin.write(block))?;
        twin.garden.tier(Tiering { age: 0, with_cached: true })?;
        // The requests of the first upload are the same for both twins, and are not counted.
        twin.counted = twin.store.counts();
        Ok(twin)
    }

    fn setup(objects: u64) -> Setup {
        let published = Setup::published(Scale::FULL);
        let areas = (objects * STRIPES_AN_OBJECT).div_ceil(u64::from(published.area_stripes));
        Setup { data_drives: DRIVES, areas, ..published }
    }

    /// The settings, in words.
    pub fn facts(objects: u64) -> Vec<Fact> {
        let Setup { data_drives, areas, area_stripes, seed, .. } = Self::setup(objects);
        vec![
            Fact::new("drives", format!("{data_drives} of data and 1 of parity, before objects in memory")),
            Fact::new("areas", format!("{areas} of {area_stripes} stripes, as deep as a tetris")),
            Fact::new(
                "file",
                format!("{objects} objects of {OBJECT_BLOCKS} blocks; what is a day old goes to objects"),
            ),
            Fact::new("load", "a tenth of a fifth of the file and a two-hundredth of the rest overwritten a day"),
            Fact::new("consistency point", format!("{POINTS_A_DAY} a day")),
            Fact::new("gardening", "objects written anew where a month of storage pays for it"),
            Fact::new("seed", seed.to_string()),
        ]
    }

    /// The aggregate.
    pub fn garden(&self) -> &Garden {
        &self.garden
    }

    /// The payments so far, in dollars.
    pub fn paid(&self) -> f64 {
        self.paid
    }

    fn write(&mut self, block: u64) -> Result<()> {
        let word = self.rng.below(u64::MAX).to_le_bytes();
        let data = word.repeat(BLOCK as usize / word.len());
        self.fs.write(&Caller::default(), self.file, block * BLOCK, &data)?;
        Ok(())
    }

    /// Writes the blocks of a day: a tenth of the first fifth of the file, and a two-hundredth of
    /// the rest. Then moves blocks without a write since yesterday to objects.
    pub fn live_a_day(&mut self) -> Result<()> {
        let (hot, points) = (self.blocks / 5, u64::from(POINTS_A_DAY));
        for _ in 0..points {
            for _ in 0..hot / 10 / points {
                let block = self.rng.below(hot);
                self.write(block)?;
            }
            for _ in 0..(self.blocks - hot) / 200 / points {
                let block = hot + self.rng.below(self.blocks - hot);
                self.write(block)?;
            }
            self.garden.consistency_point()?;
        }
        self.garden.tier(Tiering { age: POINTS_A_DAY, with_cached: true })?;
        Ok(())
    }

    /// Deletes unneeded objects, and pays for the day: a thirtieth of a month for all bytes, and
    /// the requests.
    pub fn end_day(&mut self, prices: &PriceList) -> Result<()> {
        self.garden.consistency_point()?;
        self.garden.delete_objects()?;
        let now = self.store.counts();
        self.paid += prices.storage(self.store.inner().bytes(), 1.0 / 30.0);
        self.paid += prices.requests(now.puts - self.counted.puts, now.gets - self.counted.gets);
        self.counted = now;
        Ok(())
    }

    /// Compares the contents of both files. Errors: `WrongData`.
    pub fn compare(&self, twin: &Self) -> Result<()> {
        let (mut own, mut other) = (vec![0; BLOCK as usize], vec![0; BLOCK as usize]);
        for block in 0..self.blocks {
            self.fs.read(self.file, block * BLOCK, &mut own)?;
            twin.fs.read(twin.file, block * BLOCK, &mut other)?;
            let words = |bytes: &[u8]| bytes.as_chunks::<8>().0.first().map_or(0, |word| u64::from_le_bytes(*word));
            if own != other {
                return Err(Error::WrongData { block, found: words(&own), wanted: words(&other) });
            }
        }
        Ok(())
    }
}

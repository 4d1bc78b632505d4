//! Object defragmentation on a price list: what it costs and saves, day by day, beside a twin that does without.
//!
//! `cargo run --release -p senesce-garden --example ledger -- [s3|azure] [seed]`
//!
//! A file of 40 objects is written over: a fifth of it by a tenth each day, the rest by a two-hundredth. What was not written for a day goes to
//! objects. In one of two aggregates objects are written anew each day where that pays within a month, for 30 days; both go on for 30 more.
//! *Booked*: what a month of the space that each decision saves is worth, less what it costs. *Cash*: what the twin paid until that day,
//! less what was paid here, with all bytes that are kept and all requests, counted at the store.

use std::{error::Error, sync::Arc};

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode};
use senesce_garden::{FormatOptions, Garden, Limits, Tiering, VolumeFs, VolumeOptions};
use senesce_objects::{AZURE_HOT, FaultObjects, MemoryObjects, ObjectCounts, PriceList, S3_STANDARD};

type Failure = Box<dyn Error>;

const BLOCK: u64 = 4096;
const SLOT: u64 = 4160;
const STRIPES: u64 = 16_384;
const BLOCKS: u64 = 40 * 1004;
/// Blocks that are written over often.
const HOT: u64 = BLOCKS / 5;
const POINTS_A_DAY: u16 = 4;
/// Days on which objects may be written anew, and all.
const DECIDING: u32 = 30;
const DAYS: u32 = 60;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let prices = if arguments.next().is_some_and(|name| name == "azure") { AZURE_HOT } else { S3_STANDARD };
    let seed: u64 = arguments.next().map_or(Ok(1), |text| text.parse())?;
    println!(
        "{} ({}): a full object is worth writing anew if {:.4} of it lives or less",
        prices.name,
        prices.date,
        prices.threshold((16 << 10) + 1004 * SLOT, 1004)
    );
    let (mut with, mut without) = (Arm::new(seed)?, Arm::new(seed)?);
    let (mut booked, mut least_booked, mut least_cash) = (0.0_f64, 0.0_f64, 0.0_f64);
    println!("day  objects MiB, twin's  emptied  booked      cash, in millionths of a dollar");
    for day in 1..=DAYS {
        without.live_a_day()?;
        with.live_a_day()?;
        let mut emptied = 0;
        if day <= DECIDING {
            let done = with.garden.defrag_objects(&prices)?;
            emptied = done.emptied;
            booked += done.saved_in_a_month - done.cost;
        }
        with.end_day(&prices)?;
        without.end_day(&prices)?;
        let cash = without.paid - with.paid;
        (least_booked, least_cash) = (least_booked.min(booked), least_cash.min(cash));
        if day % 5 == 0 || emptied > 0 {
            let mib = |arm: &Arm| arm.store.inner().bytes() >> 20;
            println!(
                "{day:3}  {:7} {:3}, {:3}       {emptied:7}  {:6.1}  {:8.1}",
                with.garden.cold().objects,
                mib(&with),
                mib(&without),
                1e6 * booked,
                1e6 * cash
            );
        }
    }
    println!("lowest: booked {:.1}, cash {:.1}", 1e6 * least_booked, 1e6 * least_cash);
    println!("paid: {:.1}, twin {:.1}", 1e6 * with.paid, 1e6 * without.paid);
    with.check(&without)
}

/// An aggregate with its objects, and what was paid for them.
struct Arm {
    garden: Garden,
    fs: VolumeFs,
    ino: Ino,
    store: Arc<FaultObjects<MemoryObjects>>,
    rng: Rng,
    counted: ObjectCounts,
    paid: f64,
}

impl Arm {
    fn new(seed: u64) -> Result<Self, Failure> {
        let device = |name: &str, bytes| Arc::new(MemoryDevice::new(name, Bytes(bytes))) as Arc<dyn BlockDevice>;
        let drives: Vec<_> = (0..5).map(|_| device("drive", (3 + STRIPES) * SLOT)).collect();
        let log = device("log", 64 << 20);
        let options = FormatOptions {
            uuid: [7; 16],
            groups: vec![(4, true)],
            media: vec![],
            aa_stripes: 64,
            tetris_stripes: 64,
            zeroed: true,
        };
        Garden::format(&options, drives.clone(), log.clone())?;
        let store = Arc::new(FaultObjects::new(MemoryObjects::default()));
        let limits = Limits { cache_bytes: 4 << 20, ..Limits::default() };
        let garden = Garden::open_with(&drives, log, limits, Some(store.clone()))?;
        garden.create_volume(b"main", &VolumeOptions { blocks: 4 * STRIPES, inodes: 64, seed: 1 })?;
        let fs = garden.volume(b"main")?;
        let ino = fs.make_node(&Caller::default(), Ino::ROOT, b"file", &NewNode::file(0o600))?.ino;
        let rng = Rng::for_purpose(Seed(seed), "ledger");
        let counted = ObjectCounts::default();
        let mut arm = Self { garden, fs, ino, store, rng, counted, paid: 0.0 };
        (0..BLOCKS).try_for_each(|block| arm.write(block))?;
        arm.garden.tier(Tiering { age: 0, with_cached: true })?;
        // What it took to put all there is the same for both, and is not counted.
        arm.counted = arm.store.counts();
        Ok(arm)
    }

    fn write(&mut self, block: u64) -> Result<(), Failure> {
        let word = self.rng.below(u64::MAX).to_le_bytes();
        let data: Vec<u8> = word.iter().copied().cycle().take(BLOCK as usize).collect();
        self.fs.write(&Caller::default(), self.ino, block * BLOCK, &data)?;
        Ok(())
    }

    /// Writes what is written in a day, and tiers what was not since yesterday.
    fn live_a_day(&mut self) -> Result<(), Failure> {
        for _ in 0..POINTS_A_DAY {
            for _ in 0..HOT / 10 / u64::from(POINTS_A_DAY) {
                let block = self.rng.below(HOT);
                self.write(block)?;
            }
            for _ in 0..(BLOCKS - HOT) / 200 / u64::from(POINTS_A_DAY) {
                let block = HOT + self.rng.below(BLOCKS - HOT);
                self.write(block)?;
            }
            self.garden.consistency_point()?;
        }
        self.garden.tier(Tiering { age: POINTS_A_DAY, with_cached: true })?;
        Ok(())
    }

    /// Deletes what is not needed, and pays for the day: a thirtieth of a month for all bytes, and the requests.
    fn end_day(&mut self, prices: &PriceList) -> Result<(), Failure> {
        self.garden.consistency_point()?;
        self.garden.delete_objects()?;
        let now = self.store.counts();
        self.paid += prices.storage(self.store.inner().bytes(), 1.0 / 30.0);
        self.paid += prices.requests(now.puts - self.counted.puts, now.gets - self.counted.gets);
        self.counted = now;
        Ok(())
    }

    /// Both hold the same, and nothing is damaged.
    fn check(&self, twin: &Self) -> Result<(), Failure> {
        let (mut own, mut other) = (vec![0; 1 << 20], vec![0; 1 << 20]);
        for at in (0..BLOCKS * BLOCK).step_by(1 << 20) {
            let len = self.fs.read(self.ino, at, &mut own)?;
            if twin.fs.read(twin.ino, at, &mut other)? != len || own[..len] != other[..len] {
                return Err(format!("the twins differ behind byte {at}").into());
            }
        }
        println!("both files are the same");
        Ok(())
    }
}

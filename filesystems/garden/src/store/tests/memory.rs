//! Memory stays within its limits under any load.

use senesce_core::{Rng, Seed};
use senesce_fsapi::{Caller, FileSystem, SetAttributes};

use super::{NAME, Small, make, media::mixed};
use crate::{Cleaning, Demotion, Garden, Gardening, Limits};

const BLOCK: u64 = 4096;
const CACHE: u64 = 256 * BLOCK;
const DIRTY: u64 = 96 * BLOCK;
/// Changes of the longest write here: its blocks, and blocks of pointers and inodes above them.
const WRITE: u64 = 40 * BLOCK;

#[test]
fn cache_stays_within_its_limits() {
    let small = Small { groups: vec![4], stripes: 1024, aa_stripes: 64, tetris_stripes: 64 };
    let (devices, garden, fs) = small.garden();
    drop((fs, garden));
    let (log, drives) = devices.split_last().unwrap();
    let limits = Limits { cache_bytes: CACHE, dirty_bytes: DIRTY };
    let garden = Garden::open(drives, log.clone(), limits).unwrap();
    let fs = garden.volume(NAME).unwrap();
    let files = ["one", "two", "three"].map(|name| make(&fs, name));
    let (mut rng, caller) = (Rng::for_purpose(Seed(1), "memory"), Caller::default());
    let (mut data, mut most, mut changed) = (vec![7; 32 * BLOCK as usize], 0, 0);
    for _ in 0..3000 {
        let (ino, offset) = (files[rng.below(3) as usize], rng.below(512) * BLOCK + rng.below(2) * 77);
        let len = rng.between(1, data.len() as u64) as usize;
        match rng.below(20) {
            0..9 => drop(fs.write(&caller, ino, offset, &data[..len]).unwrap()),
            9 => {
                let change = SetAttributes { size: Some(offset), ..SetAttributes::default() };
                fs.set_attributes(&caller, ino, &change).unwrap();
            }
            _ => drop(fs.read(ino, offset, &mut data[..len]).unwrap()),
        }
        let store = garden.shared().lock();
        most = most.max(store.cache.bytes());
        changed = changed.max(store.dirty_blocks() * BLOCK);
        assert!(store.cache.bytes() <= CACHE, "{} bytes of blocks", store.cache.bytes());
        assert!(store.dirty_blocks() * BLOCK <= DIRTY + WRITE, "{} changed blocks", store.dirty_blocks());
        assert!(store.cache.spare.len() <= 256, "{} spare ones", store.cache.spare.len());
        // Freed blocks are known by number only, and only until the next consistency point.
        assert!(store.pending.is_empty());
    }
    assert_eq!((most, changed > DIRTY), (CACHE, true), "the limits were reached");
}

#[test]
fn moves_bound_the_additional_memory() {
    let (devices, garden, fs) = mixed();
    drop((fs, garden));
    let (log, drives) = devices.split_last().unwrap();
    let garden = Garden::open(drives, log.clone(), Limits { cache_bytes: CACHE, dirty_bytes: DIRTY }).unwrap();
    let fs = garden.volume(NAME).unwrap();
    let cleaning = Cleaning { quota_percent: 200, worth_percent: 0, disks_too: true };
    let demotion = Some(Demotion { full_percent: 30 });
    let gardening = Gardening { cleaning: Some(cleaning), demotion, ..Gardening::default() };
    garden.set_gardening(gardening);
    let (file, caller, mut rng) = (make(&fs, "file"), Caller::default(), Rng::for_purpose(Seed(2), "moves"));
    let data = vec![7; 32 * BLOCK as usize];
    for round in 0..1500 {
        let (offset, blocks) = if round < 30 { (round * 32, 32) } else { (rng.below(900), rng.between(1, 8)) };
        fs.write(&caller, file, offset * BLOCK, &data[..(blocks * BLOCK) as usize]).unwrap();
    }
    garden.consistency_point().unwrap();
    let (counts, most) = (garden.report().counts, garden.shared().lock().cache.most_bytes());
    assert!(counts.relocations > 500 && counts.demotions > 100, "{counts:?}");
    println!("{} KiB at most, {counts:?}", most >> 10);
    // Twice the changes, the blocks that leave the flash, and the maps of all of them.
    let moves = 2 * (DIRTY + WRITE) + DIRTY;
    assert!(most > CACHE && most <= (DIRTY + WRITE + moves) * 5 / 4, "{} KiB", most >> 10);
}

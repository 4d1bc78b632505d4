//! The available space can be used: no name and no block is refused while there is any.

use senesce_core::{Rng, Seed};
use senesce_fsapi::{FileSystem, FsError, FsResult, Ino, NewNode, Timestamp};
use senesce_garden::{Limits, VolumeOptions};

use crate::{
    rig::{LARGE, Rig, SMALL, Shape, TIGHT, VOLUME, caller, findings, shared},
    space::NARROW,
};

/// Blocks that a write may need besides its contents, for maps and the tree of its file.
const BESIDE: u64 = 64;
/// The most blocks of one write.
const MOST: u64 = 120;

/// A file of the test: its name, inode and length in blocks.
struct Made {
    name: String,
    ino: Ino,
    blocks: u64,
}

struct Filler<'a> {
    rig: &'a Rig,
    fs: &'a dyn FileSystem,
    rng: Rng,
    files: Vec<Made>,
    names: u64,
    refused: u64,
    told: String,
}

impl Filler<'_> {
    /// Runs an operation. If it is refused for lack of space, fewer than `needed` blocks were
    /// available before.
    fn attempt<T>(&mut self, needed: u64, act: impl FnOnce(&dyn FileSystem) -> FsResult<T>) -> Option<T> {
        let space = self.fs.space().unwrap();
        assert!(space.available <= space.free);
        match act(self.fs) {
            Ok(done) => Some(done),
            Err(FsError::NoSpace) => {
                self.refused += 1;
                assert!(
                    space.available < needed,
                    "{}: {} blocks of {needed} were available, and it was refused",
                    self.told,
                    space.available
                );
                None
            }
            Err(error) => panic!("{}: {error}", self.told),
        }
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("{} {}", self.names, "x".repeat(self.rng.below(230) as usize))
    }

    fn step(&mut self) {
        let name = self.name();
        match self.rng.below(8) {
            0 => {
                let node = NewNode { kind: senesce_fsapi::FileKind::Directory, ..NewNode::file(0o755) };
                self.attempt(1, |fs| fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &node));
            }
            1..=3 => {
                let node = NewNode::file(0o644);
                let made = self.attempt(1, |fs| fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &node));
                self.files.extend(made.map(|made| Made { name, ino: made.ino, blocks: 0 }));
            }
            _ if self.files.is_empty() => {}
            kind => {
                let at = self.rng.below(self.files.len() as u64) as usize;
                let Made { ino, blocks, .. } = self.files[at];
                let count = 1 + self.rng.below(if kind == 4 { 1 } else { MOST });
                // After the end, over existing blocks, or far after the end.
                let first = match kind {
                    5 => self.rng.below(blocks + 1),
                    6 => blocks + self.rng.below(5000),
                    _ => blocks,
                };
                let data = vec![self.names as u8; (count * 4096) as usize];
                let written = self.attempt(1, |fs| fs.write(&caller(1), ino, first * 4096, &data));
                let available = self.fs.space().unwrap().available;
                if let Some(written) = written.filter(|written| *written < data.len()) {
                    let rest = count - written as u64 / 4096;
                    assert!(available < rest + BESIDE, "{}: {available} blocks, {rest} were refused", self.told);
                }
                self.files[at].blocks = blocks.max(first + count);
            }
        }
    }

    /// Removes the largest files, with half of all blocks.
    fn remove_half(&mut self) {
        let blocks = |file: &Made| self.fs.attributes(file.ino).unwrap().allocated;
        self.files.sort_by_key(blocks);
        let all: u64 = self.files.iter().map(blocks).sum();
        let mut left = all;
        while left > all / 2 {
            let file = self.files.pop().unwrap();
            left -= self.fs.attributes(file.ino).unwrap().allocated;
            self.fs.unlink(&caller(2), Ino::ROOT, file.name.as_bytes()).unwrap();
        }
    }
}

fn fill_in_many_ways(shape: &Shape, limits: Limits, volume: Option<u64>, seed: u64) {
    let rig = Rig::on(shape, shared(shape.devices()), limits);
    let small = volume.map(|blocks| {
        rig.garden().create_volume(b"small", &VolumeOptions { blocks, inodes: 4096, seed: 1 }).unwrap();
        rig.garden().volume(b"small").unwrap()
    });
    let fs = small.as_ref().unwrap_or(rig.fs());
    let name: &[u8] = if small.is_some() { b"small" } else { VOLUME };
    let told = format!("{shape:?}, volume {volume:?}, seed {seed}");
    let rng = Rng::for_purpose(Seed(seed), "what fills it");
    let mut filler = Filler { rig: &rig, fs, rng, files: Vec::new(), names: 0, refused: 0, told };
    let mut has_snapshot = false;
    for round in 0..6 {
        let (before, mut steps) = (filler.refused, 0);
        while filler.refused < before + 25 && steps < 3000 {
            filler.step();
            steps += 1;
            if filler.rng.below(40) == 0 {
                filler.rig.garden().consistency_point().unwrap();
            }
        }
        assert!(filler.refused > before, "{}: it is not full after {steps} steps", filler.told);
        if std::mem::take(&mut has_snapshot) {
            rig.garden().delete_snapshot(name, b"held").unwrap();
        }
        filler.remove_half();
        let made = fs.make_node(&caller(1), Ino::ROOT, format!("after {round}").as_bytes(), &NewNode::file(0o644));
        let made = made.unwrap_or_else(|error| panic!("{}: after deleting half: {error}", filler.told));
        assert_eq!(fs.write(&caller(1), made.ino, 0, &[1; 50_000]).unwrap(), 50_000, "{}", filler.told);
        if round % 2 == 0 {
            rig.garden().create_snapshot(name, b"held", Timestamp::default()).unwrap();
            has_snapshot = true;
        }
    }
    rig.garden().consistency_point().unwrap();
    assert_eq!(findings(&rig.devices), [""; 0], "{}", filler.told);
}

#[test]
fn nothing_is_refused_while_space_is_available() {
    for seed in 0..4 {
        fill_in_many_ways(&NARROW, TIGHT, None, seed);
        fill_in_many_ways(&SMALL, Limits::default(), None, seed);
        fill_in_many_ways(&LARGE, TIGHT, Some(900), seed);
    }
}

#[test]
fn refused_write_makes_no_needless_point() {
    const ROUNDS: u64 = 12;
    let rig = Rig::on(&SMALL, shared(SMALL.devices()), Limits::default());
    let fs = rig.fs();
    let make = |name: String| fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
    let empty: Vec<String> = (0..ROUNDS).map(|number| format!("empty {number}")).collect();
    for name in &empty {
        make(name.clone());
    }
    let (large, small) = (make("large".to_owned()), make("small".to_owned()));
    fs.write(&caller(1), small, 0, &[1; 30 * 4096]).unwrap();
    let mut end = 0;
    while let Ok(written) = fs.write(&caller(1), large, end, &[2; 16 * 4096]) {
        end += written as u64;
    }
    let points = || rig.garden().report().counts.consistency_points;
    let is_refused = || matches!(fs.write(&caller(1), large, end, &[3; 16 * 4096]), Err(FsError::NoSpace));
    assert!(is_refused());
    let before = points();
    for name in &empty {
        fs.unlink(&caller(1), Ino::ROOT, name.as_bytes()).unwrap();
        assert!(is_refused());
    }
    assert_eq!(points() - before, 0, "points for {ROUNDS} refused writes");
    fs.unlink(&caller(1), Ino::ROOT, b"small").unwrap();
    assert!(!is_refused(), "a point gains the blocks of a file that was removed");
    assert_eq!(findings(&rig.devices), [""; 0]);
}

//! A volume that is filled, emptied, and filled again.

use senesce_core::{Rng, Seed};
use senesce_fsapi::{Caller, FileSystem, FsError, Ino, NewNode, conformance::Subject};

use senesce_evergreen::{Limits, MakeOptions, disk::Shape};

use super::rig::{Rig, TINY};

/// Nodes of some dozens of blocks; tiny nodes are never filled well.
const SMALL: MakeOptions = MakeOptions {
    shape: Shape { node_bytes: 256 << 10, basement_bytes: 32 << 10, ..TINY.shape },
    log_bytes: Some(2 << 20),
    ..TINY
};
const LIMITS: Limits = Limits { cache_bytes: 2 << 20, dirty_bytes: 2 << 20 };

#[test]
fn removed_space_can_be_filled_again() {
    let mut rig = Rig::new(48 << 20, &SMALL, LIMITS);
    let caller = Caller::default();
    for round in 0..4u8 {
        let start = rig.fs().space().unwrap();
        let mut written = 0;
        let data = vec![round + 1; 50_000];
        let mut files = Vec::new();
        'full: for number in 0.. {
            let name = format!("file {number}").into_bytes();
            let file = match rig.fs().make_node(&caller, Ino::ROOT, &name, &NewNode::file(0o644)) {
                Ok(made) => made.ino,
                Err(FsError::NoSpace) => break,
                Err(error) => panic!("{error}"),
            };
            files.push(name);
            for at in 0..3 {
                match rig.fs().write(&caller, file, at * data.len() as u64, &data) {
                    Ok(bytes) => written += bytes as u64,
                    Err(FsError::NoSpace) => break 'full,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        rig.check().unwrap();
        let wanted = start.available * u64::from(start.block_bytes);
        assert!(written * 100 >= wanted * 85, "round {round}: {written} bytes were written, {wanted} were free");
        rig.reopen().unwrap();
        for name in files {
            rig.fs().unlink(&caller, Ino::ROOT, &name).unwrap();
        }
        rig.check().unwrap();
        assert_eq!(rig.fs().space().unwrap().free, start.free, "round {round}: all space is free at once");
    }
}

/// A small creation succeeds while a block is available: next to removed files that are still held,
/// and on a volume with old leaves.
#[test]
fn creation_succeeds_while_space_is_available() {
    // With few children for each node, and as `fs mkfs --node-size 64KiB` makes it.
    let few = MakeOptions { shape: Shape { fanout: 4, ..SMALL.shape }, ..SMALL };
    let usual = MakeOptions { unit_bytes: 4096, ..MakeOptions::with_nodes([7; 16], 64 << 10) };
    for (options, seed) in [(SMALL, 8), (few, 24), (few, 25), (usual, 9)] {
        create_beside_what_fills_it(&options, seed);
    }
}

fn create_beside_what_fills_it(options: &MakeOptions, seed: u64) {
    let (caller, mut rng) = (Caller::default(), Rng::for_purpose(Seed(seed), "creations"));
    let rig = Rig::new(48 << 20, options, LIMITS);
    let fs = rig.fs();
    let make = |name: &str| fs.make_node(&caller, Ino::ROOT, name.as_bytes(), &NewNode::file(0o644));
    let (mut refused, mut made, mut names) = (0, 0, Vec::new());
    for round in 0..40 {
        // Fills the rest, up to a part of a block.
        let name = format!("filler {round}");
        if let Ok(file) = make(&name) {
            let data = vec![round + 1; 1 + rng.below(400_000) as usize];
            for at in 0.. {
                match fs.write(&caller, file.ino, at * data.len() as u64, &data) {
                    Ok(bytes) if bytes == data.len() => {}
                    Ok(_) | Err(FsError::NoSpace) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            // It has no name, and exists until it is released.
            fs.open(file.ino).unwrap();
            fs.unlink(&caller, Ino::ROOT, name.as_bytes()).unwrap();
            for number in 0..40 {
                let available = fs.space().unwrap().available;
                let name = format!("{round} {number} {}", "x".repeat(rng.below(200) as usize));
                let done = match number % 3 {
                    0 => fs.write(&caller, file.ino, rng.below(1 << 20), &[number; 4000]).map(|_| ()),
                    _ => make(&name).map(|_| names.push(name)),
                };
                match done {
                    Ok(()) => made += 1,
                    Err(FsError::NoSpace) => {
                        assert_eq!(available, 0, "seed {seed}, round {round}: operation {number} was refused");
                        refused += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            fs.release(file.ino, caller.now).unwrap();
        }
        if round % 7 == 0 {
            fs.store().checkpoint().unwrap();
        }
        if round % 10 == 9 {
            let kept = names.split_off(names.len() / 2);
            for name in std::mem::replace(&mut names, kept) {
                fs.unlink(&caller, Ino::ROOT, name.as_bytes()).unwrap();
            }
            make(&format!("after {round}")).unwrap();
        }
    }
    assert!(refused > 10 && made > 10, "{refused} were refused, {made} were not");
}

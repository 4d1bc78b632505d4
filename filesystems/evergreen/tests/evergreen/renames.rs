//! The effect of renames of directories on reads, in requests, and that of two sweeps.

use std::collections::BTreeMap;

use senesce_core::Seed;
use senesce_fsapi::conformance::collect_tree;

use super::aging::{
    cold,
    load::{Failure, Fs, Load, copy_into, read_all},
    made, made_of,
    renames::{shuffle, sweep},
};

/// The bytes of all files by path.
fn sizes(fs: &Fs) -> Result<BTreeMap<Vec<u8>, u64>, Failure> {
    let tree = collect_tree(fs)?;
    Ok(tree.into_iter().map(|(path, node)| (path, node.attributes.size)).collect())
}

/// Renames of 600 directories cost several times the requests of a copy. After two sweeps it is at
/// most 1.3 times.
#[test]
fn two_sweeps_undo_the_cost_of_renames() -> Result<(), Failure> {
    const DIRECTORIES: u64 = 600;
    let (device, fs) = made();
    let mut load = Load::new(Seed(3));
    load.fill_directories(&fs, DIRECTORIES)?;
    shuffle(&fs, &mut load.rng, DIRECTORIES)?;
    let want = sizes(&fs)?;
    let renamed = cold(&device, load.bytes)?;

    let (copy, to) = made();
    copy_into(&fs, &to)?;
    to.store().checkpoint()?;
    let fresh = cold(&copy, load.bytes)?;
    assert!(renamed.requests() > 3 * fresh.requests(), "renames must cost something: {renamed}; fresh {fresh}");

    let before = device.counts().bytes_written;
    sweep(&fs)?;
    sweep(&fs)?;
    let written = device.counts().bytes_written - before;
    let swept = cold(&device, load.bytes)?;
    assert!(swept.requests() * 10 <= fresh.requests() * 13, "swept {swept}; fresh {fresh}");
    assert!(written <= 5 * load.bytes, "{written} bytes were written for {}", load.bytes);
    assert_eq!(sizes(&fs)?, want);
    assert_eq!(read_all(&fs)?, load.bytes);
    Ok(())
}

/// The free space is less than the dirty limit, so a sweep uses shorter runs.
#[test]
fn a_small_device_is_swept_too() -> Result<(), Failure> {
    const DIRECTORIES: u64 = 600;
    let (device, fs) = made_of(110);
    let mut load = Load::new(Seed(4));
    load.fill_directories(&fs, DIRECTORIES)?;
    shuffle(&fs, &mut load.rng, DIRECTORIES)?;
    let renamed = cold(&device, load.bytes)?;
    sweep(&fs)?;
    let swept = cold(&device, load.bytes)?;
    assert!(renamed.requests() > 3 * swept.requests(), "renamed {renamed}; swept {swept}");
    assert_eq!(fs.store().sweep()?.bytes, 0, "nothing is left to be swept");
    Ok(())
}

//! The conformance suite of all engines.

use senesce_core::Seed;
use senesce_fsapi::conformance::{SequenceOptions, run_cases, run_read_dir, run_sequence, run_threads};

use super::rig::{make, make_by_number, make_forgetful};

/// Sizes around the limits of a block, of a batch, and of files that move with their names.
fn options() -> SequenceOptions {
    let boundaries = vec![0, 1, 4096, 8192, 128 << 10, 1 << 20];
    SequenceOptions { boundaries, operations: 400, compare_every: 25, ..SequenceOptions::default() }
}

#[test]
fn cases() {
    run_cases(&make).unwrap();
    run_cases(&make_by_number).unwrap();
    run_cases(&make_forgetful).unwrap();
}

#[test]
fn directories_change_while_they_are_listed() {
    for seed in 0..4 {
        run_read_dir(&make, Seed(seed), 400).unwrap();
    }
}

#[test]
fn threads() {
    for seed in 0..4 {
        run_threads(if seed % 2 == 0 { &make } else { &make_forgetful }, Seed(seed), 4, 200).unwrap();
    }
}

#[test]
fn sequences() {
    for seed in 0..8 {
        run_sequence(&make, Seed(seed), &options()).unwrap();
    }
}

#[test]
fn sequences_with_few_inodes_in_memory() {
    for seed in 200..204 {
        run_sequence(&make_forgetful, Seed(seed), &options()).unwrap();
    }
}

#[test]
fn sequences_with_keys_by_number() {
    for seed in 100..104 {
        run_sequence(&make_by_number, Seed(seed), &options()).unwrap();
    }
}

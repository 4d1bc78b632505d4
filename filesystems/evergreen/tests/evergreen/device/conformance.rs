//! The conformance suite of all engines, with nodes of the default size and with tiny ones.

use senesce_core::Seed;
use senesce_evergreen::{
    Limits, MakeOptions,
    disk::{KeyOrder, Shape},
};
use senesce_fsapi::conformance::{SequenceOptions, Subject, run_cases, run_read_dir, run_sequence, run_threads};

use super::rig::{LITTLE, Rig, TINY};

fn make() -> Box<dyn Subject> {
    Box::new(Rig::new(256 << 20, &MakeOptions::new([1; 16]), Limits::default()))
}

fn make_tiny() -> Box<dyn Subject> {
    Box::new(Rig::new(64 << 20, &TINY, LITTLE))
}

fn make_by_number() -> Box<dyn Subject> {
    let shape = Shape { key_order: KeyOrder::InodeNumber, ..TINY.shape };
    Box::new(Rig::new(64 << 20, &MakeOptions { shape, ..TINY }, LITTLE))
}

fn options() -> SequenceOptions {
    let boundaries = vec![0, 1, 4096, 8192, 128 << 10, 512 << 10];
    SequenceOptions { boundaries, operations: 300, compare_every: 50, ..SequenceOptions::default() }
}

#[test]
fn cases() {
    run_cases(&make_tiny).unwrap();
}

#[test]
fn directories_change_while_they_are_listed() {
    run_read_dir(&make_tiny, Seed(1), 400).unwrap();
}

#[test]
fn threads() {
    run_threads(&make_tiny, Seed(1), 4, 150).unwrap();
    run_threads(&make, Seed(2), 4, 150).unwrap();
}

#[test]
fn sequences() {
    for seed in 0..4 {
        run_sequence(&make_tiny, Seed(seed), &options()).unwrap();
    }
    run_sequence(&make, Seed(4), &options()).unwrap();
    run_sequence(&make_by_number, Seed(5), &options()).unwrap();
}

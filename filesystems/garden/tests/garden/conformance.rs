//! The conformance suite of all engines.

use senesce_core::Seed;
use senesce_fsapi::conformance::{SequenceOptions, Subject, run_cases, run_read_dir, run_sequence, run_threads};
use senesce_garden::Limits;

use crate::{
    guard::guard,
    rig::{LARGE, Rig, SEVERAL, TIGHT, shared},
};

fn make() -> Box<dyn Subject> {
    Box::new(Rig::new(&LARGE, Limits::default()))
}

fn make_tight() -> Box<dyn Subject> {
    Box::new(Rig::on(&LARGE, guard(&shared(LARGE.devices())), TIGHT))
}

/// Sizes at which a file leaves its inode, needs more blocks, or needs a higher tree.
fn boundaries() -> Vec<u64> {
    vec![0, 1, 160, 4096, 8192, 10 * 4096, 256 * 4096, 10 * 256 * 4096]
}

#[test]
fn conformance_cases_pass() {
    run_cases(&make).unwrap();
}

#[test]
fn directories_may_change_while_they_are_read() {
    run_read_dir(&make_tight, Seed(1), 2000).unwrap();
}

#[test]
fn threads_run_concurrently() {
    run_threads(&make_tight, Seed(1), 4, 100).unwrap();
}

#[test]
fn random_sequences_match_the_model() {
    for seed in 0..6 {
        let options = SequenceOptions {
            boundaries: boundaries(),
            operations: 200,
            compare_every: 50,
            ..SequenceOptions::default()
        };
        run_sequence(&make, Seed(seed), &options).unwrap();
    }
}

#[test]
fn random_sequences_match_the_model_in_little_memory() {
    for seed in 100..106 {
        let options = SequenceOptions {
            boundaries: boundaries(),
            operations: 200,
            compare_every: 50,
            ..SequenceOptions::default()
        };
        run_sequence(&make_tight, Seed(seed), &options).unwrap();
    }
}

#[test]
fn random_sequences_match_the_model_on_several_groups() {
    let make = || -> Box<dyn Subject> { Box::new(Rig::on(&SEVERAL, guard(&shared(SEVERAL.devices())), TIGHT)) };
    for seed in 200..203 {
        let options = SequenceOptions { boundaries: boundaries(), compare_every: 50, ..SequenceOptions::default() };
        run_sequence(&make, Seed(seed), &options).unwrap();
    }
}

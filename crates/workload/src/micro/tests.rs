//! The microbenchmarks against their definitions. One seed in 10,000 exceeds the limits of
//! chi-square.

use std::collections::BTreeSet;

use proptest::prelude::*;
use senesce_core::{Bytes, Seed};
use senesce_oplog::{Op, Outcome, Step};

use super::*;
use crate::{
    Feedback, Workload, WorkloadError,
    measured_volume::{Meter, chi_square, chi_square_limit, length},
};

#[test]
fn appends_rotate_over_files_and_are_flushed() {
    let (mut work, mut meter) = (Intrafile::new(IntrafileOptions::paper(Seed(1))).unwrap(), Meter::new(Bytes::GIB));
    let steps = meter.run(&mut work);
    assert_eq!(steps.iter().filter(|step| step.counted).count(), 100);
    for step in &steps[1..] {
        let names: Vec<String> = step.ops.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), 20);
        for (file, pair) in names.chunks(2).enumerate() {
            assert!(pair[0].starts_with(&format!("write f{file:05} at ")), "{}", pair[0]);
            assert_eq!(pair[1], format!("fsync f{file:05}"));
        }
    }
    assert_eq!(meter.files.len(), 10);
    assert!(meter.files.values().all(|size| *size == 256 * 1024 + 100 * 4096));
}

#[test]
fn largest_sizes_do_not_overflow() {
    let copied = InterfileOptions { files: 1, file_bytes: u64::MAX, ..InterfileOptions::paper(Seed(1)) };
    assert!(copied.first_state_bytes() >= u64::MAX - 4096);
    let grown = IntrafileOptions { scale: u64::MAX, ..IntrafileOptions::paper(Seed(1)) };
    assert!(grown.first_state_bytes() == u64::MAX);
}

#[test]
fn scale_and_push_change_the_files_and_flushes() {
    let options = IntrafileOptions { scale: 3, rounds: 2, push: Push::Round, ..IntrafileOptions::paper(Seed(1)) };
    assert_eq!(options.first_state_bytes(), 9 * 10 * 256 * 1024);
    let mut meter = Meter::new(Bytes::GIB);
    let steps = meter.run(&mut Intrafile::new(options).unwrap());
    assert_eq!(meter.files.len(), 30);
    assert!(meter.files.values().all(|size| *size == 3 * 256 * 1024 + 2 * 4096));
    let syncs = |step: &Step| step.ops.iter().filter(|op| matches!(op, Op::SyncFs)).count();
    assert_eq!((syncs(&steps[1]), steps[1].ops.len()), (1, 31));
    let all = IntrafileOptions { push: Push::AppendAll, ..options };
    let steps = Meter::new(Bytes::GIB).run(&mut Intrafile::new(all).unwrap());
    assert_eq!((syncs(&steps[1]), steps[1].ops.len()), (30, 60));
}

#[test]
fn a_failed_append_is_repeated_at_its_offset() {
    let options = IntrafileOptions { rounds: 5, ..IntrafileOptions::paper(Seed(2)) };
    let (mut work, mut meter) = (Intrafile::new(options).unwrap(), Meter::new(Bytes::GIB));
    let (mut refused, mut counted) = (0, 0);
    while let Some(step) = meter.step(&mut work).unwrap() {
        refused += u64::from(meter.last() != Outcome::Done);
        counted += u64::from(step.counted);
        if work.is_whole(&meter.last()) && refused < 10 {
            meter.refuse_after = Some(refused as usize);
        }
    }
    assert!(refused >= 5, "{refused}");
    assert_eq!(counted, 5);
    assert!(meter.files.values().all(|size| *size == 256 * 1024 + 5 * 4096));
}

#[test]
fn a_too_small_volume_is_an_error() {
    let (mut work, mut meter) = (Intrafile::new(IntrafileOptions::paper(Seed(2))).unwrap(), Meter::new(Bytes::MIB));
    let error = loop {
        match meter.step(&mut work) {
            Ok(step) => assert!(step.is_some()),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, WorkloadError::VolumeTooSmall { .. }), "{error}");
}

proptest! {
    #[test]
    fn every_order_permutes_and_extends_a_smaller_shuffle(
        seed: u64, files in 1u64..2_000, percent in 0u64..=100
    ) {
        let order = compute_order(Seed(seed), files, percent);
        let names: BTreeSet<u32> = order.iter().copied().collect();
        prop_assert_eq!(order.len() as u64, files, "lost or doubled");
        prop_assert!(names.into_iter().eq(0..files as u32), "lost or doubled");
        let shuffled = (files * percent).div_ceil(100) as usize;
        let whole = compute_order(Seed(seed), files, 100);
        prop_assert_eq!(&order[..shuffled], &whole[..shuffled]);
        // After the shuffled positions every file is at its own position, or was exchanged with a
        // shuffled one.
        let moved = (shuffled..order.len()).filter(|&at| order[at] != at as u32).count();
        prop_assert!(moved <= shuffled);
        if percent == 0 {
            prop_assert!(order.into_iter().eq(0..files as u32));
        }
    }
}

#[test]
fn a_full_shuffle_is_uniform() {
    // All 24 orders of four files occur equally often.
    let mut counts = vec![0u64; 256];
    for seed in 0..24_000 {
        let order = compute_order(Seed(seed), 4, 100);
        counts[order.iter().fold(0, |code, &at| code * 4 + at as usize)] += 1;
    }
    counts.retain(|&count| count > 0);
    assert_eq!(counts.len(), 24);
    assert!(chi_square(&counts) < chi_square_limit(23), "{counts:?}");
}

#[test]
fn copies_reorder_the_same_files_on_fresh_volumes() {
    let options = InterfileOptions { files: 500, ..InterfileOptions::paper(Seed(3)) };
    let (mut work, mut meter) = (Interfile::new(options).unwrap(), Meter::new(Bytes::GIB));
    let mut copies: Vec<Vec<(String, String)>> = Vec::new();
    while let Some(step) = meter.step(&mut work).unwrap() {
        let is_copy = step.label.starts_with("copy");
        assert_eq!(work.wants_fresh_volume(), step.counted);
        assert_eq!(work.is_whole(&Outcome::Done), is_copy);
        assert_eq!(work.is_set_up(), !is_copy);
        if !is_copy {
            assert_eq!((meter.files.len(), meter.directories.len()), (0, 1), "a fresh volume is empty");
            continue;
        }
        let create = |op: &Op| match op {
            Op::Create { path, content, .. } => {
                assert_eq!(length(content), 4096);
                Some((path.to_string(), content.to_string()))
            }
            _ => None,
        };
        copies.push(step.ops.iter().filter_map(create).collect());
        assert_eq!(meter.files.len(), 500);
    }
    assert_eq!(copies.len(), 11);
    assert!(copies[0].is_sorted(), "the first copy is in the order of the paths");
    for copy in &copies {
        let mut sorted = copy.clone();
        sorted.sort();
        assert_eq!(sorted, copies[0]);
    }
    let at_home = |copy: &Vec<(String, String)>| copy.iter().zip(&copies[0]).filter(|(a, b)| a == b).count();
    assert!(copies.windows(2).all(|pair| at_home(&pair[1]) < at_home(&pair[0]) + 25));
    assert!(at_home(&copies[10]) < 10, "{}", at_home(&copies[10]));
}

#[test]
fn renames_exchange_a_share_of_directory_names() {
    let options = RenamesOptions { directories: 200, rounds: 3, percent: 25, ..RenamesOptions::usual(Seed(5)) };
    let mut work = Renames::new(options).unwrap();
    let feedback = Feedback { capacity: Bytes(Bytes::GIB), free: Bytes(Bytes::GIB), last: Some(Outcome::Done) };
    let mut steps = Vec::new();
    while let Some(step) = work.next_step(&feedback).unwrap() {
        steps.push(step);
    }
    let creates = steps[0].ops.iter().filter(|op| matches!(op, Op::Create { .. })).count();
    assert_eq!((creates, steps[0].counted, steps.len()), (600, false, 4));
    let mut chosen = Vec::new();
    for step in &steps[1..] {
        let mut names: BTreeSet<String> = (0..200).map(|number| format!("d{number:06}")).collect();
        let (mut moved, mut stayed) = (BTreeSet::new(), 0);
        for op in step.ops.iter() {
            let Op::Rename { from, to } = op else { continue };
            let (from, to) = (from.to_string(), to.to_string());
            assert!(names.remove(&from), "{from} is there");
            assert!(names.insert(to.clone()), "{to} is free");
            stayed += u64::from(from.strip_prefix("moving ") == Some(&to));
            moved.insert(from);
        }
        assert_eq!(moved.len(), 100, "50 directories go away and come back");
        assert!(stayed < 10, "{stayed} of 50 have their own names again");
        assert!(names.iter().all(|name| name.len() == 7) && names.len() == 200);
        assert!(matches!(step.ops.last(), Some(Op::SyncFs)) && step.counted);
        chosen.push(moved);
    }
    assert_ne!(chosen[0], chosen[1]);
}

#[test]
fn out_of_range_parameters_are_refused() {
    let good = InterfileOptions::paper(Seed(1));
    assert!(Interfile::new(InterfileOptions { files: 0, ..good }).is_err());
    assert!(Interfile::new(InterfileOptions { step_percent: 101, ..good }).is_err());
    let good = RenamesOptions::usual(Seed(1));
    assert!(Renames::new(RenamesOptions { directories: 1, ..good }).is_err());
    assert!(Renames::new(RenamesOptions { percent: 101, ..good }).is_err());
    assert!(Renames::new(RenamesOptions { file_bytes: 0, ..good }).is_err());
    assert!(Renames::new(RenamesOptions { files_per_directory: u64::MAX, ..good }).is_err());
    let good = IntrafileOptions::paper(Seed(1));
    assert!(Intrafile::new(IntrafileOptions { files: 0, ..good }).is_err());
    assert!(Intrafile::new(IntrafileOptions { append_bytes: 0, ..good }).is_err());
    assert!(Intrafile::new(IntrafileOptions { scale: u64::MAX, ..good }).is_err());
}

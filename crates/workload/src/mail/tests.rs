//! The mail server against its definition. Seeds are fixed; one seed in 10,000 exceeds the limits
//! of chi-square.

use std::collections::BTreeSet;

use senesce_core::{Bytes, Seed};
use senesce_oplog::{Op, Outcome, Step};

use super::*;
use crate::{
    Workload, WorkloadError,
    measured_volume::{Meter, chi_square, chi_square_limit, length},
};

fn small(seed: u64) -> MailOptions {
    MailOptions { users: 2, mailboxes: 4, messages: 50, operations: 500, cycles: 5, ..MailOptions::paper(Seed(seed)) }
}

fn deliveries(step: &Step) -> Vec<(String, u64)> {
    let delivery = |op: &Op| match op {
        Op::Create { path, content, .. } if path.to_string().contains("/tmp/") => {
            Some((path.to_string(), length(content)))
        }
        _ => None,
    };
    step.ops.iter().filter_map(delivery).collect()
}

#[test]
fn default_parameters_match_the_paper() {
    let paper = MailOptions::paper(Seed(1));
    assert_eq!(MailOptions { messages: u64::MAX, ..paper }.first_state_bytes(), u64::MAX);
    assert_eq!((paper.mailboxes, paper.messages, paper.largest_bytes), (80, 1000, 32_768));
    assert_eq!((paper.operations, paper.cycles), (8_000, 100));
}

#[test]
fn the_volume_holds_exactly_the_undeleted_messages() {
    let (mut mail, mut meter) = (Mail::new(small(1)).unwrap(), Meter::new(Bytes::GIB));
    let mut counted = 0;
    while let Some(step) = meter.step(&mut mail).unwrap() {
        counted += u64::from(step.counted);
        let expected = mail.expected_files();
        let names: BTreeSet<String> = expected.iter().map(|(name, _)| format!("mail/{name}")).collect();
        assert_eq!(names.len(), expected.len(), "{}: a name occurs twice", step.label);
        assert!(names.iter().eq(meter.files.keys()), "{}", step.label);
        for (name, size) in expected.iter().filter(|(_, size)| *size > 0) {
            assert_eq!(meter.files[&format!("mail/{name}")], *size, "{name}");
        }
    }
    assert_eq!(counted, 5);
    assert_eq!(meter.directories.len(), 2 + 2 + 2 * 4 * 4); // the volume's root, mail, users, mailboxes with their three
}

#[test]
fn set_up_and_cycles_have_the_requested_sizes() {
    let (mut mail, mut meter) = (Mail::new(small(2)).unwrap(), Meter::new(Bytes::GIB));
    for _ in 0..8 {
        let step = meter.step(&mut mail).unwrap().unwrap();
        assert_eq!(deliveries(&step).len(), 50);
        assert!(!mail.is_set_up());
    }
    let mut operations = 0;
    while let Some(step) = meter.step(&mut mail).unwrap() {
        assert!(mail.is_set_up());
        let trashed = step.ops.iter().filter(|op| matches!(op, Op::Unlink { .. })).count();
        operations += deliveries(&step).len() + trashed;
        if step.counted {
            assert_eq!(std::mem::take(&mut operations), 2 * 500);
        }
    }
}

#[test]
fn sizes_mailboxes_and_kinds_are_uniform() {
    let options = MailOptions { messages: 200, operations: 20_000, cycles: 1, ..small(3) };
    let (mut mail, mut meter) = (Mail::new(options).unwrap(), Meter::new(4 * Bytes::GIB));
    let (mut sizes, mut boxes, mut kinds) = (vec![0; 64], vec![0; 8], vec![0; 2]);
    while let Some(step) = meter.step(&mut mail).unwrap() {
        for (path, size) in deliveries(&step) {
            assert!((1..=32_768).contains(&size));
            sizes[(size as usize - 1) / 512] += 1;
            if mail.is_set_up() {
                let number = |part: &str| usize::from(part.as_bytes()[part.len() - 1] - b'1');
                let parts: Vec<&str> = path.split('/').collect();
                boxes[number(parts[0]) * 4 + number(parts[1])] += 1;
                kinds[0] += 1;
            }
        }
        kinds[1] += step.ops.iter().filter(|op| matches!(op, Op::Unlink { .. })).count() as u64;
    }
    assert!(chi_square(&sizes) < chi_square_limit(63), "{sizes:?}");
    assert!(chi_square(&boxes) < chi_square_limit(7), "{boxes:?}");
    assert!(chi_square(&kinds) < chi_square_limit(1), "{kinds:?}");
}

#[test]
fn a_delivery_is_flushed_and_renamed_twice() {
    let (mut mail, mut meter) = (Mail::new(small(4)).unwrap(), Meter::new(Bytes::GIB));
    let step = meter.step(&mut mail).unwrap().unwrap();
    let kinds: Vec<&str> =
        step.ops.iter().skip_while(|op| op.to_string().find("/tmp/").is_none()).map(Op::kind).collect();
    assert_eq!(kinds[..6], ["create", "fsync", "rename", "rename", "write", "write"]);
}

#[test]
fn lists_and_logs_stay_bounded() {
    let options = MailOptions { operations: 5_000, cycles: 4, ..small(5) };
    let (mut mail, mut meter) = (Mail::new(options).unwrap(), Meter::new(Bytes::GIB));
    let steps = meter.run(&mut mail);
    let renames = |to: &str| {
        let renames = steps.iter().flat_map(|step| step.ops.iter());
        renames.filter(|op| matches!(op, Op::Rename { to: path, .. } if path.to_string().ends_with(to))).count()
    };
    assert!(renames("/dovecot-uidlist") > 20 && renames("/dovecot.index") > 20);
    for (name, size) in &meter.files {
        assert!(!name.ends_with("index.log") || *size < 33 << 10, "{name}: {size}");
        assert!(!name.ends_with("uidlist") || *size < 64 << 10, "{name}: {size}");
    }
}

#[test]
fn a_cycle_completes_after_any_lack_of_space() {
    let (mut mail, mut meter) = (Mail::new(small(6)).unwrap(), Meter::new(Bytes::GIB));
    let (mut refused, mut counted) = (0, 0);
    while let Some(step) = meter.step(&mut mail).unwrap() {
        refused += u64::from(meter.last() != Outcome::Done);
        counted += u64::from(step.counted);
        if mail.is_whole(&meter.last()) {
            let names: BTreeSet<String> =
                mail.expected_files().iter().map(|(name, _)| format!("mail/{name}")).collect();
            assert!(names.iter().eq(meter.files.keys()), "{}", step.label);
            // The refusal can hit any write of the next step: contents, lists, logs.
            meter.refuse_after = Some(7 * refused as usize);
        }
    }
    assert!(refused > 10 && counted == 5, "{refused} {counted}");
}

#[test]
fn a_too_small_volume_is_an_error() {
    let (mut mail, mut meter) = (Mail::new(small(6)).unwrap(), Meter::new(4 * Bytes::MIB));
    let error = loop {
        match meter.step(&mut mail) {
            Ok(step) => assert!(step.is_some(), "it must not end well"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, WorkloadError::VolumeTooSmall { .. }), "{error}");
}

#[test]
fn steps_depend_on_the_seed() {
    let steps = |seed| Meter::new(Bytes::GIB).run(&mut Mail::new(small(seed)).unwrap());
    assert_eq!(steps(7), steps(7));
    assert_ne!(steps(7), steps(8));
}

//! Every workload without a history, in small: on the model in memory and on real file systems.

use std::path::Path;

use senesce_core::{Bytes, Seed};
use senesce_exec::{
    CheckContents, ModelTarget, PosixTarget, Target, apply_done, apply_step,
    tree::{collect_tree, compare_trees},
};
use senesce_oplog::{DoneStep, Outcome};
use senesce_testkit::{Volume, VolumeOptions, root_or_skip};
use senesce_workload::{
    Feedback, Workload,
    fsfb::{Fsfb, FsfbOptions, PrintableContents},
    mail::{Mail, MailOptions},
    micro::{Interfile, InterfileOptions, Intrafile, IntrafileOptions, Push, Renames, RenamesOptions},
    overwrite::{Overwrite, OverwriteOptions, Pattern, Space},
};

/// The file systems of the tests.
const KINDS: [&str; 3] = ["ext4", "xfs", "btrfs"];

/// An image size that is enough for all of them.
const SMALL_MIB: u64 = 320;

/// A volume in memory.
fn volume(kind: &str, mib: u64) -> Volume {
    let (mkfs, mount): (&[&str], &str) = match kind {
        "ext4" => (&["-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"], "commit=300"),
        "btrfs" => (&[], "commit=300,nodiscard"),
        _ => (&[], "defaults"),
    };
    Volume::with(&VolumeOptions { mkfs, mount, image_in: Some(Path::new("/dev/shm")), ..VolumeOptions::new(kind, mib) })
}

/// The observations of a run of a workload.
struct Shown {
    counted: u64,
    no_space: u64,
    /// Used share of the capacity, by the space that is free to users, at every measurable point
    /// after set-up.
    fullness: Vec<f64>,
    /// Labels of steps with `no space to …`.
    notes: Vec<String>,
}

/// Runs a workload to its end with the space that the target reports.
fn run(workload: &mut dyn Workload, target: &mut dyn Target, each: &mut dyn FnMut(&DoneStep)) -> Shown {
    let mut shown = Shown { counted: 0, no_space: 0, fullness: Vec::new(), notes: Vec::new() };
    let (mut last, mut number) = (None, 0);
    loop {
        let space = target.space().unwrap();
        if let Some(last) = &last
            && workload.is_set_up()
            && workload.is_whole(last)
        {
            shown.fullness.push(1.0 - space.free.0 as f64 / space.capacity.0 as f64);
        }
        let feedback = Feedback { capacity: space.capacity, free: space.free, last };
        let Some(step) = workload.next_step(&feedback).unwrap() else { return shown };
        if step.label.contains("no space to") {
            shown.notes.push(step.label.clone());
        }
        let done = apply_step(target, number, step, &PrintableContents).unwrap();
        shown.counted += u64::from(done.step.counted);
        shown.no_space += u64::from(done.outcome != Outcome::Done);
        last = Some(done.outcome);
        number += 1;
        each(&done);
    }
}

/// Every workload in small except FSFB, which fills its volume.
fn small_workloads() -> Vec<(&'static str, Box<dyn Workload>)> {
    let seed = Seed(1);
    let mail =
        MailOptions { users: 2, mailboxes: 3, messages: 40, operations: 150, cycles: 2, ..MailOptions::paper(seed) };
    let intrafile = IntrafileOptions { rounds: 5, ..IntrafileOptions::paper(seed) };
    let interfile = InterfileOptions { files: 300, step_percent: 50, ..InterfileOptions::paper(seed) };
    let renames = RenamesOptions { directories: 40, rounds: 3, percent: 50, ..RenamesOptions::usual(seed) };
    let overwrite = |pattern, mib| OverwriteOptions {
        seed,
        pattern,
        space: Space::Bytes(mib * Bytes::MIB),
        operations: 300,
        rounds: 2,
    };
    let random = Pattern::Random { request_bytes: 4096, files: 2, read_percent: 30 };
    let streams = Pattern::Streams { request_bytes: 65_536, streams: 4, read_percent: 50 };
    vec![
        ("mail", Box::new(Mail::new(mail).unwrap())),
        ("intrafile", Box::new(Intrafile::new(intrafile).unwrap())),
        ("intrafile, a round", Box::new(Intrafile::new(IntrafileOptions { push: Push::Round, ..intrafile }).unwrap())),
        ("interfile", Box::new(Interfile::new(interfile).unwrap())),
        ("renames", Box::new(Renames::new(renames).unwrap())),
        ("oltp", Box::new(Overwrite::new(overwrite(Pattern::Oltp, 48)).unwrap())),
        ("random", Box::new(Overwrite::new(overwrite(random, 16)).unwrap())),
        ("streams", Box::new(Overwrite::new(overwrite(streams, 16)).unwrap())),
    ]
}

#[test]
fn every_workload_has_the_tree_of_the_model() {
    if !root_or_skip("file systems on loop devices") {
        return;
    }
    for kind in KINDS {
        for (name, mut workload) in small_workloads() {
            let volume = volume(kind, SMALL_MIB);
            let mut model = ModelTarget::default();
            let mut target = PosixTarget::open(&volume.mountpoint).unwrap().with_direct_io(name != "mail");
            let shown = run(&mut *workload, &mut target, &mut |done| {
                apply_done(&mut model, done, &PrintableContents, CheckContents::Yes).unwrap();
            });
            assert!(shown.counted > 0 && shown.no_space == 0, "{kind} {name}");
            drop(target);
            let found = collect_tree(&volume.mountpoint, 2).unwrap();
            assert_eq!(compare_trees(&model.tree(), &found, 5), [], "{kind} {name}");
        }
    }
}

#[test]
fn fsfb_on_the_model_is_replayed_to_an_equal_tree() {
    let options = FsfbOptions { directories: 60, rounds: 5, ..FsfbOptions::paper(Seed(2)) };
    let (mut full, mut empty) = (ModelTarget::new(Some(Bytes(32 * Bytes::MIB))), ModelTarget::default());
    let shown = run(&mut Fsfb::new(options).unwrap(), &mut full, &mut |done| {
        apply_done(&mut empty, done, &PrintableContents, CheckContents::Yes).unwrap();
    });
    assert_eq!((shown.counted, shown.no_space), (5, 0));
    assert!(shown.fullness.iter().all(|share| *share >= 0.95), "{:?}", shown.fullness);
    assert_eq!(full.tree().hash(), empty.tree().hash());
}

#[test]
fn fsfb_holds_its_fullness_on_every_file_system() {
    if !root_or_skip("file systems on loop devices") {
        return;
    }
    for kind in KINDS {
        let options = FsfbOptions { directories: 100, rounds: 15, ..FsfbOptions::paper(Seed(3)) };
        let shown = fsfb(kind, SMALL_MIB, options);
        assert_eq!(shown.counted, 15, "{kind}");
        assert_eq!(shown.notes, [""; 0], "{kind}");
        let least = shown.fullness.iter().copied().fold(1.0, f64::min);
        assert!(least >= 0.95, "{kind}: {least}");
    }
}

/// The published size in memory: minutes in a release build, and 5 GiB of memory.
///
/// `cargo test --release -p senesce-experiment --test workloads -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes and 5 GiB of memory"]
fn fsfb_completes_its_published_rounds() {
    if !root_or_skip("file systems on loop devices") {
        return;
    }
    for kind in KINDS {
        for options in [FsfbOptions::paper(Seed(1)), FsfbOptions::code(Seed(1))] {
            let shown = fsfb(kind, 5 << 10, options);
            assert_eq!(shown.counted, options.rounds, "{kind}");
            let least = shown.fullness.iter().copied().fold(1.0, f64::min);
            assert!(least >= 0.95 && shown.notes.is_empty(), "{kind}: {least}, {:?}", shown.notes);
        }
    }
}

fn fsfb(kind: &str, mib: u64, options: FsfbOptions) -> Shown {
    let volume = volume(kind, mib);
    let mut target = PosixTarget::open(&volume.mountpoint).unwrap();
    let shown = run(&mut Fsfb::new(options).unwrap(), &mut target, &mut |_| {});
    let least = shown.fullness.iter().copied().fold(1.0, f64::min);
    let most = shown.fullness.iter().copied().fold(0.0, f64::max);
    println!(
        "{kind}, files of up to {} bytes: {} rounds, {} steps without space, fullness {least:.4} to {most:.4} over {} \
         points; {:?}",
        options.sizes.largest(),
        shown.counted,
        shown.no_space,
        shown.fullness.len(),
        shown.notes
    );
    shown
}

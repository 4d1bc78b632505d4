//! Profile-driven aging of real targets: the model in memory, and ext4, XFS and Btrfs on loop
//! devices.
//!
//! A census of the aged volume counts the result, so the tests cover the round trip too. The
//! profile captured from an aged volume is the profile that aged it, within the accuracy.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use senesce_core::{Bytes, Seed};
use senesce_exec::{
    CheckContents, ModelTarget, Target, apply_done, apply_step, apply_step_parallel, tree::compare_trees,
};
use senesce_oplog::Outcome;
use senesce_probe::collect::{CensusOptions, collect_census};
use senesce_testkit::{Volume, root_or_skip};
use senesce_volume::{FileSystemKind, Settler};
use senesce_workload::{
    Feedback, Workload,
    profile::{
        AgingProfile, Bound, Captured, Convergence, FileContent, FoundFile, ProfileAging, ProfileOptions, Schedule,
        compute_difference, compute_profile, find_builtin,
    },
};

/// Few and small files, so that small volumes hold enough: several bins of sizes, depths and ages.
const SMALL: &str = "format = \"aging-profile/1\"\nname = \"small\"\n[size]\nmeaning = \"upper bound\"\nvalues = [0, 4096, \
                     16384, 65536, 262144]\nweights = [1, 8, 6, 4, 1]\n[depth]\nvalues = [0, 1, 3]\nweights = [1, 4, 5]\n\
                     subdirs = [0, 4, 20]\n[age]\nunit = \"hours\"\nupper = [10, 100, 500, 1000]\nweights = [2, 8, 6, 4]\n";

/// `settle` is called before free space is read.
fn age(
    target: &mut dyn Target,
    profile: &AgingProfile,
    options: &ProfileOptions,
    settle: &mut dyn FnMut(),
) -> (Convergence, Vec<senesce_oplog::DoneStep>) {
    let mut aging = ProfileAging::new(profile.clone(), options.clone()).unwrap();
    let (mut last, mut log) = (None, Vec::new());
    loop {
        settle();
        let space = target.space().unwrap();
        let feedback = Feedback { capacity: space.capacity, free: space.free, last };
        let Some(step) = aging.next_step(&feedback).unwrap() else { break };
        let done = apply_step(target, log.len() as u64, step, &()).unwrap();
        last = Some(done.outcome);
        log.push(done);
        assert!(log.len() < 100_000, "it does not end");
    }
    (aging.convergence(), log)
}

#[test]
fn the_model_reaches_profiles_and_replays_equal_trees() {
    let profile = AgingProfile::parse(SMALL).unwrap();
    for schedule in [Schedule::Virtual, Schedule::Classic] {
        for content in [FileContent::Write, FileContent::Allocate] {
            let options = ProfileOptions { schedule, content, fullness: 0.75, churn: 2.0, ..Default::default() };
            let mut model = ModelTarget::new(Some(Bytes(64 << 20)));
            let (reached, log) = age(&mut model, &profile, &options, &mut || {});
            assert_eq!(reached.ended_by, Some(Bound::Accuracy), "{schedule:?} {content:?}: {reached:#?}");
            let mut replayed = ModelTarget::new(None);
            for done in &log {
                apply_done(&mut replayed, done, &(), CheckContents::Yes).unwrap();
            }
            assert!(compare_trees(&model.tree(), &replayed.tree(), 1).is_empty());
        }
    }
}

#[test]
fn operations_do_not_depend_on_threads() {
    let run = |threads| {
        let options = ProfileOptions { fullness: 0.75, churn: 2.0, ..Default::default() };
        let mut aging = ProfileAging::new(AgingProfile::parse(SMALL).unwrap(), options).unwrap();
        let model = Arc::new(Mutex::new(ModelTarget::new(Some(Bytes(32 << 20)))));
        let mut targets: Vec<Box<dyn Target>> =
            (0..threads).map(|_| Box::new(model.clone()) as Box<dyn Target>).collect();
        let (mut last, mut log) = (None, Vec::new());
        loop {
            let space = targets[0].space().unwrap();
            let feedback = Feedback { capacity: space.capacity, free: space.free, last };
            let Some(step) = aging.next_step(&feedback).unwrap() else { break };
            let done = apply_step_parallel(&mut targets, log.len() as u64, step, &()).unwrap();
            last = Some(done.outcome);
            log.push(done);
        }
        assert_eq!(aging.convergence().ended_by, Some(Bound::Accuracy));
        log
    };
    let one = run(1);
    assert!(one == run(2) && one == run(5));
}

#[test]
fn aged_real_volumes_are_captured_as_their_profile() {
    if !root_or_skip("mkfs and mount") {
        return;
    }
    for (kind, mib) in [("ext4", 128), ("xfs", 320), ("btrfs", 320)] {
        for (content, seed) in [(FileContent::Write, 1), (FileContent::Allocate, 2)] {
            let volume = volume(kind, mib);
            let profile = AgingProfile::parse(SMALL).unwrap();
            let options = ProfileOptions { fullness: 0.6, content, seed: Seed(seed), churn: 1.5, ..Default::default() };
            let mut target = senesce_exec::PosixTarget::open(&volume.mountpoint).unwrap();
            // XFS frees the blocks of removed files later, in a worker. A busy machine delays it,
            // and the workload then removes more files.
            let xfs = || Settler::open(&volume.mountpoint, FileSystemKind::Xfs, u64::MAX).unwrap();
            let mut settler = (kind == "xfs").then(xfs);
            let mut settle = || settler.iter_mut().for_each(|settler| settler.count(true).unwrap());
            let (reached, _) = age(&mut target, &profile, &options, &mut settle);
            let what = format!("{kind}, {content:?}");
            assert_eq!(reached.ended_by, Some(Bound::Accuracy), "{what}: {reached:#?}");
            let captured = capture(&volume.mountpoint, &profile, &options);
            let off = compute_difference(&captured, &profile);
            for one in [off.size, off.depth, off.age] {
                assert!(one.total_variation <= options.accuracy, "{what}: {off:#?}");
            }
            let fullness = captured.fullness.unwrap();
            assert!((fullness - 0.6).abs() <= 2.0 * options.accuracy, "{what}: {fullness}");
        }
    }
}

#[test]
fn aging_ends_if_other_programs_fill_the_volume() {
    if !root_or_skip("mkfs and mount") {
        return;
    }
    for (kind, threads) in [("ext4", 1), ("ext4", 2), ("xfs", 2), ("btrfs", 2)] {
        let volume = volume(kind, 320);
        let open = |_| Box::new(senesce_exec::PosixTarget::open(&volume.mountpoint).unwrap()) as Box<dyn Target>;
        let mut targets: Vec<Box<dyn Target>> = (0..threads).map(open).collect();
        let options =
            ProfileOptions { fullness: 0.97, content: FileContent::Allocate, churn: 1.0, ..Default::default() };
        let profile = find_builtin("wang_os").unwrap();
        let mut aging = ProfileAging::new(profile, options).unwrap();
        let (mut last, mut steps) = (None, 0);
        loop {
            let space = targets[0].space().unwrap();
            let feedback = Feedback { capacity: space.capacity, free: space.free, last };
            let Some(step) = aging.next_step(&feedback).unwrap() else { break };
            let done = apply_step_parallel(&mut targets, steps, step, &()).unwrap();
            if let Outcome::NoSpace { .. } = done.outcome {
                aging.on_partial_step(&done.step.ops);
            }
            last = Some(done.outcome);
            steps += 1;
            if steps == 3 {
                // Another program uses a fifth of the volume.
                let other = fs::File::create(volume.path("other")).unwrap();
                rustix::fs::fallocate(&other, rustix::fs::FallocateFlags::empty(), 0, 64 << 20).unwrap();
            }
            assert!(steps < 100_000, "{kind}: it does not end");
        }
        assert!(aging.convergence().ended_by.is_some());
    }
}

/// The profile of a volume, in the bins of the profile that aged it.
fn capture(root: &Path, profile: &AgingProfile, options: &ProfileOptions) -> AgingProfile {
    let census = collect_census(root, &CensusOptions { threads: 2, with_extents: true }).unwrap();
    assert_eq!(census.errors_count, 0, "{:?}", census.errors);
    let found = census.files.iter().map(|file| FoundFile {
        size_bytes: file.size_bytes,
        depth: u64::from(file.depth),
        age_seconds: options.ends_unix_seconds - file.modified_unix_seconds as u64,
        extents: file.extents.map(u64::from),
    });
    let stat = rustix::fs::statvfs(root).unwrap();
    let captured = Captured {
        name: "captured",
        study: "a test".into(),
        fullness: Some(1.0 - stat.f_bavail as f64 / stat.f_blocks as f64),
        directories_by_depth: &census.directories_by_depth,
        like: Some(profile),
    };
    let found = compute_profile(&found.collect::<Vec<_>>(), &captured).unwrap();
    assert!(found.extents.as_ref().is_some_and(|extents| extents.mean >= 1.0), "{:?}", found.extents);
    // A rendered profile parses again.
    AgingProfile::parse(&found.render().unwrap()).unwrap()
}

/// A mounted file system without files.
fn volume(kind: &str, mib: u64) -> Volume {
    let mkfs: &[&str] = if kind == "ext4" { &["-m", "0"] } else { &[] };
    let volume = Volume::new(kind, mib, mkfs, "noatime");
    // A new ext4 has a directory, which does not belong to any profile's depth.
    let _ = fs::remove_dir(volume.path("lost+found"));
    volume
}

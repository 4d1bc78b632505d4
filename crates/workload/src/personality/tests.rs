//! Personalities as calls: they depend only on the seed, and every call is possible.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use senesce_core::Seed;
use senesce_oplog::{Call, FlowCall};

use super::*;
use crate::measured_volume::{chi_square, chi_square_limit};

fn plan(name: &str, scale: f64, seed: u64) -> PersonalityScript {
    plan_long(name, scale, seed, 3000)
}

fn plan_long(name: &str, scale: f64, seed: u64, operations: u64) -> PersonalityScript {
    let options = PersonalityOptions { seed: Seed(seed), scale, operations: Some(operations), endless: false };
    plan_script(&find_personality(name).unwrap(), &options).unwrap()
}

#[test]
fn built_in_personalities_match_filebench() {
    let mut operations = BTreeMap::new();
    for (name, text) in builtin_personalities() {
        let personality: Personality = toml::from_str(text).unwrap();
        assert_eq!(personality.name, name);
        personality.check().unwrap();
        let plan = plan_script(&personality, &PersonalityOptions::default()).unwrap();
        let drivers = plan.script.threads.iter().filter(|thread| thread.is_driver).count();
        operations.insert(name, (plan.script.files.len(), plan.script.threads.len(), drivers, personality.operations));
        let mut counted = 0;
        for (thread, stream) in plan.streams().into_iter().enumerate() {
            if plan.script.threads[thread].is_driver {
                counted += stream.filter(|call| call.counted).count() as u64;
            }
        }
        // No call was skipped: a suitable file always exists.
        assert_eq!(counted, personality.operations, "{name}");
    }
    let wanted = [
        ("fileserver", (10_000, 50, 50, 55_000)),
        ("oltp", (11, 211, 200, 40_000)),
        ("varmail", (1000, 16, 16, 52_000)),
        ("webserver", (1001, 100, 100, 62_000)),
    ];
    assert_eq!(operations, BTreeMap::from(wanted));
}

#[test]
fn sizes_have_their_mean_and_trees_their_width() {
    let plan = plan("fileserver", 1.0, 5);
    let files = &plan.script.files;
    let mean = files.iter().map(|file| file.bytes).sum::<u64>() as f64 / files.len() as f64;
    assert!((mean / 131_072.0 - 1.0).abs() < 0.03, "{mean}");
    assert_eq!(files.iter().filter(|file| file.preallocated).count(), 8000);
    let mut widths: BTreeMap<_, usize> = BTreeMap::new();
    files.iter().for_each(|file| *widths.entry(file.path.parent().unwrap()).or_default() += 1);
    assert!(widths.len() == 500 && widths.values().all(|width| *width == 20));
    let made: BTreeSet<_> = plan.script.directories.iter().collect();
    assert!(files.iter().all(|file| made.contains(&file.path.parent().unwrap())));
}

#[test]
fn files_and_places_are_chosen_uniformly() {
    // One seed in 10,000 exceeds the limits of chi-square; the seeds are fixed.
    let web = plan_long("webserver", 0.1, 5, 62_000);
    let mut pages = vec![0u64; 100];
    for FlowCall { call, .. } in web.streams().into_iter().flatten() {
        // The last file is the log.
        if let Call::Open { file, .. } = call
            && let Some(page) = pages.get_mut(file as usize)
        {
            *page += 1;
        }
    }
    assert!(pages.iter().sum::<u64>() >= 20_000 && chi_square(&pages) < chi_square_limit(99), "{pages:?}");

    let (database, mut places) = (plan_long("oltp", 0.2, 5, 40_000), vec![0u64; 64]);
    for stream in database.streams() {
        for FlowCall { call, .. } in stream.take(1000) {
            if let Call::ReadAt { offset, len, .. } = call {
                // Pages of 2 KiB in files of 2 MiB: 1,024 pages, 16 per bucket.
                assert!(len == 2048 && offset < 2 << 20);
                places[(offset / 2048 / 16) as usize] += 1;
            }
        }
    }
    assert!(places.iter().sum::<u64>() > 10_000 && chi_square(&places) < chi_square_limit(63), "{places:?}");
}

/// Follows all threads, one after the other, and checks every call against the existing files.
fn follow(plan: &PersonalityScript) {
    let mut owner: BTreeMap<u32, usize> = BTreeMap::new();
    let mut there: BTreeSet<u32> =
        (0..plan.script.files.len() as u32).filter(|file| plan.script.files[*file as usize].preallocated).collect();
    for (thread, stream) in plan.streams().into_iter().enumerate() {
        let mut slots: BTreeMap<u32, u32> = BTreeMap::new();
        for FlowCall { call, .. } in stream.take(5000) {
            match call {
                Call::Open { slot, file, access } => {
                    assert_eq!(access.create, !there.contains(&file), "{call:?}");
                    if access.create {
                        there.insert(file);
                        assert_eq!(*owner.entry(file).or_insert(thread), thread, "two threads make the same file");
                    }
                    assert!(slot < plan.script.threads[thread].slots && slots.insert(slot, file).is_none());
                }
                Call::Close { slot } => assert!(slots.remove(&slot).is_some()),
                Call::Unlink { file } => {
                    assert!(there.remove(&file) && !slots.values().any(|open| *open == file));
                    assert_eq!(*owner.entry(file).or_insert(thread), thread);
                }
                Call::Stat { file } => assert!(there.contains(&file)),
                Call::ReadAt { slot, offset, len } | Call::WriteAt { slot, offset, len } => {
                    let bytes = plan.script.files[slots[&slot] as usize].bytes;
                    assert!(offset % u64::from(len) == 0 && (offset + u64::from(len) <= bytes || offset == 0));
                }
                Call::ReadWhole { slot, .. }
                | Call::WriteWhole { slot, .. }
                | Call::Append { slot, .. }
                | Call::Fsync { slot } => assert!(slots.contains_key(&slot)),
                Call::Post { first, count, .. } => assert!((first + count) as usize <= plan.script.semaphores.len()),
                Call::Wait { semaphore, .. } => assert_eq!(plan.script.threads[thread].semaphore, Some(semaphore)),
                Call::Spin { .. } | Call::Pause { .. } => {}
                Call::Skip => panic!("passed over"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn every_thread_is_reproducible_and_valid(
        seed: u64,
        scale in 0.01f64..0.3,
        name in prop::sample::select(vec!["varmail", "fileserver", "webserver", "oltp"]),
    ) {
        let (one, two) = (plan(name, scale, seed), plan(name, scale, seed));
        prop_assert_eq!(&one.script, &two.script);
        for thread in 0..one.script.threads.len() {
            prop_assert!(one.stream(thread).take(500).eq(two.stream(thread).take(500)));
        }
        follow(&one);
        let other = plan(name, scale, seed.wrapping_add(1));
        let last = one.script.threads.len() - 1;
        prop_assert!(!one.stream(last).take(500).eq(other.stream(last).take(500)));
    }
}

#[test]
fn invalid_values_are_reported_with_their_key() {
    let text = builtin_personalities().find(|(name, _)| *name == "oltp").unwrap().1;
    for (from, to, key, said) in [
        ("operations = 40000", "operations = 0", "operations", "nothing to measure"),
        ("name = \"oltp\"", "name = \"a/b\"", "name", "a/b"),
        ("entries = 10\n", "entries = 0\n", "fileset \"datafiles\" entries", "is 0"),
        ("size_gamma = 0\n", "size_gamma = 0.7\n", "fileset \"datafiles\" size_gamma", "multiple of 0.5"),
        ("prealloc_percent = 100", "prealloc_percent = 101", "prealloc_percent", "is 101"),
        ("fileset = \"logfile\"", "fileset = \"lofile\"", "flowop 1 (aiowrite)", "there are datafiles, logfile"),
        ("target = \"lg-block\"", "target = \"block\"", "(sempost)", "no semblock"),
        ("value = 3200, highwater", "value = 0, highwater", "(semblock)", "nothing"),
        (", rotate = true, iters = 100", ", rotate = true, iters = 0", "(aiowrite)", "never be done"),
        ("instances = 200", "instances = 5000", "process.threads", "5011"),
        ("iosize_bytes = 262144, ", "", "(aiowrite)", "needs iosize_bytes"),
        ("name = \"dbwr-hog\", value", "name = \"dbwr-hog\", highwater = 1, value", "(hog)", "highwater"),
        // The limit is 1001: while a thread waits for 3200, 3199 posts may be pending, and another
        // 1002 do not fit.
        ("value = 1, target = \"lg-block\"", "value = 1002, target = \"lg-block\"", "(sempost)", "at most 1001"),
        (
            "{ op = \"hog\", name = \"dbwr-hog\", value = 10000 }",
            "{ op = \"sempost\", value = 1, target = \"lg-block\" }",
            "process \"dbwr\"",
            "semblock and sempost",
        ),
        ("name = \"dbwr-block\"", "name = \"lg-block\"", "process \"dbwr\"", "as process \"lgwr\" does"),
        ("name = \"shadowhog\", value = 200000", "name = \"shadowhog\", value = 1000000001", "(hog)", "1000000001"),
        ("op = \"hog\", name = \"shadowhog\"", "op = \"delay\"", "(delay)", "0 to 10000"),
        (
            "op = \"hog\", name = \"shadowhog\"",
            "op = \"semblock\", highwater = 1, name = \"shadowhog\"",
            "process",
            "wait",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let personality: Personality = toml::from_str(&text.replacen(from, to, 1)).unwrap();
        let problem = personality.check().unwrap_err();
        assert!(problem.key.contains(key) && problem.to_string().contains(said), "{to}: {problem}");
    }
    for (name, scale, said) in [
        ("oltp", 0.0, "above 0"),
        ("oltp", 1e6, "files of 10485760000000 bytes"),
        ("fileserver", 5001.0, "50010000 files"),
        ("webserver", 1e6, "1000000000 files"),
    ] {
        let options = PersonalityOptions { scale, ..PersonalityOptions::default() };
        let problem = plan_script(&find_personality(name).unwrap(), &options).unwrap_err();
        assert!(problem.key == "scale" && problem.problem.contains(said), "{problem}");
    }
}

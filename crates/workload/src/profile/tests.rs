//! The built-in profiles, invalid profiles, and agings of the pure workload against a volume that
//! only counts.

use std::collections::HashMap;

use senesce_core::{Bytes, RelPath, Seed};
use senesce_oplog::{Op, Outcome, Step};

use super::*;
use crate::{Feedback, Workload, WorkloadError};

/// Files and space of a file system without metadata. It fails in the middle of steps when it is
/// full.
#[derive(Default)]
struct Counter {
    capacity: u64,
    used: u64,
    files: HashMap<RelPath, (u64, Option<u64>)>,
    directories: std::collections::HashSet<RelPath>,
    operations: u64,
    keeps_log: bool,
    log: Vec<Step>,
}

impl Counter {
    fn new(capacity: u64) -> Self {
        Self { capacity, ..Self::default() }
    }

    fn feedback(&self, last: Option<Outcome>) -> Feedback {
        Feedback { capacity: Bytes(self.capacity), free: Bytes(self.capacity - self.used), last }
    }

    fn apply(&mut self, step: &Step) -> Outcome {
        if self.keeps_log {
            self.log.push(step.clone());
        }
        for (at, op) in step.ops.iter().enumerate() {
            match op {
                Op::Mkdir { path, .. } => {
                    assert!(self.directories.insert(path.clone()), "{path} is made twice");
                    assert!(self.has_parent(path), "{path} has no parent");
                }
                Op::Create { path, content: senesce_oplog::Content::Seeded { len, .. }, .. } => {
                    assert!(self.has_parent(path), "{path} has no parent");
                    assert!(!self.files.contains_key(path), "{path} is made twice");
                    let need = len.next_multiple_of(4096);
                    self.operations += 1;
                    if need > self.capacity - self.used {
                        let written = self.capacity - self.used;
                        self.used = self.capacity;
                        self.files.insert(path.clone(), (written, None));
                        return Outcome::NoSpace { failed_op: at, written: Some(written) };
                    }
                    self.used += need;
                    self.files.insert(path.clone(), (*len, None));
                }
                Op::Allocate { path, len, .. } => {
                    assert!(self.has_parent(path), "{path} has no parent");
                    let need = len.next_multiple_of(4096);
                    self.operations += 1;
                    if need > self.capacity - self.used {
                        return Outcome::NoSpace { failed_op: at, written: None };
                    }
                    self.used += need;
                    assert!(self.files.insert(path.clone(), (*len, None)).is_none(), "{path} is made twice");
                }
                Op::Unlink { path } => {
                    let (len, _) = self.files.remove(path).unwrap_or_else(|| panic!("{path} is not there"));
                    self.used -= len.next_multiple_of(4096);
                    self.operations += 1;
                }
                Op::SetModified { path, unix_seconds } => {
                    self.files.get_mut(path).unwrap_or_else(|| panic!("{path} is not there")).1 = Some(*unix_seconds);
                }
                Op::SyncFs => {}
                other => panic!("{other}"),
            }
        }
        Outcome::Done
    }

    fn has_parent(&self, path: &RelPath) -> bool {
        path.parent().is_none_or(|parent| parent.is_root() || self.directories.contains(&parent))
    }

    fn run(&mut self, aging: &mut ProfileAging) -> Result<u64, WorkloadError> {
        let (mut last, mut counted) = (None, 0);
        while let Some(step) = aging.next_step(&self.feedback(last))? {
            counted += u64::from(step.counted);
            last = Some(self.apply(&step));
            assert!(self.operations < 10_000_000, "it does not end");
        }
        Ok(counted)
    }
}

fn age(profile: AgingProfile, options: ProfileOptions, capacity: u64) -> (Counter, Convergence) {
    let mut aging = ProfileAging::new(profile, options).unwrap();
    let mut volume = Counter::new(capacity);
    let counted = volume.run(&mut aging).unwrap();
    assert_eq!(counted, ProfileAging::counted_steps());
    (volume, aging.convergence())
}

#[test]
fn built_in_profiles_parse_and_round_trip() {
    assert_eq!(builtin_profiles().count(), 8);
    for (name, text) in builtin_profiles() {
        let profile = AgingProfile::parse(text).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!(profile.name, name);
        assert!(profile.source.as_ref().unwrap().study.len() > 20, "{name} names no source");
        assert_eq!(AgingProfile::parse(&profile.render().unwrap()).unwrap(), profile);
        assert!(draw_profile(&profile).contains('█'));
        let same = compute_difference(&profile, &profile);
        assert_eq!([same.size, same.depth, same.age].map(|one| one.largest < 1e-9), [true; 3], "{name}: {same:?}");
    }
}

const TINY: &str = "format = \"aging-profile/1\"\nname = \"tiny\"\n[size]\nvalues = [4096, 65536]\nfractions = [0.75, \
                    0.25]\n[depth]\nvalues = [0, 2]\nweights = [1, 1]\n[age]\nupper = [24, 720]\nweights = [1, 9]\n";

#[test]
fn omitted_values_are_computed() {
    let tiny = AgingProfile::parse(TINY).unwrap();
    assert_eq!(tiny.size_weights(), [750_000_000_000, 250_000_000_000]);
    assert_eq!(tiny.age.upper_relative, [24.0 / 720.0, 1.0]);
    assert_eq!(tiny.depth.fractions, [0.5, 0.5]);
    assert_eq!(tiny.life_seconds(), 720 * 3600);
}

#[test]
fn invalid_profiles_are_refused_with_the_number() {
    for (from, to, said) in [
        ("0.25", "0.35", "size.fractions sums to 1.1"),
        ("0.75, 0.25", "1.25, -0.25", "size.fractions[1] is -0.25"),
        ("0.75, 0.25", "nan, 0.25", "size.fractions[0] is NaN"),
        ("weights = [1, 9]", "weights = [1, -9]", "age.weights[1] is -9"),
        ("weights = [1, 9]", "weights = [0, 0]", "age.weights are all 0"),
        ("weights = [1, 9]", "weights = [1]", "age.weights has 1 entries, and age.upper has 2"),
        ("weights = [1, 9]", "", "age.weights is empty"),
        ("values = [4096, 65536]\nfractions = [0.75, 0.25]", "values = []\nweights = []", "size.values is empty"),
        ("[24, 720]", "[720, 24]", "age.upper[1] is 24"),
        ("[24, 720]", "[0, 720]", "age.upper = 0"),
        ("[0, 2]", "[0, 251]", "depth.values = 251"),
        ("profile/1", "profile/2", "aging-profile/2"),
        ("weights = [1, 9]", "weights = [1, 9]\nfractions = [0.2, 0.8]", "age.fractions[0] is 0.2"),
        ("[size]", "[size]\nbananas = 1", "bananas"),
        ("name = \"tiny\"", "name = \"tiny\"\nfullness = 1.5", "fullness = 1.5"),
    ] {
        assert!(TINY.contains(from), "{from}");
        let problem = AgingProfile::parse(&TINY.replace(from, to)).unwrap_err().to_string();
        assert!(problem.contains(said), "{to}: {problem}");
    }
}

#[test]
fn the_virtual_schedule_reaches_every_profile() {
    for (name, _) in builtin_profiles() {
        for content in [FileContent::Write, FileContent::Allocate] {
            let profile = find_builtin(name).unwrap();
            let options = ProfileOptions { fullness: 0.7, content, seed: Seed(7), ..Default::default() };
            let (volume, reached) = age(profile.clone(), options.clone(), 2 << 30);
            assert_eq!(reached.ended_by, Some(Bound::Accuracy), "{name}: {reached:#?}");
            check_volume(name, &volume, &profile, &options);
            let per_file = volume.operations as f64 / reached.files as f64;
            assert!((8.0..13.0).contains(&per_file), "{name}: {per_file} operations a file");
        }
    }
}

/// Sizes, depths, ages and fullness counted from the volume, not from the state of the workload.
fn check_volume(name: &str, volume: &Counter, profile: &AgingProfile, options: &ProfileOptions) {
    let total: u64 = volume.files.values().map(|(len, _)| len.next_multiple_of(4096)).sum();
    assert_eq!(total, volume.used);
    let fullness = volume.used as f64 / volume.capacity as f64;
    assert!((fullness - options.fullness).abs() <= options.accuracy, "{name}: fullness {fullness}");
    let (mut sizes, mut depths, mut ages) =
        (vec![0; profile.size.values.len()], vec![0; profile.depth.values.len()], vec![0; profile.age.upper.len()]);
    for (path, (len, time)) in &volume.files {
        sizes[profile.size.values.partition_point(|value| value < len)] += 1;
        let depth = path.as_bytes().iter().filter(|&&byte| byte == b'/').count() as u64;
        depths[profile.depth.values.iter().position(|&value| value == depth).unwrap()] += 1;
        let age = (options.ends_unix_seconds - time.unwrap()) as f64 / profile.life_seconds() as f64;
        ages[profile.age.upper_relative.iter().position(|&upper| age <= upper).unwrap()] += 1;
    }
    for (what, counts, weights) in [
        ("size", sizes, profile.size_weights()),
        ("depth", depths, profile.depth_weights()),
        ("age", ages, profile.age_weights()),
    ] {
        let far = Deviation::compute(&counts, &weights).total_variation;
        assert!(far <= options.accuracy, "{name}: {what} is off by {far}: {counts:?}");
    }
}

#[test]
fn the_classic_schedule_reaches_its_profiles() {
    for name in ["wang_os", "agrawal", "meyer", "dabre", "pramod"] {
        let profile = find_builtin(name).unwrap();
        let options = ProfileOptions { fullness: 0.6, schedule: Schedule::Classic, ..Default::default() };
        let (volume, reached) = age(profile.clone(), options.clone(), 1 << 30);
        assert_eq!(reached.ended_by, Some(Bound::Accuracy), "{name}: {reached:#?}");
        check_volume(name, &volume, &profile, &options);
    }
}

#[test]
fn spread_sizes_reach_the_profile() {
    let profile = find_builtin("agrawal").unwrap();
    let options = ProfileOptions { sizes: Sizes::Spread, ..Default::default() };
    let (volume, reached) = age(profile.clone(), options.clone(), 1 << 30);
    assert_eq!(reached.ended_by, Some(Bound::Accuracy), "{reached:#?}");
    check_volume("agrawal", &volume, &profile, &options);
    let distinct: std::collections::HashSet<u64> = volume.files.values().map(|(len, _)| *len).collect();
    assert!(distinct.len() > 1000, "only {} sizes", distinct.len());
}

#[test]
fn steps_depend_on_the_seed() {
    let run = |seed| {
        let options = ProfileOptions { seed: Seed(seed), ..Default::default() };
        let mut aging = ProfileAging::new(find_builtin("wang_os").unwrap(), options).unwrap();
        let mut volume = Counter { keeps_log: true, ..Counter::new(200 << 20) };
        volume.run(&mut aging).unwrap();
        volume.log
    };
    assert!(run(1) == run(1));
    assert!(run(1) != run(2));
}

#[test]
fn an_early_full_volume_ends_the_aging() {
    for schedule in [Schedule::Virtual, Schedule::Classic] {
        for content in [FileContent::Write, FileContent::Allocate] {
            let options = ProfileOptions { fullness: 0.9, schedule, content, ..Default::default() };
            let mut aging = ProfileAging::new(find_builtin("wang_os").unwrap(), options).unwrap();
            // The volume reports twice its space: another program uses the rest once the filling
            // has started.
            let mut volume = Counter::new(200 << 20);
            let (mut last, mut steps) = (None, 0u64);
            while let Some(step) = {
                let mut feedback = volume.feedback(last);
                feedback.capacity = Bytes(400 << 20);
                feedback.free = Bytes(feedback.free.0 + (200 << 20));
                aging.next_step(&feedback).unwrap()
            } {
                last = Some(volume.apply(&step));
                steps += 1;
                assert!(steps < 100_000, "it does not end");
            }
            let reached = aging.convergence();
            assert_eq!(reached.ended_by, Some(Bound::NoSpace), "{reached:#?}");
            assert!(reached.no_space > 0 && reached.fullness < 0.6, "{reached:#?}");
        }
    }
}

#[test]
fn invalid_options_are_refused_before_any_write() {
    let profile = || find_builtin("agrawal").unwrap();
    for (options, said) in [
        (ProfileOptions { fullness: 0.99, ..Default::default() }, "fullness"),
        (ProfileOptions { fullness: f64::NAN, ..Default::default() }, "fullness"),
        (ProfileOptions { churn: 0.5, ..Default::default() }, "churn"),
        (ProfileOptions { accuracy: 0.0, ..Default::default() }, "accuracy"),
    ] {
        let problem = ProfileAging::new(profile(), options).err().unwrap().to_string();
        assert!(problem.contains(said), "{problem}");
    }
    for (capacity, used, said) in [(1 << 20, 0, "files of this profile"), (1 << 30, 900 << 20, "already used")] {
        let mut aging = ProfileAging::new(profile(), ProfileOptions::default()).unwrap();
        let feedback = Feedback { capacity: Bytes(capacity), free: Bytes(capacity - used), last: None };
        let problem = aging.next_step(&feedback).unwrap_err().to_string();
        assert!(problem.contains(said), "{problem}");
    }
}

#[test]
fn merged_profiles_have_the_files_of_both() {
    let (os, lanl) = (find_builtin("wang_os").unwrap(), find_builtin("wang_lanl").unwrap());
    let both = merge_profiles(&[os.clone(), lanl], "both").unwrap();
    assert_eq!(both.size_weights().iter().sum::<u64>(), 101 + 85);
    let twice = merge_profiles(&[os.clone(), os.clone()], "twice").unwrap();
    let same = compute_difference(&twice, &os);
    assert!(same.size.largest < 1e-9 && same.depth.largest < 1e-9 && same.age.largest < 1e-9, "{same:?}");
    assert!(merge_profiles(&[], "none").is_err());
}

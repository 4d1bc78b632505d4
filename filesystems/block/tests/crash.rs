//! The states after losses of power are exactly the possible ones.

use std::collections::BTreeSet;

use proptest::prelude::*;
use senesce_block::{BlockDevice, Crash, CrashPlan, MemoryDevice, RecordedDevice, Recording};
use senesce_core::Bytes;

const SIZE: u64 = 2048;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Device, first sector, sectors.
    Write(usize, u64, u64),
    Flush(usize),
    Mark,
}

fn record(steps: &[Step]) -> Recording {
    let blank = |name: &str| MemoryDevice::new(name, Bytes(SIZE));
    let (recording, devices) = Recording::new(vec![blank("a"), blank("b")]);
    for (number, step) in (1u8..).zip(steps) {
        match *step {
            Step::Write(device, sector, sectors) => {
                devices[device].write_at(sector * 512, &vec![number; (sectors * 512) as usize]).unwrap();
            }
            Step::Flush(device) => devices[device].flush().unwrap(),
            Step::Mark => recording.mark(u64::from(number)),
        }
    }
    recording
}

fn crashes(recording: &Recording, plan: &CrashPlan) -> Vec<Crash> {
    let mut all = Vec::new();
    recording.for_each_crash(plan, |crash| all.push(crash));
    all
}

/// The contents of each sector of both devices.
fn picture(crash: &Crash) -> Vec<u8> {
    crash.devices.iter().flat_map(|device| device.contents().into_iter().step_by(512)).collect()
}

/// All states by the definition: after every step, the flushed writes and every subset of the
/// others. Each of the others is whole, or ends at any sector.
fn by_definition(steps: &[Step]) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    for end in 0..=steps.len() {
        let mut states = BTreeSet::from([vec![0u8; 8]]);
        for (at, step) in steps[..end].iter().enumerate() {
            let Step::Write(device, sector, sectors) = *step else { continue };
            let flushed = steps[at..end].iter().any(|later| matches!(later, Step::Flush(of) if *of == device));
            let least = if flushed { sectors } else { 0 };
            states = (least..=sectors)
                .flat_map(|kept| {
                    states.iter().map(move |state| {
                        let mut state = state.clone();
                        let first = device * 4 + sector as usize;
                        state[first..first + kept as usize].fill(at as u8 + 1);
                        state
                    })
                })
                .collect();
        }
        found.extend(states);
    }
    found
}

fn steps(longest: u64) -> impl Strategy<Value = Vec<Step>> {
    let write = (0..2usize, 0..4u64, 1..=longest);
    let step = prop_oneof![
        5 => write.prop_map(|(device, sector, sectors)| Step::Write(device, sector, sectors.min(4 - sector))),
        2 => (0..2usize).prop_map(Step::Flush),
        1 => Just(Step::Mark),
    ];
    prop::collection::vec(step, 0..9)
}

proptest! {
    #[test]
    fn whole_writes_leave_exactly_all_subsets(steps in steps(1)) {
        let plan = CrashPlan { samples: 0, ..CrashPlan::default() };
        let got: BTreeSet<Vec<u8>> = crashes(&record(&steps), &plan).iter().map(picture).collect();
        prop_assert_eq!(got, by_definition(&steps));
    }

    #[test]
    fn torn_writes_are_possible_states(steps in steps(4)) {
        let plan = CrashPlan { exhaustive_up_to: 3, samples: 40, ..CrashPlan::default() };
        let may_be = by_definition(&steps);
        let recording = record(&steps);
        for crash in crashes(&recording, &plan) {
            prop_assert!(may_be.contains(&picture(&crash)), "{}", crash);
        }
        let told = |all: &[Crash]| all.iter().map(|crash| (crash.to_string(), picture(crash))).collect::<Vec<_>>();
        prop_assert_eq!(told(&crashes(&recording, &plan)), told(&crashes(&recording, &plan)));
    }

    #[test]
    fn flushed_writes_exist_at_a_later_mark(steps in steps(4)) {
        for crash in crashes(&record(&steps), &CrashPlan::default()) {
            let Some(mark) = crash.mark else { continue };
            let before = &steps[..mark as usize];
            let flushed = |device| before.iter().rposition(|step| matches!(step, Step::Flush(of) if *of == device));
            for (at, step) in before.iter().enumerate() {
                if let Step::Write(device, sector, _) = *step && flushed(device).is_some_and(|flush| flush > at) {
                    let there = picture(&crash)[device * 4 + sector as usize];
                    prop_assert!(usize::from(there) > at, "{}: {} over {}", crash, there, at + 1);
                }
            }
        }
    }
}

/// The default plan finds the two mistakes that crash tests are meant for.
#[test]
fn missing_flush_and_torn_write_are_found() {
    let run = |flush: bool, sectors: usize| {
        let blank = |name: &str| MemoryDevice::new(name, Bytes(16 * 512));
        let (recording, devices) = Recording::new(vec![blank("data"), blank("super")]);
        let write = |device: &RecordedDevice, byte: u8, sectors: usize| {
            device.write_at(0, &vec![byte; sectors * 512]).unwrap();
        };
        write(&devices[0], 1, 1);
        if flush {
            devices[0].flush().unwrap();
        }
        write(&devices[1], 1, sectors);
        devices[1].flush().unwrap();
        recording.mark(1);
        let (mut unordered, mut torn, mut lost) = (0, 0, 0);
        recording.for_each_crash(&CrashPlan::default(), |crash| {
            let (data, superblock) = (crash.devices[0].contents(), crash.devices[1].contents());
            unordered += usize::from(superblock[0] == 1 && data[0] == 0);
            torn += usize::from(superblock[0] != superblock[(sectors - 1) * 512]);
            lost += usize::from(crash.mark.is_some() && (superblock[0] == 0 || data[0] == 0));
        });
        (unordered > 0, torn > 0, lost > 0)
    };
    assert_eq!(run(true, 1), (false, false, false));
    assert_eq!(run(false, 1), (true, false, true));
    assert_eq!(run(true, 9), (false, true, false));
}

#[test]
fn subsets_of_many_writes_are_sampled() {
    let steps: Vec<Step> = (0..30).map(|at| Step::Write(at % 2, at as u64 % 4, 1)).collect();
    let plan = CrashPlan { samples: 500, ..CrashPlan::default() };
    let all = crashes(&record(&steps), &plan);
    // One before the first write, one after each write, the loss of all writes, and the samples.
    assert_eq!(all.len(), 1 + 30 + 1 + 500);
    let different: BTreeSet<&Vec<usize>> = all.iter().map(|crash| &crash.lost).collect();
    assert!(different.len() > 400, "{}", different.len());
}

#[test]
fn durable_write_leaves_other_writes_pending() {
    let blank = MemoryDevice::new("a", Bytes(SIZE));
    let (recording, devices) = Recording::new(vec![blank]);
    devices[0].write_at(0, &[1; 512]).unwrap();
    devices[0].write_at(512, &[2; 512]).unwrap();
    devices[0].write_durably_at(512, &[3; 512]).unwrap();
    recording.mark(1);
    devices[0].write_at(1024, &[4; 512]).unwrap();
    let after = crashes(&recording, &CrashPlan::default()).into_iter().filter(|crash| crash.mark.is_some());
    let seen: BTreeSet<Vec<u8>> =
        after.map(|crash| crash.devices[0].contents().into_iter().step_by(512).take(3).collect()).collect();
    let all = [[0, 3, 0], [0, 3, 4], [1, 3, 0], [1, 3, 4]].map(|sectors| sectors.to_vec());
    assert_eq!(seen, BTreeSet::from(all), "the marked write exists, with the writes to its place before it");
}

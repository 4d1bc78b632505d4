//! The built-in personalities against a model in memory: concurrent threads in a real directory
//! have the results of the model, which executes the threads one after the other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use senesce_core::{Clock, ManualClock, Seed};
use senesce_exec::{ScriptLimits, make_script_files, run_script};
use senesce_oplog::{Call, Script};
use senesce_workload::personality::{
    PersonalityOptions, PersonalityScript, builtin_personalities, find_personality, plan_script,
};

/// Lengths of the existing files, and the results of each flow operation: counted calls, bytes
/// read, bytes written.
#[derive(Default)]
struct Model {
    files: BTreeMap<u32, u64>,
    flows: BTreeMap<u32, (u64, u64, u64)>,
    posts: Vec<u64>,
    appended_by: BTreeMap<u32, BTreeSet<usize>>,
}

impl Model {
    /// Plays drivers first: a waiting thread repeats as often as they post, with any timing of the
    /// threads.
    fn of(plan: &PersonalityScript) -> Self {
        let script = &plan.script;
        let there = script.files.iter().enumerate().filter(|(_, file)| file.preallocated);
        let mut model = Self {
            files: there.map(|(number, file)| (number as u32, file.bytes)).collect(),
            posts: vec![0; script.semaphores.len()],
            ..Self::default()
        };
        for is_driver in [true, false] {
            for (number, thread) in script.threads.iter().enumerate() {
                if thread.is_driver == is_driver && (is_driver || thread.semaphore.is_some()) {
                    model.play(plan, number);
                }
            }
        }
        model
    }

    fn play(&mut self, plan: &PersonalityScript, thread: usize) {
        let mut slots = vec![None; plan.script.threads[thread].slots as usize];
        for it in plan.stream(thread) {
            let (mut read, mut written) = (0, 0);
            let open = |slot: u32, slots: &[Option<u32>]| slots[slot as usize].expect("the slot is open");
            match it.call {
                Call::Open { slot, file, access } => {
                    assert!(slots[slot as usize].is_none(), "the slot is empty");
                    assert_ne!(
                        self.files.contains_key(&file),
                        access.create,
                        "made where it is not, opened where it is"
                    );
                    self.files.entry(file).or_insert(0);
                    slots[slot as usize] = Some(file);
                }
                Call::Close { slot } => assert!(slots[slot as usize].take().is_some()),
                Call::ReadWhole { slot, .. } => read = self.files[&open(slot, &slots)],
                Call::ReadAt { slot, offset, len } => {
                    read = self.files[&open(slot, &slots)].saturating_sub(offset).min(u64::from(len));
                }
                Call::WriteWhole { slot, len, .. } => written = self.write(open(slot, &slots), 0, len),
                Call::WriteAt { slot, offset, len } => {
                    written = self.write(open(slot, &slots), offset, u64::from(len));
                }
                Call::Append { slot, len } => {
                    let file = open(slot, &slots);
                    self.appended_by.entry(file).or_default().insert(thread);
                    written = self.write(file, self.files[&file], u64::from(len));
                }
                Call::Unlink { file } => assert!(self.files.remove(&file).is_some(), "a removed file exists"),
                Call::Stat { file } => assert!(self.files.contains_key(&file)),
                Call::Post { first, count, by } => {
                    self.posts[first as usize..(first + count) as usize]
                        .iter_mut()
                        .for_each(|post| *post += u64::from(by));
                }
                Call::Wait { semaphore, by } => match self.posts[semaphore as usize].checked_sub(u64::from(by)) {
                    Some(left) => self.posts[semaphore as usize] = left,
                    None => return,
                },
                Call::Fsync { .. } | Call::Spin { .. } | Call::Pause { .. } => {}
                Call::Skip => continue,
            }
            let flow = self.flows.entry(it.flow).or_default();
            *flow = (flow.0 + u64::from(it.counted), flow.1 + read, flow.2 + written);
        }
    }

    fn write(&mut self, file: u32, offset: u64, len: u64) -> u64 {
        let length = self.files.get_mut(&file).expect("the file is there");
        *length = (*length).max(offset + len);
        len
    }
}

fn lengths(root: &Path, script: &Script) -> BTreeMap<u32, u64> {
    let found =
        script.files.iter().enumerate().filter_map(|(number, file)| {
            Some((number as u32, fs::metadata(root.join(file.path.as_path())).ok()?.len()))
        });
    found.collect()
}

#[test]
fn concurrent_threads_match_the_model() {
    for (name, _) in builtin_personalities() {
        for seed in [1, 2] {
            let personality = find_personality(name).unwrap();
            let options =
                PersonalityOptions { seed: Seed(seed), scale: 0.02, operations: Some(3000), ..Default::default() };
            let plan = plan_script(&personality, &options).unwrap();
            let model = Model::of(&plan);
            let dir = tempfile::tempdir().unwrap();
            make_script_files(dir.path(), &plan.script, &|| false).unwrap();
            let clock: &dyn Clock = &ManualClock::default();
            let limits = ScriptLimits { time: None, stop: &|| false };
            let end = run_script(dir.path(), &plan.script, plan.streams(), clock, limits).unwrap();
            assert_eq!(end.operations, model.flows.values().map(|flow| flow.0).sum::<u64>(), "{name}, seed {seed}");
            for (number, tally) in end.flows.iter().enumerate() {
                let expected = model.flows.get(&(number as u32)).copied().unwrap_or_default();
                let flow = &plan.script.flows[number];
                assert_eq!((tally.read_bytes, tally.written_bytes), (expected.1, expected.2), "{name}: {flow:?}");
                assert_eq!(tally.no_space, 0);
            }
            let found = lengths(dir.path(), &plan.script);
            assert_eq!(found.keys().collect::<Vec<_>>(), model.files.keys().collect::<Vec<_>>(), "{name}, seed {seed}");
            for (file, length) in &model.files {
                // Seeking to the end and writing are two calls, so threads that append to one file
                // may overlap.
                let is_shared = model.appended_by.get(file).is_some_and(|threads| threads.len() > 1);
                let path = &plan.script.files[*file as usize].path;
                match is_shared {
                    true => assert!(found[file] <= *length, "{name}: {path}"),
                    false => assert_eq!(found[file], *length, "{name}: {path}"),
                }
            }
        }
    }
}

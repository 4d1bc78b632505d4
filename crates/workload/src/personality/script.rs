//! Turns a personality into files and threads.

use std::sync::Arc;

use senesce_core::{Rng, Seed};
use senesce_oplog::{Script, ScriptFlow, ScriptThread};

use super::{
    Fileset, Flowop, FlowopKind, Personality, PersonalityProblem, Scales,
    check::{LARGEST_MEAN, MOST_FILES},
    stream::{CallStream, Choice, Line},
    tree::plan_tree,
};

/// The smallest number of files that a thread owns in a set whose files are created and deleted.
const LEAST_SHARE: u64 = 5;

/// Options of a run of a personality.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PersonalityOptions {
    /// The seed of files, sizes and choices.
    pub seed: Seed,
    /// The factor of every set of files, above 0. Each set says what it multiplies.
    pub scale: f64,
    /// File operations of the run; replaces the number of the personality.
    pub operations: Option<u64>,
    /// The threads never stop by themselves: the caller stops the run.
    pub endless: bool,
}

impl Default for PersonalityOptions {
    fn default() -> Self {
        Self { seed: Seed(1), scale: 1.0, operations: None, endless: false }
    }
}

/// A personality ready to run: files, threads, and the calls of each thread.
#[derive(Clone, Debug)]
pub struct PersonalityScript {
    /// The files, flows and threads that the calls refer to.
    pub script: Script,
    threads: Vec<ThreadPlan>,
    seed: Seed,
}

#[derive(Clone, Debug)]
struct ThreadPlan {
    lines: Vec<Line>,
    loops: Option<u64>,
    /// For each set of files: the files to choose from.
    choices: Vec<Choice>,
}

impl PersonalityScript {
    /// The calls of a thread, from the start.
    pub fn stream(&self, thread: usize) -> CallStream<'_> {
        let plan = &self.threads[thread];
        let rng = Rng::for_purpose(self.seed, &format!("thread {thread}"));
        let choices = plan.choices.clone();
        CallStream::new(&self.script.files, &plan.lines, plan.loops, choices, &self.script.threads[thread], rng)
    }

    /// The calls of each thread, by thread number.
    pub fn streams(&self) -> Vec<CallStream<'_>> {
        (0..self.threads.len()).map(|thread| self.stream(thread)).collect()
    }
}

/// Draws the files of a personality, distributes them over its threads, and computes the loops of
/// each thread.
///
/// A set whose files are created and deleted is divided among its threads, with at least five files
/// each. Any other set is shared by all its threads. Errors: those of [`Personality::check`]; a
/// scale that is not above 0, or that makes files too many or too large. Cost: some hundred bytes a
/// file.
pub fn plan_script(
    personality: &Personality,
    options: &PersonalityOptions,
) -> Result<PersonalityScript, PersonalityProblem> {
    personality.check()?;
    if !(options.scale > 0.0 && options.scale <= 1e6) {
        let problem = format!("is {}; it must be above 0 and at most 1000000", options.scale);
        return Err(PersonalityProblem { key: "scale".into(), problem });
    }
    let mut script = Script::default();
    let mut threads = Vec::new();
    // The process of each thread.
    let mut owners = Vec::new();
    let mut waiting: Vec<(String, u32, u32)> = Vec::new();
    for (number, process) in personality.processes.iter().enumerate() {
        let block = process.flowops.iter().find(|flowop| flowop.op == FlowopKind::SemBlock);
        let count = process.instances * process.threads;
        if let Some(block) = block {
            waiting.push((block.name.clone().unwrap_or_default(), script.semaphores.len() as u32, count));
        }
        for _ in 0..count {
            let semaphore = block.map(|block| {
                script.semaphores.push(block.highwater.unwrap_or(0));
                script.semaphores.len() as u32 - 1
            });
            let has_work = process.flowops.iter().any(|flowop| flowop.op.is_file_operation());
            script.threads.push(ScriptThread { is_driver: block.is_none() && has_work, slots: 0, semaphore });
            owners.push(number);
        }
    }
    let all_lines = personality.processes.iter().map(|process| {
        let set_of = |flowop: &Flowop| {
            flowop.fileset.as_ref().and_then(|name| personality.filesets.iter().position(|set| set.name == *name))
        };
        let first = script.flows.len();
        let lines = process.flowops.iter().enumerate().map(|(at, flowop)| {
            let name = name_of(flowop, &script.flows);
            script.flows.push(ScriptFlow { name, op: flowop.op.name().into() });
            let target = flowop.target.as_ref();
            let found = waiting.iter().find(|(name, ..)| Some(name) == target);
            let semaphores = found.map_or((0, 0), |(_, first, count)| (*first, *count));
            Line {
                flow: (first + at) as u32,
                flowop: flowop.clone(),
                set: set_of(flowop),
                semaphores,
                rotating_from: 0,
            }
        });
        lines.collect::<Vec<_>>()
    });
    let mut line_sets: Vec<Vec<Line>> = all_lines.collect();

    let mut rng = Rng::for_purpose(options.seed, "files");
    let mut dealt: Vec<Vec<Choice>> = vec![Vec::new(); owners.len()];
    for (number, set) in personality.filesets.iter().enumerate() {
        let comes_and_goes = line_sets.iter().flatten().any(|line| {
            line.set == Some(number) && matches!(line.flowop.op, FlowopKind::CreateFile | FlowopKind::DeleteFile)
        });
        let uses = |thread: &usize| line_sets[owners[*thread]].iter().any(|line| line.set == Some(number));
        let users: Vec<usize> = (0..owners.len()).filter(uses).collect();
        let least = if comes_and_goes { LEAST_SHARE * users.len() as u64 } else { 1 };
        let (entries, mean) = scale_set(set, options.scale, least, script.files.len() as u64)?;
        let tree = plan_tree(set, entries, mean, &mut rng);
        let first = script.files.len() as u32;
        script.directories.extend(tree.directories);
        script.files.extend(tree.files);
        let all: Vec<u32> = (first..script.files.len() as u32).collect();
        let mut deal = |mut files: Vec<u32>| {
            let there = ((files.len() as u64 * set.prealloc_percent + 50) / 100) as usize;
            rng.shuffle(&mut files);
            let absent = files.split_off(there);
            files.iter().for_each(|file| script.files[*file as usize].preallocated = true);
            files.sort_unstable();
            Choice { there: Arc::new(files), absent: Arc::new(absent) }
        };
        if comes_and_goes {
            dealt.iter_mut().for_each(|choices| choices.push(Choice::default()));
            for (place, user) in users.iter().enumerate() {
                dealt[*user][number] = deal(all.iter().skip(place).step_by(users.len()).copied().collect());
            }
        } else {
            let choice = deal(all);
            dealt.iter_mut().for_each(|choices| choices.push(choice.clone()));
        }
    }

    // Rotating lines keep their files open in slots after the numbered ones.
    for (process, lines) in line_sets.iter_mut().enumerate() {
        let mut next = lines.iter().map(|line| line.flowop.slot + 1).max().unwrap_or(1);
        let Some(thread) = owners.iter().position(|owner| *owner == process) else { continue };
        for line in lines.iter_mut().filter(|line| line.flowop.rotate) {
            line.rotating_from = next;
            next += line.set.map_or(0, |set| dealt[thread][set].there.len() as u32);
        }
        for (thread, owner) in script.threads.iter_mut().zip(&owners) {
            if *owner == process {
                thread.slots = next;
            }
        }
    }

    let per_loop = |process: usize| -> u64 {
        let counted = line_sets[process].iter().filter(|line| line.flowop.op.is_file_operation());
        counted.map(|line| u64::from(line.flowop.iters)).sum()
    };
    let drivers = script.threads.iter().zip(&owners).filter(|(thread, _)| thread.is_driver);
    let in_a_round: u64 = drivers.map(|(_, owner)| per_loop(*owner)).sum();
    let loops = options.operations.unwrap_or(personality.operations).div_ceil(in_a_round.max(1));
    for (thread, choices) in dealt.into_iter().enumerate() {
        let loops = (script.threads[thread].is_driver && !options.endless).then_some(loops);
        threads.push(ThreadPlan { lines: line_sets[owners[thread]].clone(), loops, choices });
    }
    Ok(PersonalityScript { script, threads, seed: options.seed })
}

/// Number and mean size of the files of a set; `before` is the number of files in the sets before
/// it.
fn scale_set(set: &Fileset, scale: f64, least: u64, before: u64) -> Result<(u64, u64), PersonalityProblem> {
    let scaled = |value: u64| ((value as f64 * scale).round() as u64).max(1);
    let (entries, mean) = match set.scales {
        Scales::Entries => (scaled(set.entries), set.size_bytes),
        Scales::Size => (set.entries, scaled(set.size_bytes)),
    };
    let entries = entries.max(least);
    let all = before.saturating_add(entries);
    let problem = if all > MOST_FILES {
        format!("is {scale}: with fileset {:?} it makes {all} files; the limit is {MOST_FILES}", set.name)
    } else if mean > LARGEST_MEAN {
        format!("is {scale}: fileset {:?} would have files of {mean} bytes; the limit is {LARGEST_MEAN}", set.name)
    } else {
        return Ok((entries, mean));
    };
    Err(PersonalityProblem { key: "scale".into(), problem })
}

/// The name of a flow operation, or its kind with its number among those of the same kind.
fn name_of(flowop: &Flowop, flows: &[ScriptFlow]) -> String {
    let alike = || flows.iter().filter(|other| other.op == flowop.op.name()).count();
    flowop.name.clone().unwrap_or_else(|| format!("{}{}", flowop.op.name(), alike() + 1))
}

#[cfg(test)]
mod tests {
    use super::{super::find_personality, *};

    #[test]
    fn threads_share_files_of_unchanging_sets() {
        let plan = plan_script(&find_personality("webserver").unwrap(), &PersonalityOptions::default()).unwrap();
        let first = &plan.threads[0].choices;
        let shared = Arc::as_ptr(&first[0].there);
        assert_eq!(first[0].there.len(), 1000);
        for (thread, mut stream) in plan.streams().into_iter().enumerate() {
            assert_eq!(Arc::as_ptr(&plan.threads[thread].choices[0].there), shared);
            assert!(stream.by_ref().take(100).count() == 100);
            assert_eq!(Arc::as_ptr(&stream.choices[0].there), shared);
        }
    }
}

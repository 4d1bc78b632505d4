//! Checks of personalities.

use super::format::{Fileset, Flowop, FlowopKind, PERSONALITY_FORMAT, Personality, Process};

/// The highest slot that a personality may name.
const MOST_SLOT: u32 = 64;
/// The largest number of threads.
const MOST_THREADS: u64 = 4096;
/// The largest number of files of a set, and of all sets after scaling.
pub(super) const MOST_FILES: u64 = 50_000_000;
/// The largest mean size of a set's files, bytes.
pub(super) const LARGEST_MEAN: u64 = 1 << 40;
/// The largest access, bytes: buffers have this size.
const LARGEST_ACCESS: u32 = 64 << 20;
/// The longest single pause, milliseconds. During a pause a thread does not notice the end of a
/// run.
const LONGEST_DELAY: u32 = 10_000;
/// The largest number of memory writes at once. It takes about a second, in which a thread does not
/// notice the end of a run.
const MOST_HOG: u32 = 1_000_000_000;

/// A personality cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct PersonalityProblem {
    /// The key, such as `fileset.entries`.
    pub key: String,
    /// The fault of its value.
    pub problem: String,
}

fn wrong<T>(key: impl Into<String>, problem: impl Into<String>) -> Result<T, PersonalityProblem> {
    Err(PersonalityProblem { key: key.into(), problem: problem.into() })
}

impl Personality {
    /// Errors: the first invalid value, with its key.
    pub fn check(&self) -> Result<(), PersonalityProblem> {
        if self.format != PERSONALITY_FORMAT {
            return wrong("format", format!("is {:?}; this program reads {PERSONALITY_FORMAT:?}", self.format));
        }
        check_name("name", &self.name)?;
        if self.operations == 0 {
            return wrong("operations", "is 0: a run would have nothing to measure");
        }
        for (at, set) in self.filesets.iter().enumerate() {
            set.check()?;
            if self.filesets[..at].iter().any(|other| other.name == set.name) {
                return wrong("fileset.name", format!("is {:?} twice", set.name));
            }
        }
        if self.processes.is_empty() {
            return wrong("process", "is missing: a personality needs at least one process");
        }
        let threads: u64 =
            self.processes.iter().map(|process| u64::from(process.instances) * u64::from(process.threads)).sum();
        if !(1..=MOST_THREADS).contains(&threads) {
            return wrong("process.threads", format!("sum to {threads}; the sum must be 1 to {MOST_THREADS}"));
        }
        let is_driver = |flowops: &[Flowop]| {
            flowops.iter().all(|flowop| flowop.op != FlowopKind::SemBlock)
                && flowops.iter().any(|flowop| flowop.op.is_file_operation())
        };
        if !self.processes.iter().any(|process| is_driver(&process.flowops)) {
            return wrong("process", "all processes wait for each other; one needs file operations and no semblock");
        }
        self.check_semaphores()?;
        for process in &self.processes {
            let key = format!("process {:?}", process.name);
            if process.instances == 0 || process.threads == 0 {
                return wrong(key, "has no threads; instances and threads must be at least 1");
            }
            if process.flowops.is_empty() {
                return wrong(key, "has no flowops");
            }
            for (at, flowop) in process.flowops.iter().enumerate() {
                self.check_flowop(flowop, &format!("{key} flowop {} ({})", at + 1, flowop.op.name()))?;
            }
            if process.flowops.iter().filter(|flowop| flowop.op == FlowopKind::SemBlock).count() > 1 {
                return wrong(key, "has more than one semblock; a thread can wait at only one");
            }
        }
        Ok(())
    }

    /// Checks that posts reach every semblock they name, and that no thread waits forever to post.
    fn check_semaphores(&self) -> Result<(), PersonalityProblem> {
        let block_of = |process: &Process| process.flowops.iter().position(|flowop| flowop.op == FlowopKind::SemBlock);
        let blocks: Vec<_> = self.processes.iter().filter_map(|process| Some((process, block_of(process)?))).collect();
        for (number, (process, at)) in blocks.iter().enumerate() {
            let key = format!("process {:?}", process.name);
            let name = &process.flowops[*at].name;
            let is_same = |(other, at): &&(&Process, usize)| name.is_some() && other.flowops[*at].name == *name;
            if let Some((other, _)) = blocks[..number].iter().find(is_same) {
                let problem = format!(
                    "calls its semblock {:?}, as process {:?} does; a sempost could reach only one of them",
                    name.as_deref().unwrap_or_default(),
                    other.name
                );
                return wrong(key, problem);
            }
            if process.flowops.iter().any(|flowop| flowop.op == FlowopKind::SemPost) {
                return wrong(key, "has semblock and sempost; a process that waits for posts must not also post");
            }
        }
        Ok(())
    }

    fn check_flowop(&self, flowop: &Flowop, key: &str) -> Result<(), PersonalityProblem> {
        let op = flowop.op;
        let known = |name: &String| self.filesets.iter().any(|set| set.name == *name);
        match &flowop.fileset {
            None if op.needs_fileset() => return wrong(key, "needs fileset"),
            None if flowop.rotate => return wrong(key, "rotates, and needs fileset"),
            Some(name) if !known(name) => {
                let names: Vec<&str> = self.filesets.iter().map(|set| set.name.as_str()).collect();
                return wrong(key, format!("names the fileset {name:?}; there are {}", names.join(", ")));
            }
            _ => {}
        }
        if !(1..=MOST_SLOT).contains(&flowop.slot) {
            return wrong(key, format!("has slot {}; it must be 1 to {MOST_SLOT}", flowop.slot));
        }
        if flowop.iters == 0 {
            return wrong(key, "has iters = 0: it would never be done; give at least 1");
        }
        match flowop.iosize_bytes {
            None if op.needs_size() => return wrong(key, "needs iosize_bytes"),
            Some(_) if !op.needs_size() => return wrong(key, "does not use iosize_bytes; remove it"),
            Some(size) if !(1..=LARGEST_ACCESS).contains(&size) => {
                return wrong(key, format!("has iosize_bytes = {size}; it must be 1 to {LARGEST_ACCESS}"));
            }
            Some(size) if flowop.directio && size % 512 != 0 => {
                return wrong(key, format!("has iosize_bytes = {size}; with directio it must be a multiple of 512"));
            }
            _ => {}
        }
        if flowop.directio && matches!(op, FlowopKind::AppendFileRand | FlowopKind::WriteWholeFile) {
            return wrong(key, "appends a random number of bytes, which directio does not allow");
        }
        if flowop.rotate && !matches!(op, FlowopKind::Read | FlowopKind::Write | FlowopKind::AioWrite) {
            return wrong(key, "cannot rotate; only read, write and aiowrite can");
        }
        match flowop.value {
            None if op.needs_value() => return wrong(key, "needs value"),
            Some(_) if !op.needs_value() => return wrong(key, "does not use value; remove it"),
            Some(0) if op == FlowopKind::SemBlock => return wrong(key, "has value = 0, so it waits for nothing"),
            Some(value) if op == FlowopKind::Delay && value > LONGEST_DELAY => {
                return wrong(key, format!("has value = {value}; it must be 0 to {LONGEST_DELAY} (iters repeats it)"));
            }
            Some(value) if op == FlowopKind::Hog && value > MOST_HOG => {
                return wrong(key, format!("has value = {value}; it must be 0 to {MOST_HOG} (iters repeats it)"));
            }
            _ => {}
        }
        match (op == FlowopKind::SemPost, &flowop.target) {
            (true, None) => return wrong(key, "needs target"),
            (false, Some(_)) => return wrong(key, "does not use target; remove it"),
            (true, Some(target)) => {
                let mut all = self.processes.iter().flat_map(|process| &process.flowops);
                let is_it = |other: &Flowop| other.op == FlowopKind::SemBlock && other.name.as_ref() == Some(target);
                let Some(block) = all.find(|other| is_it(other)) else {
                    return wrong(key, format!("posts to {target:?}, but no semblock has this name"));
                };
                // A waiting thread has raised the limit by the count it waits for, and at least one
                // of that count is not posted. So highwater + 1 posts always fit. With larger
                // posts, both threads could wait forever.
                let most = block.highwater.unwrap_or(0).saturating_add(1);
                let value = flowop.value.unwrap_or(0);
                if u64::from(value) > most {
                    let problem = format!("posts {value} at once; {target:?} accepts at most {most} (highwater + 1)");
                    return wrong(key, problem);
                }
            }
            (false, None) => {}
        }
        match flowop.highwater {
            Some(_) if op != FlowopKind::SemBlock => wrong(key, "does not use highwater; remove it"),
            None if op == FlowopKind::SemBlock => wrong(key, "needs highwater"),
            _ => Ok(()),
        }
    }
}

impl Fileset {
    fn check(&self) -> Result<(), PersonalityProblem> {
        check_name("fileset.name", &self.name)?;
        let key = |key: &str| format!("fileset {:?} {key}", self.name);
        if !(1..=MOST_FILES).contains(&self.entries) {
            return wrong(key("entries"), format!("is {}; it must be 1 to {MOST_FILES}", self.entries));
        }
        if self.dir_width < 2 {
            return wrong(key("dir_width"), format!("is {}; it must be at least 2", self.dir_width));
        }
        if !(1..=LARGEST_MEAN).contains(&self.size_bytes) {
            return wrong(key("size_bytes"), format!("is {}; it must be 1 byte to 1 TiB", self.size_bytes));
        }
        for (name, gamma) in [("size_gamma", self.size_gamma), ("dir_gamma", self.dir_gamma)] {
            if compute_halves(gamma).is_none() {
                return wrong(key(name), format!("is {gamma}; it must be 0 to 100 and a multiple of 0.5"));
            }
        }
        if self.prealloc_percent > 100 {
            return wrong(key("prealloc_percent"), format!("is {}; it must be 0 to 100", self.prealloc_percent));
        }
        Ok(())
    }
}

/// A shape in halves; none if it is not a multiple of 0.5 between 0 and 100.
pub(super) fn compute_halves(gamma: f64) -> Option<u32> {
    let halves = gamma * 2.0;
    ((0.0..=200.0).contains(&halves) && halves.fract() == 0.0).then_some(halves as u32)
}

fn check_name(key: &str, name: &str) -> Result<(), PersonalityProblem> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    match !name.is_empty() && name.len() <= 64 && name.bytes().all(allowed) {
        true => Ok(()),
        false => wrong(key, format!("is {name:?}; it must be 1 to 64 letters, digits, '-' and '_'")),
    }
}

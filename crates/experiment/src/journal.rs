//! The journal of a run: the finished work, so that a killed run can continue.
//!
//! One JSON object per line, each durable before the run continues. A kill may leave an incomplete
//! last line, which is removed. The journal records completed work. Files in the run directory that
//! it does not name are garbage.

use std::{
    fs::{File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{paths::RunPaths, plan::Plan};

/// The version of the journal's lines.
pub const JOURNAL_FORMAT: &str = "senesce-journal/1";

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Entry {
    /// The first line.
    RunStarted {
        /// [`JOURNAL_FORMAT`].
        format: String,
        /// Hash of the plan. A run resumes only with the plan that it was started with.
        plan_hash: String,
        /// Version of the program that started it.
        senesce: String,
    },
    /// An arm starts, or starts again from nothing.
    ArmStarted {
        /// Its name.
        arm: String,
    },
    /// A named block device is about to be formatted. If it has this UUID, this run may format it
    /// again.
    Formatting {
        /// The device.
        device: String,
        /// The UUID of the new file system.
        uuid: String,
    },
    /// The cells of one checkpoint are in the results, and the arm can continue from here.
    CheckpointDone {
        /// The arm's name.
        arm: String,
        /// Completed counted steps.
        pulls: u64,
        /// Steps in the operation log.
        steps: u64,
        /// Length of the operation log, bytes: a frame boundary.
        log_bytes: u64,
        /// Length of the feedback file, bytes.
        feedback_bytes: u64,
        /// Names of the snapshots in the arm's directory. Empty if there are none.
        snapshots: Vec<String>,
        /// Whether the volumes were cured after this step, and the cells are those after the cure.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cured: bool,
    },
    /// The arm is complete.
    ArmDone {
        /// Its name.
        arm: String,
    },
    /// The arm failed. Its missing cells are invalid.
    ArmFailed {
        /// Its name.
        arm: String,
        /// The reason.
        reason: String,
    },
    /// Every arm is complete or failed, and the results are in one file per table.
    RunDone,
}

/// The state of one arm in a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ArmState {
    /// Not started, or started without a checkpoint.
    #[default]
    Fresh,
    /// At this checkpoint ([`Entry::CheckpointDone`]).
    At(Box<Entry>),
    /// Complete.
    Done,
    /// Failed, for this reason.
    Failed(String),
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
}

impl Journal {
    /// Opens or creates the journal at `path`. Removes an incomplete last line.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let text = std::fs::read(path)?;
        let mut entries = Vec::new();
        let mut good = 0;
        for line in text.split_inclusive(|&b| b == b'\n') {
            let Some(json) = line.strip_suffix(b"\n") else { break };
            match serde_json::from_slice(json) {
                Ok(entry) => entries.push(entry),
                Err(error) => {
                    let problem = format!("{}: line {}: {error}", path.display(), entries.len() + 1);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
                }
            }
            good += line.len() as u64;
        }
        file.set_len(good)?;
        file.seek(SeekFrom::Start(good))?;
        Ok(Self { path: path.to_owned(), file, entries })
    }

    /// Appends an entry and makes it durable.
    pub fn append(&mut self, entry: Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(&entry).map_err(io::Error::other)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_data()?;
        if self.entries.is_empty() {
            // The file's name must survive a power cut too.
            File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
        }
        self.entries.push(entry);
        Ok(())
    }

    /// All entries, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether an earlier attempt of an arm failed.
    pub fn is_repeated(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::ArmFailed { arm, .. } if arm == name))
    }

    /// The checkpoints of the last attempt of an arm that are complete, as (steps, after a cure).
    pub fn checkpoints(&self, name: &str) -> Vec<(u64, bool)> {
        let is_start = |entry: &Entry| matches!(entry, Entry::ArmStarted { arm } if arm == name);
        let first = self.entries.iter().rposition(is_start).unwrap_or(0);
        let checkpoint = |entry: &Entry| match entry {
            Entry::CheckpointDone { arm, pulls, cured, .. } if arm == name => Some((*pulls, *cured)),
            _ => None,
        };
        self.entries[first..].iter().filter_map(checkpoint).collect()
    }

    /// The state of an arm.
    pub fn arm_state(&self, name: &str) -> ArmState {
        arm_state(&self.entries, name)
    }
}

fn arm_state(entries: &[Entry], name: &str) -> ArmState {
    let mut state = ArmState::Fresh;
    for entry in entries {
        match entry {
            Entry::ArmStarted { arm } if arm == name => state = ArmState::Fresh,
            Entry::CheckpointDone { arm, .. } if arm == name => state = ArmState::At(Box::new(entry.clone())),
            Entry::ArmDone { arm } if arm == name => state = ArmState::Done,
            Entry::ArmFailed { arm, reason } if arm == name => state = ArmState::Failed(reason.clone()),
            _ => {}
        }
    }
    state
}

/// The arms of a run, by state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunState {
    /// All arms.
    pub arms: usize,
    /// Complete arms.
    pub done: usize,
    /// The arms that failed, with the reasons.
    pub failed: Vec<(String, String)>,
}

impl RunState {
    /// Reads the state of the run in a directory. Changes nothing, so the run may be under way.
    /// `None`: the directory holds no plan and no journal that this version can read.
    pub fn read(paths: &RunPaths) -> Option<Self> {
        let plan = Plan::read_kept(&paths.plan()).ok()?;
        let text = std::fs::read_to_string(paths.journal()).ok()?;
        // The writer may be in the middle of the last line.
        let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let entries: Vec<Entry> = lines.map(serde_json::from_str).collect::<Result<_, _>>().ok()?;
        let mut state = Self::default();
        for arm in plan.arms() {
            state.arms += 1;
            match arm_state(&entries, &arm.name) {
                ArmState::Done => state.done += 1,
                ArmState::Failed(reason) => state.failed.push((arm.name, reason)),
                ArmState::Fresh | ArmState::At(_) => {}
            }
        }
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(pulls: u64) -> Entry {
        Entry::CheckpointDone {
            arm: "ext4".into(),
            pulls,
            steps: pulls + 9,
            log_bytes: 100 * pulls,
            feedback_bytes: 0,
            snapshots: vec![],
            cured: false,
        }
    }

    #[test]
    fn a_journal_cut_anywhere_has_its_complete_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.ndjson");
        let mut journal = Journal::open(&path).unwrap();
        journal.append(Entry::ArmStarted { arm: "ext4".into() }).unwrap();
        journal.append(checkpoint(20)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut journal = Journal::open(&path).unwrap();
            let lines = whole[..cut].iter().filter(|&&b| b == b'\n').count();
            assert_eq!(journal.entries().len(), lines);
            journal.append(checkpoint(40)).unwrap();
            assert_eq!(Journal::open(&path).unwrap().entries().len(), lines + 1);
        }
    }

    #[test]
    fn the_last_entry_of_an_arm_counts() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&dir.path().join("j")).unwrap();
        assert_eq!(journal.arm_state("ext4"), ArmState::Fresh);
        for pulls in [0, 20] {
            journal.append(checkpoint(pulls)).unwrap();
        }
        assert_eq!(journal.arm_state("ext4"), ArmState::At(Box::new(checkpoint(20))));
        assert_eq!(journal.checkpoints("ext4"), [(0, false), (20, false)]);
        journal.append(Entry::ArmStarted { arm: "ext4".into() }).unwrap();
        assert_eq!(journal.checkpoints("ext4"), []);
        assert_eq!(journal.arm_state("ext4"), ArmState::Fresh);
        journal.append(Entry::ArmDone { arm: "ext4".into() }).unwrap();
        assert_eq!(journal.arm_state("ext4"), ArmState::Done);
        let reason = "no space".to_owned();
        journal.append(Entry::ArmFailed { arm: "ext4".into(), reason: reason.clone() }).unwrap();
        assert_eq!(journal.arm_state("ext4"), ArmState::Failed(reason));
        assert!(journal.is_repeated("ext4") && !journal.is_repeated("xfs"));
        // A resumed run repeats it.
        journal.append(Entry::ArmStarted { arm: "ext4".into() }).unwrap();
        assert_eq!(journal.arm_state("ext4"), ArmState::Fresh);
        assert_eq!(journal.arm_state("xfs"), ArmState::Fresh);
    }
}

//! What a run tells whoever watches: a progress bar, a log, nobody.

use senesce_core::Bytes;
use senesce_store::{CellKey, Role};
use serde::Serialize;

/// Something happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// An arm begins (or goes on, after `from_pulls`).
    ArmStarted {
        /// Its name.
        arm: String,
        /// Its number, from 1.
        number: u64,
        /// How many arms there are.
        of: u64,
        /// Pulls already done by an earlier process of the run.
        from_pulls: u64,
        /// Pulls to do in all.
        pulls: u64,
        /// The unit of `pulls`, such as `pulls` or `rounds`.
        unit: &'static str,
        /// Cells that an earlier process of the run measured.
        from_cells: u64,
        /// Cells to measure in all.
        cells: u64,
    },
    /// The arm does something that takes a while.
    Doing {
        /// Its name.
        arm: String,
        /// What, in a few words: `mkfs`, `copying the unaged twin`, `grep test`.
        what: String,
        /// On which volume.
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
    },
    /// A step was done.
    Step {
        /// The arm's name.
        arm: String,
        /// What it was.
        label: String,
        /// Counted steps done so far.
        pulls: u64,
        /// Capacity of the aged volume.
        capacity_bytes: Bytes,
        /// Free space of the aged volume.
        free_bytes: Bytes,
        /// Whether it ended for lack of space.
        no_space: bool,
    },
    /// A tool begins to cure a volume.
    CureStarted {
        /// The arm's name.
        arm: String,
        /// The volume.
        role: Role,
        /// The tool, as in table `cures`.
        tool: String,
        /// Counted steps done so far.
        pulls: u64,
    },
    /// A cell was measured.
    CellDone {
        #[serde(flatten)]
        #[allow(missing_docs)]
        key: CellKey,
        /// Why it is invalid; empty if it is valid.
        reason: String,
        /// Its first grep cost, seconds per GiB, if it was measured.
        grep_seconds_per_gib: Option<f64>,
    },
    /// A checkpoint is complete: its cells are stored, its images kept.
    CheckpointDone {
        /// The arm's name.
        arm: String,
        /// Counted steps done so far.
        pulls: u64,
        /// Whether it measured the volumes after a cure.
        cured: bool,
        /// Where the time since the checkpoint before went.
        phases: Vec<Phase>,
    },
    /// Something that the reader of the results should know.
    Warning {
        /// The arm's name.
        arm: String,
        /// What.
        message: String,
    },
    /// An arm is at its end.
    ArmDone {
        /// Its name.
        arm: String,
        /// Why it failed; empty if it did not.
        reason: String,
    },
}

/// A part of an arm's work, and how long it took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// What was done, as in [`Event::Doing`]; `aging` before the checkpoint.
    pub what: String,
    /// On which volume; none if on several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Wall time, summed over all times that it was done.
    pub seconds: f64,
}

/// Is told everything, in order, on the thread that runs the experiment.
pub trait Observer {
    /// Something happened.
    fn on_event(&mut self, event: &Event);
}

/// Watches nothing.
impl Observer for () {
    fn on_event(&mut self, _: &Event) {}
}

//! The events of a run, for an observer such as a progress bar or a log.

use schemars::JsonSchema;
use senesce_core::Bytes;
use senesce_store::{CellKey, Role};
use serde::Serialize;

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// An arm starts, or continues after `from_pulls`.
    ArmStarted {
        /// Its name.
        arm: String,
        /// Its number, from 1.
        number: u64,
        /// The number of arms.
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
        /// Pulls that the arms after this one have to do.
        later_pulls: u64,
        /// Cells that the arms after this one have to measure.
        later_cells: u64,
    },
    /// The arm does something that takes a while.
    Doing {
        /// Its name.
        arm: String,
        /// The phase in a few words: `mkfs`, `mkfs and copy`, `grep test`.
        what: String,
        /// The volume.
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
    },
    /// A step is complete.
    Step {
        /// The arm's name.
        arm: String,
        /// Its label.
        label: String,
        /// Completed counted steps.
        pulls: u64,
        /// Capacity of the aged volume.
        capacity_bytes: Bytes,
        /// Free space of the aged volume.
        free_bytes: Bytes,
        /// Whether it stopped for lack of space.
        no_space: bool,
    },
    /// A tool starts to cure a volume.
    CureStarted {
        /// The arm's name.
        arm: String,
        /// The volume.
        role: Role,
        /// The tool, as in table `cures`.
        tool: String,
        /// Completed counted steps.
        pulls: u64,
    },
    /// A cell is measured.
    CellDone {
        #[serde(flatten)]
        #[allow(missing_docs)]
        key: CellKey,
        /// The reason why it is invalid. Empty if it is valid.
        reason: String,
        /// Its first grep cost, if it was measured.
        grep: Option<GrepCost>,
    },
    /// A checkpoint is complete: its cells and images are stored.
    CheckpointDone {
        /// The arm's name.
        arm: String,
        /// Completed counted steps.
        pulls: u64,
        /// Whether it follows a cure.
        cured: bool,
        /// The times of the phases since the previous checkpoint.
        phases: Vec<Phase>,
    },
    /// A warning for the reader of the results.
    Warning {
        /// The arm's name.
        arm: String,
        /// The warning.
        message: String,
    },
    /// An arm is complete.
    ArmDone {
        /// Its name.
        arm: String,
        /// The reason of its failure. Empty if it did not fail.
        reason: String,
    },
}

/// The cost of a grep test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GrepCost {
    /// Seconds per GiB.
    pub seconds_per_gib: f64,
    /// Whether the seconds are those of a modelled device. Otherwise they are wall time.
    pub is_virtual: bool,
}

/// A part of an arm's work, and its time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Phase {
    /// The phase, as in the event `doing`. `aging` for the steps before the checkpoint.
    pub what: String,
    /// The volume. Absent if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Wall time of all repetitions of the phase, seconds.
    pub seconds: f64,
}

/// Receives every event, in order, on the thread that runs the experiment.
pub trait Observer {
    /// Handles an event.
    fn on_event(&mut self, event: &Event);
}

/// Ignores all events.
impl Observer for () {
    fn on_event(&mut self, _: &Event) {}
}

//! The responses of checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    /// Checks of the state on the devices, and of the state after opening.
    pub checks: Vec<CheckedPart>,
}

/// The result of a check of one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedPart {
    /// The state.
    pub what: String,
    /// Whether there are no findings.
    pub clean: bool,
    /// The findings.
    pub findings: Vec<String>,
    /// The number of further findings, which are not listed.
    pub more_findings: u64,
    /// The number of the consistency point.
    pub consistency_point: u64,
    /// Blocks that pointers reach.
    pub blocks: u64,
    /// Volumes.
    pub volumes: u64,
    /// Inodes.
    pub inodes: u64,
    /// Drives that are missing.
    pub missing_drives: Vec<u32>,
    /// Pointers to an old place.
    pub stale_pointers: u64,
    /// Stripes whose parity was computed.
    pub stripes: u64,
    /// Operations in the log.
    pub log_operations: u64,
    /// Objects with cold blocks.
    pub objects: u64,
    /// Blocks in objects.
    pub cold_blocks: u64,
    /// Cold blocks that were not read.
    pub cold_blocks_not_looked_at: u64,
    /// Objects that were not read because the store was unreachable.
    pub objects_not_looked_at: u64,
    /// Objects in no consistency point.
    pub orphan_objects: u64,
}

/// The result of a check of an evergreen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvergreenChecked {
    /// Checks of the state on the device, and of the state after opening.
    pub checks: Vec<EvergreenCheckedPart>,
}

/// A place and its fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvergreenFinding {
    /// The place.
    pub place: String,
    /// The fault.
    pub what: String,
}

/// The result of a check of one state of an evergreen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvergreenCheckedPart {
    /// The state.
    pub what: String,
    /// Whether there are no findings.
    pub clean: bool,
    /// The findings.
    pub findings: Vec<EvergreenFinding>,
    /// Whether nothing is lost: a repair can rewrite all damaged copies.
    pub whole: bool,
    /// Damaged copies whose other copy is intact.
    pub bad_copies: Vec<EvergreenFinding>,
    /// Copies of superblocks that are damaged, or were being written when power failed.
    pub torn_copies: Vec<EvergreenFinding>,
    /// Inner nodes with only one copy.
    pub single_copies: u64,
    /// The number of further findings, which are not listed.
    pub more_findings: u64,
    /// An unreadable superblock. `None` if there is none.
    pub torn_superblock: Option<EvergreenFinding>,
    /// The number of the newest superblock.
    pub superblock: u64,
    /// Nodes.
    pub nodes: u64,
    /// The nodes that are leaves.
    pub leaves: u64,
    /// Levels of the tree.
    pub levels: u64,
    /// Keys.
    pub keys: u64,
    /// Messages that wait in nodes.
    pub waiting_messages: u64,
    /// Used bytes.
    pub used_bytes: u64,
    /// Free bytes.
    pub free_bytes: u64,
    /// Free extents.
    pub free_extents: u64,
    /// Batches in the log.
    pub log_batches: u64,
}

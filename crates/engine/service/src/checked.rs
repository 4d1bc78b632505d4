//! What checks return.

use serde::{Deserialize, Serialize};

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Of what the devices hold, and of what opening makes of it.
    pub checks: Vec<CheckedPart>,
}

/// What a check of one state found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedPart {
    /// Which state.
    pub what: String,
    /// Whether nothing was found.
    pub clean: bool,
    /// What was found.
    pub findings: Vec<String>,
    /// Findings that are only counted.
    pub more_findings: u64,
    /// The consistency point.
    pub consistency_point: u64,
    /// Blocks that are reached.
    pub blocks: u64,
    /// Volumes.
    pub volumes: u64,
    /// Inodes.
    pub inodes: u64,
    /// Drives that are missing.
    pub missing_drives: Vec<u32>,
    /// Pointers that name an old place.
    pub stale_pointers: u64,
    /// Stripes whose parity was computed.
    pub stripes: u64,
    /// Operations in the log.
    pub log_operations: u64,
    /// Objects with cold blocks.
    pub objects: u64,
    /// Blocks in them.
    pub cold_blocks: u64,
    /// Of these, blocks that were not read.
    pub cold_blocks_not_looked_at: u64,
    /// Objects that were not read because the store was away.
    pub objects_not_looked_at: u64,
    /// Objects that no consistency point names.
    pub orphan_objects: u64,
}

/// What a check of an evergreen found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvergreenChecked {
    /// Of what the device holds, and of what opening makes of it.
    pub checks: Vec<EvergreenCheckedPart>,
}

/// A place and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvergreenFinding {
    /// Where.
    pub place: String,
    /// What.
    pub what: String,
}

/// What a check of one state of an evergreen found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvergreenCheckedPart {
    /// Which state.
    pub what: String,
    /// Whether nothing was found.
    pub clean: bool,
    /// What was found.
    pub findings: Vec<EvergreenFinding>,
    /// Whether nothing is lost: a repair writes all that is damaged again.
    pub whole: bool,
    /// Copies that are damaged while the other one is whole.
    pub bad_copies: Vec<EvergreenFinding>,
    /// Copies of superblocks that were being written when power was lost, or are damaged.
    pub torn_copies: Vec<EvergreenFinding>,
    /// Inner nodes that have one copy only.
    pub single_copies: u64,
    /// Findings that are only counted.
    pub more_findings: u64,
    /// A superblock that cannot be read.
    pub torn_superblock: Option<EvergreenFinding>,
    /// The newest superblock.
    pub superblock: u64,
    /// Nodes.
    pub nodes: u64,
    /// Of these, leaves.
    pub leaves: u64,
    /// Levels of the tree.
    pub levels: u64,
    /// Keys.
    pub keys: u64,
    /// Messages that wait in nodes.
    pub waiting_messages: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Extents that these are.
    pub free_extents: u64,
    /// Batches in the log.
    pub log_batches: u64,
}

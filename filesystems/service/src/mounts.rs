//! The mounts of an open engine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Name;

/// A mounted volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MountStat {
    /// The mount point.
    pub point: Name,
    /// The volume.
    pub volume: String,
    /// The snapshot. `None` if the volume itself is mounted.
    pub snapshot: Option<String>,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Its device number as `major:minor`; `None` until it is mounted.
    pub device: Option<String>,
}

/// The mounts of an open engine.
pub trait Mounts: Sync {
    /// Lists the mounts.
    fn list(&self) -> Vec<MountStat>;

    /// Waits for mounts that are ending. A request calls this before it fails because of a mount.
    fn settle(&self) {}
}

impl Mounts for Vec<MountStat> {
    fn list(&self) -> Vec<MountStat> {
        self.clone()
    }
}

//! The mounts of an open engine.

use serde::{Deserialize, Serialize};

use crate::Name;

/// A volume that is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountStat {
    /// Where.
    pub point: Name,
    /// Which volume.
    pub volume: String,
    /// Which snapshot of it, if it is one.
    pub snapshot: Option<String>,
    /// Whether it takes no changes.
    pub read_only: bool,
    /// Its device number as `major:minor`; none until it is mounted.
    pub device: Option<String>,
}

/// The mounts of an open engine.
pub trait Mounts {
    /// Lists them.
    fn list(&self) -> Vec<MountStat>;

    /// Waits for mounts that are about to end. A request calls this before a mount makes it fail.
    fn settle(&self) {}
}

impl Mounts for Vec<MountStat> {
    fn list(&self) -> Vec<MountStat> {
        self.clone()
    }
}

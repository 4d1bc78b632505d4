//! What an open engine can be asked to do.

use senesce_objects::PriceList;
use serde::{Deserialize, Serialize};

use crate::Name;

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// What the process serves: clients find it so.
    Serves,
    /// What it holds and has left, and its drives.
    Stat,
    /// Everything that the engine counts.
    Figures,
    /// Checks the devices as they are at one moment, while operations continue.
    Check {
        /// Bytes of what is overwritten meanwhile that are kept in memory at most.
        most_bytes: u64,
    },
    /// Keeps a volume as it is.
    SnapshotCreate {
        /// Of this volume.
        volume: Name,
        /// The name of the snapshot.
        name: Name,
        /// The time of day, which is kept with it.
        unix_seconds: i64,
    },
    /// The snapshots of a volume.
    SnapshotList {
        /// The volume.
        volume: Name,
    },
    /// Deletes a snapshot, and frees what only it used.
    SnapshotDelete {
        /// The volume.
        volume: Name,
        /// The snapshot.
        name: Name,
    },
    /// Makes a volume what a snapshot of it is.
    SnapshotRestore {
        /// The volume.
        volume: Name,
        /// The snapshot.
        name: Name,
    },
    /// Makes a volume of a snapshot.
    Clone {
        /// The volume.
        volume: Name,
        /// Its snapshot.
        snapshot: Name,
        /// The new volume.
        name: Name,
    },
    /// Makes an empty volume.
    VolumeCreate {
        /// Its name.
        name: Name,
        /// How much it may hold; as much as the aggregate by default.
        bytes: Option<u64>,
        /// How many inodes; one for two blocks by default.
        inodes: Option<u64>,
        /// What the order of names in its directories follows from.
        seed: u64,
        /// Bytes that are compressed together; 0 for none.
        compress: u64,
    },
    /// All volumes.
    VolumeList,
    /// Deletes a volume that has no snapshots, and frees what it used.
    VolumeDelete {
        /// Its name.
        name: Name,
    },
    /// Checks all stripes, and repairs what one drive of a stripe has wrong.
    Scrub {
        /// The first stripe.
        from: u64,
    },
    /// Empties allocation areas whose used blocks are scattered, and corrects old pointers.
    Clean {
        /// Areas that are done already.
        from: u64,
    },
    /// Writes files together again whose blocks are scattered.
    Defrag {
        /// The volume.
        volume: Name,
        /// Files and directories; all if there is none.
        paths: Vec<Name>,
        /// Blocks get new numbers in the volume.
        traditional: bool,
        /// Nothing is moved.
        dry_run: bool,
    },
    /// Lets equal blocks of a volume's files share one.
    Dedup {
        /// The volume.
        volume: Name,
    },
    /// Writes cold blocks to objects, and deletes objects that nothing needs.
    Tier {
        /// The store, as the server must have it.
        objects: String,
        /// Consistency points without a change that make a block cold.
        age: u16,
        /// By whose prices objects are rewritten where that pays off.
        prices: Option<Prices>,
    },
}

/// Whose prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prices {
    /// S3 Standard.
    S3,
    /// Azure's hot tier.
    Azure,
}

impl Prices {
    /// The list.
    pub fn list(self) -> PriceList {
        match self {
            Self::S3 => senesce_objects::S3_STANDARD,
            Self::Azure => senesce_objects::AZURE_HOT,
        }
    }
}

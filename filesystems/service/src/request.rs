//! Requests to an open engine.

use senesce_objects::PriceList;
use serde::{Deserialize, Serialize};

use crate::Name;

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The mounts and files of the process. Clients use it to find the process.
    Serves,
    /// The contents, the free space and the drives.
    Stat,
    /// All counters of the engine.
    Figures,
    /// Checks the devices as they are at one moment, during operation.
    Check {
        /// The most bytes of overwritten data to keep in memory.
        most_bytes: u64,
    },
    /// Creates a snapshot of a volume.
    SnapshotCreate {
        /// The volume.
        volume: Name,
        /// The name of the snapshot.
        name: Name,
        /// The time of day to record with it.
        unix_seconds: i64,
    },
    /// Lists the snapshots of a volume.
    SnapshotList {
        /// The volume.
        volume: Name,
    },
    /// Deletes a snapshot, and frees the space that only it used.
    SnapshotDelete {
        /// The volume.
        volume: Name,
        /// The snapshot.
        name: Name,
    },
    /// Restores a volume to a snapshot of it.
    SnapshotRestore {
        /// The volume.
        volume: Name,
        /// The snapshot.
        name: Name,
    },
    /// Creates a volume from a snapshot.
    Clone {
        /// The volume.
        volume: Name,
        /// Its snapshot.
        snapshot: Name,
        /// The new volume.
        name: Name,
    },
    /// Creates an empty volume.
    VolumeCreate {
        /// Its name.
        name: Name,
        /// Its size; by default that of the aggregate.
        bytes: Option<u64>,
        /// Its number of inodes; by default one for two blocks.
        inodes: Option<u64>,
        /// The seed of the order of names in directories.
        seed: u64,
        /// Bytes that are compressed together; 0 for none.
        compress: u64,
    },
    /// Lists all volumes.
    VolumeList,
    /// Deletes a volume without snapshots, and frees its space.
    VolumeDelete {
        /// Its name.
        name: Name,
    },
    /// Checks all stripes, and repairs the faults of single drives.
    Scrub {
        /// The first stripe.
        from: u64,
    },
    /// Empties allocation areas with scattered used blocks, and corrects old pointers.
    Clean {
        /// The number of areas to skip.
        from: u64,
    },
    /// Rewrites files whose blocks are scattered.
    Defrag {
        /// The volume.
        volume: Name,
        /// Files and directories; empty for all.
        paths: Vec<Name>,
        /// Whether blocks get new numbers in the volume.
        traditional: bool,
        /// Whether to move nothing.
        dry_run: bool,
    },
    /// Makes files of a volume share equal blocks.
    Dedup {
        /// The volume.
        volume: Name,
    },
    /// Writes cold blocks to objects, and deletes unused objects.
    Tier {
        /// The store, which must be that of the server.
        objects: String,
        /// Blocks are cold after this number of consistency points without a change.
        age: u16,
        /// The price list that decides whether objects are rewritten.
        prices: Option<Prices>,
    },
    /// Executes a request on a copy of the devices in memory, and returns its response.
    DryRun {
        /// The request.
        of: Box<Request>,
    },
}

/// A price list.
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

//! What a run needs of the world, handed in by the command line (or by a test).

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use senesce_core::Clock;
use senesce_inspect::Told;
use senesce_volume::Host;

/// Adapters and facts from outside.
#[derive(Clone)]
pub struct World {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The privileged acts.
    pub host: Arc<dyn Host>,
    /// What reads engines of our own.
    pub engines: Arc<dyn EngineTeller>,
    /// Where all runs of this machine are listed, for `senesce clean`.
    pub registry_dir: PathBuf,
    /// Version of the program, for the records.
    pub senesce_version: String,
    /// How many threads may hash and decode.
    pub threads: usize,
}

/// Reads engines of our own straight from their devices. No room that an experiment imports knows them.
pub trait EngineTeller: Send + Sync {
    /// Surveys the evergreen, or the first volume of the garden, on a device that no engine has open; writes nothing.
    ///
    /// Errors: why not. Cost: reads maps and bits, no contents.
    fn collect_told(&self, device: &Path) -> Result<Told, String>;
}

//! What a run needs of the world, handed in by the command line (or by a test).

use std::{path::PathBuf, sync::Arc};

use senesce_core::Clock;
use senesce_volume::Host;

/// Adapters and facts from outside.
#[derive(Clone)]
pub struct World {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The privileged acts.
    pub host: Arc<dyn Host>,
    /// Where all runs of this machine are listed, for `senesce clean`.
    pub registry_dir: PathBuf,
    /// Version of the program, for the records.
    pub senesce_version: String,
    /// How many threads may hash and decode.
    pub threads: usize,
}

//! The environment of a run, which the command line or a test provides.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use senesce_core::Clock;
use senesce_gitsource::TrustedOwners;
use senesce_inspect::Told;
use senesce_probe::{collect::collect_load, score::LoadSample};
use senesce_volume::Host;

use crate::{Error, Interrupted};

/// The adapters and facts of the environment.
#[derive(Clone)]
pub struct World {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The load that other work puts on the machine.
    pub load: Arc<dyn LoadMeter>,
    /// The privileged operations.
    pub host: Arc<dyn Host>,
    /// The survey of engines of ours.
    pub engines: Arc<dyn EngineTeller>,
    /// The list of all runs of this machine, for `senesce clean`.
    pub registry_dir: PathBuf,
    /// The users whose repositories are read.
    pub owners: TrustedOwners,
    /// The version of the program, for the records.
    pub senesce_version: String,
    /// The number of threads that hash and decode.
    pub threads: usize,
    /// The signal that requested an exit, if there was one.
    pub interrupted: fn() -> Option<i32>,
}

impl World {
    /// Fails if a signal requested an exit.
    pub(crate) fn check_signal(&self) -> Result<(), Error> {
        (self.interrupted)().map_or(Ok(()), |signal| Err(Interrupted { signal }.into()))
    }

    /// Whether work must stop early: a [`Stop`](senesce_core::Stop) for crates that do not handle
    /// signals.
    pub(crate) fn stop(&self) -> impl Fn() -> bool + Sync + use<> {
        let interrupted = self.interrupted;
        move || interrupted().is_some()
    }
}

/// Samples the load of the machine before and after every measurement.
pub trait LoadMeter: Send + Sync {
    /// What the kernel reports now.
    fn sample(&self) -> LoadSample;
}

/// Samples the load from the kernel of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelLoad;

impl LoadMeter for KernelLoad {
    fn sample(&self) -> LoadSample {
        collect_load()
    }
}

/// Reads engines of ours from their devices. By the dependency rules, this crate must not import
/// engines.
pub trait EngineTeller: Send + Sync {
    /// Surveys the evergreen, or the first volume of the garden, on a device that no engine has
    /// open. Writes nothing.
    ///
    /// Errors: the reason. Cost: reads maps and bitmaps, no contents.
    fn collect_told(&self, device: &Path) -> Result<Told, String>;
}

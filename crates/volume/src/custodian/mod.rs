//! Resources of a run. Each one is recorded before it is acquired. It is released at the end, after
//! errors and signals, and by `clean` after a kill.

mod clean;
#[cfg(test)]
mod forged;
mod guest_lock;
mod journal;
mod keeper;
mod private_dir;
mod proof;
mod registry;
mod release;
mod resource;
mod run_dir;

pub use clean::{CleanMode, clean};
pub use guest_lock::GuestLock;
pub use keeper::{Custodian, ResourceId};
pub(crate) use keeper::{Lease, SharedEngine, SharedServer, release_everything};
pub use private_dir::check_place;
pub use proof::ENGINE_SOURCE;
pub(crate) use registry::hash;
pub use registry::{Registry, RunCleaned};
pub use release::{CleanAction, Outcome};
pub(crate) use resource::disk_mark;
pub use resource::{MountSource, Resource};
pub use run_dir::check_run_dir;

pub use journal::JOURNAL_FILE_NAME;

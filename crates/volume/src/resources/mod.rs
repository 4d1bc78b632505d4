//! Resources of a run. Each one is recorded before it is acquired. It is released at the end, after
//! errors and signals, and by `clean` after a kill.

mod clean;
mod custodian;
#[cfg(test)]
mod forged_journal_tests;
mod guest_lock;
mod private_dir;
mod proof;
mod registry;
mod release;
mod resource;
mod resource_journal;
mod run_dir;

pub use clean::{CleanMode, clean};
pub use custodian::{Custodian, ResourceId};
pub(crate) use custodian::{Lease, SharedEngine, SharedServer, release_everything};
pub use guest_lock::GuestLock;
pub use private_dir::check_place;
pub use proof::ENGINE_SOURCE;
pub(crate) use registry::hash;
pub use registry::{Registry, RunCleaned};
pub use release::{CleanAction, Outcome};
pub(crate) use resource::disk_mark;
pub use resource::{MountSource, Resource};
pub use run_dir::check_run_dir;

pub use resource_journal::JOURNAL_FILE_NAME;

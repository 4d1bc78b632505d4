//! A volume: creation, mount, cold caches, snapshots, removal.

mod build;
mod cold;
mod lifecycle;
mod memory_file_system;
mod snapshot;
mod volume_circumstances;

pub use build::check_device;
pub use cold::ColdReport;
pub use lifecycle::{MkfsRecord, Volume};
pub use memory_file_system::MemoryMount;
pub use snapshot::{Existing, SnapshotReport, find_mounted_twin, rename_new};

#[cfg(test)]
mod tests;

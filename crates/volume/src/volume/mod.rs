//! A volume: creation, mount, cold caches, snapshots, removal.

mod build;
mod cold;
mod lifecycle;
mod memory;
mod record;
mod snapshot;

pub use build::check_device;
pub use cold::ColdReport;
pub use lifecycle::{MkfsRecord, Volume};
pub use memory::MemoryMount;
pub use snapshot::{SnapshotReport, find_mounted_twin};

#[cfg(test)]
mod tests;

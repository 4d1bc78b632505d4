//! One volume: made, mounted, made cold, kept as a snapshot, removed.

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

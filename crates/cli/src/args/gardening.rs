//! The background work of a garden, as an argument.

use clap::ValueEnum;

/// Background work of a garden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GardeningArg {
    /// By medium: nothing on disks or flash alone; in a flash pool, cold blocks move to the disks.
    #[default]
    Auto,
    /// Nothing.
    Off,
    /// Continuous segment cleaning: areas are emptied just before they are needed.
    Csc,
    /// Write after read: files that are read in order are written together, while drives are idle.
    War,
    /// Both.
    All,
    /// For small scattered writes: csc on disks alone, else auto.
    Oltp,
    /// For files that are written once and read in order: war on disks alone, else auto.
    Backup,
}

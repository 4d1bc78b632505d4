//! Arguments of guest kernels.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use senesce_core::Bytes;

/// A guest kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GuestArg {
    /// User-mode Linux, which needs no root (package user-mode-linux).
    Uml,
}

#[derive(Clone, Debug, Default, Args)]
pub struct GuestArgs {
    /// Run in a guest kernel, without root.
    ///
    /// The run has the guest's file systems, such as F2FS. Wall times of a guest must not be
    /// quoted.
    #[arg(long, value_enum, value_name = "KIND", conflicts_with = "dry_run")]
    pub guest: Option<GuestArg>,
    /// Memory of the guest. Default: 1GiB.
    ///
    /// It must also hold the images of a plan in memory.
    #[arg(long, value_name = "SIZE", requires = "guest")]
    pub guest_memory: Option<Bytes>,
}

#[derive(Debug, Args)]
pub struct KernelsArgs {
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// What the guard of a guest starts.
#[derive(Debug, Args)]
pub struct GuestGuardArgs {
    /// The kernel with its command line.
    #[arg(last = true)]
    pub command: Vec<String>,
}

/// What process 1 of a guest reads.
#[derive(Debug, Args)]
pub struct GuestInitArgs {
    /// The configuration.
    pub config: PathBuf,
}

//! `senesce fs`: file systems of our own.

mod drive;
mod look;
mod mkfs;
mod mount;
mod place;

use anyhow::Result;

pub use drive::with_engine;

use crate::args::{FsArgs, FsVerb};

/// Makes, mounts, checks, shows.
pub fn fs(args: FsArgs, quiet: bool) -> Result<()> {
    match args.verb {
        FsVerb::Mkfs(args) => mkfs::mkfs(&args),
        FsVerb::Mount(args) => mount::mount(&args, quiet),
        FsVerb::Check(args) => look::check(&args),
        FsVerb::Stat(args) => look::stat(&args),
    }
}

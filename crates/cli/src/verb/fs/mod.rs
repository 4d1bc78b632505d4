//! `senesce fs`: file systems of our own.

mod look;
mod mkfs;
mod mount;
mod place;

use anyhow::Result;

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

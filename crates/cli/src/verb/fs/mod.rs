//! `senesce fs`: file systems of our own.

mod chains;
mod claim;
mod clean;
mod clients;
mod dedup;
mod defrag;
mod diff;
mod drive;
mod drives;
mod dump;
mod groups;
mod headroom;
mod load;
mod look;
mod mkfs;
mod mount;
mod paths;
mod place;
mod reclaim;
mod recompact;
mod serve;
mod snapshots;
mod survey;
mod tier;
mod volumes;
mod words;

use anyhow::Result;

pub use chains::{print_chains, report_chains};
pub use drive::with_engine;
pub use survey::collect_told;

use crate::args::{FsArgs, FsVerb};

/// Makes, mounts, checks, shows, mends.
pub fn fs(args: FsArgs, quiet: bool) -> Result<()> {
    match args.verb {
        FsVerb::Mkfs(args) => mkfs::mkfs(&args, quiet),
        FsVerb::Mount(args) => mount::mount(&args, quiet),
        FsVerb::Serve(args) => serve::serve(&args),
        FsVerb::Check(args) => look::check(&args, quiet),
        FsVerb::Stat(args) => look::stat(&args),
        FsVerb::Dump(args) => dump::dump(&args),
        FsVerb::Replace(args) => drives::replace(&args, quiet),
        FsVerb::Rebuild(args) => drives::rebuild(&args, quiet),
        FsVerb::Volume(args) => volumes::volume(&args, quiet),
        FsVerb::Snapshot(args) => snapshots::snapshot(&args, quiet),
        FsVerb::Clone(args) => volumes::clone(&args),
        FsVerb::Diff(args) => diff::diff(&args),
        FsVerb::Dedup(args) => dedup::dedup(&args, quiet),
        FsVerb::Defrag(args) => defrag::defrag(&args, quiet),
        FsVerb::Recompact(args) => recompact::recompact(&args, quiet),
        FsVerb::Clean(args) => clean::clean(&args, quiet),
        FsVerb::Tier(args) => tier::tier(&args, quiet),
        FsVerb::Scrub(args) => drives::scrub(&args, quiet),
    }
}

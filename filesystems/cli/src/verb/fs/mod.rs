//! `senesce fs`: file systems of our own.

mod background_tasks;
mod check_stat;
mod claim;
mod clean;
mod clients;
mod control;
mod dedup;
mod defrag;
mod diff;
mod drives;
mod dump;
mod evergreen;
mod groups;
mod held_mounts;
mod idle_resources;
mod in_process_engine;
mod load_sampling;
mod mkfs;
mod mount;
mod mounted_volumes;
mod mounts;
mod name_arguments;
mod objects;
mod paths;
mod place;
mod reclaim;
mod recompact;
mod repair;
mod send_request;
mod serve;
mod snapshots;
mod survey;
mod sync;
mod sync_timing;
mod tier;
mod volumes;
mod watch;

use anyhow::Result;

pub use clean::Policy;
pub use diff::DiffDocument;
pub use drives::RebuildDocument;
pub use dump::DumpDocument;
pub use evergreen::{EvergreenRepairDocument, TreeDocument, draw_tree, outline_tree, with_evergreen};
pub use in_process_engine::with_engine;
pub use recompact::RecompactDocument;
pub use repair::RepairDocument;
pub use snapshots::SnapshotDocument;
pub use survey::collect_told;
pub use tier::TIER_INNER;
pub use volumes::{CloneDocument, VolumeDocument};

use crate::{
    allocator::share_one_heap,
    args::{EngineKind, FsCheckArgs, FsStatArgs, FsVerb, FsWithObjectsArgs},
    exit::usage,
};
use evergreen::Place as EvergreenPlace;

/// Makes, mounts, checks, shows and repairs file systems.
pub fn fs(verb: FsVerb, quiet: bool) -> Result<()> {
    if matches!(verb, FsVerb::Mount(_) | FsVerb::Serve(_)) {
        share_one_heap();
    }
    match verb {
        FsVerb::Mkfs(args) => match args.engine {
            EngineKind::Garden => mkfs::mkfs(&args, quiet),
            EngineKind::Evergreen => evergreen::mkfs(&args, quiet),
        },
        FsVerb::Mount(args) => match EvergreenPlace::find(&args.place) {
            Some(place) => evergreen::mount(&place, &args, quiet),
            None => mount::mount(&args, quiet),
        },
        FsVerb::Serve(args) => serve::serve(&args),
        FsVerb::Survey(args) => survey::survey(&args),
        FsVerb::Check(FsCheckArgs { what: args, repair, dry_run, without_log, force, online }) => {
            match EvergreenPlace::find(&args.look.place) {
                Some(place) if repair => {
                    without_objects(&args).and_then(|()| evergreen::repair(&place, dry_run, args.look.json))
                }
                Some(place) => {
                    without_objects(&args).and_then(|()| evergreen::check(&place, online, args.look.json, quiet))
                }
                None if repair => repair::repair(&args, dry_run, without_log.then_some(force), quiet),
                None => check_stat::check(&args, online, quiet),
            }
        }
        FsVerb::Stat(FsStatArgs { what: args, verbose }) => match EvergreenPlace::find(&args.look.place) {
            Some(place) => without_objects(&args).and_then(|()| evergreen::stat(&place, args.look.json)),
            None => check_stat::stat(&args, verbose, quiet),
        },
        FsVerb::Figures(args) => check_stat::figures(&args, quiet),
        FsVerb::Dump(args) => match EvergreenPlace::find_at(&args.place) {
            Some(place) => evergreen::dump(&place, &args),
            None => dump::dump(&args),
        },
        FsVerb::Replace(args) => drives::replace(&args, quiet),
        FsVerb::Rebuild(args) => drives::rebuild(&args, quiet),
        FsVerb::Volume(args) => volumes::volume(&args, quiet),
        FsVerb::Snapshot(args) => snapshots::snapshot(&args, quiet),
        FsVerb::Clone(args) => volumes::clone(&args, quiet),
        FsVerb::Diff(args) => diff::diff(&args),
        FsVerb::Dedup(args) => dedup::dedup(&args, quiet),
        FsVerb::Defrag(args) => match args.words.first().and_then(|place| EvergreenPlace::find_at(place.as_ref())) {
            Some(place) => evergreen::defrag(&place, &args, quiet),
            None => defrag::defrag(&args, quiet),
        },
        FsVerb::Recompact(args) => recompact::recompact(&args, quiet),
        FsVerb::Clean(args) => clean::clean(&args, quiet),
        FsVerb::Sync(args) => sync::sync(&args, quiet),
        FsVerb::Tier(args) => tier::tier(&args, quiet),
        FsVerb::Scrub(args) => drives::scrub(&args, quiet),
    }
}

/// Errors: a store of objects for what has none.
fn without_objects(args: &FsWithObjectsArgs) -> Result<()> {
    match args.objects.objects {
        Some(_) => Err(usage("--objects has an effect on a garden only, and this is an evergreen", None)),
        None => Ok(()),
    }
}

//! `senesce fs snapshot`: volumes as they were.

use crate::version;
use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::Bytes;
use senesce_service::{Deleted, Request, Response, SnapshotMade, SnapshotStat};
use senesce_volume::install_signal_cleanup;
use serde::Serialize;

use super::{
    name_arguments::{show, split_snapshot, split_volume},
    reclaim::{print_reclaimable, print_reclaimed},
    send_request::{Access, ask, strange, with_format},
};
use crate::{
    args::{FsOfSnapshotArgs, FsOfVolumeArgs, FsSnapshotArgs, FsSnapshotVerb},
    clock::{SystemClock, tell_utc},
    table::render_table,
};

/// Makes one, lists them, deletes one, goes back to one.
pub fn snapshot(args: &FsSnapshotArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    match &args.verb {
        FsSnapshotVerb::Create(args) => create(args, quiet),
        FsSnapshotVerb::List(args) => list(args, quiet),
        FsSnapshotVerb::Delete(args) => remove(args, false, quiet),
        FsSnapshotVerb::Restore(args) => remove(args, true, quiet),
    }
}

/// The JSON output of `fs snapshot create`, `delete` and `restore`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SnapshotDocument {
    /// The output of `create`.
    Made(SnapshotMade),
    /// The output of `delete`.
    Deleted {
        /// The volume.
        volume: String,
        /// The deleted snapshot.
        deleted: String,
        #[serde(flatten)]
        space: Deleted,
    },
    /// The output of `restore`.
    Restored {
        /// The volume.
        volume: String,
        /// The snapshot whose state was restored.
        restored: String,
        #[serde(flatten)]
        space: Deleted,
    },
}

fn create(args: &FsOfSnapshotArgs, quiet: bool) -> Result<()> {
    let (place, names) = split_snapshot(&args.words, &args.drives)?;
    let (volume, name) = (names[0][..].into(), names[1][..].into());
    let request = Request::SnapshotCreate { volume, name, unix_seconds: SystemClock::unix_time().seconds };
    let access = Access::of(args.trial.dry_run);
    let Response::SnapshotMade(made) = ask(&place, access, &request, quiet)? else { return Err(strange()) };
    if args.json {
        println!("{}", with_format(version::SNAPSHOT, &SnapshotDocument::Made(made))?);
        return Ok(());
    }
    let (bytes, inodes) = made.made.map_or((0, 0), |made| (made.bytes, made.inodes));
    let (name, volume) = (show(&names[1]), show(&names[0]));
    let of = format!("{}, {inodes} inodes", Bytes(bytes));
    match access {
        Access::Look => {
            println!("{place}: snapshot {name} of volume {volume} would be made: {of}; nothing was changed")
        }
        Access::Change => println!("{place}: snapshot {name} of volume {volume}: {of}"),
    }
    Ok(())
}

fn list(args: &FsOfVolumeArgs, quiet: bool) -> Result<()> {
    let (place, name) = split_volume(&args.words, &args.drives)?;
    let request = Request::SnapshotList { volume: name[..].into() };
    let Response::Snapshots(found) = ask(&place, Access::Look, &request, quiet)? else { return Err(strange()) };
    if args.json {
        println!("{}", with_format(version::SNAPSHOTS, &found)?);
        return Ok(());
    }
    let line = |snapshot: &SnapshotStat| {
        vec![
            show(snapshot.name.as_bytes()),
            tell_utc(snapshot.created_unix_seconds),
            format!("consistency point {}", snapshot.consistency_point),
            Bytes(snapshot.bytes).to_string(),
            format!("{} inodes", snapshot.inodes),
        ]
    };
    let all = &found.snapshots;
    print!("{}", render_table(&all.iter().map(line).collect::<Vec<_>>()));
    let (volume, held) = (show(&name), Bytes(found.held_bytes));
    println!("volume {volume}: {} snapshot(s); {held} that the volume itself does not use", all.len());
    Ok(())
}

/// Deletes a snapshot, or all that its volume has more.
fn remove(args: &FsOfSnapshotArgs, restores: bool, quiet: bool) -> Result<()> {
    let (place, names) = split_snapshot(&args.words, &args.drives)?;
    let (volume, name) = (names[0][..].into(), names[1][..].into());
    let (request, word) = match restores {
        true => (Request::SnapshotRestore { volume, name }, "restored"),
        false => (Request::SnapshotDelete { volume, name }, "deleted"),
    };
    let access = Access::of(args.trial.dry_run);
    let Response::Deleted(deleted) = ask(&place, access, &request, quiet)? else { return Err(strange()) };
    if access == Access::Look {
        let (name, volume) = (show(&names[1]), show(&names[0]));
        let would = match restores {
            true => format!(
                "{place}: volume {volume} would be set back to snapshot {name}, and lose all later changes that no \
                 other snapshot has"
            ),
            false => format!("{place}: snapshot {name} of volume {volume} would be deleted"),
        };
        print_reclaimable(&would, &deleted);
        return Ok(());
    }
    let [volume, name] = [0, 1].map(|at: usize| String::from_utf8_lossy(&names[at]).into_owned());
    let document = match restores {
        true => SnapshotDocument::Restored { volume, restored: name, space: deleted.clone() },
        false => SnapshotDocument::Deleted { volume, deleted: name, space: deleted.clone() },
    };
    let document = args.json.then(|| with_format(version::SNAPSHOT, &document)).transpose()?;
    let line = format!("{place}: snapshot {} of volume {} {word}", show(&names[1]), show(&names[0]));
    print_reclaimed(&deleted, document, &line)
}

//! `senesce fs volume` and `senesce fs clone`: the volumes of a garden.

use crate::version;
use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::{Bytes, Seed};
use senesce_service::{CloneOf, Deleted, Request, Response, VolumeStat};
use senesce_volume::install_signal_cleanup;
use serde::Serialize;

use super::{
    name_arguments::{show, split},
    place::{BLOCK_BYTES, Place},
    reclaim::{print_reclaimable, print_reclaimed},
    send_request::{Access, ask, strange, with_format},
};
use crate::args::{FsChangeVolumeArgs, FsCloneArgs, FsLookArgs, FsVolumeArgs, FsVolumeCreateArgs, FsVolumeVerb};

/// The JSON output of `fs clone`.
#[derive(Serialize, JsonSchema)]
pub struct CloneDocument {
    /// The volume of the snapshot.
    volume: String,
    /// The snapshot.
    snapshot: String,
    /// The new volume.
    made: String,
    /// Free bytes of the new volume.
    free_bytes: u64,
}

/// The JSON output of `fs volume delete`.
#[derive(Serialize, JsonSchema)]
pub struct VolumeDocument {
    /// The deleted volume.
    deleted: String,
    #[serde(flatten)]
    space: Deleted,
}

/// Makes one, lists them, deletes one.
pub fn volume(args: &FsVolumeArgs, quiet: bool) -> Result<()> {
    match &args.verb {
        FsVolumeVerb::Create(args) => create(args, quiet),
        FsVolumeVerb::List(args) => list(args, quiet),
        FsVolumeVerb::Delete(args) => delete(args, quiet),
    }
}

/// Makes one of a snapshot.
pub fn clone(args: &FsCloneArgs, quiet: bool) -> Result<()> {
    let (place, names) = split(&args.words, &args.drives, 3..=3)?;
    let name = |at: usize| names[at][..].into();
    let request = Request::Clone { volume: name(0), snapshot: name(1), name: name(2) };
    let access = Access::of(args.trial.dry_run);
    let Response::Cloned(cloned) = ask(&place, access, &request, quiet)? else { return Err(strange()) };
    if args.json {
        let text = |at: usize| String::from_utf8_lossy(&names[at]).into_owned();
        let free_bytes = cloned.free_bytes;
        let document = CloneDocument { volume: text(0), snapshot: text(1), made: text(2), free_bytes };
        println!("{}", with_format(version::CLONE, &document)?);
        return Ok(());
    }
    let [volume, snapshot, name] = [0, 1, 2].map(|at: usize| show(&names[at]));
    let free = Bytes(cloned.free_bytes);
    let of = format!("a clone of snapshot {snapshot} of volume {volume}");
    match access {
        Access::Look => println!("{place}: volume {name} would be made, {of}; {free} free; nothing was changed"),
        Access::Change => println!("{place}: volume {name}, {of}; {free} free"),
    }
    Ok(())
}

fn delete(FsChangeVolumeArgs { of: args, trial }: &FsChangeVolumeArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let (place, names) = split(&args.words, &args.drives, 1..=1)?;
    let name = &names[0];
    let request = Request::VolumeDelete { name: name[..].into() };
    let access = Access::of(trial.dry_run);
    let Response::Deleted(deleted) = ask(&place, access, &request, quiet)? else { return Err(strange()) };
    if access == Access::Look {
        print_reclaimable(&format!("{place}: volume {} would be deleted", show(name)), &deleted);
        return Ok(());
    }
    let document = VolumeDocument { deleted: String::from_utf8_lossy(name).into_owned(), space: deleted.clone() };
    let document = args.json.then(|| with_format(version::VOLUME, &document)).transpose()?;
    let line = format!("{place}: volume {} deleted", show(name));
    print_reclaimed(&deleted, document, &line)
}

fn create(args: &FsVolumeCreateArgs, quiet: bool) -> Result<()> {
    let place = Place::of(&args.place)?;
    let seed = args.seed.map_or_else(|| Seed(0).derive(&format!("names of volume {}", args.name)), Seed);
    let request = Request::VolumeCreate {
        name: args.name.as_str().into(),
        bytes: args.size.map(|size| size.0),
        inodes: args.inodes,
        seed: seed.0,
        compress: args.pack.compress.map_or(0, |size| size.0),
    };
    let access = Access::of(args.dry_run);
    let Response::VolumeMade(made) = ask(&place, access, &request, quiet)? else { return Err(strange()) };
    let (name, of) = (&args.name, format!("{} for {} files and directories", Bytes(made.bytes), made.inodes));
    match access {
        Access::Look => println!("{place}: volume {name} would be made, {of}; nothing was changed"),
        Access::Change => println!("{place}: volume {name}, {of}"),
    }
    Ok(())
}

fn list(args: &FsLookArgs, quiet: bool) -> Result<()> {
    let place = Place::of(&args.place)?;
    let Response::Volumes(found) = ask(&place, Access::Look, &Request::VolumeList, quiet)? else {
        return Err(strange());
    };
    if args.json {
        println!("{}", with_format(version::VOLUMES, &found)?);
        return Ok(());
    }
    found.volumes.iter().for_each(|volume| println!("{}", line(volume)));
    Ok(())
}

/// A volume for people.
pub fn line(volume: &VolumeStat) -> String {
    let mut line = format!(
        "volume {}: {} of {} free, {} of {} inodes used",
        show(volume.name.as_bytes()),
        Bytes(volume.free_bytes),
        Bytes(volume.bytes),
        volume.inodes - volume.free_inodes.min(volume.inodes),
        volume.inodes
    );
    if let Some(CloneOf { volume, snapshot }) = &volume.clone_of {
        line.push_str(&format!(
            ", a clone of snapshot {} of volume {}",
            show(snapshot.as_bytes()),
            show(volume.as_bytes())
        ));
    }
    if volume.snapshots > 0 || volume.held_bytes > 0 {
        line.push_str(&format!(", {} snapshot(s) hold {}", volume.snapshots, Bytes(volume.held_bytes)));
    }
    if volume.saved_blocks > 0 {
        let saved = Bytes(volume.saved_blocks * BLOCK_BYTES);
        line.push_str(&format!(", {} blocks are shared and save {saved}", volume.shared_blocks));
    }
    line
}

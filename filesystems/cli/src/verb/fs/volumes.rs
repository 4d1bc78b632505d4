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
    reclaim::print_reclaimed,
    send_request::{Access, ask, strange, with_format},
};
use crate::{
    args::{FsCloneArgs, FsLookArgs, FsVolumeArgs, FsVolumeCreateArgs, FsVolumeDeleteArgs, FsVolumeVerb},
    exit::usage,
};

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
    let Response::Cloned(cloned) = ask(&place, Access::Change, &request, quiet)? else { return Err(strange()) };
    if args.json {
        let text = |at: usize| String::from_utf8_lossy(&names[at]).into_owned();
        let free_bytes = cloned.free_bytes;
        let document = CloneDocument { volume: text(0), snapshot: text(1), made: text(2), free_bytes };
        println!("{}", with_format(version::CLONE, &document)?);
        return Ok(());
    }
    let [volume, snapshot, name] = [0, 1, 2].map(|at: usize| show(&names[at]));
    let free = Bytes(cloned.free_bytes);
    println!("{place}: volume {name}, a clone of snapshot {snapshot} of volume {volume}; {free} free");
    Ok(())
}

fn delete(args: &FsVolumeDeleteArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let FsVolumeDeleteArgs { of: args, dry_run } = args;
    let (place, names) = split(&args.words, &args.drives, 1..=1)?;
    let name = &names[0];
    if *dry_run {
        let found = find_volume(&place, name, quiet)?;
        let found = found.ok_or_else(|| usage(format!("{place} has no volume {}", show(name)), Some(LISTS)))?;
        println!("{place}: would be deleted: {}; nothing was changed", line(&found));
        return Ok(());
    }
    let request = Request::VolumeDelete { name: name[..].into() };
    let Response::Deleted(deleted) = ask(&place, Access::Change, &request, quiet)? else { return Err(strange()) };
    let document = VolumeDocument { deleted: String::from_utf8_lossy(name).into_owned(), space: deleted.clone() };
    let document = args.json.then(|| with_format(version::VOLUME, &document)).transpose()?;
    let line = format!("{place}: volume {} deleted", show(name));
    print_reclaimed(&deleted, document, &line)
}

/// The hint for a volume that does not exist.
const LISTS: &str = "`senesce fs volume list` prints their names";

fn find_volume(place: &Place, name: &[u8], quiet: bool) -> Result<Option<VolumeStat>> {
    match ask(place, Access::Look, &Request::VolumeList, quiet)? {
        Response::Volumes(found) => Ok(found.volumes.into_iter().find(|volume| volume.name.as_bytes() == name)),
        _ => Err(strange()),
    }
}

fn create(args: &FsVolumeCreateArgs, quiet: bool) -> Result<()> {
    let place = Place::of(&args.place)?;
    if args.dry_run {
        return match find_volume(&place, args.name.as_bytes(), quiet)? {
            Some(_) => Err(usage(format!("{place} has a volume {} already", args.name), Some("give another name"))),
            None => {
                println!("{place}: volume {} would be made; nothing was changed", args.name);
                Ok(())
            }
        };
    }
    let seed = args.seed.map_or_else(|| Seed(0).derive(&format!("names of volume {}", args.name)), Seed);
    let request = Request::VolumeCreate {
        name: args.name.as_str().into(),
        bytes: args.size.map(|size| size.0),
        inodes: args.inodes,
        seed: seed.0,
        compress: args.pack.compress.map_or(0, |size| size.0),
    };
    let Response::VolumeMade(made) = ask(&place, Access::Change, &request, quiet)? else { return Err(strange()) };
    println!("{place}: volume {}, {} for {} files and directories", args.name, Bytes(made.bytes), made.inodes);
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

//! `senesce fs volume` and `senesce fs clone`: the volumes of a garden.

use anyhow::{Context, Result};
use senesce_core::{Bytes, Seed};
use senesce_fsapi::{FileSystem, SpaceReport};
use senesce_garden::{Error, Garden, Sharing, VolumeOptions};
use senesce_volume::install_signal_cleanup;
use serde_json::{Value, json};

use super::{
    place::Place,
    reclaim::reclaim_and_tell,
    recompact::packing,
    words::{explain, show, split},
};
use crate::{
    args::{FsCloneArgs, FsLookArgs, FsOfVolumeArgs, FsVolumeArgs, FsVolumeCreateArgs, FsVolumeVerb},
    exit::usage,
};

/// Makes one, lists them, deletes one.
pub fn volume(args: &FsVolumeArgs, quiet: bool) -> Result<()> {
    match &args.verb {
        FsVolumeVerb::Create(args) => create(args),
        FsVolumeVerb::List(args) => list(args),
        FsVolumeVerb::Delete(args) => delete(args, quiet),
    }
}

/// Makes one of a snapshot.
pub fn clone(args: &FsCloneArgs) -> Result<()> {
    let (place, names) = split(&args.words, &args.drives, 3..=3)?;
    let (volume, snapshot, name) = (&names[0], &names[1], &names[2]);
    let garden = place.garden(&place.open()?)?;
    let cannot = || format!("cannot make volume {} of snapshot {} in {place}", show(name), show(snapshot));
    let made = garden.clone_volume(volume, snapshot, name);
    made.map_err(|error| explain(&garden, volume, error)).with_context(cannot)?;
    garden.close().with_context(|| format!("cannot close {place}"))?;
    let space = garden.volume(name)?.space()?;
    if args.json {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let document = json!({
            "format": "senesce-fs-clone/1",
            "volume": text(volume),
            "snapshot": text(snapshot),
            "made": text(name),
            "free_bytes": space.free * u64::from(space.block_bytes),
        });
        println!("{document}");
        return Ok(());
    }
    let (volume, snapshot, free) = (show(volume), show(snapshot), Bytes(space.free * u64::from(space.block_bytes)));
    println!("{place}: volume {}, a clone of snapshot {snapshot} of volume {volume}; {free} free", show(name));
    Ok(())
}

fn delete(args: &FsOfVolumeArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let (place, names) = split(&args.words, &args.drives, 1..=1)?;
    let name = &names[0];
    let garden = place.garden(&place.open()?)?;
    let before = garden.report().free;
    let done = garden.delete_volume(name);
    done.map_err(|error| explain(&garden, name, error))
        .with_context(|| format!("cannot delete volume {} in {place}", show(name)))?;
    let document = json!({ "format": "senesce-fs-volume/1", "deleted": String::from_utf8_lossy(name) });
    let line = format!("{place}: volume {} deleted", show(name));
    reclaim_and_tell(&garden, before, args.json.then_some(document), &line, quiet)
}

fn create(args: &FsVolumeCreateArgs) -> Result<()> {
    let place = Place::of(&args.place)?;
    let packing = packing(args.pack.compress)?;
    let garden = place.garden(&place.open()?)?;
    let all = garden.report().blocks;
    let blocks = args.size.map_or(all, |size| size.0.div_ceil(4096));
    let inodes = args.inodes.unwrap_or((blocks / 2).max(1024));
    let seed = args.seed.map_or_else(|| Seed(0).derive(&format!("names of volume {}", args.name)), Seed);
    let made = garden.create_volume(args.name.as_bytes(), &VolumeOptions { blocks, inodes, seed: seed.0 });
    made.map_err(|error| match error {
        Error::Invalid { what } => usage(what, None),
        error => error.into(),
    })
    .with_context(|| format!("cannot make volume {} in {place}", args.name))?;
    if packing.compaction {
        garden.set_packing(args.name.as_bytes(), packing)?;
    }
    garden.close().with_context(|| format!("cannot close {place}"))?;
    println!("{place}: volume {}, {} for {inodes} files and directories", args.name, Bytes(blocks * 4096));
    Ok(())
}

fn list(args: &FsLookArgs) -> Result<()> {
    let place = Place::of(&args.place)?;
    let garden = place.garden(&place.look()?)?;
    let volumes = collect_volumes(&garden)?;
    if args.json {
        println!("{}", json!({ "format": "senesce-fs-volumes/1", "volumes": volumes_shown(&volumes) }));
        return Ok(());
    }
    volumes.iter().for_each(|volume| println!("{}", line(volume)));
    Ok(())
}

/// A volume as it is told.
pub struct VolumeReport {
    name: String,
    space: SpaceReport,
    snapshots: usize,
    /// Blocks that only snapshots use.
    held: u64,
    sharing: Sharing,
    /// The volume and the snapshot that it is a clone of.
    origin: Option<(String, String)>,
}

/// All volumes, and what they hold and have left.
pub fn collect_volumes(garden: &Garden) -> Result<Vec<VolumeReport>> {
    let report = |name: &Vec<u8>| {
        Ok(VolumeReport {
            name: String::from_utf8_lossy(name).into_owned(),
            space: garden.volume(name)?.space()?,
            snapshots: garden.snapshots(name)?.len(),
            held: garden.held_blocks(name)?,
            sharing: garden.sharing(name)?,
            origin: garden.origin(name)?.map(|(volume, snapshot)| (show(&volume), show(&snapshot))),
        })
    };
    garden.volumes().iter().map(report).collect()
}

/// One of them for people.
pub fn line(volume: &VolumeReport) -> String {
    let VolumeReport { name, space, snapshots, held, sharing, origin } = volume;
    let bytes = |blocks: u64| Bytes(blocks * u64::from(space.block_bytes));
    let mut line = format!(
        "volume {name}: {} of {} free, {} of {} inodes used",
        bytes(space.free),
        bytes(space.blocks),
        space.inodes - space.free_inodes,
        space.inodes
    );
    if let Some((volume, snapshot)) = origin {
        line.push_str(&format!(", a clone of snapshot {snapshot} of volume {volume}"));
    }
    if *snapshots > 0 || *held > 0 {
        line.push_str(&format!(", {snapshots} snapshot(s) hold {}", bytes(*held)));
    }
    if sharing.saved > 0 {
        line.push_str(&format!(", {} blocks are shared and save {}", sharing.shared, bytes(sharing.saved)));
    }
    line
}

/// All of them for machines.
pub fn volumes_shown(volumes: &[VolumeReport]) -> Vec<Value> {
    let one = |volume: &VolumeReport| {
        let VolumeReport { name, space, snapshots, held, sharing, origin } = volume;
        let origin = origin.as_ref().map(|(volume, snapshot)| json!({ "volume": volume, "snapshot": snapshot }));
        json!({
            "name": name,
            "bytes": space.blocks * u64::from(space.block_bytes),
            "free_bytes": space.free * u64::from(space.block_bytes),
            "inodes": space.inodes,
            "free_inodes": space.free_inodes,
            "snapshots": snapshots,
            "held_bytes": held * u64::from(space.block_bytes),
            "shared_blocks": sharing.shared,
            "saved_blocks": sharing.saved,
            "clone_of": origin,
        })
    };
    volumes.iter().map(one).collect()
}

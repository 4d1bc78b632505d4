//! `senesce fs snapshot`: volumes as they were.

use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_garden::{Garden, SnapshotReport};
use senesce_volume::install_signal_cleanup;
use serde_json::{Value, json};

use super::{
    place::{BLOCK_BYTES, Place},
    reclaim::reclaim_and_tell,
    words::{explain, show, split},
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
        FsSnapshotVerb::Create(args) => create(args),
        FsSnapshotVerb::List(args) => list(args),
        FsSnapshotVerb::Delete(args) => delete(args, quiet),
        FsSnapshotVerb::Restore(args) => restore(args, quiet),
    }
}

/// A garden that is open to be changed, and the volume and the snapshot that are named.
struct Named {
    place: Place,
    garden: Garden,
    volume: Vec<u8>,
    name: Vec<u8>,
}

fn open(args: &FsOfSnapshotArgs) -> Result<Named> {
    let (place, mut names) = split(&args.words, &args.drives, 2..=2)?;
    let garden = place.garden(&place.open()?)?;
    let (volume, name) = (names.swap_remove(0), names.swap_remove(0));
    Ok(Named { place, garden, volume, name })
}

fn create(args: &FsOfSnapshotArgs) -> Result<()> {
    let Named { place, garden, volume, name } = open(args)?;
    let made = garden.create_snapshot(&volume, &name, SystemClock::unix_time());
    let cannot = || format!("cannot make snapshot {} of volume {} in {place}", show(&name), show(&volume));
    made.map_err(|error| explain(&garden, &volume, error)).with_context(cannot)?;
    garden.close().with_context(|| format!("cannot close {place}"))?;
    let all = garden.snapshots(&volume)?;
    let made = all.iter().find(|snapshot| snapshot.name == name);
    if args.json {
        let volume = String::from_utf8_lossy(&volume);
        println!("{}", json!({ "format": "senesce-fs-snapshot/1", "volume": volume, "made": made.map(shown) }));
        return Ok(());
    }
    let (blocks, inodes) = made.map_or((0, 0), |snapshot| (snapshot.blocks, snapshot.inodes));
    let bytes = Bytes(blocks * BLOCK_BYTES);
    println!("{place}: snapshot {} of volume {}: {bytes}, {inodes} inodes", show(&name), show(&volume));
    Ok(())
}

fn list(args: &FsOfVolumeArgs) -> Result<()> {
    let (place, names) = split(&args.words, &args.drives, 1..=1)?;
    let volume = &names[0];
    let garden = place.garden(&place.look()?)?;
    let snapshots = garden.snapshots(volume).map_err(|error| explain(&garden, volume, error))?;
    let held = garden.held_blocks(volume)?;
    if args.json {
        let document = json!({
            "format": "senesce-fs-snapshots/1",
            "volume": String::from_utf8_lossy(volume),
            "held_bytes": held * BLOCK_BYTES,
            "snapshots": snapshots.iter().map(shown).collect::<Vec<_>>(),
        });
        println!("{document}");
        return Ok(());
    }
    let line = |snapshot: &SnapshotReport| {
        vec![
            show(&snapshot.name),
            tell_utc(snapshot.created.seconds),
            format!("consistency point {}", snapshot.cp),
            Bytes(snapshot.blocks * BLOCK_BYTES).to_string(),
            format!("{} inodes", snapshot.inodes),
        ]
    };
    print!("{}", render_table(&snapshots.iter().map(line).collect::<Vec<_>>()));
    let (volume, held) = (show(volume), Bytes(held * BLOCK_BYTES));
    println!("volume {volume}: {} snapshot(s); {held} that the volume itself does not use", snapshots.len());
    Ok(())
}

fn delete(args: &FsOfSnapshotArgs, quiet: bool) -> Result<()> {
    let named = open(args)?;
    let before = named.garden.report().free;
    let done = named.garden.delete_snapshot(&named.volume, &named.name);
    done.map_err(|error| explain(&named.garden, &named.volume, error))
        .with_context(|| format!("cannot delete snapshot {} in {}", show(&named.name), named.place))?;
    tell(&named, args.json, "deleted", before, quiet)
}

fn restore(args: &FsOfSnapshotArgs, quiet: bool) -> Result<()> {
    let named = open(args)?;
    let before = named.garden.report().free;
    let done = named.garden.restore_snapshot(&named.volume, &named.name);
    done.map_err(|error| explain(&named.garden, &named.volume, error))
        .with_context(|| format!("cannot go back to snapshot {} in {}", show(&named.name), named.place))?;
    tell(&named, args.json, "restored", before, quiet)
}

fn tell(named: &Named, as_json: bool, word: &str, before: u64, quiet: bool) -> Result<()> {
    let Named { place, garden, volume, name } = named;
    let document = json!({
        "format": "senesce-fs-snapshot/1",
        "volume": String::from_utf8_lossy(volume),
        word: String::from_utf8_lossy(name),
    });
    let line = format!("{place}: snapshot {} of volume {} {word}", show(name), show(volume));
    reclaim_and_tell(garden, before, as_json.then_some(document), &line, quiet)
}

fn shown(snapshot: &SnapshotReport) -> Value {
    json!({
        "name": String::from_utf8_lossy(&snapshot.name),
        "created_unix_seconds": snapshot.created.seconds,
        "consistency_point": snapshot.cp,
        "bytes": snapshot.blocks * BLOCK_BYTES,
        "inodes": snapshot.inodes,
    })
}

//! `senesce fs defrag` of an evergreen: keys become those of where objects are, then leaves those of the order of keys.

use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_evergreen::{KeySweepCounts, KeyValue, LeafSweep, Limits};
use senesce_volume::{check_interrupted, install_signal_cleanup, interrupted};
use serde_json::json;

use super::{Opened, Place};
use crate::{args::FsDefragArgs, exit::usage, progress::Stretch};

/// Bytes that are moved before the next look whether a signal came.
const STEP: u64 = 4 << 20;

/// One sweep of all keys, and one of all leaves. What was moved until a signal stays moved.
pub fn defrag(place: &Place, args: &FsDefragArgs, quiet: bool) -> Result<()> {
    check_words(args)?;
    install_signal_cleanup().context("cannot handle signals")?;
    // A dry run keeps what it writes in memory.
    let device = if args.dry_run { place.look()? } else { place.open()? };
    let Opened { store, fs } = place.evergreen(device, Limits::default())?;
    let mut sweep = fs.begin_key_sweep();
    let mut bar = Stretch::for_stderr(quiet, "sweeping keys", "bytes", store.live().bytes);
    let cannot = || format!("cannot defragment {place}");
    while interrupted().is_none() && !fs.key_sweep_step(&mut sweep, STEP).with_context(cannot)? {
        bar.reach(sweep.counts().moved_bytes);
    }
    drop(bar);
    let leaves = if interrupted().is_none() { Some(store.sweep().with_context(cannot)?) } else { None };
    store.checkpoint().with_context(cannot)?;
    let counts = sweep.counts();
    if args.json {
        println!("{}", shown(args, &counts, leaves));
    } else {
        print(place, args, &counts, leaves);
        if let Some(first) = sweep.first_unreadable() {
            println!("  {} cannot be read and keep their keys; run `senesce fs check`: {first}", counts.unreadable);
        }
    }
    Ok(check_interrupted("defragmenting")?)
}

/// Errors: words about a garden.
fn check_words(args: &FsDefragArgs) -> Result<()> {
    let of_garden = [
        ("a PATH", args.words.len() > 1),
        ("--drive", !args.drives.drive.is_empty()),
        ("--volume", args.volume != "main"),
        ("--traditional", args.traditional),
    ];
    match of_garden.iter().find(|(_, is_given)| *is_given) {
        Some((word, _)) => Err(usage(format!("{word} is about a garden, and this is an evergreen"), None)),
        None => Ok(()),
    }
}

fn shown(args: &FsDefragArgs, counts: &KeySweepCounts, leaves: Option<LeafSweep>) -> serde_json::Value {
    json!({
        "format": "senesce-fs-defrag-evergreen/1",
        "dry_run": args.dry_run,
        "names": counts.names,
        "moved_objects": counts.moved,
        "moved_bytes": counts.moved_bytes,
        "too_large_objects": counts.too_large,
        "objects_without_space": counts.without_space,
        "unreadable_objects": counts.unreadable,
        "swept_leaf_bytes": leaves.map(|leaves| leaves.bytes),
        "unreadable_leaves": leaves.map(|leaves| leaves.unreadable),
    })
}

fn print(place: &Place, args: &FsDefragArgs, counts: &KeySweepCounts, leaves: Option<LeafSweep>) {
    let would = if args.dry_run { "would get" } else { "got" };
    println!(
        "{place}: {} of the objects of {} names {would} the keys of where they are ({})",
        counts.moved,
        counts.names,
        Bytes(counts.moved_bytes)
    );
    if counts.too_large > 0 {
        println!("  {} are larger than a batch and keep their keys", counts.too_large);
    }
    if counts.without_space > 0 {
        println!("  {} keep their keys for want of space; free some and try again", counts.without_space);
    }
    if let Some(leaves) = leaves {
        let would = if args.dry_run { "would be" } else { "were" };
        println!("  {} of leaves {would} written again, adjacent in the order of keys", Bytes(leaves.bytes));
        if leaves.unreadable > 0 {
            println!(
                "  {} leaves or inner nodes cannot be read and were skipped; run `senesce fs check`",
                leaves.unreadable
            );
        }
    }
}

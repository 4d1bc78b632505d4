//! `senesce fs tier`: cold blocks leave the drives for objects.

use std::fs;

use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_garden::{Garden, Limits, ObjectDefrag, TierCounts, Tiering};
use senesce_volume::{check_interrupted, install_signal_cleanup, interrupted};
use serde_json::json;

use super::{
    objects::open_objects,
    place::{BLOCK_BYTES, Place},
};
use crate::{args::FsTierArgs, exit::usage, progress::Stretch};

/// Blocks that are looked at before it is looked whether a signal came.
const BLOCKS: u64 = 4096;

/// Objects that nobody knows go, cold blocks of all volumes leave, objects are written anew if that is asked for, and what nothing
/// needs is deleted. A signal ends it between two steps; what left stays away.
pub fn tier(args: &FsTierArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let place = Place::of(&args.place)?;
    let objects = &args.objects.objects;
    let new = objects.directory().filter(|dir| !dir.is_dir());
    let store = open_objects(objects, true)?;
    let garden = place.garden_with(&place.open()?, Limits::default(), Some(store))?;
    if let (Some(dir), 1..) = (new, garden.cold().live) {
        // It was made for nothing, and the next call must not take it for one that was there.
        let _ = fs::remove_dir(dir);
        let message = format!("{place} has cold blocks, and none of their objects are in {objects}");
        return Err(usage(message, Some("name the directory that `fs tier` was given before")));
    }
    let orphans = garden.reclaim_objects().with_context(|| format!("cannot use the objects in {objects}"))?;
    let counts = tier_all(&garden, args.age, quiet).with_context(|| format!("cannot tier {place}"))?;
    let close = || garden.close().with_context(|| format!("cannot close {place}"));
    close()?;
    let mut anew = ObjectDefrag::default();
    if let (Some(prices), None) = (args.prices, interrupted()) {
        anew =
            garden.defrag_objects(&prices.list()).with_context(|| format!("cannot write objects of {place} anew"))?;
        close()?;
    }
    let deleted = garden.delete_objects().with_context(|| format!("cannot delete objects of {place}"))?;
    close()?;
    tell(args, &place, &garden, &counts, &anew, orphans, deleted);
    Ok(check_interrupted("tiering")?)
}

fn tier_all(garden: &Garden, age: u16, quiet: bool) -> Result<TierCounts> {
    let mut all = TierCounts::default();
    let report = garden.report();
    let mut bar = Stretch::for_stderr(quiet, "looking for cold blocks", "blocks", report.blocks - report.free);
    for volume in garden.volumes() {
        let mut tier = garden.begin_tier(&volume, Tiering { age, with_cached: false })?;
        while !tier.is_done() && interrupted().is_none() {
            garden.tier_step(&mut tier, BLOCKS)?;
            bar.reach(all.looked + tier.counts().looked);
        }
        all += tier.counts();
    }
    Ok(all)
}

fn tell(
    args: &FsTierArgs,
    place: &Place,
    garden: &Garden,
    counts: &TierCounts,
    anew: &ObjectDefrag,
    orphans: u64,
    deleted: u64,
) {
    let (cold, report) = (garden.cold(), garden.report());
    if args.json {
        let document = json!({
            "format": "senesce-fs-tier/1",
            "looked_at": counts.looked,
            "tiered_blocks": counts.tiered,
            "objects_put": counts.objects + anew.puts,
            "unread": counts.unread,
            "orphans_deleted": orphans,
            "objects_deleted": deleted,
            "objects_written_anew": anew.emptied,
            "blocks_written_anew": anew.blocks,
            "cost_dollars": anew.cost,
            "saved_in_a_month_dollars": anew.saved_in_a_month,
            "objects": cold.objects,
            "cold_blocks": cold.blocks,
            "wanted_cold_blocks": cold.live,
            "free_bytes": report.free * BLOCK_BYTES,
        });
        println!("{document}");
        return;
    }
    println!(
        "{place}: {} of {} blocks are cold and lie in {} new objects; {} could not be read",
        counts.tiered, counts.looked, counts.objects, counts.unread
    );
    if args.prices.is_some() {
        println!(
            "  {} objects written anew, {} blocks: costs {:.6} dollars, saves {:.6} in a month",
            anew.emptied, anew.blocks, anew.cost, anew.saved_in_a_month
        );
    }
    println!(
        "  {} objects with {}, {} of which is wanted; {deleted} deleted, {orphans} that nobody knew",
        cold.objects,
        Bytes(cold.blocks * BLOCK_BYTES),
        Bytes(cold.live * BLOCK_BYTES)
    );
    println!("  {} of {} free", Bytes(report.free * BLOCK_BYTES), Bytes(report.blocks * BLOCK_BYTES));
}

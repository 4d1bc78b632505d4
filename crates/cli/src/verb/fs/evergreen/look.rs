//! Checking an evergreen, and what it holds: nothing is written.

use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_evergreen::{
    CheckReport, KeyValue, Limits,
    disk::{Copies, read_newest},
};
use serde_json::{Value, json};

use super::{Opened, Place};
use crate::exit::failed;

/// Findings that are shown; more are counted.
const SHOWN: usize = 20;

/// Checks the newest superblock's tree, and, if the log holds more, what opening makes of it.
pub fn check(place: &Place, as_json: bool) -> Result<()> {
    let device = place.look()?;
    let look = |what| senesce_evergreen::check(&device).with_context(|| format!("cannot check {place} {what}"));
    let mut reports = vec![("as it lies", look("as it lies")?)];
    if reports[0].1.log_batches > 0 && reports[0].1.is_clean() {
        // In memory: the device is only looked at.
        drop(place.evergreen(device.clone(), Limits::default())?);
        reports.push(("as opening makes it", look("as opening makes it")?));
    }
    if as_json {
        let shown: Vec<Value> = reports.iter().map(|(what, report)| shown(what, report)).collect();
        println!("{}", json!({ "format": "senesce-fs-check-evergreen/1", "checks": shown }));
    } else {
        reports.iter().for_each(|(what, report)| print(what, report));
    }
    let count =
        |report: &CheckReport| report.findings.len() as u64 + report.more_findings + report.copies.bad.len() as u64;
    match reports.iter().map(|(_, report)| count(report)).sum() {
        0 => Ok(()),
        found => Err(failed(format!("{place} is damaged: {found} finding(s)"))),
    }
}

fn print(what: &str, report: &CheckReport) {
    let state = match (report.is_clean(), report.is_whole()) {
        (true, _) => "clean",
        (false, true) => "DAMAGED, and nothing is lost: `--repair` writes bad copies again",
        (false, false) => "DAMAGED",
    };
    println!("{what}: {state}");
    println!(
        "  superblock {}: {} nodes in {} levels, {} of them leaves; {} keys, {} messages wait; {} batches in the log",
        report.generation, report.nodes, report.levels, report.leaves, report.keys, report.waiting, report.log_batches
    );
    println!(
        "  {} in use, {} free in {} extents",
        Bytes(report.used_bytes),
        Bytes(report.free_bytes),
        report.free_extents
    );
    if let Some(torn) = &report.torn_superblock {
        println!(
            "  {torn}: power was lost while it was written, or it is damaged; superblock {} is used, and opening writes that one anew",
            report.generation
        );
    }
    for bad in &report.copies.torn {
        println!(
            "  {bad}: power was lost while it was written, or it is damaged; the other copy is used, and opening writes both again"
        );
    }
    report.findings.iter().take(SHOWN).for_each(|finding| println!("  {finding}"));
    for bad in report.copies.bad.iter().take(SHOWN) {
        println!("  repairable: {bad}: the other copy is whole");
    }
    let more_copies = report.copies.bad.len().saturating_sub(SHOWN);
    if more_copies > 0 {
        println!("  and {more_copies} more copies");
    }
    if report.copies.single > 0 {
        println!("  {} inner nodes have one copy only, until they are written next", report.copies.single);
    }
    let more = report.findings.len().saturating_sub(SHOWN) as u64 + report.more_findings;
    if more > 0 {
        println!("  and {more} more");
    }
}

fn shown(what: &str, report: &CheckReport) -> Value {
    let finding = |finding: &senesce_evergreen::Finding| json!({ "place": finding.place, "what": finding.what });
    json!({
        "what": what,
        "clean": report.is_clean(),
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "bad_copies": report.copies.bad.iter().map(finding).collect::<Vec<_>>(),
        "torn_copies": report.copies.torn.iter().map(finding).collect::<Vec<_>>(),
        "single_copies": report.copies.single,
        "more_findings": report.more_findings,
        "torn_superblock": report.torn_superblock.as_ref().map(finding),
        "superblock": report.generation,
        "nodes": report.nodes,
        "leaves": report.leaves,
        "levels": report.levels,
        "keys": report.keys,
        "waiting_messages": report.waiting,
        "used_bytes": report.used_bytes,
        "free_bytes": report.free_bytes,
        "free_extents": report.free_extents,
        "log_batches": report.log_batches,
    })
}

/// Shows what it holds and has left, as opening makes it.
pub fn stat(place: &Place, as_json: bool) -> Result<()> {
    let device = place.look()?;
    let Opened { store, .. } = place.evergreen(device.clone(), Limits::default())?;
    let superblock = read_newest(&device)?;
    let (live, geometry, shape) = (store.live(), superblock.geometry, superblock.shape);
    let passed_over = store.figures().reads_passed_over;
    let (copies, news) = (store.copy_figures(), store.take_copy_news());
    if as_json {
        println!(
            "{}",
            json!({
                "format": "senesce-fs-stat-evergreen/1",
                "live_bytes": live.bytes,
                "most_live_bytes": live.most,
                "data_bytes": geometry.data_bytes(),
                "unit_bytes": geometry.unit_bytes,
                "log_bytes": geometry.log_bytes,
                "node_bytes": shape.node_bytes,
                "basement_bytes": shape.basement_bytes,
                "fanout": shape.fanout,
                "key_order": shape.key_order.to_string(),
                "superblock": superblock.generation,
                "metadata_copies": superblock.copies.count(),
                "copies_read_instead": copies.fallbacks,
                "copies_missing": copies.missing,
                "reads_passed_over": passed_over,
                "torn_superblock": store.torn().map(ToString::to_string),
            })
        );
        return Ok(());
    }
    println!("{place}: {} of {} are live, superblock {}", Bytes(live.bytes), Bytes(live.most), superblock.generation);
    println!(
        "  nodes of {} in basements of {}, {} children; keys by {}; units of {}; a log of {}",
        Bytes(shape.node_bytes.into()),
        Bytes(shape.basement_bytes.into()),
        shape.fanout,
        shape.key_order,
        Bytes(geometry.unit_bytes.into()),
        Bytes(geometry.log_bytes)
    );
    println!(
        "  inner nodes and their map in {} cop{}",
        superblock.copies.count(),
        if superblock.copies == Copies::One { "y" } else { "ies" }
    );
    if let Some(news) = news {
        println!("  readings done from the other copy: {}; the first: {news}", copies.fallbacks);
    }
    if copies.missing > 0 {
        println!("  {} second copies had no space; a later checkpoint writes them", copies.missing);
    }
    if passed_over > 0 {
        println!("  {passed_over} readings failed while it was opened, and were done without or again");
    }
    if let Some(torn) = store.torn() {
        println!("  {torn}");
    }
    Ok(())
}

//! Checking an evergreen, and what it holds: nothing is written.

use std::fmt::Display;

use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_evergreen::{CheckReport, Limits};
use senesce_service::{EvergreenStat, Request, Response, evergreen::stat as collect_stat};
use serde_json::{Value, json};

use super::{
    super::{
        ask::{ask_served, fault, strange, with_format},
        place::Place as Served,
    },
    Opened, Place,
};
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

/// Shows what it holds and has left: of a mount as it is, else as opening makes it.
pub fn stat(place: &Place, as_json: bool) -> Result<()> {
    if let Some(response) = ask_served(&Served::One(place.path().to_owned()), &Request::Stat, true)? {
        let Response::EvergreenStat(stat) = response else { return Err(strange()) };
        return print_stat(&stat, place, as_json);
    }
    let device = place.look()?;
    let Opened { store, .. } = place.evergreen(device.clone(), Limits::default())?;
    let mut stat = collect_stat(&store, &device).map_err(fault)?;
    stat.first_bad_copy = store.take_copy_news();
    print_stat(&stat, place, as_json)
}

/// Prints what an evergreen holds and has left.
pub fn print_stat(stat: &EvergreenStat, place: &dyn Display, as_json: bool) -> Result<()> {
    if as_json {
        println!("{}", with_format("senesce-fs-stat-evergreen/1", stat)?);
        return Ok(());
    }
    println!(
        "{place}: {} of {} are live, superblock {}",
        Bytes(stat.live_bytes),
        Bytes(stat.most_live_bytes),
        stat.superblock
    );
    for mount in &stat.mounts {
        println!("  mounted on {}{}", mount.point, if mount.read_only { ", read-only" } else { "" });
    }
    println!(
        "  nodes of {} in basements of {}, {} children; keys by {}; units of {}; a log of {}",
        Bytes(stat.node_bytes.into()),
        Bytes(stat.basement_bytes.into()),
        stat.fanout,
        stat.key_order,
        Bytes(stat.unit_bytes.into()),
        Bytes(stat.log_bytes)
    );
    println!(
        "  inner nodes and their map in {} cop{}",
        stat.metadata_copies,
        if stat.metadata_copies == 1 { "y" } else { "ies" }
    );
    if let Some(news) = &stat.first_bad_copy {
        println!("  readings done from the other copy: {}; the first: {news}", stat.copies_read_instead);
    }
    if stat.copies_missing > 0 {
        println!("  {} second copies had no space; a later checkpoint writes them", stat.copies_missing);
    }
    if stat.reads_passed_over > 0 {
        println!("  {} readings failed while it was opened, and were done without or again", stat.reads_passed_over);
    }
    if let Some(torn) = &stat.torn_superblock {
        println!("  {torn}");
    }
    Ok(())
}

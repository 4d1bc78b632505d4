//! Checking an evergreen, and what it holds: nothing is written.

use std::fmt::Display;

use crate::version;
use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_evergreen::Limits;
use senesce_service::{
    EvergreenChecked, EvergreenCheckedPart, EvergreenFinding, EvergreenStat, Request, Response,
    evergreen::{checked, stat as collect_stat},
};

use super::{
    super::{
        check_stat::check_online,
        place::Place as Served,
        send_request::{ask_served, fault, strange, with_format},
    },
    Opened, Place,
};
use crate::{args::FsOnlineArgs, exit::failed};

/// Findings that are shown; more are counted.
const SHOWN: usize = 20;

/// Checks the newest superblock's tree, and, if the log holds more, what opening makes of it. The
/// process that serves a mount checks it as it is at one moment.
pub fn check(place: &Place, online: FsOnlineArgs, as_json: bool, quiet: bool) -> Result<()> {
    match check_online(&Served::One(place.path().to_owned()), online, quiet)? {
        Some(Response::EvergreenChecked(found)) => return print_checked(&found, place, as_json),
        Some(_) => return Err(strange()),
        None => {}
    }
    let device = place.look()?;
    let look = |what| senesce_evergreen::check(&device).with_context(|| format!("cannot check {place} {what}"));
    let first = look("as it is")?;
    let mut checks = vec![checked("as it is", &first)];
    if first.log_batches > 0 && first.is_clean() {
        // In memory: the device is only read.
        drop(place.evergreen(device.clone(), Limits::default())?);
        checks.push(checked("as opening makes it", &look("as opening makes it")?));
    }
    print_checked(&EvergreenChecked { checks }, place, as_json)
}

/// Prints the findings of a check. Errors: there are findings.
pub fn print_checked(found: &EvergreenChecked, place: &dyn Display, as_json: bool) -> Result<()> {
    match as_json {
        true => println!("{}", with_format(version::CHECK_EVERGREEN, found)?),
        false => found.checks.iter().for_each(print),
    }
    let count =
        |part: &EvergreenCheckedPart| part.findings.len() as u64 + part.more_findings + part.bad_copies.len() as u64;
    match found.checks.iter().map(count).sum() {
        0 => Ok(()),
        found => Err(failed(format!("{place} is damaged: {found} finding(s)"))),
    }
}

fn print(report: &EvergreenCheckedPart) {
    let state = match (report.clean, report.whole) {
        (true, _) => "clean",
        (false, true) => "DAMAGED, and nothing is lost: `--repair` writes bad copies again",
        (false, false) => "DAMAGED",
    };
    println!("{}: {state}", report.what);
    println!(
        "  superblock {}: {} nodes in {} levels, {} of them leaves; {} keys, {} messages wait; {} batches in the log",
        report.superblock,
        report.nodes,
        report.levels,
        report.leaves,
        report.keys,
        report.waiting_messages,
        report.log_batches
    );
    println!(
        "  {} in use, {} free in {} extents",
        Bytes(report.used_bytes),
        Bytes(report.free_bytes),
        report.free_extents
    );
    let line = |finding: &EvergreenFinding| format!("{}: {}", finding.place, finding.what);
    if let Some(torn) = &report.torn_superblock {
        println!(
            "  {}: power was lost while it was written, or it is damaged; superblock {} is used, and opening rewrites the other one",
            line(torn),
            report.superblock
        );
    }
    for bad in &report.torn_copies {
        println!(
            "  {}: power was lost while it was written, or it is damaged; the other copy is used, and opening writes both again",
            line(bad)
        );
    }
    report.findings.iter().take(SHOWN).for_each(|finding| println!("  {}", line(finding)));
    for bad in report.bad_copies.iter().take(SHOWN) {
        println!("  repairable: {}: the other copy is whole", line(bad));
    }
    let more_copies = report.bad_copies.len().saturating_sub(SHOWN);
    if more_copies > 0 {
        println!("  and {more_copies} more copies");
    }
    if report.single_copies > 0 {
        println!("  {} inner nodes have one copy only, until they are written next", report.single_copies);
    }
    let more = report.findings.len().saturating_sub(SHOWN) as u64 + report.more_findings;
    if more > 0 {
        println!("  and {more} more");
    }
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

/// Prints the contents and the free space of an evergreen.
pub fn print_stat(stat: &EvergreenStat, place: &dyn Display, as_json: bool) -> Result<()> {
    if as_json {
        println!("{}", with_format(version::STAT_EVERGREEN, stat)?);
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
    if stat.copies_read_instead > 0 {
        // The process that serves a mount has reported the first.
        let first = stat.first_bad_copy.as_ref().map_or(String::new(), |news| format!("; the first: {news}"));
        println!("  reads from the other copy: {}{first}", stat.copies_read_instead);
    }
    if stat.copies_missing > 0 {
        println!("  {} second copies had no space; a later checkpoint writes them", stat.copies_missing);
    }
    if stat.reads_passed_over > 0 {
        println!("  {} reads failed while it was opened; they were repeated, or not needed", stat.reads_passed_over);
    }
    if let Some(torn) = &stat.torn_superblock {
        println!("  {torn}");
    }
    Ok(())
}

//! `senesce fs check` and `senesce fs stat`: nothing is written.

use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_fsapi::FileSystem;
use senesce_garden::{AggregateReport, CheckReport, Garden, Limits};
use serde_json::{Value, json};

use super::place::{self, Devices};
use crate::{args::FsLookArgs, exit::failed};

/// Findings that are shown; more are counted.
const SHOWN: usize = 20;

/// Checks the last consistency point, and, if the log holds more, what opening makes of it.
pub fn check(args: &FsLookArgs) -> Result<()> {
    let devices = place::look(&args.place)?;
    let look = |what| {
        let report = senesce_garden::check(&devices.drives, &devices.log);
        report.with_context(|| format!("cannot check {} {what}", args.place.display()))
    };
    let mut reports = vec![("as it lies", look("as it lies")?)];
    if reports[0].1.log_operations > 0 && reports[0].1.is_clean() {
        // In memory: the devices are only looked at.
        drop(open(args, &devices)?);
        reports.push(("as opening makes it", look("as opening makes it")?));
    }
    if args.json {
        let shown: Vec<Value> = reports.iter().map(|(what, report)| shown(what, report)).collect();
        println!("{}", json!({ "format": "senesce-fs-check/1", "checks": shown }));
    } else {
        reports.iter().for_each(|(what, report)| print(what, report));
    }
    match reports.iter().map(|(_, report)| report.findings.len()).sum() {
        0usize => Ok(()),
        findings => Err(failed(format!("{} is damaged: {findings} finding(s)", args.place.display()))),
    }
}

fn open(args: &FsLookArgs, devices: &Devices) -> Result<Garden> {
    let opened = Garden::open(&devices.drives, devices.log.clone(), Limits::default());
    opened.with_context(|| format!("cannot open {}", args.place.display()))
}

fn print(what: &str, report: &CheckReport) {
    let verdict = if report.is_clean() { "clean" } else { "DAMAGED" };
    println!("{what}: {verdict}");
    println!(
        "  consistency point {}: {} blocks, {} volume(s), {} inodes, {} stripes of parity, {} operations in the log",
        report.cp, report.blocks, report.volumes, report.inodes, report.stripes, report.log_operations
    );
    if !report.missing_drives.is_empty() {
        println!(
            "  without drive(s) {:?}: nothing is lost, and one more drive of their group would be too many",
            report.missing_drives
        );
    }
    for finding in report.findings.iter().take(SHOWN) {
        println!("  {finding}");
    }
    if report.findings.len() > SHOWN {
        println!("  and {} more", report.findings.len() - SHOWN);
    }
}

fn shown(what: &str, report: &CheckReport) -> Value {
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    json!({
        "what": what,
        "clean": report.is_clean(),
        "findings": findings,
        "consistency_point": report.cp,
        "blocks": report.blocks,
        "volumes": report.volumes,
        "inodes": report.inodes,
        "missing_drives": report.missing_drives,
        "stale_pointers": report.stale_pointers,
        "stripes": report.stripes,
        "log_operations": report.log_operations,
    })
}

/// Shows the aggregate and its volumes, as opening makes them.
pub fn stat(args: &FsLookArgs) -> Result<()> {
    let garden = open(args, &place::look(&args.place)?)?;
    let report = garden.report();
    let mut volumes = Vec::new();
    for name in garden.volumes() {
        let space = garden.volume(&name)?.space()?;
        volumes.push((String::from_utf8_lossy(&name).into_owned(), space));
    }
    if args.json {
        let volumes: Vec<Value> = volumes
            .iter()
            .map(|(name, space)| {
                json!({
                    "name": name,
                    "bytes": space.blocks * u64::from(space.block_bytes),
                    "free_bytes": space.free * u64::from(space.block_bytes),
                    "inodes": space.inodes,
                    "free_inodes": space.free_inodes,
                })
            })
            .collect();
        println!("{}", json!({ "format": "senesce-fs-stat/1", "aggregate": aggregate(&report), "volumes": volumes }));
        return Ok(());
    }
    println!(
        "{}: {} of {} free, consistency point {}",
        args.place.display(),
        Bytes(report.free * 4096),
        Bytes(report.blocks * 4096),
        report.cp
    );
    if !report.missing_drives.is_empty() {
        println!("  MISSING drives: {:?}", report.missing_drives);
    }
    for (group, areas) in report.area_free.iter().enumerate() {
        // An opening counts no more of them than it needs.
        let known: Vec<u64> = areas.iter().flatten().copied().collect();
        let range = match (known.iter().max(), known.iter().min()) {
            (Some(emptiest), Some(fullest)) => {
                format!("; free blocks in the emptiest {emptiest}, in the fullest {fullest}")
            }
            _ => String::new(),
        };
        println!("  RAID group {group}: {} allocation areas, {} of them counted{range}", areas.len(), known.len());
    }
    for (name, space) in &volumes {
        let bytes = |blocks: u64| Bytes(blocks * u64::from(space.block_bytes));
        println!(
            "  volume {name}: {} of {} free, {} of {} inodes used",
            bytes(space.free),
            bytes(space.blocks),
            space.inodes - space.free_inodes,
            space.inodes
        );
    }
    Ok(())
}

fn aggregate(report: &AggregateReport) -> Value {
    json!({
        "bytes": report.blocks * 4096,
        "free_bytes": report.free * 4096,
        "reserved_bytes": report.kept * 4096,
        "consistency_point": report.cp,
        "missing_drives": report.missing_drives,
        "area_free_blocks": report.area_free,
    })
}

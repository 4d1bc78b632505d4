//! `senesce fs check` and `senesce fs stat`: nothing is written.

use std::{cell::RefCell, rc::Rc};

use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_garden::{
    AggregateReport, CheckPart, CheckProgress, CheckReport, ColdReport, DriveReport, DriveState, Limits, Medium,
    Stripes,
};
use serde_json::{Value, json};

use super::{
    chains::{print_each_drive, print_media, report_chains},
    place::Place,
    volumes,
};
use crate::{args::FsWithObjectsArgs, exit::failed, progress::Stretch};

/// Findings that are shown; more are counted.
const SHOWN: usize = 20;

/// Checks the last consistency point, and, if the log holds more, what opening makes of it.
pub fn check(args: &FsWithObjectsArgs, quiet: bool) -> Result<()> {
    let objects = args.objects.open()?;
    let args = &args.look;
    let place = Place::of(&args.place)?;
    let devices = place.look()?;
    let look = |what| {
        let tell = progress(quiet);
        let (drives, log) = (&devices.drives, &devices.log);
        let report = senesce_garden::check_telling(drives, log, objects.as_ref(), Stripes::InUse, tell);
        report.with_context(|| format!("cannot check {place} {what}"))
    };
    let mut reports = vec![("as it lies", look("as it lies")?)];
    if reports[0].1.log_operations > 0 && reports[0].1.is_clean() {
        // In memory: the devices are only looked at.
        drop(place.garden_with(&devices, Limits::default(), objects.clone())?);
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
        findings => Err(failed(format!("{place} is damaged: {findings} finding(s)"))),
    }
}

/// Shows how far a check is: first in blocks, then in stripes.
pub(super) fn progress(quiet: bool) -> Rc<dyn Fn(CheckProgress)> {
    let shown: RefCell<Option<(CheckPart, Stretch)>> = RefCell::default();
    Rc::new(move |progress: CheckProgress| {
        let mut shown = shown.borrow_mut();
        let (what, unit) = match progress.part {
            CheckPart::Blocks => ("following pointers", "blocks"),
            CheckPart::Stripes => ("adding up parity", "stripes"),
        };
        if shown.as_ref().is_none_or(|(part, _)| *part != progress.part) {
            *shown = None; // a bar goes before the next one comes
            *shown = Some((progress.part, Stretch::for_stderr(quiet, what, unit, progress.of)));
        }
        if let Some((_, bar)) = &mut *shown {
            bar.reach(progress.done);
        }
    })
}

pub(super) fn print(what: &str, report: &CheckReport) {
    let verdict = if report.is_clean() { "clean" } else { "DAMAGED" };
    println!("{what}: {verdict}");
    println!(
        "  consistency point {}: {} blocks, {} volume(s), {} inodes, {} stripes of parity, {} operations in the log",
        report.cp, report.blocks, report.volumes, report.inodes, report.stripes, report.log_operations
    );
    if report.objects > 0 {
        let not_looked = match (report.objects_unread, report.cold_unread) {
            (0, 0) => String::new(),
            (0, _) => ", which were not looked at: name them with --objects".to_owned(),
            (unread, _) => format!("; {unread} objects were not looked at: the store was away"),
        };
        println!("  {} cold blocks in {} objects{not_looked}", report.cold_blocks, report.objects);
    }
    if report.orphan_objects > 0 {
        println!("  {} objects that no consistency point names; `fs tier` deletes them", report.orphan_objects);
    }
    if !report.missing_drives.is_empty() {
        let loss = match report.is_clean() {
            true => "nothing is lost, and one more drive of their group would be too many",
            false => "what cannot be read without them is below",
        };
        println!("  without drive(s) {:?}: {loss}", report.missing_drives);
    }
    for finding in report.findings.iter().take(SHOWN) {
        println!("  {finding}");
    }
    if report.findings.len() > SHOWN {
        println!("  and {} more", report.findings.len() - SHOWN);
    }
}

pub(super) fn shown(what: &str, report: &CheckReport) -> Value {
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
        "objects": report.objects,
        "cold_blocks": report.cold_blocks,
        "cold_blocks_not_looked_at": report.cold_unread,
        "objects_not_looked_at": report.objects_unread,
        "orphan_objects": report.orphan_objects,
    })
}

/// Shows the aggregate and its volumes, as opening makes them.
pub fn stat(args: &FsWithObjectsArgs, verbose: bool) -> Result<()> {
    let objects = args.objects.open()?;
    let args = &args.look;
    let place = Place::of(&args.place)?;
    let garden = place.garden_with(&place.look()?, Limits::default(), objects)?;
    let cold = garden.cold();
    let report = garden.report();
    let volumes = volumes::collect_volumes(&garden)?;
    let activity = report_chains(&report);
    if args.json {
        let volumes = volumes::volumes_shown(&volumes);
        println!(
            "{}",
            json!({
                "format": "senesce-fs-stat/1",
                "aggregate": aggregate(&report),
                "cold": cold_shown(&cold),
                "volumes": volumes,
                "activity": activity,
            })
        );
        return Ok(());
    }
    println!(
        "{place}: {} of {} free, consistency point {}",
        Bytes(report.free * 4096),
        Bytes(report.blocks * 4096),
        report.cp
    );
    print_drives(&report);
    if cold.objects > 0 {
        println!(
            "  cold: {} in {} objects, {} of which is wanted; {} objects to be deleted",
            Bytes(cold.blocks * 4096),
            cold.objects,
            Bytes(cold.live * 4096),
            cold.deletable
        );
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
        let medium = report.groups[group].medium;
        println!(
            "  RAID group {group}: {medium}, {} allocation areas, {} of them counted{range}",
            areas.len(),
            known.len()
        );
    }
    volumes.iter().for_each(|volume| println!("  {}", volumes::line(volume)));
    print_media(&activity);
    if verbose {
        print_each_drive(&activity);
    }
    Ok(())
}

/// Tells of drives that are not as they should be, and of devices that are not used.
fn print_drives(report: &AggregateReport) {
    for (number, drive) in report.drives.iter().enumerate() {
        let device = drive.device.as_deref().unwrap_or("no device");
        match &drive.state {
            DriveState::Here => {}
            DriveState::Missing { why } => println!("  drive {number} is MISSING: {why}"),
            DriveState::Filling { done, of } => {
                println!("  drive {number}, {device}, is being filled: {done} of {of} stripes");
            }
        }
    }
    for left_out in &report.opening.left_out {
        println!("  not used: {left_out}");
    }
    for unread in &report.opening.unread_superblocks {
        println!("  cannot be read: {unread}");
    }
}

fn cold_shown(cold: &ColdReport) -> Value {
    json!({
        "objects": cold.objects,
        "blocks": cold.blocks,
        "wanted_blocks": cold.live,
        "objects_to_delete": cold.deletable,
    })
}

fn drive_shown(number: usize, drive: &DriveReport, medium: Medium) -> Value {
    let (state, why) = match &drive.state {
        DriveState::Here => ("here", Value::Null),
        DriveState::Missing { why } => ("missing", json!(why)),
        DriveState::Filling { done, of } => ("filling", json!(format!("{done} of {of} stripes"))),
    };
    json!({
        "drive": number,
        "group": drive.group,
        "medium": medium.to_string(),
        "parity": drive.parity,
        "device": drive.device,
        "state": state,
        "why": why,
    })
}

fn aggregate(report: &AggregateReport) -> Value {
    let shown = |(number, drive): (usize, &DriveReport)| drive_shown(number, drive, report.groups[drive.group].medium);
    let drives = report.drives.iter().enumerate().map(shown);
    json!({
        "bytes": report.blocks * 4096,
        "free_bytes": report.free * 4096,
        "reserved_bytes": report.kept * 4096,
        "consistency_point": report.cp,
        "missing_drives": report.missing_drives,
        "drives": drives.collect::<Vec<_>>(),
        "area_free_blocks": report.area_free,
    })
}

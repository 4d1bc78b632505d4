//! `senesce fs check` and `senesce fs stat`: nothing is written.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use crate::version;
use anyhow::{Context, Result};
use senesce_cli::chains::{print_each_drive, print_media};
use senesce_core::Bytes;
use senesce_garden::{Accepted, CheckPart, CheckProgress, Limits, Stripes};
use senesce_objects::ObjectStore;
use senesce_service::{
    AggregateStat, Checked, CheckedPart, DriveStat, LogCopyStat, MountStat, Request, Response,
    garden::{checked, words},
};
use senesce_volume::install_signal_cleanup;

use super::{
    evergreen,
    name_arguments::show,
    place::{BLOCK_BYTES, Place},
    send_request::{answer_offline, ask_served, strange, with_format},
    volumes,
};
use crate::{
    args::{FsOnlineArgs, FsPlaceArgs, FsWithObjectsArgs},
    exit::{failed, usage},
    progress::Stretch,
};

/// Findings that are shown; more are counted.
const SHOWN: usize = 20;

/// Checks the last consistency point, and, if the log holds more, what opening makes of it. The
/// process that serves a mount checks it as it is at one moment.
///
/// Errors: damage; with `--online` it is not mounted.
pub fn check(args: &FsWithObjectsArgs, online: FsOnlineArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let (objects, args) = (&args.objects, &args.look);
    let place = Place::of(&args.place)?;
    match check_online(&place, online, quiet)? {
        Some(Response::EvergreenChecked(found)) => evergreen::print_checked(&found, &place, args.json),
        Some(Response::Checked(found)) => print_checked(&found, &place, args.json),
        Some(_) => Err(strange()),
        None => print_checked(&check_offline(&place, objects.open()?, quiet)?, &place, args.json),
    }
}

/// Has the process that serves a mount check it; `None` if no process does.
///
/// Errors: no process does, and one must.
pub fn check_online(place: &Place, online: FsOnlineArgs, quiet: bool) -> Result<Option<Response>> {
    let response = ask_served(place, &Request::Check { most_bytes: online.keep.0 }, quiet)?;
    if response.is_none() && online.online {
        return Err(usage(format!("{place} is not mounted"), Some("without --online it is checked unmounted")));
    }
    Ok(response)
}

fn check_offline(place: &Place, objects: Option<Arc<dyn ObjectStore>>, quiet: bool) -> Result<Checked> {
    let devices = place.look()?;
    let look = |what| {
        let tell = progress(quiet);
        let (drives, log) = (&devices.drives, &devices.log);
        let report = senesce_garden::check_telling(drives, log, objects.as_ref(), Stripes::InUse, tell);
        report.with_context(|| format!("cannot check {place} {what}"))
    };
    let first = look("as it is")?;
    let mut checks = vec![checked("as it is", &first)];
    if first.log_operations > 0 && first.is_clean() {
        // In memory: the devices are only read.
        drop(place.garden_with(&devices, Limits::default(), objects.clone(), Accepted::NOTHING)?);
        checks.push(checked("as opening makes it", &look("as opening makes it")?));
    }
    Ok(Checked { checks })
}

/// Prints the findings of a check. Errors: there are findings.
fn print_checked(found: &Checked, place: &Place, as_json: bool) -> Result<()> {
    match as_json {
        true => println!("{}", with_format(version::CHECK, found)?),
        false => found.checks.iter().for_each(print),
    }
    match found.checks.iter().map(|part| part.findings.len() as u64 + part.more_findings).sum() {
        0u64 => Ok(()),
        findings => Err(failed(format!("{place} is damaged: {findings} finding(s)"))),
    }
}

/// Shows how far a check is: first in blocks, then in stripes.
pub(super) fn progress(quiet: bool) -> Rc<dyn Fn(CheckProgress)> {
    let shown: RefCell<Option<(CheckPart, Stretch)>> = RefCell::default();
    Rc::new(move |progress: CheckProgress| {
        let mut shown = shown.borrow_mut();
        let (what, unit) = words(progress.part);
        if shown.as_ref().is_none_or(|(part, _)| *part != progress.part) {
            *shown = None; // a bar goes before the next one comes
            *shown = Some((progress.part, Stretch::for_stderr(quiet, what, unit, progress.of)));
        }
        if let Some((_, bar)) = &mut *shown {
            bar.reach(progress.done);
        }
    })
}

pub(super) fn print(report: &CheckedPart) {
    println!("{}: {}", report.what, if report.clean { "clean" } else { "DAMAGED" });
    println!(
        "  consistency point {}: {} blocks, {} volume(s), {} inodes, {} stripes of parity, {} operations in the log",
        report.consistency_point, report.blocks, report.volumes, report.inodes, report.stripes, report.log_operations
    );
    if report.objects > 0 {
        let not_looked = match (report.objects_not_looked_at, report.cold_blocks_not_looked_at) {
            (0, 0) => String::new(),
            (0, _) => ", which were not read: name their store with --objects".to_owned(),
            (unread, _) => format!("; {unread} objects were not read: the store did not answer"),
        };
        println!("  {} cold blocks in {} objects{not_looked}", report.cold_blocks, report.objects);
    }
    if report.orphan_objects > 0 {
        println!("  {} objects that no consistency point names; `fs tier` deletes them", report.orphan_objects);
    }
    if !report.missing_drives.is_empty() {
        let loss = match report.clean {
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

/// Prints the counters of the process that serves a mount.
pub fn figures(args: &FsPlaceArgs, quiet: bool) -> Result<()> {
    let place = Place::of(args)?;
    let response = ask_served(&place, &Request::Figures, quiet)?;
    let not_mounted =
        || usage(format!("{place} is not mounted"), Some("figures are of a mount; `fs stat` shows the rest"));
    let Response::Figures(figures) = response.ok_or_else(not_mounted)? else { return Err(strange()) };
    println!("{:#}", with_format(version::FIGURES, &figures)?);
    Ok(())
}

/// Shows the aggregate and its volumes: of a mount as they are, else as opening makes them.
pub fn stat(args: &FsWithObjectsArgs, verbose: bool, quiet: bool) -> Result<()> {
    let (objects, args) = (&args.objects, &args.look);
    let place = Place::of(&args.place)?;
    let response = match ask_served(&place, &Request::Stat, quiet)? {
        Some(response) => response,
        None => {
            let garden = place.garden_with(&place.look()?, Limits::default(), objects.open()?, Accepted::NOTHING)?;
            answer_offline(&garden, &place, &Request::Stat, quiet)?
        }
    };
    let stat = match response {
        Response::Stat(stat) => stat,
        Response::EvergreenStat(stat) => return evergreen::print_stat(&stat, &place, args.json),
        _ => return Err(strange()),
    };
    if args.json {
        println!("{}", with_format(version::STAT, &stat)?);
        return Ok(());
    }
    let AggregateStat { bytes, free_bytes, consistency_point, .. } = stat.aggregate;
    println!("{place}: {} of {} free, consistency point {consistency_point}", Bytes(free_bytes), Bytes(bytes));
    print_mounts(&stat.mounts);
    print_drives(&stat.aggregate);
    let cold = &stat.cold;
    if cold.objects > 0 {
        println!(
            "  cold: {} in {} objects, {} of which is wanted; {} objects to be deleted",
            Bytes(cold.blocks * BLOCK_BYTES),
            cold.objects,
            Bytes(cold.wanted_blocks * BLOCK_BYTES),
            cold.objects_to_delete
        );
    }
    for (group, areas) in stat.aggregate.area_free_blocks.iter().enumerate() {
        // An opening counts no more of them than it needs.
        let known: Vec<u64> = areas.iter().flatten().copied().collect();
        let range = match (known.iter().max(), known.iter().min()) {
            (Some(emptiest), Some(fullest)) => {
                format!("; free blocks in the emptiest {emptiest}, in the fullest {fullest}")
            }
            _ => String::new(),
        };
        let medium = stat.aggregate.groups.get(group).map_or("?", |group| &group.medium);
        println!(
            "  RAID group {group}: {medium}, {} allocation areas, {} of them counted{range}",
            areas.len(),
            known.len()
        );
    }
    stat.volumes.iter().for_each(|volume| println!("  {}", volumes::line(volume)));
    print_media(&stat.activity);
    if verbose {
        print_each_drive(&stat.activity);
    }
    Ok(())
}

pub(super) fn print_mounts(mounts: &[MountStat]) {
    for MountStat { point, volume, snapshot, read_only, .. } in mounts {
        let of = snapshot.as_ref().map_or(String::new(), |name| format!("snapshot {} of ", show(name.as_bytes())));
        let how = if *read_only { ", read-only" } else { "" };
        println!("  {of}volume {} is mounted on {}{how}", show(volume.as_bytes()), point);
    }
}

/// Prints the drives that are not as they should be, all copies of the log, and the devices that
/// are not used.
fn print_drives(aggregate: &AggregateStat) {
    for DriveStat { drive, device, state, why, .. } in &aggregate.drives {
        let (device, why) =
            (device.as_deref().unwrap_or("no device"), why.as_deref().unwrap_or("for an unknown reason"));
        match &state[..] {
            "missing" => println!("  drive {drive} is MISSING: {why}"),
            "filling" => println!("  drive {drive}, {device}, is being filled: {why}"),
            _ => {}
        }
    }
    for LogCopyStat { copy, device, state } in &aggregate.log {
        let state = if state == "whole" { "is whole" } else { "is LOST" };
        println!("  copy {copy} of the log, {}, {state}", device.as_deref().unwrap_or("no device"));
    }
    for problem in &aggregate.log_problems {
        println!("  {problem}");
    }
    for left_out in &aggregate.not_used {
        println!("  not used: {left_out}");
    }
    for unread in &aggregate.unread_superblocks {
        println!("  cannot be read: {unread}");
    }
}

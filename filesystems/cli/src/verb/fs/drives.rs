//! `senesce fs replace`, `rebuild` and `scrub`: what is done about drives.
//!
//! A signal ends them between two steps, after a consistency point; each can continue where it
//! stopped.

use std::{fs, os::unix::fs::symlink, path::Path, sync::Arc};

use crate::version;
use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_block::BlockDevice;
use senesce_core::{Bytes, Printable};
use senesce_garden::{DriveState, Finding, Garden};
use senesce_service::{MOST_CHANGES, Request, Response, Scrubbed};
use senesce_volume::{SCAN_BYTES, check_interrupted, install_signal_cleanup, interrupted};
use serde::Serialize;

use super::{
    claim,
    place::{Place, is_same},
    send_request::{Access, ask, strange, with_format},
};
use crate::{
    args::{FsRebuildArgs, FsReplaceArgs, FsScrubArgs},
    exit::{failed, usage},
    progress::Stretch,
};

/// Stripes that are filled or read between two checks for a signal.
const STRIPES: u64 = 256;
/// Findings that are shown; more are counted.
const SHOWN: usize = 20;

/// Puts a new drive in the place of one that is missing, and fills it.
pub fn replace(args: &FsReplaceArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let place = Place::of(&args.place)?;
    let new = match (&args.with, place.image(args.number)) {
        (Some(with), _) => with.clone(),
        (None, Some(image)) => image,
        (None, None) => return Err(usage("replace needs a new drive", Some("name it with --with FILE|DEVICE"))),
    };
    let bytes = check_missing(&place, args.number, &new)?;
    let held = claim::hold(&new, args.force)?;
    if args.dry_run {
        return preview_replace(&place, args.number, &new, held.in_memory(bytes)?);
    }
    let devices = place.open_without(Some(&new))?;
    let garden = place.garden(&devices)?;
    let is_new = !new.exists();
    let device = held.open(bytes, bytes, Bytes(SCAN_BYTES as u64))?.wipe(&mut Stretch::hidden())?;
    if let Err(error) = garden.replace_drive(args.number, device) {
        if is_new {
            fs::remove_file(&new).ok(); // nothing of the garden is in it
        }
        return Err(error).with_context(|| format!("cannot use {} as drive {}", new.display(), args.number));
    }
    link_into(&place, args.number, &new)?;
    if !quiet {
        eprintln!("{} is now drive {} of {place}", Printable::new(&new), args.number);
    }
    fill(&place, &garden, args.json, quiet)
}

/// Replaces the drive in memory. `device` is a copy of the new drive.
fn preview_replace(place: &Place, number: u32, new: &Path, device: Arc<dyn BlockDevice>) -> Result<()> {
    let garden = place.garden(&place.look_without(Some(new), MOST_CHANGES)?)?;
    let replaced = garden.replace_drive(number, device);
    replaced.with_context(|| format!("cannot use {} as drive {number}", new.display()))?;
    let new = Printable::new(new);
    println!("{place}: {new} would become drive {number}, and would be filled from the others; nothing was written");
    Ok(())
}

/// The bytes that a missing drive's place wants; nothing is written.
///
/// Errors: there is no such place, its drive is here, or the new drive is another one of this
/// garden.
fn check_missing(place: &Place, number: u32, new: &Path) -> Result<Bytes> {
    let garden = place.garden(&place.look()?)?;
    let drives = garden.report().drives;
    let Some(drive) = drives.get(number as usize) else {
        let message = format!("there is no drive {number}");
        return Err(usage(message, Some(&format!("the garden has drives 0 to {}", drives.len() - 1))));
    };
    let is_new = |device: &Option<String>| device.as_ref().is_some_and(|name| is_same(Path::new(name), new));
    if let Some(other) = drives.iter().position(|other| is_new(&other.device)).filter(|&other| other != number as usize)
    {
        let message = format!("{} is drive {other} of this garden", new.display());
        return Err(usage(message, Some("name another file or device, or leave --with out")));
    }
    let device = drive.device.as_deref().unwrap_or("a device");
    match drive.state {
        DriveState::Missing { .. } => Ok(garden.drive_bytes(number)?),
        DriveState::Here => {
            let hint = "only a drive that is missing can be replaced; move its image away, or leave it out of --drive";
            Err(usage(format!("drive {number} is not missing: it is {device}"), Some(hint)))
        }
        DriveState::Filling { done, of } => {
            let message = format!("drive {number}, {device}, was replaced and holds {done} of {of} stripes");
            Err(usage(message, Some("`senesce fs rebuild` continues to fill it")))
        }
    }
}

/// A drive of a directory is found by its name in there.
fn link_into(place: &Place, number: u32, new: &Path) -> Result<()> {
    let Some(image) = place.image(number).filter(|image| image.as_path() != new) else { return Ok(()) };
    if is_same(&image, new) {
        return Ok(());
    }
    let real = fs::canonicalize(new).with_context(|| format!("cannot look up {}", new.display()))?;
    if image.symlink_metadata().is_ok() {
        let old = |count| image.with_file_name(format!("old-{count}-drive-{number:02}.img"));
        let free = (0..).map(old).find(|path| path.symlink_metadata().is_err());
        let free = free.context("there is no name for the old image")?;
        fs::rename(&image, &free).with_context(|| format!("cannot rename {}", image.display()))?;
    }
    symlink(&real, &image).with_context(|| format!("cannot link {} to {}", image.display(), real.display()))
}

/// Fills what is not full yet.
pub fn rebuild(FsRebuildArgs { look: args, dry_run }: &FsRebuildArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let place = Place::of(&args.place)?;
    if *dry_run {
        return preview_rebuild(&place);
    }
    let devices = place.open()?;
    let garden = place.garden(&devices)?;
    fill(&place, &garden, args.json, quiet)
}

/// Prints the drives that are not full yet.
fn preview_rebuild(place: &Place) -> Result<()> {
    let report = place.garden(&place.look()?)?.report();
    let mut is_any = false;
    for (number, drive) in report.drives.iter().enumerate() {
        if let DriveState::Filling { done, of } = drive.state {
            is_any = true;
            let left = of - done;
            println!(
                "{place}: drive {number} holds {done} of {of} stripes; {left} would be filled, nothing was written"
            );
        }
    }
    if !is_any {
        println!("{place}: no drive is being filled");
    }
    print_missing(place, &report.missing_drives);
    Ok(())
}

fn print_missing(place: &Place, missing: &[u32]) {
    if !missing.is_empty() {
        println!("{place}: drives {missing:?} are missing; `senesce fs replace` puts new ones in their places");
    }
}

/// The JSON output of `fs replace` and `fs rebuild`.
#[derive(Serialize, JsonSchema)]
pub struct RebuildDocument {
    /// The drives that were filled.
    drives: Vec<FilledDrive>,
    /// Blocks that cannot be computed from the other drives.
    lost: Vec<String>,
    /// Drives that are still missing.
    missing: Vec<u32>,
}

/// A drive that was filled.
#[derive(Serialize, JsonSchema)]
struct FilledDrive {
    /// Its number.
    drive: u32,
    /// Stripes that the drive now has.
    stripes: u64,
    /// The number of all stripes.
    of: u64,
}

/// Fills all new drives; what was done is durable, however it ends.
fn fill(place: &Place, garden: &Garden, as_json: bool, quiet: bool) -> Result<()> {
    let mut filled: Vec<(u32, u64, u64)> = Vec::new();
    let mut lost: Vec<Finding> = Vec::new();
    let mut bar = None;
    while interrupted().is_none() {
        let step = garden.rebuild_step(STRIPES).with_context(|| format!("cannot fill a drive of {place}"))?;
        let Some(step) = step else { break };
        match filled.last_mut() {
            Some((drive, done, _)) if *drive == step.drive => *done = step.done,
            _ => {
                bar = Some(Stretch::for_stderr(quiet, &format!("filling drive {}", step.drive), "stripes", step.of));
                filled.push((step.drive, step.done, step.of));
            }
        }
        bar.iter_mut().for_each(|bar| bar.reach(step.done));
        lost.extend(step.lost);
    }
    drop(bar);
    garden.close().with_context(|| format!("cannot close {place}"))?;
    let missing = garden.report().missing_drives;
    if as_json {
        let drive = |&(drive, stripes, of): &(u32, u64, u64)| FilledDrive { drive, stripes, of };
        let drives = filled.iter().map(drive).collect();
        let document = RebuildDocument { drives, lost: texts(&lost), missing };
        println!("{}", with_format(version::REBUILD, &document)?);
    } else {
        for (drive, done, of) in &filled {
            println!("{place}: drive {drive} holds {done} of {of} stripes");
        }
        if filled.is_empty() {
            println!("{place}: no drive is being filled");
        }
        print_missing(place, &missing);
        show("lost: another block of the same stripe is damaged, too", &texts(&lost));
        if interrupted().is_some() {
            println!("`senesce fs rebuild` continues from there");
        }
    }
    check_interrupted("filling a drive")?;
    match lost.len() {
        0 => Ok(()),
        lost => Err(failed(format!("{lost} block(s) of {place} are lost"))),
    }
}

/// One pass over all stripes.
pub fn scrub(args: &FsScrubArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let place = Place::of(&args.place)?;
    let request = Request::Scrub { from: args.from };
    let access = Access::of(args.trial.dry_run);
    let Response::Scrubbed(done) = ask(&place, access, &request, quiet)? else { return Err(strange()) };
    access.announce(&place);
    if args.json {
        println!("{}", with_format(version::SCRUB, &done)?);
    } else {
        print_scrubbed(&place, &done);
    }
    check_interrupted("scrubbing")?;
    match done.lost.len() {
        0 => Ok(()),
        lost => {
            Err(failed(format!("{lost} block(s) of {place} are damaged and cannot be rebuilt from the other drives")))
        }
    }
}

fn print_scrubbed(place: &Place, done: &Scrubbed) {
    let Scrubbed { stripes, of, repaired, parity_repaired, lost, .. } = done;
    let (right, parity) = (repaired.len(), parity_repaired.len());
    println!(
        "{place}: {stripes} of {of} stripes; {right} block(s) and the parity of {parity} stripe(s) put right, {} lost",
        lost.len()
    );
    show("put right", repaired);
    show("parity put right", parity_repaired);
    show("lost", lost);
    if stripes < of {
        println!("`senesce fs scrub --from {stripes}` continues from there");
    }
}

fn texts(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

fn show(what: &str, findings: &[String]) {
    for finding in findings.iter().take(SHOWN) {
        println!("  {what}: {finding}");
    }
    if findings.len() > SHOWN {
        println!("  and {} more", findings.len() - SHOWN);
    }
}

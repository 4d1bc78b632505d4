//! `senesce fs check --repair` of a garden.

use crate::version;
use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_garden::{Accepted, Finding, Limits, ScrubStep, Stripes};
use senesce_service::{CheckedPart, garden::checked};
use senesce_volume::{check_interrupted, install_signal_cleanup, interrupted};
use serde::Serialize;

use super::{
    check_stat::{print, progress},
    place::Place,
    send_request::with_format,
};
use crate::{
    args::FsWithObjectsArgs,
    exit::{failed, usage},
    progress::Stretch,
};

/// Stripes of a step: a signal is answered after it.
const STRIPES: u64 = 1024;

/// The JSON output of a repair.
#[derive(Serialize, JsonSchema)]
pub struct RepairDocument {
    /// Whether this was a dry run, which writes nothing.
    dry_run: bool,
    /// Copies of the log that were lost.
    lost_log_copies: Vec<String>,
    /// The acknowledged operations that were lost with the log. `None` if none were.
    lost_with_the_log: Option<String>,
    /// Repaired labels, blocks and parity.
    repaired: Vec<String>,
    /// Blocks that cannot be computed from the other drives.
    lost: Vec<String>,
    /// A check of the state after the repair.
    after: CheckedPart,
}

/// Repairs labels, superblocks, copies of the log, blocks and parity, and checks the result. With
/// `is_dry` nothing is written.
///
/// `without_log`: also if no copy of the log can be read, and whether what is there instead may be
/// overwritten.
///
/// Errors: it is in use; it cannot be opened; blocks are lost; the check afterwards finds damage.
pub fn repair(args: &FsWithObjectsArgs, is_dry: bool, without_log: Option<bool>, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let objects = args.objects.open()?;
    let args = &args.look;
    let place = Place::of(&args.place)?;
    if let Some(force) = without_log.filter(|_| !is_dry) {
        place.check_logs(force)?;
    }
    let devices = if is_dry { place.look() } else { place.open() };
    let devices = devices.map_err(|error| name_unknown(&place, error))?;
    let accepted = without_log.map_or(Accepted::NOTHING, |_| Accepted::OPERATIONS);
    let garden = place.garden_with(&devices, Limits::default(), objects.clone(), accepted)?;
    let report = garden.report();
    let loss = garden.log_loss();
    let mut acts: Vec<Finding> = report.opening.repaired.clone();
    let mut lost: Vec<Finding> = Vec::new();
    let mut bar = None;
    loop {
        let ScrubStep { done, of, repaired, parity_repaired, lost: gone } =
            garden.scrub_step(STRIPES).with_context(|| format!("cannot scrub {place}"))?;
        bar.get_or_insert_with(|| Stretch::for_stderr(quiet, "scrubbing", "stripes", of)).reach(done);
        acts.extend(repaired);
        acts.extend(parity_repaired);
        lost.extend(gone);
        if done == of || interrupted().is_some() {
            break;
        }
    }
    drop(bar);
    garden.close().with_context(|| format!("cannot close {place}"))?;
    check_interrupted("repairing")?;
    drop(garden);
    let (objects, all) = (objects.as_ref(), Stripes::All);
    let after = senesce_garden::check_telling(&devices.drives, &devices.log, objects, all, progress(quiet));
    let after = after.with_context(|| format!("cannot check {place}"))?;
    let would = if is_dry { "would repair" } else { "repaired" };
    if args.json {
        let texts = |findings: &[Finding]| findings.iter().map(ToString::to_string).collect::<Vec<_>>();
        let document = RepairDocument {
            dry_run: is_dry,
            lost_log_copies: report.log.lost,
            lost_with_the_log: loss.as_ref().map(ToString::to_string),
            repaired: texts(&acts),
            lost: texts(&lost),
            after: checked("after the repair", &after),
        };
        println!("{}", with_format(version::REPAIR_GARDEN, &document)?);
    } else {
        for why in &report.log.lost {
            println!("found: {why}");
        }
        if let Some(loss) = &loss {
            println!("log: {loss}");
        }
        acts.iter().for_each(|act| println!("{would}: {act}"));
        lost.iter().for_each(|block| println!("lost: {block}"));
        if acts.is_empty() && lost.is_empty() && loss.is_none() {
            println!("nothing to repair");
        }
        print(&checked("after the repair", &after));
    }
    let is_needed = !acts.is_empty() || loss.is_some();
    match (after.findings.len(), lost.len()) {
        (0, 0) if is_dry && is_needed => Err(failed(format!("{place} is damaged, and nothing was written"))),
        (0, 0) => Ok(()),
        (0, lost) => Err(failed(format!("{place} was repaired, but {lost} block(s) are lost"))),
        (findings, _) => Err(failed(format!("{place} is still damaged: {findings} finding(s)"))),
    }
}

/// One file or device without a label that can be read may have been an evergreen.
fn name_unknown(place: &Place, error: anyhow::Error) -> anyhow::Error {
    match (place, error.downcast_ref()) {
        (Place::One(path), Some(senesce_garden::Error::Damaged { .. })) => usage(
            format!("{} has no label of a garden and no superblock of an evergreen: {error:#}", path.display()),
            Some("name it evergreen:PATH if it was an evergreen"),
        ),
        _ => error,
    }
}

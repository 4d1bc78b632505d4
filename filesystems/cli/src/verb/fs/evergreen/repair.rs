//! Putting a damaged evergreen right.

use crate::version;
use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_evergreen::RepairReport;
use serde::Serialize;

use super::{super::send_request::with_format, Place};
use crate::exit::failed;

/// Lines of a kind that are shown; more are counted.
const SHOWN: usize = 50;

/// Repairs it, or prints the repairs. A failure, if something is lost, or if it is only printed.
pub fn repair(place: &Place, is_dry: bool, as_json: bool) -> Result<()> {
    let device = if is_dry { place.look()? } else { place.open()? };
    let report = senesce_evergreen::repair(&device, is_dry).with_context(|| format!("cannot repair {place}"))?;
    if as_json {
        print_json(&report)?;
    } else {
        print(&report);
    }
    match &report {
        RepairReport { is_needed: false, .. } => Ok(()),
        RepairReport { is_done: false, .. } => Err(failed(format!("{place} is damaged, and nothing was written"))),
        report if report.has_lost() => {
            Err(failed(format!("{place} was repaired, but files or parts of files are lost")))
        }
        _ => Ok(()),
    }
}

fn print(report: &RepairReport) {
    if !report.is_needed {
        println!("clean: nothing to repair");
        return;
    }
    let list = |what: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            println!("{what}:");
            lines.iter().take(SHOWN).for_each(|line| println!("  {line}"));
            if lines.len() > SHOWN {
                println!("  and {} more", lines.len() - SHOWN);
            }
        }
    };
    list("found", report.notes.iter().map(ToString::to_string).collect());
    list("lost", report.lost.iter().map(ToString::to_string).collect());
    list("files that are not what they were", report.files.lost.iter().map(ToString::to_string).collect());
    list("put right", report.files.corrections.clone());
    let check = &report.check;
    let then = if report.is_done { "clean now" } else { "it would be clean then; nothing was written" };
    println!("{then}: superblock {}, {} nodes, {} keys", check.generation, check.nodes, check.keys);
}

/// The JSON output of a repair.
#[derive(Serialize, JsonSchema)]
pub struct EvergreenRepairDocument {
    /// Whether a repair is needed.
    needed: bool,
    /// Whether the repair was written.
    done: bool,
    /// Damage of nodes, copies and maps.
    found: Vec<String>,
    /// Lost nodes and keys.
    lost: Vec<String>,
    /// Files with losses, each with the loss.
    files_lost: Vec<String>,
    /// Corrections of names, counts and sizes.
    put_right: Vec<String>,
    /// Whether a check after the repair has no findings.
    clean: bool,
}

fn print_json(report: &RepairReport) -> Result<()> {
    let document = EvergreenRepairDocument {
        needed: report.is_needed,
        done: report.is_done,
        found: report.notes.iter().map(ToString::to_string).collect(),
        lost: report.lost.iter().map(ToString::to_string).collect(),
        files_lost: report.files.lost.iter().map(ToString::to_string).collect(),
        put_right: report.files.corrections.clone(),
        clean: report.check.is_clean(),
    };
    println!("{}", with_format(version::REPAIR_EVERGREEN, &document)?);
    Ok(())
}

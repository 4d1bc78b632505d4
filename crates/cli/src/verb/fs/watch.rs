//! Reports of drives that fail while a garden is served, and how a mount ends without all of them.

use std::{fmt::Write, thread::JoinHandle};

use senesce_garden::{DriveFailure, DriveState, Garden};
use serde_json::{Value, json};

use crate::exit::degraded;

/// A thread that reports each failure of a drive when it happens. A reader that is slow delays no operation, and the thread blocks
/// until a drive fails.
pub struct Watch(JoinHandle<Vec<DriveFailure>>);

impl Watch {
    pub fn start(garden: &Garden, report: impl Fn(&DriveFailure) + Send + 'static) -> Self {
        let failures = garden.watch_drives();
        Self(std::thread::spawn(move || failures.iter().inspect(|failure| report(failure)).collect()))
    }

    /// Returns every failure until now. All of them are reported then.
    pub fn end(self, garden: &Garden) -> Vec<DriveFailure> {
        garden.unwatch_drives();
        // A panic of the thread printed its own message.
        self.0.join().unwrap_or_default()
    }
}

/// Reports a failure to people.
pub fn print_failure(failure: &DriveFailure) {
    let DriveFailure { drive, device, why, is_left_out } = failure;
    let then = match is_left_out {
        true => {
            "its RAID group continues without it, and has no redundancy until `senesce fs replace` fills a new drive"
        }
        false => "parity cannot make up for it: operations that need it fail",
    };
    eprintln!("senesce: drive {drive} ({device}) FAILED: {why}; {then}");
}

/// A failure as an event of `fs serve`.
pub fn failure_event(failure: &DriveFailure) -> Value {
    let DriveFailure { drive, device, why, is_left_out } = failure;
    json!({ "event": "drive_failed", "drive": drive, "device": device, "problem": why, "left_out": is_left_out })
}

/// A drive that was missing when the garden was opened, as an event of `fs serve`.
pub fn missing_events(garden: &Garden) -> Vec<Value> {
    let drives = garden.report().drives.into_iter().enumerate();
    let event = |(drive, report): (usize, senesce_garden::DriveReport)| match report.state {
        DriveState::Missing { why } => Some(json!({ "event": "drive_missing", "drive": drive, "problem": why })),
        _ => None,
    };
    drives.filter_map(event).collect()
}

/// Errors: a drive of the garden is missing, is not filled yet, or failed without parity that makes up for it
/// ([`DEGRADED`](crate::exit::DEGRADED)).
pub fn check_whole(garden: &Garden, failures: &[DriveFailure], place: &dyn std::fmt::Display) -> anyhow::Result<()> {
    let mut lacks = String::new();
    for (drive, report) in (0..).zip(garden.report().drives) {
        let failure = failures.iter().find(|failure| failure.drive == drive);
        // Writing to a string cannot fail.
        let _ = match (&report.state, failure) {
            (DriveState::Here, None) => Ok(()),
            (DriveState::Here, Some(DriveFailure { why, .. })) => write!(lacks, "; drive {drive} failed ({why})"),
            (DriveState::Missing { why }, _) => write!(lacks, "; drive {drive} is missing ({why})"),
            (DriveState::Filling { done, of }, _) => write!(lacks, "; drive {drive} holds {done} of {of} stripes"),
        };
    }
    match lacks.is_empty() {
        true => Ok(()),
        false => Err(degraded(format!(
            "{place} is degraded{lacks}\n`senesce fs replace` fills a new drive, `senesce fs rebuild` continues to fill one"
        ))),
    }
}

//! Reports of drives and copies of the log that fail while a garden is served, and how a mount ends
//! without all of them.

use std::{fmt::Write, thread::JoinHandle};

use senesce_garden::{DriveFailure, DriveState, Garden, LogFailure};
use serde_json::{Value, json};

use crate::exit::degraded;

/// The failures while a garden is served.
pub enum Failure {
    Drive(DriveFailure),
    Log(LogFailure),
}

/// Threads that report each failure of a drive and of a copy of the log when it happens. A reader
/// that is slow delays no operation, and the threads block until something fails.
pub struct Watch {
    drives: JoinHandle<Vec<DriveFailure>>,
    logs: JoinHandle<()>,
}

impl Watch {
    pub fn start(garden: &Garden, report: fn(&Failure)) -> Self {
        let (drives, logs) = (garden.watch_drives(), garden.watch_logs());
        let of_drive = move |failure: DriveFailure| {
            report(&Failure::Drive(failure.clone()));
            failure
        };
        Self {
            drives: std::thread::spawn(move || drives.into_iter().map(of_drive).collect()),
            logs: std::thread::spawn(move || logs.into_iter().for_each(|failure| report(&Failure::Log(failure)))),
        }
    }

    /// Returns every failure of a drive until now. All failures are reported then.
    pub fn end(self, garden: &Garden) -> Vec<DriveFailure> {
        garden.unwatch_drives();
        garden.unwatch_logs();
        // A panic of a thread printed its own message.
        let _ = self.logs.join();
        self.drives.join().unwrap_or_default()
    }
}

/// Reports a failure to people.
pub fn print_failure(failure: &Failure) {
    let (what, device, why, then) = match failure {
        Failure::Drive(DriveFailure { drive, device, why, is_left_out }) => {
            let then = match is_left_out {
                true => {
                    "its RAID group continues without it, and has no redundancy until `senesce fs replace` fills a new drive"
                }
                false => "parity cannot make up for it: operations that need it fail",
            };
            (format!("drive {drive}"), device, why, then)
        }
        Failure::Log(LogFailure { copy, device, why, is_left_out }) => {
            let then = match is_left_out {
                true => "another copy continues without it; the next mount fills it again if its device takes it",
                false => "no copy is left: operations fail from now on",
            };
            (format!("copy {copy} of the log"), device, why, then)
        }
    };
    eprintln!("senesce: {what} ({device}) FAILED: {why}; {then}");
}

/// A failure as an event of `fs serve`.
pub fn failure_event(failure: &Failure) -> Value {
    match failure {
        Failure::Drive(DriveFailure { drive, device, why, is_left_out }) => {
            json!({ "event": "drive_failed", "drive": drive, "device": device, "problem": why, "left_out": is_left_out })
        }
        Failure::Log(LogFailure { copy, device, why, is_left_out }) => {
            json!({ "event": "log_failed", "copy": copy, "device": device, "problem": why, "left_out": is_left_out })
        }
    }
}

/// The faults of labels and logs that opening a garden found: the name of an event, and words.
pub fn log_problems(garden: &Garden) -> Vec<(&'static str, String)> {
    let report = garden.report();
    let mut problems: Vec<_> = report.log.lost.iter().map(|lost| ("log_copy_lost", lost.clone())).collect();
    problems.extend(report.opening.repaired.iter().map(|repaired| ("repaired", format!("repaired: {repaired}"))));
    let text = |finding| format!("{finding}: replace the drive that fails; `senesce fs scrub` corrects parity");
    problems.extend(report.opening.uncorrected.iter().map(|finding| ("parity_uncorrected", text(finding))));
    let (whole, copies) = (report.log.whole, report.log.copies);
    if whole < copies {
        let text = format!(
            "{whole} of {copies} copies of the log are in use: after one more failure, acknowledged operations are lost"
        );
        problems.push(("log_copy_missing", text));
    }
    if let Some(loss) = garden.log_loss() {
        problems.push(("log_lost", loss.to_string()));
        if !loss.was_closed {
            let text = "parity may be wrong where blocks were being written: `senesce fs scrub` repairs it";
            problems.push(("log_lost", text.to_owned()));
        }
    }
    problems
}

/// These as events of `fs serve`.
pub fn log_events(garden: &Garden) -> Vec<Value> {
    let event = |(event, problem)| json!({ "event": event, "problem": problem });
    log_problems(garden).into_iter().map(event).collect()
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

/// Errors: a copy of the log is lost; a drive of the garden is missing, is not filled yet, or
/// failed without parity that makes up for it ([`DEGRADED`](crate::exit::DEGRADED)).
pub fn check_whole(garden: &Garden, failures: &[DriveFailure], place: &dyn std::fmt::Display) -> anyhow::Result<()> {
    let (mut lacks, mut log) = (String::new(), String::new());
    let report = garden.report();
    for (copy, state) in report.log.states.iter().enumerate().filter(|(_, state)| !state.is_whole) {
        let device = state.device.as_deref().unwrap_or("no device");
        // Writing to a string cannot fail.
        let _ = write!(log, "; copy {copy} of the log ({device}) is lost");
    }
    for (drive, report) in (0..).zip(report.drives) {
        let failure = failures.iter().find(|failure| failure.drive == drive);
        // Writing to a string cannot fail.
        let _ = match (&report.state, failure) {
            (DriveState::Here, None) => Ok(()),
            (DriveState::Here, Some(DriveFailure { why, .. })) => write!(lacks, "; drive {drive} failed ({why})"),
            (DriveState::Missing { why }, _) => write!(lacks, "; drive {drive} is missing ({why})"),
            (DriveState::Filling { done, of }, _) => write!(lacks, "; drive {drive} holds {done} of {of} stripes"),
        };
    }
    let mut advice = String::new();
    if !lacks.is_empty() {
        advice += "\n`senesce fs replace` fills a new drive, `senesce fs rebuild` continues to fill one";
    }
    if !log.is_empty() {
        advice += "\nthe next mount fills a lost copy of the log if its device takes it";
    }
    match advice.is_empty() {
        true => Ok(()),
        false => Err(degraded(format!("{place} is degraded{lacks}{log}{advice}"))),
    }
}

//! Histories from files of `inspect --json`. The files are untrusted input.

use std::path::{Path, PathBuf};

use anyhow::Result;
use senesce_core::Printable;
use serde::Deserialize;

use super::{
    super::inspections::{Inspected, read_inspections},
    history::{Against, History, Unit, Value},
};
use crate::{clock::tell_utc, exit::usage};

/// The most inspections.
const MOST: usize = 100_000;
/// A clock that shows an earlier time was not set: 2000-01-01.
const OLDEST: u64 = 946_684_800;
/// A slowdown that falls by more than this share of its excess over 1 was cured.
const CURED_SHARE: f64 = 0.5;
/// The least slowdown before a cure. Below it, a fall can be chance.
const LEAST_CURED: f64 = 1.2;

/// The parts of an inspection that a forecast needs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Document {
    schema: String,
    target: Target,
    costs: Vec<Cost>,
}

impl Inspected for Document {
    fn schema(&self) -> &str {
        &self.schema
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Target {
    path: String,
    file_system: String,
    capacity_bytes: u64,
    read_ahead_kib: u64,
    inspected_unix_seconds: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Cost {
    device: String,
    seconds: Seconds,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Seconds {
    as_it_lies: f64,
    fresh_copy: f64,
}

/// Reads the inspections of one volume.
///
/// Errors: a file cannot be read, or is no inspection; the inspections are of several volumes, or
/// of other models; a clock ran backwards.
pub(super) fn read_history(paths: &[PathBuf], device: Option<&str>) -> Result<History> {
    let mut documents = Vec::new();
    for path in paths {
        documents.extend(read_documents(path)?);
        if documents.len() > MOST {
            return Err(usage(format!("there are more than {MOST} inspections"), Some("name fewer files")));
        }
    }
    documents.sort_by_key(|document| document.target.inspected_unix_seconds);
    let mut notes = Vec::new();
    let before = documents.len();
    documents.dedup();
    match before - documents.len() {
        0 => {}
        1 => notes.push("One inspection was named twice, and counts once.".to_owned()),
        more => notes.push(format!("{more} inspections were named twice, and count once.")),
    }
    check_alike(&documents, &mut notes)?;
    let (name, values) = choose_costs(&documents, device)?;
    let values = keep_after_cure(values, &mut notes);
    let length = values.last().zip(values.first()).map_or(0.0, |(last, first)| last.at - first.at);
    let path = &documents[documents.len() - 1].target.path;
    Ok(History {
        of: Printable::new(path).to_string(),
        device: name,
        unit: Unit::of_time(length),
        cost_unit: "s",
        against: Against::FreshCopy,
        values,
        notes,
    })
}

/// The documents of a file, in their order.
fn read_documents(path: &Path) -> Result<Vec<Document>> {
    let shown = Printable::new(path);
    if path.is_dir() {
        let hint = "name one run, or files of `inspect --json`";
        return Err(usage(format!("{shown} is a directory, and there are several inputs"), Some(hint)));
    }
    let found: Vec<Document> = read_inspections(path, "forecast")?;
    let mut latest = 0;
    for document in &found {
        let time = document.target.inspected_unix_seconds;
        let tell = |time: u64| tell_utc(i64::try_from(time).unwrap_or(i64::MAX).min(253_402_300_799));
        if !(OLDEST..=253_402_300_799).contains(&time) {
            let message = format!("{shown}: an inspection has the time {}: the clock was not set", tell(time));
            return Err(usage(message, Some("remove this inspection")));
        }
        if latest > time {
            let (time, before) = (tell(time), tell(latest));
            let message = format!("{shown}: the clock ran backwards: {time} is after {before} in the file");
            return Err(usage(message, Some("remove the inspections with the wrong times")));
        }
        latest = time;
    }
    Ok(found)
}

/// Errors: the inspections are not of one volume, or modelled with another readahead; two have one
/// time.
fn check_alike(documents: &[Document], notes: &mut Vec<String>) -> Result<()> {
    let differ = |what: &str, a: &str, b: &str, hint: &str| {
        usage(format!("the inspections are of two {what}: {} and {}", Printable::new(a), Printable::new(b)), Some(hint))
    };
    for pair in documents.windows(2) {
        let (a, b) = (&pair[0].target, &pair[1].target);
        if a.path != b.path {
            return Err(differ("places", &a.path, &b.path, "name the inspections of one volume"));
        }
        if a.file_system != b.file_system {
            return Err(differ(
                "file systems",
                &a.file_system,
                &b.file_system,
                "name the inspections since the last mkfs",
            ));
        }
        if a.read_ahead_kib != b.read_ahead_kib {
            let kib = |target: &Target| format!("{} KiB", target.read_ahead_kib);
            return Err(differ("readaheads", &kib(a), &kib(b), "inspect always with one --read-ahead-kib"));
        }
        if a.inspected_unix_seconds == b.inspected_unix_seconds {
            let time = tell_utc(a.inspected_unix_seconds as i64);
            let message =
                format!("two inspections of {} have one time, {time}, and other figures", Printable::new(&a.path));
            return Err(usage(message, Some("remove one of them")));
        }
    }
    let mut sizes: Vec<u64> = documents.iter().map(|document| document.target.capacity_bytes).collect();
    sizes.dedup();
    if sizes.len() > 1 {
        notes.push(
            "The size of the volume changed. If it is another volume, leave out the older inspections.".to_owned(),
        );
    }
    Ok(())
}

/// The costs on one device: the first of the last inspection, or the one whose name contains
/// `wanted`.
///
/// Errors: an inspection lacks the device; there is nothing to read.
fn choose_costs(documents: &[Document], wanted: Option<&str>) -> Result<(String, Vec<Value>)> {
    let matches =
        |cost: &&Cost| wanted.is_none_or(|wanted| cost.device.to_lowercase().contains(&wanted.to_lowercase()));
    let last = documents.last().and_then(|document| document.costs.iter().find(matches));
    let names = |document: &Document| {
        let names: Vec<String> = document.costs.iter().map(|cost| Printable::new(&cost.device).to_string()).collect();
        format!("its models: {}", names.join(", "))
    };
    let Some(last) = last else {
        let hint = documents.last().map(names);
        let wanted = Printable::new(wanted.unwrap_or_default()).to_string();
        return Err(usage(format!("the last inspection has no cost on the device {wanted:?}"), hint.as_deref()));
    };
    let mut values = Vec::new();
    for document in documents {
        let at = document.target.inspected_unix_seconds;
        let Some(cost) = document.costs.iter().find(|cost| cost.device == last.device) else {
            let device = Printable::new(&last.device);
            let message = format!("the inspection of {} has no cost on {device}", tell_utc(at as i64));
            let hint = format!("{}; choose one that all have with --device", names(document));
            return Err(usage(message, Some(&hint)));
        };
        let Seconds { as_it_lies, fresh_copy } = cost.seconds;
        values.push(Value { at: at as f64, cost: as_it_lies, slowdown: as_it_lies / fresh_copy });
    }
    if values.iter().any(|value| !value.slowdown.is_finite() || value.slowdown <= 0.0) {
        let message = "an inspection has no cost, or its fresh copy has none: nothing was read";
        return Err(usage(message, Some("leave out the inspections of the empty volume")));
    }
    Ok((Printable::new(&last.device).to_string(), values))
}

/// Leaves out the values before the last cure: a fall of the slowdown that no use causes.
fn keep_after_cure(mut values: Vec<Value>, notes: &mut Vec<String>) -> Vec<Value> {
    let is_cured = |pair: &[Value]| {
        let excess = |value: &Value| value.slowdown - 1.0;
        pair[0].slowdown >= LEAST_CURED && excess(&pair[1]) < (1.0 - CURED_SHARE) * excess(&pair[0])
    };
    let Some(cured) = values.windows(2).rposition(is_cured) else { return values };
    let after = values.split_off(cured + 1);
    notes.push(format!(
        "The slowdown fell from {:.2} to {:.2} before {}: the volume was cured or rewritten. Only the inspections since \
         then count.",
        values[cured].slowdown,
        after[0].slowdown,
        Unit::Days.tell(after[0].at)
    ));
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(at: f64, slowdown: f64) -> Value {
        Value { at, cost: slowdown, slowdown }
    }

    #[test]
    fn only_values_after_the_last_cure_count() {
        let values = [1.0, 2.0, 1.2, 1.6, 1.1, 1.15, 1.12];
        let values = values.iter().enumerate().map(|(at, slowdown)| value(at as f64 * 86_400.0, *slowdown)).collect();
        let mut notes = Vec::new();
        let kept = keep_after_cure(values, &mut notes);
        assert_eq!(kept.iter().map(|value| value.slowdown).collect::<Vec<_>>(), [1.1, 1.15, 1.12]);
        assert!(notes[0].contains("from 1.60 to 1.10 before 1970-01-05"), "{notes:?}");
    }

    #[test]
    fn small_falls_are_no_cure() {
        let values: Vec<Value> = [1.0, 1.15, 1.0, 3.0, 2.5].iter().map(|slowdown| value(0.0, *slowdown)).collect();
        assert_eq!(keep_after_cure(values.clone(), &mut Vec::new()), values);
    }
}

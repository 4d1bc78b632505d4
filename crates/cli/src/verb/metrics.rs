//! `inspect --metrics`: the figures for the textfile collector of Prometheus' node_exporter.
//!
//! Names and labels are in one table, [`METRICS`], from which docs/reference/metrics.md is
//! generated.

use std::{
    fmt::Write as _,
    fs::{self, OpenOptions, Permissions},
    io::Write as _,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use anyhow::{Context, Result};
use senesce_core::Printable;
use serde_json::Value;

use crate::exit::usage;

/// The collector reads only files of this name.
const SUFFIX: &str = "prom";
/// Every user may read the figures, as the collector does.
const MODE: u32 = 0o644;

/// A family of gauges.
struct Metric {
    /// The name after `senesce_inspect_`.
    name: &'static str,
    help: &'static str,
    /// The label besides device, mountpoint, fstype and path.
    label: Option<&'static str>,
    source: Source,
}

/// The place of a value in the JSON of an inspection.
enum Source {
    /// A number at a pointer.
    At(&'static str),
    /// A number of each modelled device. The label is the name of the device.
    Device(&'static str),
    /// 1 for the grade that the label names.
    Grade,
    /// 1 after an inspection, 0 after one that failed.
    Success,
    /// The time of this command.
    Timestamp,
    /// The duration of this command.
    Duration,
}

/// Every family, in the order of the file. A name never changes its meaning.
const METRICS: &[Metric] = &[
    metric("success", "Whether the inspection finished (1) or failed (0).", None, Source::Success),
    metric("timestamp_seconds", "Unix time of the end of the inspection.", None, Source::Timestamp),
    metric("duration_seconds", "Duration of the inspection.", None, Source::Duration),
    metric("grade", "1 for the grade of the tree, as in `inspect`.", Some("grade"), Source::Grade),
    metric(
        "judged_slowdown_ratio",
        "Modelled time of a cold read of the tree over that of a fresh copy, on the disk that stores it. Missing if the disk is not known.",
        None,
        Source::At("/slowdown"),
    ),
    metric(
        "slowdown_ratio",
        "Modelled time of a cold read of the tree over that of a fresh copy.",
        Some("model"),
        Source::Device("/slowdown"),
    ),
    metric(
        "read_seconds",
        "Modelled time of a cold read of the tree.",
        Some("model"),
        Source::Device("/seconds/as_it_lies"),
    ),
    metric(
        "fresh_read_seconds",
        "Modelled time of a cold read of a fresh copy of the tree.",
        Some("model"),
        Source::Device("/seconds/fresh_copy"),
    ),
    metric(
        "read_requests",
        "Modelled requests of a cold read of the tree.",
        Some("model"),
        Source::Device("/requests/as_it_lies"),
    ),
    metric(
        "layout_score_ratio",
        "Share of blocks that follow the block before them.",
        None,
        Source::At("/tree/layout/layout_score"),
    ),
    metric(
        "extents_per_file_ratio",
        "Mean number of extents of a file.",
        None,
        Source::At("/tree/layout/extents_per_file"),
    ),
    metric("files", "Regular files.", None, Source::At("/tree/files")),
    metric("directories", "Directories.", None, Source::At("/tree/directories")),
    metric(
        "unread_entries",
        "Entries that could not be read, and are in no figure.",
        None,
        Source::At("/tree/not_looked_at"),
    ),
    metric("content_bytes", "Contents of the files.", None, Source::At("/tree/content_bytes")),
    metric("allocated_bytes", "Space allocated to the files.", None, Source::At("/tree/allocated_bytes")),
    metric("capacity_bytes", "Capacity of the file system.", None, Source::At("/target/capacity_bytes")),
    metric("used_bytes", "Used space of the file system.", None, Source::At("/target/used_bytes")),
    metric("free_bytes", "Free space in extents that were read.", None, Source::At("/free_space/figures/bytes")),
    metric("free_extents", "Free extents.", None, Source::At("/free_space/figures/extents")),
    metric("largest_free_extent_bytes", "Largest free extent.", None, Source::At("/free_space/figures/largest_bytes")),
];

const fn metric(name: &'static str, help: &'static str, label: Option<&'static str>, source: Source) -> Metric {
    Metric { name, help, label, source }
}

/// The data of one inspection that the file shows.
pub(super) struct Sample<'a> {
    /// The JSON of the inspection; none if it failed.
    pub(super) figures: Option<&'a Value>,
    /// The place that the user named.
    pub(super) path: &'a Path,
    /// Seconds since 1970.
    pub(super) unix_seconds: u64,
    /// Seconds that the inspection took.
    pub(super) duration_seconds: f64,
}

/// A label's value: backslash, quote and line feed are escaped.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The labels of a sample that have a value. Prometheus treats a missing label as an empty one.
fn labels(sample: &Sample<'_>) -> Vec<(&'static str, String)> {
    let text = |pointer: &str| {
        let found = sample.figures.and_then(|figures| figures.pointer(pointer)).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let path = match text("/target/path") {
        path if path.is_empty() => sample.path.to_string_lossy().into_owned(),
        path => path,
    };
    let all = [
        ("device", text("/target/device")),
        // As node_exporter prints it, so that rules can join both.
        ("mountpoint", text("/target/mount_point")),
        ("fstype", text("/target/file_system")),
        ("path", path),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// The values of a family, with the value of its own label.
fn values(metric: &Metric, sample: &Sample<'_>) -> Vec<(Option<String>, f64)> {
    let at = |pointer: &str| sample.figures.and_then(|figures| figures.pointer(pointer));
    match metric.source {
        Source::Success => vec![(None, f64::from(u8::from(sample.figures.is_some())))],
        Source::Timestamp => vec![(None, sample.unix_seconds as f64)],
        Source::Duration => vec![(None, sample.duration_seconds)],
        Source::At(pointer) => at(pointer).and_then(Value::as_f64).map(|value| (None, value)).into_iter().collect(),
        Source::Grade => {
            let grade = at("/grade").and_then(Value::as_str);
            grade.map(|grade| (Some(grade.to_owned()), 1.0)).into_iter().collect()
        }
        Source::Device(pointer) => {
            let costs = at("/costs").and_then(Value::as_array).into_iter().flatten();
            let of = |cost: &Value| Some((Some(cost["device"].as_str()?.to_owned()), cost.pointer(pointer)?.as_f64()?));
            costs.filter_map(of).collect()
        }
    }
}

/// The text of the file, in Prometheus' text format.
pub(super) fn render(sample: &Sample<'_>) -> String {
    let common = labels(sample);
    let mut text = String::new();
    for metric in METRICS {
        let values = values(metric, sample);
        if values.is_empty() {
            continue;
        }
        let name = metric.name;
        let _ = writeln!(text, "# HELP senesce_inspect_{name} {}", metric.help);
        let _ = writeln!(text, "# TYPE senesce_inspect_{name} gauge");
        for (own, value) in values {
            let own = own.and_then(|own| Some((metric.label?, own)));
            let all = common.iter().cloned().chain(own);
            let all: Vec<String> = all.map(|(label, value)| format!("{label}=\"{}\"", escape(&value))).collect();
            let _ = writeln!(text, "senesce_inspect_{name}{{{}}} {value}", all.join(","));
        }
    }
    text
}

/// Errors: the collector would not read a file of this name.
pub(super) fn check_name(path: &Path) -> Result<()> {
    match path.extension().is_some_and(|extension| extension == SUFFIX) {
        true => Ok(()),
        false => {
            let message = format!("--metrics {}: the collector of node_exporter reads *.prom only", path.display());
            Err(usage(message, Some("name a file that ends with .prom")))
        }
    }
}

/// Replaces the file atomically: a reader sees the old file or the new one.
///
/// Errors: the file cannot be written. The old file then stays. After a failed inspection, this
/// error is only printed, because the error of the inspection is the one to report.
pub(super) fn write(path: &Path, sample: &Sample<'_>) -> Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    // Not *.prom: the collector must not read it.
    name.push(format!(".{}", std::process::id()));
    let new = path.with_file_name(name);
    let write = || -> std::io::Result<()> {
        // A killed command with the same process ID, which containers repeat, can leave its file.
        if fs::symlink_metadata(&new).is_ok_and(|found| found.is_file()) {
            fs::remove_file(&new)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&new)?;
        file.write_all(render(sample).as_bytes())?;
        file.set_permissions(Permissions::from_mode(MODE))?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    let written = write();
    if written.is_err() {
        // The error of the write is the one to report.
        let _ = fs::remove_file(&new);
    }
    let written = written.with_context(|| format!("cannot write {}", path.display()));
    match (written, sample.figures) {
        (Err(error), None) => {
            eprintln!("senesce: {}", Printable::new(&format!("{error:#}")));
            Ok(())
        }
        (written, _) => written,
    }
}

/// The page docs/reference/metrics.md.
pub(super) fn reference() -> String {
    let mut text = String::from(
        "<!-- Generated by `senesce schema --of metrics`: do not edit. -->\n\
         # Metrics of `inspect --metrics`\n\n\
         This page is for operators who collect the figures of `inspect` with Prometheus. Every metric is a gauge. Its name\n\
         starts with `senesce_inspect_`. Names are stable. A figure that is not known is missing.\n\n\
         | label | value |\n|---|---|\n\
         | `path` | the path that was inspected |\n\
         | `device` | the block device; missing if it is not known |\n\
         | `mountpoint` | where the file system is mounted, as node_exporter prints it; missing for a device or image that is read directly |\n\
         | `fstype` | the kind of the file system |\n\n\
         After a failed inspection the only label is `path`.\n\n\
         | name after `senesce_inspect_` | own label | meaning |\n|---|---|---|\n",
    );
    for Metric { name, help, label, .. } in METRICS {
        let label = label.map_or(String::new(), |label| format!("`{label}`"));
        let _ = writeln!(text, "| `{name}` | {label} | {} |", help.trim_end_matches('.'));
    }
    text.push_str(
        "\nThe unit is at the end of a name: seconds, bytes, or ratio. If an inspection fails, the file has the first three\n\
         metrics only. Alert rules and a dashboard are in `contrib/prometheus`, a timer in `contrib/systemd`.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn figures(path: &str) -> Value {
        serde_json::json!({
            "grade": "aged", "slowdown": null,
            "target": { "path": path, "mount_point": "/mnt", "device": "/dev/vda", "file_system": "ext4", "capacity_bytes": 10, "used_bytes": 5 },
            "tree": { "files": 3, "directories": 1, "not_looked_at": 0, "content_bytes": 5, "allocated_bytes": 5,
                      "layout": { "layout_score": 0.5, "extents_per_file": 2.5 } },
            "costs": [{ "device": "model: \"HDD\"", "slowdown": 2.0, "seconds": { "as_it_lies": 4.0, "fresh_copy": 2.0 },
                        "requests": { "as_it_lies": 7 } }],
            "free_space": null,
        })
    }

    fn text(path: &str) -> String {
        let figures = figures(path);
        let sample = Sample {
            figures: Some(&figures),
            path: Path::new("/"),
            unix_seconds: 1_800_000_000,
            duration_seconds: 1.5,
        };
        render(&sample)
    }

    /// Reads a line of samples strictly: name, labels, value.
    fn parse(line: &str) -> (String, Vec<(String, String)>, f64) {
        let (name, rest) = line.split_once('{').unwrap();
        let mut letters = rest.chars();
        let mut labels = Vec::new();
        loop {
            let label: String = letters.by_ref().take_while(|letter| *letter != '=').collect();
            assert!(label.chars().all(|letter| letter.is_ascii_lowercase()) && !label.is_empty(), "{line}");
            assert_eq!(letters.next(), Some('"'), "{line}");
            let mut value = String::new();
            loop {
                match letters.next().unwrap() {
                    '"' => break,
                    '\\' => value.push(match letters.next().unwrap() {
                        'n' => '\n',
                        letter @ ('\\' | '"') => letter,
                        other => panic!("\\{other} in {line}"),
                    }),
                    letter => value.push(letter),
                }
            }
            labels.push((label, value));
            match letters.next() {
                Some(',') => {}
                Some('}') => break,
                other => panic!("{other:?} in {line}"),
            }
        }
        let value = letters.as_str().strip_prefix(' ').unwrap().parse().unwrap();
        (name.to_owned(), labels, value)
    }

    #[test]
    fn every_line_is_of_the_text_format() {
        let hostile = "/mnt/a\"b\\c\nsenesce_inspect_files{} 9";
        let text = text(hostile);
        let mut families = BTreeSet::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let name = line.strip_prefix("# HELP ").unwrap().split(' ').next().unwrap();
            assert_eq!(lines.next(), Some(format!("# TYPE {name} gauge").as_str()));
            assert!(families.insert(name.to_owned()), "{name} appears twice");
            let mut samples = 0;
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                let (found, labels, _) = parse(line);
                assert_eq!(found, name);
                assert_eq!(labels[1], ("mountpoint".to_owned(), "/mnt".to_owned()));
                assert_eq!(labels[3], ("path".to_owned(), hostile.to_owned()));
                samples += 1;
            }
            assert!(samples > 0, "{name} has no sample");
        }
        assert!(families.contains("senesce_inspect_slowdown_ratio"));
        assert!(!families.contains("senesce_inspect_judged_slowdown_ratio"), "its value is not known");
        assert!(text.contains("senesce_inspect_timestamp_seconds{") && text.contains("} 1800000000\n"));
    }

    #[test]
    fn a_failed_inspection_has_no_figures() {
        let sample = Sample { figures: None, path: Path::new("/srv"), unix_seconds: 5, duration_seconds: 0.5 };
        let text = render(&sample);
        assert!(text.contains("senesce_inspect_success{path=\"/srv\"} 0\n"), "{text}");
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), 3);
    }

    #[test]
    fn file_is_replaced_atomically_and_readable() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.prom");
        fs::write(&path, "old").unwrap();
        let figures = figures("/");
        let sample = Sample { figures: Some(&figures), path: Path::new("/"), unix_seconds: 5, duration_seconds: 0.5 };
        let left = temp.path().join(format!(".a.prom.{}", std::process::id()));
        fs::write(&left, "left by a killed command").unwrap();
        write(&path, &sample).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
        assert!(fs::read_to_string(&path).unwrap().starts_with("# HELP"));
        let nowhere = Path::new("/proc/nowhere/a.prom");
        assert!(write(nowhere, &sample).is_err());
        assert!(write(nowhere, &Sample { figures: None, ..sample }).is_ok(), "it hides the error of the inspection");
        assert!(check_name(Path::new("a.prom")).is_ok() && check_name(Path::new("a.txt")).is_err());
    }

    #[test]
    fn names_end_with_their_base_unit() {
        const COUNTS: [&str; 7] =
            ["success", "grade", "files", "directories", "unread_entries", "read_requests", "free_extents"];
        for Metric { name, help, .. } in METRICS {
            let has_unit = ["_seconds", "_bytes", "_ratio"].iter().any(|unit| name.ends_with(unit));
            assert!(has_unit || COUNTS.contains(name), "{name}");
            assert!(help.ends_with('.') && !help.contains(['\n', '\\']), "{name}");
        }
    }
}

//! Reduces the tables of a run to what pages need.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{circumstances, table::Table};

/// The names of the tables of a kept run.
pub const OF_RUNS: [&str; 3] = ["circumstances", "cells", "cures"];
/// Circumstances of single arms that are kept. Their keys start with the role of the volume.
const OF_ARMS: [&str; 2] = ["mkfs_version", "mount_options_asked"];
/// Circumstances of all volumes that are kept once. Kernels are kept up to the first hyphen.
const OF_MACHINE: [&str; 6] =
    ["kernel_release", "machine", "cpu_model", "memory_bytes", "guest_kind", "guest_host_kernel"];

type Key = (String, String, u64);

/// The kept tables of a run, by file name. `json` is the output of `senesce show RUN --json`.
///
/// Wall times are left out, because they depend on the machine of the run.
pub fn reduce(json: &Value, command: &str) -> anyhow::Result<Vec<(&'static str, Table)>> {
    let figures = Figures::collect(json)?;
    let mut tables = vec![("circumstances.tsv", circumstances(json, command)?), ("cells.tsv", cells(json, &figures)?)];
    if !rows(json, "cures")?.is_empty() {
        tables.push(("cures.tsv", cures(json, &figures)?));
    }
    Ok(tables)
}

/// Writes a kept run below docs/results/kept/: its plan and the reduced tables. `facts` are further
/// circumstances, as `KEY=VALUE`.
pub fn keep(root: &Path, name: &str, run: &Path, json: &Value, command: &str, facts: &[&str]) -> anyhow::Result<()> {
    let dir = root.join(super::KEPT).join(name);
    let mut tables = reduce(json, command)?;
    for (key, value) in circumstances::parse(facts)? {
        tables[0].1.rows.retain(|row| row[1] != key);
        tables[0].1.rows.push(["", key, &value].map(str::to_owned).to_vec());
    }
    let plan = run.join("plan.toml");
    let plan = std::fs::read_to_string(&plan).with_context(|| format!("cannot read {}", plan.display()))?;
    std::fs::create_dir_all(&dir)?;
    std::fs::write(dir.join("plan.toml"), plan)?;
    for (file, table) in tables {
        std::fs::write(dir.join(file), table.render())?;
    }
    Ok(())
}

/// Writes the table `file` of `command` below docs/results/kept/, with its circumstances.
pub fn keep_table(root: &Path, name: &str, file: &Path, command: &str, facts: &[&str]) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let table = Table::parse(&text).with_context(|| file.display().to_string())?;
    ensure!(!table.rows.is_empty(), "{} has no row", file.display());
    let stem = file.file_stem().and_then(|stem| stem.to_str()).context("the file has no name")?;
    ensure!(!OF_RUNS.contains(&stem), "a table of a command cannot be named {stem}: a run has a table of this name");
    let circumstances = circumstances::of_table(root, command, circumstances::parse(facts)?)?;
    let dir = root.join(super::KEPT).join(name);
    let at = dir.join("circumstances.tsv");
    if let Ok(old) = std::fs::read_to_string(&at) {
        let old = Table::parse(&old).with_context(|| at.display().to_string())?;
        let is_same = old.rows.iter().any(|row| row[1] == "command" && row[2] == command);
        ensure!(is_same, "{} is of another command: choose another name, or remove it", dir.display());
    }
    std::fs::create_dir_all(&dir)?;
    std::fs::write(at, circumstances.render())?;
    std::fs::write(dir.join(format!("{stem}.tsv")), table.render())?;
    Ok(())
}

fn rows<'j>(json: &'j Value, table: &str) -> anyhow::Result<&'j Vec<Value>> {
    json[table].as_array().with_context(|| format!("the JSON has no table {table:?}"))
}

fn text<'j>(row: &'j Value, column: &str) -> &'j str {
    row[column].as_str().unwrap_or_default()
}

fn key(row: &Value) -> Key {
    (text(row, "arm").to_owned(), text(row, "role").to_owned(), row["pulls"].as_u64().unwrap_or(0))
}

/// The role of a volume before its cure.
fn uncured(role: &str) -> &str {
    role.strip_prefix("cured-").unwrap_or(role)
}

/// `model: HDD 7.2K` as `hdd-7.2k`.
fn device(row: &Value) -> String {
    let name = text(row, "device");
    name.strip_prefix("model: ").unwrap_or(name).to_lowercase().replace(' ', "-")
}

/// A number with six significant digits; empty if it is missing.
fn number(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.0}"),
        Some(value) => format!("{value:.5e}").parse::<f64>().map_or(String::new(), |rounded| rounded.to_string()),
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// Figures of each cell, by column.
#[derive(Default)]
struct Figures {
    /// Seconds, seconds per GiB and requests of the modelled costs, by the column of the cost.
    costs: BTreeMap<Key, BTreeMap<String, Vec<[f64; 3]>>>,
    layout: BTreeMap<Key, [Option<f64>; 3]>,
    free_extents: BTreeMap<Key, f64>,
    /// Bytes of content, bytes written to the device, and steps without space, from the first step
    /// on.
    written: BTreeMap<Key, [Option<f64>; 3]>,
    /// Mean seconds of the disk for a counted step, from the first one on.
    step_seconds: BTreeMap<Key, f64>,
    /// Bytes that the cures of a volume wrote, from the first one on. The key has the role before a
    /// cure.
    cured: BTreeMap<Key, f64>,
}

impl Figures {
    fn collect(json: &Value) -> anyhow::Result<Self> {
        let mut all = Self::default();
        for row in rows(json, "modelled")? {
            let method = match text(row, "method") {
                "virtual-time" => "virtual",
                other => other,
            };
            let column = format!("{method}.{}", device(row));
            if let (Some(seconds), Some(per_gib)) = (row["seconds"].as_f64(), row["seconds_per_gib"].as_f64()) {
                let requests = row["requests"].as_f64().unwrap_or(f64::NAN);
                all.costs.entry(key(row)).or_default().entry(column).or_default().push([seconds, per_gib, requests]);
            }
        }
        for row in rows(json, "layout")? {
            let figures = ["layout_score", "extents_per_file", "adjacent_files_share"];
            all.layout.insert(key(row), figures.map(|column| row[column].as_f64()));
        }
        // A row for each size of free extents.
        for row in rows(json, "free_space")? {
            *all.free_extents.entry(key(row)).or_default() += row["extents"].as_f64().unwrap_or(0.0);
        }
        let mut sums: BTreeMap<(String, String), [Option<f64>; 3]> = BTreeMap::new();
        let mut aging: Vec<&Value> = rows(json, "aging")?.iter().collect();
        aging.sort_by_key(|row| key(row));
        for row in aging {
            let (arm, role, _) = key(row);
            let sum = sums.entry((arm, role)).or_insert([Some(0.0); 3]);
            for (sum, column) in sum.iter_mut().zip(["written_bytes", "device_written_bytes", "no_space_steps"]) {
                *sum = sum.zip(row[column].as_f64()).map(|(sum, value)| sum + value);
            }
            all.written.insert(key(row), *sum);
        }
        let mut steps: Vec<&Value> = rows(json, "steps")?.iter().filter(|row| row["counted"] == true).collect();
        steps.sort_by_key(|row| key(row));
        let mut sums: BTreeMap<(String, String), (f64, f64)> = BTreeMap::new();
        for row in steps {
            let (arm, role, _) = key(row);
            let Some(seconds) = row["disk_seconds"].as_f64() else { continue };
            let (sum, count) = sums.entry((arm, role)).or_default();
            (*sum, *count) = (*sum + seconds, *count + 1.0);
            all.step_seconds.insert(key(row), *sum / *count);
        }
        // A cure has a row for each modelled device.
        for row in rows(json, "cures")? {
            let (arm, role, pulls) = key(row);
            all.cured.insert((arm, uncured(&role).to_owned(), pulls), row["written_bytes"].as_f64().unwrap_or(0.0));
        }
        let mut sum: (String, String, f64) = Default::default();
        for ((arm, role, _), written) in &mut all.cured {
            let before = if (&sum.0, &sum.1) == (arm, role) { sum.2 } else { 0.0 };
            *written += before;
            sum = (arm.clone(), role.clone(), *written);
        }
        Ok(all)
    }

    /// Bytes that the cures of a volume wrote until a checkpoint.
    fn written_by_cures(&self, key: &Key) -> Option<f64> {
        let first = (key.0.clone(), key.1.clone(), 0);
        self.cured.range(first..=key.clone()).next_back().map(|(_, written)| *written)
    }

    fn seconds(&self, key: &Key, column: &str) -> Option<f64> {
        let costs: Vec<f64> = self.costs.get(key)?.get(column)?.iter().map(|cost| cost[0]).collect();
        median(&costs)
    }
}

/// Whether a column of costs has a figure for each repetition of the grep test.
fn is_repeated(column: &str) -> bool {
    column.starts_with("virtual.")
}

/// One row for each cell. Costs are medians over the repetitions.
fn cells(json: &Value, figures: &Figures) -> anyhow::Result<Table> {
    let mut columns: Vec<&String> = figures.costs.values().flat_map(BTreeMap::keys).collect();
    columns.sort();
    columns.dedup();
    let mut table = Table::new(&[
        "arm",
        "file_system",
        "role",
        "pulls",
        "valid",
        "files",
        "content_bytes",
        "used_share",
        "layout_score",
        "extents_per_file",
        "adjacent_files_share",
        "free_extents",
        "written_bytes",
        "device_written_bytes",
        "no_space_steps",
        "disk_seconds_per_step",
        "written_by_cures_bytes",
    ]);
    for column in &columns {
        table.heads.extend([(*column).clone(), format!("seconds.{column}")]);
        if is_repeated(column) {
            table.heads.extend([format!("requests.{column}"), format!("spread.{column}")]);
        }
    }
    for row in rows(json, "cells")? {
        let (key, float) = (key(row), |column: &str| row[column].as_f64());
        let used = float("used_bytes").zip(float("capacity_bytes")).map(|(used, capacity)| used / capacity);
        let mut cells = vec![
            key.0.clone(),
            text(row, "file_system").to_owned(),
            key.1.clone(),
            key.2.to_string(),
            row["valid"].to_string(),
        ];
        cells.extend([float("files"), float("content_bytes"), used].map(number));
        cells.extend(figures.layout.get(&key).copied().unwrap_or_default().map(number));
        cells.push(number(figures.free_extents.get(&key).copied()));
        cells.extend(figures.written.get(&key).copied().unwrap_or_default().map(number));
        cells.push(number(figures.step_seconds.get(&key).copied()));
        cells.push(number(figures.written_by_cures(&key)));
        for column in &columns {
            let costs = figures.costs.get(&key).and_then(|costs| costs.get(*column)).cloned().unwrap_or_default();
            let of =
                |at: usize| costs.iter().map(|cost| cost[at]).filter(|value| !value.is_nan()).collect::<Vec<f64>>();
            let seconds = of(0);
            let (low, high) = seconds.iter().fold((f64::MAX, 0.0_f64), |(low, high), s| (low.min(*s), high.max(*s)));
            let spread = (seconds.len() > 1).then(|| high / low);
            cells.extend([median(&of(1)), median(&seconds)].map(number));
            if is_repeated(column) {
                cells.extend([median(&of(2)), spread].map(number));
            }
        }
        table.rows.push(cells);
    }
    Ok(table)
}

/// One row for each cure and modelled device, with the fresh copy and the order of files before and
/// after.
fn cures(json: &Value, figures: &Figures) -> anyhow::Result<Table> {
    const TEXTS: [&str; 3] = ["tool", "strategies", "skipped"];
    const NUMBERS: [&str; 9] = [
        "written_bytes",
        "disk_seconds",
        "moved_files",
        "skipped_files",
        "modelled_before_seconds",
        "predicted_seconds",
        "modelled_after_seconds",
        "read_before_seconds",
        "read_after_seconds",
    ];
    let mut table = Table::new(&["arm", "file_system", "role", "pulls", "device"]);
    let heads = TEXTS.iter().chain(&NUMBERS).chain(&["read_fresh_seconds", "adjacent_before", "adjacent_after"]);
    table.heads.extend(heads.map(|head| (*head).to_owned()));
    for row in rows(json, "cures")? {
        let (arm, role, pulls) = key(row);
        let of = |role: &str| (arm.clone(), role.to_owned(), pulls);
        let uncured = uncured(&role).to_owned();
        // Reads are served by one device, whatever device the row models.
        let virtual_columns = figures.costs.values().flat_map(BTreeMap::keys).find(|column| is_repeated(column));
        let fresh = virtual_columns.and_then(|column| figures.seconds(&of("unaged"), column));
        let adjacent = |role: String| figures.layout.get(&of(&role)).and_then(|layout| layout[2]);
        let mut cells =
            vec![arm.clone(), text(row, "file_system").to_owned(), uncured.clone(), pulls.to_string(), device(row)];
        cells.extend(TEXTS.map(|column| text(row, column).to_owned()));
        cells.extend(NUMBERS.map(|column| number(row[column].as_f64())));
        cells.push(number(fresh));
        cells.extend([adjacent(uncured.clone()), adjacent(format!("cured-{uncured}"))].map(number));
        table.rows.push(cells);
    }
    Ok(table)
}

/// Command, program, plan, day, kernel, machine and tools.
fn circumstances(json: &Value, command: &str) -> anyhow::Result<Table> {
    let mut table = Table::new(&["arm", "key", "value"]);
    let mut add = |arm: &str, key: &str, value: &str| {
        let row = [arm, key, value].map(str::to_owned).to_vec();
        if !table.rows.contains(&row) {
            table.rows.push(row);
        }
    };
    add("", "command", command);
    for row in rows(json, "circumstances")? {
        let (arm, key, value) = (text(row, "arm"), text(row, "key"), text(row, "value"));
        let last = key.rsplit('.').next().unwrap_or(key);
        match (arm.is_empty(), key) {
            (true, "run.begun_unix_seconds") => add("", "run.day", &day(value)?),
            (true, _) => add("", key, value),
            // `empty.kernel_release` is of the volume `empty`.
            (false, _) if OF_MACHINE.contains(&last) => {
                let is_kernel = ["kernel_release", "guest_host_kernel"].contains(&last);
                let value = if is_kernel { release(value) } else { value };
                add("", last, value);
            }
            (false, _) if OF_ARMS.contains(&last) => add(arm, last, value),
            _ => {}
        }
    }
    Ok(table)
}

/// `Linux host 6.18.44-x #1 SMP` and `6.18.44-x` as `6.18.44`.
fn release(kernel: &str) -> &str {
    let words = kernel.split_whitespace();
    let release = words.into_iter().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    release.and_then(|release| release.split('-').next()).unwrap_or(kernel)
}

/// The day of a Unix time, in UTC: `2026-11-28`.
fn day(unix_seconds: &str) -> anyhow::Result<String> {
    let output = Command::new("date").args(["-u", "-d", &format!("@{unix_seconds}"), "+%F"]).output()?;
    ensure!(output.status.success(), "{unix_seconds:?} is no time: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run() -> Value {
        let cell = |role: &str, pulls: u64| {
            json!({"arm": "xfs", "file_system": "xfs", "role": role, "pulls": pulls, "valid": true, "files": 3,
                "content_bytes": 4096, "capacity_bytes": 200, "used_bytes": 50})
        };
        let cost = |role: &str, repetition: u64, seconds: f64| {
            json!({"arm": "xfs", "role": role, "pulls": 9, "repetition": repetition, "device": "model: HDD 7.2K",
                "method": "virtual-time", "seconds": seconds, "seconds_per_gib": 10.0 * seconds,
                "requests": 7})
        };
        let aging = |pulls: u64, device: Option<u64>| {
            json!({"arm": "xfs", "role": "full", "pulls": pulls, "written_bytes": 100, "device_written_bytes": device,
                "no_space_steps": 1})
        };
        json!({
            "cells": [cell("full", 0), cell("full", 9), cell("unaged", 9)],
            "modelled": [cost("full", 0, 3.0), cost("full", 1, 1.0), cost("full", 2, 2.0), cost("unaged", 0, 0.5)],
            "layout": [{"arm": "xfs", "role": "full", "pulls": 9, "layout_score": 0.5, "extents_per_file": 2.0,
                "adjacent_files_share": 0.25}],
            "free_space": [{"arm": "xfs", "role": "full", "pulls": 9, "extents": 3},
                {"arm": "xfs", "role": "full", "pulls": 9, "extents": 2}],
            "aging": [aging(0, Some(150)), aging(9, Some(250))],
            "steps": [{"arm": "xfs", "role": "full", "pulls": 9, "counted": true, "disk_seconds": 4.0}],
            "cures": [{"arm": "xfs", "role": "cured-full", "pulls": 9, "device": "model: HDD 7.2K", "tool": "senesce",
                "written_bytes": 7}],
            "circumstances": [
                {"arm": "", "key": "run.begun_unix_seconds", "value": "1795898467"},
                {"arm": "xfs", "key": "full.kernel_release", "value": "6.18.44-x"},
                {"arm": "xfs", "key": "unaged.kernel_release", "value": "6.18.44-x"},
                {"arm": "xfs", "key": "full.guest_host_kernel", "value": "Linux host 6.18.44-x #1 SMP"},
                {"arm": "xfs", "key": "full.image", "value": "/tmp/x"},
            ],
        })
    }

    #[test]
    fn cells_have_medians_and_sums() {
        let tables = reduce(&run(), "senesce run plans/x.toml").unwrap();
        let cells = &tables[1].1;
        let of = |row: usize, head: &str| cells.rows[row][cells.column(head).unwrap()].as_str();
        assert_eq!(
            ["used_share", "virtual.hdd-7.2k", "seconds.virtual.hdd-7.2k", "spread.virtual.hdd-7.2k"]
                .map(|head| of(1, head)),
            ["0.25", "20", "2", "3"]
        );
        assert_eq!(
            ["written_bytes", "device_written_bytes", "no_space_steps"].map(|head| of(1, head)),
            ["200", "400", "2"]
        );
        assert_eq!(["free_extents", "requests.virtual.hdd-7.2k"].map(|head| of(1, head)), ["5", "7"]);
        assert_eq!(of(0, "virtual.hdd-7.2k"), "");
        assert_eq!(["disk_seconds_per_step", "written_by_cures_bytes"].map(|head| of(1, head)), ["4", "7"]);
        assert_eq!(of(0, "written_by_cures_bytes"), "");
        let cures = &tables[2].1;
        let of = |head: &str| cures.rows[0][cures.column(head).unwrap()].as_str();
        assert_eq!(
            ["role", "device", "read_fresh_seconds", "adjacent_before"].map(of),
            ["full", "hdd-7.2k", "0.5", "0.25"]
        );
    }

    #[test]
    fn circumstances_name_no_path_of_the_machine() {
        let rows = reduce(&run(), "senesce run plans/x.toml").unwrap().remove(0).1.rows;
        let expected = [
            ["", "command", "senesce run plans/x.toml"],
            ["", "run.day", "2026-11-28"],
            ["", "kernel_release", "6.18.44"],
            ["", "guest_host_kernel", "6.18.44"],
        ];
        assert_eq!(rows, expected.map(|row| row.map(str::to_owned).to_vec()));
    }
}

//! Records the circumstances of kept runs and tables, and renders them on pages.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::{Context, bail, ensure};

use super::{Kept, table::Table};

/// Circumstances that a caller of `--keep` or `--keep-table` can set, and their keys in
/// `circumstances.tsv`.
const SETTABLE: [(&str, &str); 7] = [
    ("day", "run.day"),
    ("commit", "senesce.version"),
    ("kernel", "kernel_release"),
    ("cpu", "cpu_model"),
    ("memory", "memory_bytes"),
    ("load", "load"),
    ("note", "note"),
];
/// Reads `KEY=VALUE` arguments into keys of `circumstances.tsv`.
pub fn parse(arguments: &[&str]) -> anyhow::Result<BTreeMap<&'static str, String>> {
    let mut facts = BTreeMap::new();
    for argument in arguments {
        let (name, value) = argument.split_once('=').with_context(|| format!("`{argument}` has no ="))?;
        let Some((_, key)) = SETTABLE.iter().find(|(known, _)| *known == name) else {
            let names = SETTABLE.map(|(name, _)| name).join(", ");
            bail!("no circumstance `{name}`; there are: {names}");
        };
        let value = match (name, value) {
            ("commit", commit) => format!("{} (commit {commit})", env!("CARGO_PKG_VERSION")),
            _ => value.to_owned(),
        };
        facts.insert(*key, value);
    }
    Ok(facts)
}

/// The circumstances of a table that `command` made. A `day` in `facts` says that the table is not
/// of today, so nothing of this machine is added.
pub fn of_table(root: &Path, command: &str, mut facts: BTreeMap<&'static str, String>) -> anyhow::Result<Table> {
    if !facts.contains_key("run.day") {
        facts.insert("run.day", output(root, "date", &["-u", "+%F"])?);
        if !facts.contains_key("senesce.version") {
            let commit = output(root, "git", &["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])?;
            facts.insert("senesce.version", format!("{} (commit {commit})", env!("CARGO_PKG_VERSION")));
        }
        let mut add = |key, value: String| {
            facts.entry(key).or_insert(value);
        };
        let kernel = output(root, "uname", &["-r"])?;
        add("kernel_release", kernel.split('-').next().unwrap_or(&kernel).to_owned());
        let proc = |file: &str, key: &str| -> anyhow::Result<Option<String>> {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.split_once(':'));
            Ok(line.map(|(_, value)| value.trim().to_owned()))
        };
        if let Some(model) = proc("/proc/cpuinfo", "model name")? {
            add("cpu_model", model);
        }
        if let Some(kib) = proc("/proc/meminfo", "MemTotal")? {
            let kib: u64 = kib.trim_end_matches(" kB").parse()?;
            add("memory_bytes", (kib * 1024).to_string());
        }
    }
    ensure!(facts.contains_key("senesce.version"), "an older table (day=) needs the commit of its program (commit=)");
    let mut table = Table::new(&["arm", "key", "value"]);
    let mut add = |key: &str, value: &str| table.rows.push(["", key, value].map(str::to_owned).to_vec());
    add("command", command);
    facts.iter().for_each(|(key, value)| add(key, value));
    Ok(table)
}

fn output(root: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).current_dir(root).output()?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The circumstances of a kept run or table that pages print.
pub struct Shown {
    pub command: String,
    pub day: String,
    /// The commit of the program.
    pub commit: String,
    rows: Vec<Vec<String>>,
}

impl Shown {
    pub fn read(run: &str, kept: &mut Kept) -> anyhow::Result<Self> {
        let rows = kept.table(run, "circumstances")?.rows.clone();
        let of = |key: &str| -> anyhow::Result<String> {
            let row = rows.iter().find(|row| row[0].is_empty() && row[1] == key);
            Ok(row.with_context(|| format!("the circumstances of {run} have no {key}"))?[2].clone())
        };
        let version = of("senesce.version")?;
        let commit =
            version.split_once("(commit ").map_or(&*version, |(_, rest)| rest.trim_end_matches(')')).to_owned();
        Ok(Self { command: of("command")?, day: of("run.day")?, commit, rows })
    }

    fn get(&self, key: &str) -> Option<&str> {
        let row = self.rows.iter().find(|row| row[0].is_empty() && row[1] == key);
        row.map(|row| row[2].as_str())
    }

    /// The versions of mkfs, each once.
    fn tools(&self) -> Vec<&str> {
        let mut tools: Vec<&str> =
            self.rows.iter().filter(|row| row[1] == "mkfs_version").map(|row| row[2].as_str()).collect();
        tools.retain(|tool| !tool.starts_with("senesce"));
        tools.sort_unstable();
        tools.dedup();
        tools
    }
}

/// One paragraph: links to the data, command, day, program, kernel, tools, load and valid cells.
pub fn render(run: &str, kept: &mut Kept) -> anyhow::Result<String> {
    let shown = Shown::read(run, kept)?;
    let files = kept.files(run)?;
    let is_run = files.iter().any(|file| file == "cells");
    let links: Vec<String> = match is_run {
        true => vec![format!("[{run}](kept/{run}/cells.tsv)")],
        false => files.iter().map(|file| format!("[{run}/{file}](kept/{run}/{file}.tsv)")).collect(),
    };
    let kind = if is_run { "Kept run" } else { "Kept table" };
    let mut parts = vec![format!("`{}`", shown.command), shown.day.clone()];
    parts.extend(shown.get("senesce.version").map(|version| format!("senesce {version}")));
    parts.extend(shown.get("kernel_release").map(|kernel| match shown.get("guest_host_kernel") {
        Some(host) => format!("Linux {kernel} as a guest on Linux {host}"),
        None => format!("Linux {kernel}"),
    }));
    parts.extend(shown.tools().into_iter().map(str::to_owned));
    if !is_run {
        parts.extend(shown.get("cpu_model").map(str::to_owned));
    }
    parts.extend(shown.get("load").map(|load| format!("load {load}")));
    let mut text = if links.is_empty() { String::new() } else { format!("{kind} {}: ", links.join(", ")) };
    text += &format!("{}.", parts.join(", "));
    if is_run {
        let cells = kept.table(run, "cells")?;
        let valid = cells.column("valid")?;
        let count = cells.rows.iter().filter(|row| row[valid] == "true").count();
        text += &format!(" {count} of {} cells valid.", cells.rows.len());
    }
    text.extend(shown.get("note").map(|note| format!(" {note}")));
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_another_day_has_no_facts_of_this_machine() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let keys = |arguments: &[&str]| -> Vec<String> {
            let table = of_table(root, "x", parse(arguments).unwrap()).unwrap();
            table.rows.iter().map(|row| row[1].clone()).collect()
        };
        assert_eq!(
            keys(&["day=2026-11-22", "commit=68cfaf4", "load=3"]),
            ["command", "load", "run.day", "senesce.version"]
        );
        let error = of_table(root, "x", parse(&["day=2026-11-22"]).unwrap()).unwrap_err();
        assert!(error.to_string().contains("needs the commit of its program"));
        let today = keys(&["commit=68cfaf4"]);
        for key in ["run.day", "senesce.version", "kernel_release", "memory_bytes"] {
            assert!(today.iter().any(|known| known == key), "{key} is missing in {today:?}");
        }
    }

    #[test]
    fn unknown_circumstances_are_refused() {
        for (argument, why) in [("laod=3", "no circumstance `laod`"), ("load", "has no =")] {
            assert!(parse(&[argument]).unwrap_err().to_string().contains(why));
        }
    }
}

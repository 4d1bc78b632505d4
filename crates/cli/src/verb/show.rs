//! `senesce show`: the summary of a run.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use senesce_core::{
    Printable,
    names::{list, with_more},
};
use senesce_experiment::{RunPaths, journal::RunState};
use senesce_report::{equivalence_table, sparklines, summary_table};
use senesce_store::{CellRow, ResultStore, Results};

use crate::{args::ShowArgs, exit::usage, fit::fit, near::hint_for_run, verb::export::write_json};

/// The most checkpoints of a volume in a line.
const MOST_CHECKPOINTS: usize = 8;

/// Prints the missing parts of the run, the summary table and the slowdown over the checkpoints, or
/// all tables as JSON.
///
/// Errors: the directory holds no results; the run has no such arm.
pub fn show(args: ShowArgs) -> Result<()> {
    let mut results = read_results(&args.run)?;
    keep_arms(&mut results, &args.arm)?;
    if args.json {
        return write_json(&results);
    }
    let mut text =
        RunState::read(&RunPaths::new(&args.run)).map(|state| unfinished(&state, &args.run)).unwrap_or_default();
    text.push_str(&render_summary(&results));
    if args.equivalence {
        text.push('\n');
        text.push_str(&equivalence_table(&results));
    }
    print!("{}", fit(&text));
    Ok(())
}

/// The missing parts of a run, and the command that continues it. Empty if the run is complete.
fn unfinished(state: &RunState, run: &Path) -> String {
    let RunState { arms, done, failed } = state;
    if done == arms {
        return String::new();
    }
    let command = resume_command(run);
    let names: Vec<&str> = failed.iter().map(|(name, _)| name.as_str()).collect();
    let failures = format!("{} of {arms} arms failed ({})", failed.len(), names.join(", "));
    match (failed.is_empty(), done + failed.len() == *arms) {
        (true, _) => format!("unfinished: {done} of {arms} arms; continue with `{command}`\n\n"),
        (_, true) => format!("unfinished: {failures}; remove the cause, then repeat with `{command}`\n\n"),
        _ => format!("unfinished: {done} of {arms} arms, and {failures}; continue with `{command}`\n\n"),
    }
}

/// The command that continues a run and repeats its failed arms.
pub fn resume_command(run: &Path) -> String {
    let guest = if senesce_volume::is_guest() { " --guest uml" } else { "" };
    format!("senesce run --resume {}{guest}", Printable::new(run))
}

/// Each reason of invalid cells, with its cells.
fn invalid_cells(results: &Results) -> String {
    let mut reasons: BTreeMap<&str, BTreeMap<(&str, &str), Vec<u64>>> = BTreeMap::new();
    for CellRow { key, reason, .. } in results.cells.iter().filter(|cell| !cell.valid) {
        let volumes = reasons.entry(reason).or_default();
        volumes.entry((&key.arm, key.role.name())).or_default().push(key.pulls);
    }
    if reasons.is_empty() {
        return String::new();
    }
    let mut text = "\ninvalid cells, by reason:\n".to_owned();
    for (reason, volumes) in reasons {
        text.push_str(&format!("  {}\n", Printable::lines(reason).to_string().replace('\n', "\n  ")));
        for ((arm, role), mut pulls) in volumes {
            pulls.sort_unstable();
            let shown = with_more(pulls.iter().take(MOST_CHECKPOINTS).map(u64::to_string), pulls.len());
            text.push_str(&format!("    {arm} {role} at {}\n", list(&shown)));
        }
    }
    text
}

/// The summary table, the slowdown over the checkpoints, and the reasons of invalid cells.
pub fn render_summary(results: &Results) -> String {
    let mut text = summary_table(results);
    let lines = sparklines(results);
    if !lines.is_empty() {
        text.push('\n');
        text.push_str(&lines);
    }
    text.push_str(&invalid_cells(results));
    text
}

/// Leaves out the other arms, if `names` are given.
fn keep_arms(results: &mut Results, names: &[String]) -> Result<()> {
    let mut known: Vec<String> = results.cells.iter().map(|cell| cell.key.arm.clone()).collect();
    known.sort();
    known.dedup();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(usage(format!("the run has no arm {unknown}"), Some(&format!("its arms: {}", known.join(", ")))));
    }
    if !names.is_empty() {
        let keep = |arm: &str| names.iter().any(|name| name == arm);
        results.cells.retain(|row| keep(&row.key.arm));
        results.grep.retain(|row| keep(&row.key.arm));
        results.load.retain(|row| keep(&row.key.arm));
        results.layout.retain(|row| keep(&row.key.arm));
        results.modelled.retain(|row| keep(&row.key.arm));
        results.trace.retain(|row| keep(&row.key.arm));
        results.trace_buckets.retain(|row| keep(&row.key.arm));
        results.maps.retain(|row| keep(&row.key.arm));
        results.free_space.retain(|row| keep(&row.key.arm));
        results.aging.retain(|row| keep(&row.key.arm));
        results.latency.retain(|row| keep(&row.key.arm));
        results.steps.retain(|row| keep(&row.key.arm));
        results.cures.retain(|row| keep(&row.key.arm));
        results.circumstances.retain(|row| row.arm.is_empty() || keep(&row.arm));
    }
    Ok(())
}

/// Errors: the directory of a run does not exist.
pub fn check_exists(run: &Path) -> Result<()> {
    match run.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(usage(format!("{} does not exist", Printable::new(run)), Some(&hint_for_run(run))))
        }
        _ => Ok(()),
    }
}

/// The results of the run in a directory.
pub fn read_results(run: &Path) -> Result<Results> {
    check_exists(run)?;
    let paths = RunPaths::new(run);
    // The results directory itself may be given too.
    let dir = if paths.results().exists() { paths.results() } else { run.to_owned() };
    Ok(ResultStore::open_read_only(&dir)?.read_all()?)
}

#[cfg(test)]
mod tests {
    use senesce_store::{CellKey, CureRow, Role};

    use super::*;
    use crate::fit::fit_to;

    /// A cure of a volume whose arm has this name, on two devices.
    fn cured(arm: &str) -> Results {
        let key = |role| CellKey { arm: arm.into(), file_system: "ext4".into(), role, pulls: 1_000 };
        let cell = |role| CellRow { valid: true, ..CellRow::without_figures(key(role), "") };
        let cure = |device: &str| CureRow {
            key: key(Role::CuredFull),
            tool: "e4defrag".into(),
            strategies: String::new(),
            written_bytes: Some(48 << 20),
            wall_seconds: 3.0,
            disk_seconds: f64::NAN,
            moved_files: Some(1234),
            skipped_files: Some(3),
            skipped: String::new(),
            device: device.into(),
            modelled_before_seconds: 9.25,
            predicted_seconds: 6.5,
            modelled_after_seconds: 5.75,
            read_before_seconds: 7.5,
            read_after_seconds: 0.25,
        };
        Results {
            cells: [Role::Full, Role::CuredFull].map(cell).into(),
            cures: ["model: HDD 7.2K", "model: NVMe SSD"].map(cure).into(),
            ..Results::default()
        }
    }

    #[test]
    fn cures_keep_their_figures_on_narrow_terminals() {
        for arm in ["ext4-e4defrag", "ext4-e4defrag.mail.hdd-7200.s1"] {
            for columns in [60, 80] {
                let shown = fit_to(&render_summary(&cured(arm)), columns);
                assert!(shown.lines().all(|line| line.chars().count() <= columns), "{shown}");
                // Both costs of the cold read once, and both modelled ones for each device.
                let times = ["7.50 s", "0.250 s", "9.25 s", "5.75 s"].map(|cost| shown.matches(cost).count());
                assert_eq!(times, [1, 1, 2, 2], "{columns} columns:\n{shown}");
            }
        }
    }

    #[test]
    fn an_unfinished_run_names_what_it_lacks() {
        let said = |arms, done, failed: &[&str]| {
            let failed = failed.iter().map(|name| ((*name).to_owned(), "no space".to_owned())).collect();
            unfinished(&RunState { arms, done, failed }, Path::new("demo"))
        };
        assert_eq!(said(3, 3, &[]), "");
        assert_eq!(said(3, 2, &[]), "unfinished: 2 of 3 arms; continue with `senesce run --resume demo`\n\n");
        assert_eq!(
            said(3, 2, &["xfs"]),
            "unfinished: 1 of 3 arms failed (xfs); remove the cause, then repeat with `senesce run --resume demo`\n\n"
        );
        assert_eq!(
            said(3, 1, &["xfs"]),
            "unfinished: 1 of 3 arms, and 1 of 3 arms failed (xfs); continue with `senesce run --resume demo`\n\n"
        );
    }

    #[test]
    fn each_reason_is_printed_once() {
        let cell = |arm: &str, role, pulls, reason: &str| {
            CellRow::without_figures(CellKey { arm: arm.into(), file_system: "ext4".into(), role, pulls }, reason)
        };
        let mut results = Results::default();
        assert_eq!(invalid_cells(&results), "");
        results.cells.push(cell("ext4", Role::Full, 7, ""));
        results.cells.extend((0..10).rev().map(|pulls| cell("ext4", Role::Full, pulls, "the disk is gone")));
        results.cells.push(cell("xfs", Role::Empty, 4, "the disk is gone"));
        results.cells.push(cell("xfs", Role::Full, 4, "no space"));
        assert_eq!(
            invalid_cells(&results),
            "\ninvalid cells, by reason:\n  no space\n    xfs full at 4\n  the disk is gone\n    ext4 full at 0, 1, \
             2, 3, 4, 5, 6, 7 and 2 more\n    xfs empty at 4\n"
        );
    }
}

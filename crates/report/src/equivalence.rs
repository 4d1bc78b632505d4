//! Whether native replay can stand in for git: the arms of the two side by side.

use std::fmt::Write as _;

use senesce_store::{CellKey, Results, Role};

/// Compares each native arm with its git arm at their last common checkpoint.
///
/// Out: a text table for each pair: grep bytes, extents per file, modelled cost, layout score,
/// bytes written and wall time of the steps, each with its ratio, and whether the work trees are
/// equal. Without a pair, the text says so.
pub fn equivalence_table(results: &Results) -> String {
    let mut text = String::new();
    for native in &results.cells {
        let git = format!("{}-git", native.key.arm);
        let (native, git) = (&native.key, git.as_str());
        if native.role != Role::Empty || !is_last_common(results, native, git) {
            continue;
        }
        write_pair(&mut text, results, native, git);
    }
    if text.is_empty() {
        text.push_str("no native arm has a git arm beside it (workload.engine = [\"native\", \"git\"])\n");
    }
    text
}

fn is_last_common(results: &Results, native: &CellKey, git: &str) -> bool {
    let both = |pulls: u64| {
        let has = |arm: &str| {
            results.cells.iter().any(|cell| {
                cell.valid && cell.key.arm == arm && cell.key.role == native.role && cell.key.pulls == pulls
            })
        };
        has(&native.arm) && has(git)
    };
    both(native.pulls) && !results.cells.iter().any(|cell| cell.key.pulls > native.pulls && both(cell.key.pulls))
}

fn write_pair(text: &mut String, results: &Results, native: &CellKey, git: &str) {
    let here = |key: &CellKey, arm: &str| key.arm == arm && key.role == native.role && key.pulls == native.pulls;
    let trees: Vec<&str> = [native.arm.as_str(), git]
        .iter()
        .filter_map(|arm| results.cells.iter().find(|cell| here(&cell.key, arm)))
        .map(|cell| cell.work_tree_hash.as_str())
        .collect();
    let same = trees.len() == 2 && trees[0] == trees[1];
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{} against {git} after {} pulls", native.arm, native.pulls);
    let _ = writeln!(text, "  {:<30}{:>14}{:>14}{:>12}", "", "native", "git", "native/git");
    let _ = writeln!(text, "  {:<30}{:>14}", "work trees equal", if same { "yes" } else { "NO" });
    let grep = |arm: &str| results.grep.iter().find(|row| here(&row.key, arm));
    let layout = |arm: &str| results.layout.iter().find(|row| here(&row.key, arm));
    let mut row = |name: &str, a: Option<f64>, b: Option<f64>, digits: usize| {
        if let (Some(a), Some(b)) = (a, b) {
            let _ = writeln!(text, "  {name:<30}{a:>14.digits$}{b:>14.digits$}{:>12.3}", a / b);
        }
    };
    let of = |arm: &str| (grep(arm), layout(arm));
    let ((native_grep, native_layout), (git_grep, git_layout)) = (of(&native.arm), of(git));
    row("grep bytes", native_grep.map(|g| g.read_bytes as f64), git_grep.map(|g| g.read_bytes as f64), 0);
    row("grep files", native_grep.map(|g| g.files as f64), git_grep.map(|g| g.files as f64), 0);
    row("grep cost, s/GiB", native_grep.map(|g| g.seconds_per_gib), git_grep.map(|g| g.seconds_per_gib), 2);
    row("extents per file", native_layout.map(|l| l.extents_per_file), git_layout.map(|l| l.extents_per_file), 4);
    let mut devices: Vec<&str> = results
        .modelled
        .iter()
        .filter(|row| here(&row.key, &native.arm) && row.method == "extents")
        .map(|row| row.device.as_str())
        .collect();
    devices.dedup();
    for device in devices {
        let modelled = |arm: &str| {
            let mut rows = results.modelled.iter().filter(|row| here(&row.key, arm) && row.method == "extents");
            rows.find(|row| row.device == device).map(|row| row.seconds_per_gib)
        };
        row(&format!("{}, s/GiB", device), modelled(&native.arm), modelled(git), 2);
    }
    row("layout score", native_layout.map(|l| l.layout_score), git_layout.map(|l| l.layout_score), 4);
    let wall = |arm: &str| -> Option<f64> {
        // The first checkpoint's row holds the clone; only the pulls are compared.
        let rows = results.aging.iter().filter(|row| row.key.arm == arm && row.key.role == native.role);
        let pulls = rows.filter(|row| row.key.pulls > 0 && row.key.pulls <= native.pulls);
        Some(pulls.map(|row| row.wall_seconds).sum::<f64>()).filter(|sum| *sum > 0.0)
    };
    let written = |arm: &str| -> Option<f64> {
        let rows = results.aging.iter().filter(|row| row.key.arm == arm && row.key.role == native.role);
        let upto = rows.filter(|row| row.key.pulls <= native.pulls);
        let sum: Option<u64> = upto.map(|row| row.device_written_bytes).sum();
        sum.map(|bytes| bytes as f64 / (1 << 20) as f64)
    };
    row("written to device, MiB", written(&native.arm), written(git), 1);
    row("wall time of pulls, s", wall(&native.arm), wall(git), 2);
}

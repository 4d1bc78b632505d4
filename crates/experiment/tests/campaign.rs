//! Merges of simulated tasks.

use std::{fs, path::Path};

use proptest::prelude::*;
use senesce_experiment::campaign::{Campaign, Merged, merge};
use senesce_store::{CellKey, CellResults, CellRow, CircumstanceRow, ResultStore, Role, RunInfo};

const PLAN: &str = "format = \"senesce-plan/1\"\nname = \"p\"\n[workload]\nkind = \"fsfb\"\n[[file_system]]\nkind = \"ext4\"\n\
                    [[file_system]]\nkind = \"xfs\"\n";

/// A campaign of two file systems and `seeds` seeds.
fn campaign(dir: &Path, seeds: u64) -> Campaign {
    fs::write(dir.join("p.toml"), PLAN).unwrap();
    let seeds: Vec<u64> = (1..=seeds).collect();
    let grid = format!("format = \"senesce-grid/1\"\nname = \"g\"\nseeds = {seeds:?}\n[[plan]]\npath = \"p.toml\"\n");
    fs::write(dir.join("grid.toml"), grid).unwrap();
    Campaign::plan(&dir.join("grid.toml"), &dir.join("out"), "0.1.0").unwrap_or_else(|error| panic!("{error}"))
}

/// The hash of a plan, as a run records it.
fn hash(campaign: &Campaign, number: u64) -> String {
    let plan = campaign.task_plan(&campaign.task(number).unwrap()).unwrap();
    blake3::hash(toml::to_string(&plan).unwrap().as_bytes()).to_hex().to_string()
}

/// Writes the result of a task on a machine with this kernel.
fn finish(campaign: &Campaign, number: u64, kernel: &str) {
    let task = campaign.task(number).unwrap();
    let dir = campaign.paths.task(number).join("results");
    let mut store = ResultStore::create(&dir, &number.to_string()).unwrap();
    let run =
        RunInfo { plan_hash: hash(campaign, number), senesce_version: "0.1.0".into(), ..store.run_info().clone() };
    store.put_run_info(&run).unwrap();
    let row = |arm: &str, key: &str, value: &str| CircumstanceRow {
        arm: arm.to_owned(),
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let arm = task.file_system.as_str();
    let rows = [
        row("", "measure.repetitions", "1"),
        row("", "plan.seed", &task.seed.to_string()),
        row("", "senesce.version", "0.1.0"),
        row(arm, "empty.kernel_release", kernel),
        row(arm, "empty.cpu_model", if number == 0 { "A" } else { "B" }),
    ];
    store.put_circumstances(&rows).unwrap();
    for pulls in [0, 40] {
        let key = CellKey { arm: arm.into(), file_system: arm.into(), role: Role::Empty, pulls };
        let cell = CellRow { files: 10 * number + pulls, ..CellRow::without_figures(key, "") };
        store.append_cell(&CellResults::of(cell)).unwrap();
    }
    // Every second run is compacted, as a finished run is.
    if number.is_multiple_of(2) {
        store.compact().unwrap();
    }
}

/// The files of the merged results.
fn bytes(campaign: &Campaign) -> Vec<(String, Vec<u8>)> {
    let dir = campaign.paths.merged().join("results");
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    assert_eq!(files.len(), 15, "14 tables and the description");
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]
    #[test]
    fn merge_does_not_depend_on_task_order(order in Just((0..6u64).collect::<Vec<_>>()).prop_shuffle()) {
        let temps = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let merged = temps.each_ref().map(|temp| campaign(temp.path(), 3));
        for number in 0..6 {
            finish(&merged[0], number, "6.1");
        }
        for &number in &order {
            finish(&merged[1], number, "6.1");
        }
        for campaign in &merged {
            let outcome = merge(campaign, false).unwrap();
            prop_assert_eq!((outcome.tasks, outcome.missing.1, outcome.conflicts.len()), (6, 0, 0));
        }
        let all = bytes(&merged[0]);
        prop_assert!(all == bytes(&merged[1]));
        // A second merge replaces the first one.
        merge(&merged[1], false).unwrap();
        prop_assert!(all == bytes(&merged[1]));
    }
}

#[test]
fn merged_arms_have_names_and_circumstances_of_tasks() {
    let temp = tempfile::tempdir().unwrap();
    let campaign = campaign(temp.path(), 2);
    (0..4).for_each(|number| finish(&campaign, number, "6.1"));
    let outcome = merge(&campaign, false).unwrap();
    assert_eq!(outcome.unlike_times, ["cpu_model: A in 1 task (0); B in 3 tasks (1, 2, 3)"]);
    let results = ResultStore::open_read_only(&campaign.paths.merged().join("results")).unwrap().read_all().unwrap();
    let arms: Vec<_> = results.cells.iter().map(|cell| (cell.key.arm.as_str(), cell.files)).collect();
    let expected = [("ext4.s1", 0), ("ext4.s1", 40), ("ext4.s2", 20), ("ext4.s2", 60)];
    assert_eq!(arms[..4], expected);
    let find = |arm: &str, key: &str| {
        let found = results.circumstances.iter().find(|row| row.arm == arm && row.key == key);
        found.map(|row| row.value.clone())
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(find("", "measure.repetitions"), some("1"));
    // The seed is not common to all tasks.
    assert_eq!((find("", "plan.seed"), find("xfs.s2", "plan.seed")), (None, some("2")));
    assert_eq!((find("xfs.s2", "campaign.task"), find("xfs.s2", "campaign.workload")), (some("3"), some("p")));
    assert_eq!(find("ext4.s1", "empty.kernel_release"), some("6.1"));
    assert_eq!((results.run.plan_name.as_str(), results.run.plan_hash.as_str()), ("g", campaign.hash()));
}

#[test]
fn missing_tasks_are_listed_and_nothing_is_merged() {
    let temp = tempfile::tempdir().unwrap();
    let campaign = campaign(temp.path(), 20);
    [3, 17].iter().for_each(|&number| finish(&campaign, number, "6.1"));
    let outcome = merge(&campaign, false).unwrap();
    assert_eq!((outcome.tasks, outcome.missing.1, &outcome.missing.0[..4]), (2, 38, &[0, 1, 2, 4][..]));
    assert!(outcome.missing.0.len() < 38 && !campaign.paths.merged().join("results").exists());
    let outcome = merge(&campaign, true).unwrap();
    assert_eq!((outcome.tasks, outcome.missing.1), (2, 38));
    assert!(campaign.paths.merged().join("results/run.json").exists());
}

#[test]
fn two_merges_do_not_run_at_a_time() {
    let temp = tempfile::tempdir().unwrap();
    let campaign = campaign(temp.path(), 1);
    (0..2).for_each(|number| finish(&campaign, number, "6.1"));
    let held = fs::File::create(campaign.paths.merge_lock()).unwrap();
    held.lock().unwrap();
    let error = merge(&campaign, false).unwrap_err().to_string();
    assert!(error.contains("is being merged by another process"), "{error}");
    assert!(!campaign.paths.merged().exists());
    drop(held);
    assert_eq!(merge(&campaign, false).unwrap().tasks, 2);
}

#[test]
fn tasks_of_two_kernels_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let campaign = campaign(temp.path(), 2);
    (0..4).for_each(|number| finish(&campaign, number, if number == 2 { "6.12" } else { "6.1" }));
    let Merged { conflicts, .. } = merge(&campaign, false).unwrap();
    assert_eq!(conflicts, ["kernel_release (kernel host): 6.1 in 3 tasks (0, 1, 3); 6.12 in 1 task (2)"]);
    assert!(!campaign.paths.merged().join("results").exists());
}

#[test]
fn a_result_of_another_plan_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let campaign = campaign(temp.path(), 1);
    (0..2).for_each(|number| finish(&campaign, number, "6.1"));
    let [one, two, other] = [campaign.paths.task(0), campaign.paths.task(1), temp.path().join("other")];
    fs::rename(&one, &other).unwrap();
    fs::rename(&two, &one).unwrap();
    fs::rename(&other, &two).unwrap();
    let error = merge(&campaign, false).unwrap_err().to_string();
    assert!(error.contains("another plan than that of task 0"), "{error}");
}

//! The store under power cuts, and its files.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use senesce_core::Seed;
use senesce_store::{
    AgingRow, CellKey, CellResults, CellRow, CircumstanceRow, CureRow, Error, FreeSpaceRow, GrepRow, LatencyRow,
    LayoutRow, LoadRow, MapRow, ModelledRow, ResultStore, Results, Role, RunInfo, SimulatedDisk, StepRow, Table,
    TraceBucketRow, TraceRow,
};

/// A cell whose every figure is `mark`, so that rows of two appends cannot be confused.
fn cell(pulls: u64, mark: u64) -> CellResults {
    let key = CellKey { arm: "ext4 gc".into(), file_system: "ext4".into(), role: Role::Full, pulls };
    let grep = |repetition| GrepRow {
        key: key.clone(),
        repetition,
        scanner: "senesce".into(),
        order: "readdir".into(),
        cache: "warm".into(),
        wall_seconds: mark as f64,
        allocated_bytes: mark,
        seconds_per_gib: mark as f64,
        read_bytes: u64::MAX,
        files: mark,
        user_seconds: 0.5,
        system_seconds: 0.25,
        device_read_bytes: Some(1),
        device_read_requests: None,
        cpu_bound: mark.is_multiple_of(2),
        fuse_floor_seconds: 0.25,
    };
    let load = |repetition| LoadRow {
        key: key.clone(),
        repetition,
        disturbance: "the hypervisor took 9% of a processor".into(),
        load_average: 1.5,
        cpu_pressure_seconds: mark as f64,
        io_pressure_seconds: 0.5,
        memory_pressure_seconds: 0.25,
        steal_seconds: 0.125,
        own_user_seconds: 2.0,
        other_user_seconds: 3.0,
        kernel_seconds: 4.0,
        processors: mark,
        own_drive_bytes: 5.0,
        other_drive_bytes: 6.0,
    };
    let layout = LayoutRow {
        key: key.clone(),
        space: "device".into(),
        files: mark,
        fragmented_files: 1,
        extents: 2,
        blocks: 3,
        extents_per_file: 1.5,
        layout_score: 0.75,
        adjacent_files_share: 0.5,
        path_adjacent_files_share: 0.5,
    };
    let modelled = |device: u64| ModelledRow {
        key: key.clone(),
        device: format!("model: {device}"),
        method: "extents".into(),
        seconds: mark as f64,
        best_order_seconds: 0.25,
        seconds_per_gib: 0.5,
        requests: 7,
        read_bytes: mark,
    };
    let map = |at: u64| MapRow {
        key: key.clone(),
        side: 2,
        cell_bytes: 4096,
        cell: at,
        used_bytes: mark,
        free_bytes: 1,
        extents: 2,
        place: 0.25,
        path: at.is_multiple_of(2).then(|| format!("copy-{mark}/file, \"{at}\"")),
    };
    let bucket = |power| FreeSpaceRow { key: key.clone(), bucket_bytes: 1u64 << power, extents: mark, bytes: mark };
    let aging = AgingRow {
        key: key.clone(),
        steps: mark,
        operations: 1,
        written_bytes: 2,
        no_space_steps: 3,
        copies: 4,
        wall_seconds: 1.0,
        user_seconds: 2.0,
        system_seconds: 3.0,
        device_written_bytes: Some(5),
    };
    let trace = |access: &str| TraceRow {
        key: key.clone(),
        source: "tracefs".into(),
        access: access.into(),
        requests: mark,
        bytes: 4096,
        blocks: 1,
        discontinuities: 0,
        dynamic_layout_score: 0.5,
        seek_bytes: u64::MAX,
        blocks_per_request: 1.0,
        chains: 1,
        blocks_per_chain: 1.5,
        lost_events: 3,
    };
    let trace_bucket = |power: u64| TraceBucketRow {
        key: key.clone(),
        access: "read".into(),
        histogram: "request-size".into(),
        bucket_bytes: 1 << power,
        requests: mark,
        bytes: power.is_multiple_of(2).then_some(mark),
    };
    let latency = |operation: &str| LatencyRow {
        key: key.clone(),
        operation: operation.into(),
        operations: mark,
        total_seconds: 4.0,
        p50_seconds: 0.5,
        p99_seconds: 1.0,
        p99_9_seconds: 2.0,
        max_seconds: 3.0,
    };
    let step = |step| StepRow {
        key: key.clone(),
        step,
        counted: mark.is_multiple_of(2),
        operations: mark,
        written_bytes: 2,
        no_space: false,
        wall_seconds: 1.0,
        operation_seconds: 0.5,
        sync_seconds: 0.25,
        disk_seconds: 1.5,
    };
    let cure = |device: u64| CureRow {
        key: key.clone(),
        tool: "senesce".into(),
        strategies: "order,pieces".into(),
        written_bytes: device.is_multiple_of(2).then_some(mark),
        wall_seconds: 1.0,
        disk_seconds: 2.0,
        moved_files: Some(mark),
        skipped_files: None,
        skipped: "3 changed meanwhile".into(),
        device: format!("model: {device}"),
        modelled_before_seconds: 7.0,
        predicted_seconds: 1.0,
        modelled_after_seconds: 1.5,
        read_before_seconds: 7.5,
        read_after_seconds: 1.25,
    };
    CellResults {
        cell: CellRow {
            key: key.clone(),
            valid: true,
            reason: String::new(),
            tree_hash: "ab".into(),
            work_tree_hash: "cd".into(),
            files: mark,
            directories: 1,
            content_bytes: 2,
            capacity_bytes: 3,
            used_bytes: 4,
        },
        // Some cells lack some tables.
        grep: (0..mark % 3).map(grep).collect(),
        load: (0..mark % 3).map(load).collect(),
        layout: (!mark.is_multiple_of(4)).then_some(layout),
        modelled: (0..mark % 2).map(modelled).collect(),
        trace: ["read", "write"].iter().take(mark as usize % 3).map(|access| trace(access)).collect(),
        trace_buckets: (12..12 + mark % 3).map(trace_bucket).collect(),
        map: (0..mark % 4).map(map).collect(),
        free_space: (12..12 + mark % 5).map(bucket).collect(),
        aging: mark.is_multiple_of(2).then_some(aging),
        latency: ["all", "create"].iter().take(mark as usize % 3).map(|operation| latency(operation)).collect(),
        steps: (0..mark % 4).map(step).collect(),
        cures: (0..mark % 3).map(cure).collect(),
    }
}

/// The results of one cell.
fn of_cell(results: &Results, pulls: u64) -> Option<CellResults> {
    let cell = results.cells.iter().find(|row| row.key.pulls == pulls)?.clone();
    Some(CellResults {
        cell,
        grep: results.grep.iter().filter(|row| row.key.pulls == pulls).cloned().collect(),
        load: results.load.iter().filter(|row| row.key.pulls == pulls).cloned().collect(),
        layout: results.layout.iter().find(|row| row.key.pulls == pulls).cloned(),
        modelled: results.modelled.iter().filter(|row| row.key.pulls == pulls).cloned().collect(),
        trace: results.trace.iter().filter(|row| row.key.pulls == pulls).cloned().collect(),
        trace_buckets: results.trace_buckets.iter().filter(|row| row.key.pulls == pulls).cloned().collect(),
        map: results.maps.iter().filter(|row| row.key.pulls == pulls).cloned().collect(),
        free_space: results.free_space.iter().filter(|row| row.key.pulls == pulls).cloned().collect(),
        aging: results.aging.iter().find(|row| row.key.pulls == pulls).cloned(),
        latency: results.latency.iter().filter(|row| row.key.pulls == pulls).cloned().collect(),
        steps: results.steps.iter().filter(|row| row.key.pulls == pulls).cloned().collect(),
        cures: results.cures.iter().filter(|row| row.key.pulls == pulls).cloned().collect(),
    })
}

#[derive(Clone, Debug)]
enum Action {
    Append { pulls: u64 },
    Compact,
    Event,
    Reopen,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        5 => (0..4u64).prop_map(|pulls| Action::Append { pulls }),
        1 => Just(Action::Compact),
        1 => Just(Action::Event),
        1 => Just(Action::Reopen),
    ];
    prop::collection::vec(action, 1..6)
}

/// Runs the actions until the power fails. Out: per checkpoint the mark of its last successful
/// append, and the mark of the append during the power cut.
fn run(disk: &SimulatedDisk, dir: &Path, actions: &[Action]) -> (BTreeMap<u64, u64>, Option<(u64, u64)>) {
    let mut kept = BTreeMap::new();
    let Ok(mut store) = ResultStore::open_on(Box::new(disk.clone()), dir) else { return (kept, None) };
    for (at, action) in actions.iter().enumerate() {
        let mark = at as u64 + 1;
        match action {
            Action::Append { pulls } => match store.append_cell(&cell(*pulls, mark)) {
                Ok(()) => drop(kept.insert(*pulls, mark)),
                Err(_) => return (kept, Some((*pulls, mark))),
            },
            Action::Compact if store.compact().is_err() => return (kept, None),
            Action::Event if store.append_event("step", &cell(1, mark).cell).is_err() => return (kept, None),
            Action::Reopen => match ResultStore::open_on(Box::new(disk.clone()), dir) {
                Ok(reopened) => store = reopened,
                Err(_) => return (kept, None),
            },
            Action::Compact | Action::Event => {}
        }
    }
    (kept, None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn power_cuts_lose_no_stored_cell(actions in actions(), seed: u64) {
        let dir = Path::new("/results");
        let fresh = || {
            let disk = SimulatedDisk::default();
            ResultStore::create_on(Box::new(disk.clone()), dir, "test").unwrap();
            disk
        };
        let whole = fresh();
        let before = whole.operations();
        run(&whole, dir, &actions);
        for allowed in 0..=whole.operations() - before {
            let disk = fresh();
            disk.cut_power_after(allowed);
            let (kept, torn) = run(&disk, dir, &actions);
            for fate in [None, Some(Seed(seed ^ allowed))] {
                let found = disk.restart(fate);
                let mut store = ResultStore::open_on(Box::new(found.clone()), dir).unwrap();
                let results = store.read_all().unwrap();
                for pulls in 0..4 {
                    let shown = of_cell(&results, pulls);
                    let old = kept.get(&pulls).map(|mark| cell(pulls, *mark));
                    let new = torn.filter(|(at, _)| *at == pulls).map(|(_, mark)| cell(pulls, mark));
                    prop_assert!(shown == old || (new.is_some() && shown == new), "{allowed} {fate:?} {pulls}: {shown:?}");
                }
                // No row belongs to a missing cell, and the store stays usable.
                prop_assert!(results.grep.iter().all(|row| results.cells.iter().any(|cell| cell.key == row.key)));
                store.read_events().unwrap();
                store.append_event("resumed", &()).unwrap();
                let events = store.read_events().unwrap();
                prop_assert_eq!(&events.last().unwrap()["event"], "resumed");
                store.append_cell(&cell(2, 11)).unwrap();
                store.compact().unwrap();
                let again = ResultStore::open_on(Box::new(found.clone()), dir).unwrap().read_all().unwrap();
                prop_assert_eq!(of_cell(&again, 2), Some(cell(2, 11)));
            }
        }
    }
}

#[test]
fn compaction_keeps_all_results() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("a/results");
    let mut store = ResultStore::create(&dir, "quick start").unwrap();
    store.append_cell(&cell(0, 2)).unwrap();
    let mut unscored = cell(10, 5);
    unscored.layout.as_mut().unwrap().layout_score = f64::NAN;
    store.append_cell(&unscored).unwrap();
    let fact = CircumstanceRow { arm: String::new(), key: "seed".into(), value: "7, \"x\"".into() };
    store.put_circumstances(std::slice::from_ref(&fact)).unwrap();
    store.put_run_info(&RunInfo { plan_name: "p".into(), ..store.run_info().clone() }).unwrap();
    let before = store.read_all().unwrap();
    assert_eq!(of_cell(&before, 0), Some(cell(0, 2)));
    assert!(before.layout[1].layout_score.is_nan());
    assert_eq!((before.circumstances.as_slice(), before.run.plan_name.as_str()), (&[fact][..], "p"));
    store.compact().unwrap();
    for table in std::fs::read_dir(dir.join("parts")).unwrap() {
        let table = table.unwrap().path();
        assert!(std::fs::read_dir(&table).unwrap().next().is_none(), "{} is not empty", table.display());
    }
    let store = ResultStore::open(&dir).unwrap();
    assert!(store.contains(&cell(0, 2).cell.key) && !store.contains(&cell(1, 2).cell.key));
    // NaN is not equal to itself, so the texts are compared.
    assert_eq!(store.read_all().unwrap().export_json(), before.export_json());
    let csv = before.export_csv(Table::Layout);
    assert!(csv.contains("ext4 gc,ext4,full,10,device,5,1,2,3,1.5,,0.5,0.5\r\n"), "{csv}");
    assert!(before.export_csv(Table::Circumstances).ends_with(",seed,\"7, \"\"x\"\"\"\r\n"));
    assert!(matches!(ResultStore::create(&dir, "again"), Err(Error::AlreadyExists { .. })));
}

#[test]
fn older_results_without_a_table_stay_usable() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = ResultStore::create(dir.path(), "r").unwrap();
    store.append_cell(&cell(0, 7)).unwrap();
    store.compact().unwrap();
    store.append_cell(&cell(10, 7)).unwrap();
    let newer = ["load", "trace", "trace_buckets", "latency", "steps", "cures"];
    let info = dir.path().join("run.json");
    let text = std::fs::read_to_string(&info).unwrap();
    assert!(text.contains("senesce-results/3"), "{text}");
    std::fs::write(&info, text.replace("senesce-results/3", "senesce-results/1")).unwrap();
    for table in newer {
        std::fs::remove_file(dir.path().join(format!("{table}.parquet"))).unwrap();
        std::fs::remove_dir_all(dir.path().join("parts").join(table)).unwrap();
    }
    let older = |pulls| CellResults {
        load: Vec::new(),
        trace: Vec::new(),
        trace_buckets: Vec::new(),
        latency: Vec::new(),
        steps: Vec::new(),
        cures: Vec::new(),
        ..cell(pulls, 7)
    };
    let results = ResultStore::open_read_only(dir.path()).unwrap().read_all().unwrap();
    assert_eq!((of_cell(&results, 0), of_cell(&results, 10)), (Some(older(0)), Some(older(10))));
    assert!(results.export_json().contains("\"senesce-results/3\""));
    let mut store = ResultStore::open(dir.path()).unwrap();
    store.append_cell(&cell(20, 7)).unwrap();
    store.compact().unwrap();
    let results = ResultStore::open(dir.path()).unwrap().read_all().unwrap();
    assert_eq!((of_cell(&results, 10), of_cell(&results, 20)), (Some(older(10)), Some(cell(20, 7))));
}

#[test]
fn a_torn_event_is_removed_on_open() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = ResultStore::create(dir.path(), "r").unwrap();
    store.append_event("begun", &serde_json::json!({"cells": 3})).unwrap();
    let path = dir.path().join("events.ndjson");
    let mut text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "{\"cells\":3,\"event\":\"begun\",\"schema\":\"senesce-events/1\"}\n");
    text.push_str("{\"schema\":\"senes");
    std::fs::write(&path, text).unwrap();
    assert_eq!(store.read_events().unwrap().len(), 1);
    let mut store = ResultStore::open(dir.path()).unwrap();
    store.append_event("resumed", &()).unwrap();
    assert_eq!(store.read_events().unwrap()[1]["event"], "resumed");
}

#[test]
fn foreign_directories_are_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = |text: Option<&str>| {
        if let Some(text) = text {
            std::fs::write(dir.path().join("run.json"), text).unwrap();
        }
        ResultStore::open(dir.path()).err().expect("it must be refused").to_string()
    };
    assert!(refusal(None).contains("holds no results"));
    let newer = refusal(Some(r#"{"format":"senesce-results/4","other":1}"#));
    assert!(newer.contains("senesce-results/4") && newer.contains("newer senesce"), "{newer}");
    assert!(refusal(Some(r#"{"format":"tea"}"#)).contains("`tea`"));
    assert!(refusal(Some("{")).contains("damaged"));
    std::fs::remove_file(dir.path().join("run.json")).unwrap();
    let mut store = ResultStore::create(dir.path(), "r").unwrap();
    store.append_cell(&cell(0, 1)).unwrap();
    std::fs::write(dir.path().join("cells.parquet"), b"PAR1 but no more").unwrap();
    assert!(matches!(ResultStore::open(dir.path()), Err(Error::Damaged { .. })));
}

#[test]
fn rows_of_another_cell_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = ResultStore::create(dir.path(), "r").unwrap();
    let mut mixed = cell(0, 2);
    mixed.grep[0].key.pulls = 9;
    assert!(matches!(store.append_cell(&mixed), Err(Error::WrongCell { table: "grep", .. })));
    assert!(store.read_all().unwrap().cells.is_empty());
}

#[test]
fn the_documentation_matches_the_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/tables.md");
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written == senesce_store::reference_markdown(),
        "docs/reference/tables.md is not what the example `reference` prints"
    );
}

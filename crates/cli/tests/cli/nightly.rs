//! What takes too long for every change: `.ci/nightly` runs it.

use std::path::Path;

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::{lab::Lab, outputs::cells};

/// What another replay of the same trace gave on a 700 MB ext4 image, and how far runs lie apart.
struct Known {
    what: &'static str,
    value: f64,
    spread: f64,
}

#[test]
#[ignore = "takes long: .ci/nightly runs it"]
fn whole_linux_trace_reaches_its_known_layout() {
    let trace = std::env::var_os("SENESCE_NIGHTLY_TRACE").expect("SENESCE_NIGHTLY_TRACE is the trace's path");
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans/linux-trace.toml");
    let text = std::fs::read_to_string(plan).unwrap().replace("every = 3500", "every = 40000");
    lab.plan(&text);
    lab.run(["run".as_ref(), "plan.toml".as_ref(), "--out".as_ref(), "out".as_ref(), "--trace".as_ref(), &*trace])
        .good();
    let found = cells(&lab, "out");
    assert_eq!(found.iter().map(|cell| cell.pulls).max(), Some(33_853));
    assert!(found.iter().all(|cell| cell.is_valid), "{found:?}");
    let export: Value = serde_json::from_str(&lab.run(["export", "out", "--json"]).good().stdout).unwrap();
    let last = |table: &str, role: &str| -> Vec<Value> {
        let is_last = |row: &&Value| row["role"] == role && row["pulls"] == 33_853;
        export[table].as_array().unwrap().iter().filter(is_last).cloned().collect()
    };
    let number = |row: &Value, column: &str| row[column].as_f64().unwrap_or_else(|| panic!("{column} of {row}"));
    let (aged, fresh) = (&last("layout", "empty")[0], &last("layout", "unaged")[0]);
    let share = |row: &Value| number(row, "fragmented_files") / number(row, "files");
    let free: f64 = last("free_space", "empty").iter().map(|row| number(row, "extents")).sum();
    // One file of 33,192 in two pieces has been seen in a fresh copy.
    assert!(share(fresh) < 0.000_5 && number(fresh, "layout_score") > 0.999, "{fresh}");
    let known = [
        (Known { what: "share of fragmented files", value: 0.097, spread: 0.012 }, share(aged)),
        (Known { what: "layout score", value: 0.924, spread: 0.010 }, number(aged, "layout_score")),
        (
            Known { what: "files behind the one before in path order", value: 0.17, spread: 0.03 },
            number(aged, "path_adjacent_files_share"),
        ),
        (Known { what: "free extents", value: 1721.0, spread: 250.0 }, free),
    ];
    for (known, got) in known {
        println!("{}: {got:.3}, known {:.3}", known.what, known.value);
        assert!((got - known.value).abs() <= known.spread, "{}: {got}, known {}", known.what, known.value);
    }
    lab.assert_nothing_left();
}

/// A plan whose runs differ only by the background work of the kernel.
const NULL: &str = r#"format = "senesce-plan/1"
name = "null"
seed = 1
[history]
synthetic = { model = "linux-like", files = 800, commits = 80 }
pulls = 60
[workload]
edition = "single"
[measure]
every = 60
repeat_disturbed = 0
[volumes]
backend = "memory"
dir = "MEMORY"
empty = "512MiB"
unaged = "512MiB"
[[file_system]]
kind = "ext4"
[[file_system]]
kind = "xfs"
[[file_system]]
kind = "btrfs"
"#;

/// `SENESCE_NULL_RUNS` is the number of runs. N runs make N·(N-1) comparisons.
#[test]
#[ignore = "takes long: .ci/nightly runs it"]
fn fresh_runs_of_one_plan_raise_no_alarm() {
    if !root_or_skip("volumes") {
        return;
    }
    let count = std::env::var("SENESCE_NULL_RUNS").ok().map_or(15, |text| text.parse().unwrap());
    let lab = Lab::new();
    lab.plan(NULL);
    for run in 0..count {
        lab.run(["run", "plan.toml", "--out", &format!("run-{run}"), "-q"]).good();
    }
    let mut alarms = Vec::new();
    for base in 0..count {
        lab.run(["gate", &format!("run-{base}"), "-s", "b.json"]).good();
        for run in (0..count).filter(|run| *run != base) {
            let done = lab.run(["gate", &format!("run-{run}"), "-b", "b.json"]);
            if done.code != 0 {
                alarms.push(format!("{base} and {run}: {}", done.stderr));
            }
        }
    }
    println!("{} comparisons, {} alarms", count * (count - 1), alarms.len());
    assert!(alarms.is_empty(), "{alarms:#?}");
    lab.assert_nothing_left();
}

//! What takes too long for every change: `.ci/nightly` runs it.

use std::path::Path;

use senesce_testkit::root_or_skip;
use senesce_timed::published::FigureLine;
use serde_json::Value;

use super::{garden_reproduce::KEPT, lab::Lab, outputs::cells};

/// What another replay of the same trace gave on a 700 MB ext4 image, and how far runs lie apart.
struct Known {
    what: &'static str,
    value: f64,
    spread: f64,
}

#[test]
#[ignore = "takes long: .ci/nightly runs it"]
fn the_whole_linux_trace_ends_with_its_known_layout() {
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

/// By how many percent a figure may differ from the kept one, either way. Nothing is drawn but from
/// fixed seeds, so a figure moves only with the code; one that moves by more is examined, and the
/// new figures.tsv is kept.
fn tolerance(line: &FigureLine) -> f64 {
    let name = line.figure.name.as_str();
    match (line.experiment.as_str(), line.kind.as_str()) {
        ("E9" | "E11", _) => 0.001,
        // Near the end of all processors, or where one window decides.
        ("E1", "time") if name.contains("latency") || name.contains("crossover") || name.contains("days") => 50.0,
        ("E4", "time") if name.contains("highest load") => 50.0,
        ("E8", "time") if name.contains("cores") => 50.0,
        (_, "time") => 10.0,
        _ => 5.0,
    }
}

#[test]
#[ignore = "takes long: .ci/nightly runs it"]
fn published_experiments_come_out_as_they_are_kept() {
    let lab = Lab::new();
    lab.run(["garden", "reproduce", "--scale", "eighth", "--json", "--out", "all"]).good();
    let read = |text: &str| FigureLine::read_all(text).unwrap();
    let mut found = read(&std::fs::read_to_string(lab.path("all/figures.tsv")).unwrap());
    let mut wrong = Vec::new();
    for kept in read(KEPT) {
        let key = |line: &FigureLine| (line.experiment.clone(), line.kind.clone(), line.figure.name.clone());
        let name = format!("{} {}: {}", kept.experiment, kept.kind, kept.figure.name);
        let Some(at) = found.iter().position(|line| key(line) == key(&kept)) else {
            wrong.push(format!("{name} is not there any more"));
            continue;
        };
        let now = found.remove(at).figure;
        let percent = tolerance(&kept);
        let is_near = match (now.value, kept.figure.value) {
            (Some(value), Some(kept)) => (value - kept).abs() <= kept.abs() * percent / 100.0,
            (value, kept) => value.is_none() && kept.is_none(),
        };
        println!("{name}: {:?}, kept {:?}", now.value, kept.figure.value);
        if !is_near {
            wrong.push(format!(
                "{name} is {:?}, kept is {:?}, and {percent} % either way",
                now.value, kept.figure.value
            ));
        }
        if now.verdict != kept.figure.verdict {
            wrong.push(format!("{name} is {:?}, kept is {:?}", now.verdict, kept.figure.verdict));
        }
    }
    wrong.extend(found.iter().map(|line| {
        format!("{} {}: {} is {:?}, and is not kept", line.experiment, line.kind, line.figure.name, line.figure.value)
    }));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

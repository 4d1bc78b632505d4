//! Tests that take too long for every change: `.ci/nightly` runs them.

use senesce_timed::published::FigureLine;

use super::{reproduce::KEPT, rig::Lab};

/// The percentage by which a figure may differ from the kept one, up or down. All seeds are fixed,
/// so only a change of the code changes a figure. If one changes by more, find the reason, and keep
/// the new figures.tsv.
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
    lab.run(["reproduce", "--scale", "eighth", "--json", "--out", "all"]).good();
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

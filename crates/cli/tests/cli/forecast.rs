//! `forecast` from inspections and from runs, with inputs that do not fit.

use std::fs;

use senesce_store::{CellKey, CellResults, CellRow, CircumstanceRow, ResultStore, Role};
use senesce_testkit::check_printed;
use serde_json::{Value, json};

use super::{lab::Lab, rows::modelled_row};

/// 2026-06-01.
const START: u64 = 1_780_272_000;
const WEEK: u64 = 7 * 86_400;

/// A real inspection of a small tree.
fn inspect(lab: &Lab) -> Value {
    fs::create_dir(lab.path("tree")).unwrap();
    (0..20).for_each(|file| fs::write(lab.path(format!("tree/{file}")), [7; 9000]).unwrap());
    let printed = lab.run(["inspect", "tree", "--json", "--no-map", "--device", "hdd-7200,nvme"]).good().stdout;
    serde_json::from_str(&printed).unwrap()
}

/// Writes a copy of an inspection with another time and slowdown.
fn write(lab: &Lab, name: &str, document: &Value, unix_seconds: u64, slowdown: f64) {
    let mut document = document.clone();
    document["target"]["inspected_unix_seconds"] = unix_seconds.into();
    for cost in document["costs"].as_array_mut().unwrap() {
        cost["seconds"]["fresh_copy"] = 100.0.into();
        cost["seconds"]["as_it_lies"] = (100.0 * slowdown).into();
    }
    fs::write(lab.path(name), document.to_string()).unwrap();
}

/// Writes an inspection for each slowdown, a week apart. Returns their names.
fn write_series(lab: &Lab, document: &Value, slowdowns: &[f64]) -> Vec<String> {
    let write = |(week, slowdown): (usize, &f64)| {
        let name = format!("week-{week}.json");
        write(lab, &name, document, START + week as u64 * WEEK, *slowdown);
        name
    };
    slowdowns.iter().enumerate().map(write).collect()
}

fn forecast(names: &[String], more: &[&str]) -> Vec<String> {
    ["forecast"]
        .iter()
        .map(|word| (*word).to_owned())
        .chain(names.iter().cloned())
        .chain(more.iter().map(|word| (*word).to_owned()))
        .collect()
}

#[test]
fn weekly_inspections_have_a_date() {
    let lab = Lab::new();
    let names = write_series(&lab, &inspect(&lab), &[1.0, 1.1, 1.2, 1.3, 1.4, 1.5]);
    let screen = lab.run(forecast(&names, &[])).good().stdout;
    // A straight line reaches 2 ten weeks after the first value.
    let (first, rest) = screen.split_once('\n').unwrap();
    assert!(first.contains("tree will take twice as long as a fresh copy about 2026-08-1"), "{first}");
    assert!(first.contains("(95%: 2026-07-"), "{first}");
    assert!(rest.contains("From 6 inspections, 2026-06-01 to 2026-07-06, on model: HDD 7.2K"), "{rest}");
    let found = lab.run(forecast(&names, &["--json", "--at", "2026-08-10,2027-01-01"])).good().stdout;
    check_printed(&found);
    let found: Value = serde_json::from_str(&found).unwrap();
    let inner = &found["forecasts"][0]["forecast"];
    assert_eq!(inner["curve"], "straight");
    assert_eq!(inner["crossing"]["state"], "expected");
    let later = &inner["later"];
    let near = |value: &Value, wanted: f64| (value.as_f64().unwrap() / wanted - 1.0).abs() < 1e-6;
    assert!(near(&later[0]["slowdown"]["value"], 2.0) && near(&later[0]["cost"]["value"], 200.0), "{later}");
    assert!(later[1]["slowdown"].is_null(), "{later}");
    // The order of the names has no effect, and a file may have several documents.
    let joined: String = names.iter().map(|name| fs::read_to_string(lab.path(name)).unwrap() + "\n").collect();
    fs::write(lab.path("all.json"), joined).unwrap();
    let backwards: Vec<String> = names.iter().rev().cloned().collect();
    assert_eq!(lab.run(forecast(&backwards, &[])).good().stdout, screen);
    assert_eq!(lab.run(["forecast", "all.json"]).good().stdout, screen);
}

#[test]
fn young_volume_has_no_date() {
    let lab = Lab::new();
    let names = write_series(&lab, &inspect(&lab), &[1.1; 6]);
    let screen = lab.run(forecast(&names, &[])).good().stdout;
    assert!(screen.starts_with("No date: the cost of reading "), "{screen}");
    assert!(screen.contains("does not grow measurably"), "{screen}");
    let reached = lab.run(forecast(&names, &["--threshold", "1.05"])).good().stdout;
    assert!(
        reached.contains("has taken 1.05 times as long as a fresh copy since 2026-06-01: now 1.10 times."),
        "{reached}"
    );
}

#[test]
fn values_before_a_cure_are_left_out() {
    let lab = Lab::new();
    let slowdowns = [1.0, 2.0, 3.0, 4.0, 1.0, 1.1, 1.2, 1.3];
    let names = write_series(&lab, &inspect(&lab), &slowdowns);
    let screen = lab.run(forecast(&names, &[])).good().stdout;
    assert!(screen.contains("fell from 4.00 to 1.00 before 2026-06-29: the volume was cured"), "{screen}");
    assert!(screen.contains("From 4 inspections"), "{screen}");
    lab.run(forecast(&names[..7], &[])).refused(2, &["there are 3 values, and a forecast needs at least 4"]);
}

#[test]
fn inspections_that_do_not_fit_are_refused() {
    let lab = Lab::new();
    let document = inspect(&lab);
    let names = write_series(&lab, &document, &[1.0, 1.1, 1.2, 1.3]);
    let refused = |change: &dyn Fn(&mut Value), words: &[&str]| {
        let mut other = document.clone();
        change(&mut other);
        write(&lab, "other.json", &other, START + 9 * WEEK, 1.4);
        let mut all = names.clone();
        all.push("other.json".to_owned());
        lab.run(forecast(&all, &[])).refused(2, words);
    };
    refused(&|other| other["target"]["path"] = json!("/evil\u{1b}[31m"), &["two places", "/evil\\x1b[31m"]);
    refused(&|other| other["target"]["file_system"] = json!("zfs"), &["two file systems", "zfs"]);
    refused(&|other| other["target"]["read_ahead_kib"] = json!(7), &["two readaheads", "7 KiB"]);
    refused(&|other| other["costs"][0]["device"] = json!("mine"), &["has no cost on mine", "--device"]);
    refused(&|other| other["schema"] = json!("senesce-inspect/9"), &["senesce-inspect/9", "this version reads"]);
    // One time, two figures.
    write(&lab, "other.json", &document, START, 1.4);
    let with_other = || names.iter().cloned().chain(["other.json".to_owned()]).collect::<Vec<_>>();
    lab.run(forecast(&with_other(), &[])).refused(2, &["have one time, 2026-06-01", "other figures"]);
    // The same document twice counts once.
    fs::copy(lab.path(&names[0]), lab.path("other.json")).unwrap();
    assert!(lab.run(forecast(&with_other(), &[])).good().stdout.contains("One inspection was named twice"));
    // Clocks.
    write(&lab, "other.json", &document, 12, 1.4);
    lab.run(forecast(&with_other(), &[])).refused(2, &["1970-01-01", "the clock was not set"]);
    let joined: String = names.iter().rev().map(|name| fs::read_to_string(lab.path(name)).unwrap()).collect();
    fs::write(lab.path("all.json"), joined).unwrap();
    lab.run(["forecast", "all.json"]).refused(2, &["the clock ran backwards"]);
    // No JSON, cut JSON, nothing.
    for (text, word) in
        [("", "it is empty"), ("{\"schema\": ", "or is cut"), ("[1]", "invalid type"), ("hello", "not JSON")]
    {
        fs::write(lab.path("bad.json"), text).unwrap();
        lab.run(["forecast", "bad.json"]).refused(2, &["bad.json is no inspection", word]);
    }
    lab.run(["forecast", "/dev/zero"]).refused(2, &["reads the output of `senesce inspect --json`"]);
    fs::write(lab.path("long"), " ".repeat((64 << 20) + 1)).unwrap();
    lab.run(["forecast", "long"]).refused(1, &["long", "the limit"]);
    fs::write(lab.path("disk.img"), [b'X', 0]).unwrap();
    lab.run(["forecast", "disk.img"])
        .refused(2, &["disk.img is no inspection: forecast reads", "senesce inspect disk.img --json --no-map > FILE"]);
}

/// Writes a run with one arm: its slowdown at each checkpoint. `cured` is the checkpoint of a cure.
fn make_run(lab: &Lab, dir: &str, arm: &str, slowdowns: &[f64], cured: Option<u64>) -> ResultStore {
    fs::create_dir(lab.path(dir)).unwrap();
    let mut store = ResultStore::create(&lab.path(dir).join("results"), dir).unwrap();
    add_arm(&mut store, arm, slowdowns, cured);
    let unit = CircumstanceRow { arm: String::new(), key: "workload.step_unit".into(), value: "rounds".into() };
    store.put_circumstances(&[unit]).unwrap();
    store
}

fn add_arm(store: &mut ResultStore, arm: &str, slowdowns: &[f64], cured: Option<u64>) {
    let mut add = |role, pulls, seconds_per_gib| {
        let key = CellKey { arm: arm.into(), file_system: "ext4".into(), role, pulls };
        let mut results = CellResults::of(CellRow::without_figures(key.clone(), ""));
        results.modelled = vec![modelled_row(key, seconds_per_gib, 1)];
        store.append_cell(&results).unwrap();
    };
    for (number, slowdown) in slowdowns.iter().enumerate() {
        let pulls = number as u64 * 100;
        add(Role::Full, pulls, 40.0 * slowdown);
        add(Role::Unaged, pulls, 40.0);
        if cured == Some(pulls) {
            add(Role::CuredFull, pulls, 40.0);
        }
    }
}

#[test]
fn points_are_after_the_last_checkpoint_of_each_volume() {
    let lab = Lab::new();
    let mut store = make_run(&lab, "run", "ext4", &[1.0, 1.1, 1.2, 1.3, 1.4], None);
    add_arm(&mut store, "xfs", &[1.0, 1.2, 1.4, 1.6, 1.8, 2.0], None);
    drop(store);
    let at = |point: &str, more: &[&str]| lab.run([&["forecast", "run", "--at", point][..], more].concat());
    let both = at("600,700", &[]).good().stdout;
    assert_eq!(both.lines().filter(|line| line.starts_with("700 ")).count(), 2, "{both}");
    at("450", &[]).refused(2, &["--at: 450 is not after the last value of xfs full, at 500", "--arm"]);
    assert!(at("450", &["--arm", "ext4"]).good().stdout.lines().any(|line| line.starts_with("450 ")));
}

/// A forecast that used all of the inspections would take hours.
#[test]
fn forecast_of_100_000_inspections_ends() {
    let lab = Lab::new();
    let mut document = inspect(&lab);
    document["costs"].as_array_mut().unwrap().truncate(1);
    let mut text = String::new();
    for hour in 0..100_000 {
        let cost = json!({ "device": "disk", "seconds": {
            "as_it_lies": 100.0 + f64::from(hour) / 2000.0, "fresh_copy": 100.0 } });
        let target = json!({ "path": "/srv", "file_system": "ext4", "capacity_bytes": 9, "read_ahead_kib": 128,
            "inspected_unix_seconds": START + u64::from(hour as u32) * 3600 });
        let inspection = json!({ "schema": document["schema"], "target": target, "costs": [cost] });
        text.push_str(&inspection.to_string());
    }
    fs::write(lab.path("all.json"), text).unwrap();
    let screen = lab.run(["forecast", "all.json"]).good().stdout;
    assert!(screen.contains(" of 100,000 inspections, evenly spread over time."), "{screen}");
    // A straight line from 1.0 to 1.5 in 100,000 hours reaches 2 in 200,000.
    assert!(screen.contains("Reading /srv will take twice as long as a fresh copy about 2049-0"), "{screen}");
}

#[test]
fn run_has_a_checkpoint_instead_of_a_date() {
    let lab = Lab::new();
    make_run(&lab, "run", "evil\u{1b}[31m", &[1.0, 1.1, 1.2, 1.3, 1.4, 1.5], None);
    let screen = lab.run(["forecast", "run", "--at", "1000"]).good().stdout;
    assert!(
        screen.starts_with("Reading evil\\x1b[31m full will take twice as long as a fresh copy about 1,000 rounds"),
        "{screen}"
    );
    assert!(screen.contains("rounds  slowdown"), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with("1,000 ") && line.contains("2.00")), "{screen}");
    check_printed(&lab.run(["forecast", "run", "--json"]).good().stdout);
    lab.run(["forecast", "run", "--at", "2027-01-01"]).refused(2, &["a run has no dates"]);
    lab.run(["forecast", "run", "--at", "500"]).refused(2, &["500 is not after the last value of ", "at 500"]);
    lab.run(["forecast", "run", "--arm", "xfs"]).refused(2, &["no aged volume that matches"]);
    lab.run(["forecast", "run", "--device", "floppy"]).refused(2, &["no cost on this device", "HDD 7.2K"]);
    make_run(&lab, "short", "ext4", &[1.0, 1.1, 1.2], None);
    lab.run(["forecast", "short"]).refused(2, &["No forecast for ext4 full", "at least 4"]);
    lab.run(["forecast", "run", "short"]).refused(2, &["is a directory"]);
}

#[test]
fn run_with_a_cure_starts_there() {
    let lab = Lab::new();
    make_run(&lab, "run", "ext4", &[1.0, 3.0, 5.0, 1.2, 1.4, 1.6], Some(200));
    let screen = lab.run(["forecast", "run"]).good().stdout;
    assert!(screen.contains("The volume was cured at 200"), "{screen}");
    assert!(screen.contains("From 4 checkpoints, 200 to 500"), "{screen}");
}

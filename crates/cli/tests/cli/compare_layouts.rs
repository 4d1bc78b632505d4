//! Comparisons of two inspections.

use std::fs;

use serde_json::{Value, json};

use super::lab::Lab;

/// Writes an inspection of a tree, and the same one with changes.
fn lab_of_two(change: impl Fn(&mut Value)) -> Lab {
    let lab = Lab::new();
    fs::create_dir(lab.path("tree")).unwrap();
    for number in 0..20u8 {
        fs::write(lab.path(format!("tree/{number}")), vec![number; 30_000]).unwrap();
    }
    rustix::fs::sync();
    let text = lab.run(["inspect", "tree", "--json", "--no-map", "--device", "hdd-7200"]).good().stdout;
    fs::write(lab.path("a.json"), &text).unwrap();
    let mut other: Value = serde_json::from_str(&text).unwrap();
    change(&mut other);
    fs::write(lab.path("b.json"), other.to_string()).unwrap();
    lab
}

/// Doubles the cost, triples the requests, and changes the file system.
fn age(other: &mut Value) {
    for (key, factor) in [("seconds_per_gib", 2.0), ("requests", 3.0)] {
        let value = &mut other["costs"][0][key]["as_it_lies"];
        let changed = value.as_f64().unwrap() * factor;
        *value = if key == "requests" { json!(changed as u64) } else { json!(changed) };
    }
    other["target"]["file_system"] = json!("zfs\u{1b}[31m");
}

#[test]
fn two_inspections_are_compared() {
    let lab = lab_of_two(age);
    let screen = lab.run(["compare", "a.json", "b.json"]).good().stdout;
    let row = |figure: &str| screen.lines().find(|line| line.contains(figure)).unwrap_or_else(|| panic!("{screen}"));
    assert!(row("HDD 7.2K s/GiB").starts_with("2.00 "), "{screen}");
    assert!(row("HDD 7.2K requests").starts_with("3.00 "), "{screen}");
    assert!(row("layout score").starts_with("1.000"), "{screen}");
    assert!(screen.contains("unlike: file system: kind is ") && screen.contains("zfs\\x1b[31m in B"), "{screen}");
    let json: Value = serde_json::from_str(&lab.run(["compare", "a.json", "b.json", "--json"]).good().stdout).unwrap();
    assert_eq!(json["unlike"].as_array().unwrap().len(), 1, "{json}");
    assert!(json["rows"].as_array().unwrap().iter().all(|row| row["of"] == json!(["tree"])));

    let gate = |more: &[&str]| lab.run([&["compare", "a.json", "b.json", "--fail-if", "+50%"], more].concat());
    gate(&[]).refused(5, &["gate failed", "requests"]);
    gate(&["--figure", "score"]).good();
    lab.run(["compare", "b.json", "a.json", "--fail-if", "+50%"]).good();
}

#[test]
fn inspections_that_cannot_be_compared_are_refused() {
    let lab = lab_of_two(|other| other["costs"][0]["device"] = json!("mine"));
    let screen = lab.run(["compare", "a.json", "b.json"]).good().stdout;
    assert!(!screen.contains("s/GiB") && screen.contains("layout score"), "{screen}");
    let compare = |more: &[&str]| lab.run([&["compare", "a.json"], more].concat());
    compare(&["b.json", "--figure", "s/GiB"]).refused(2, &["no figure in common", "figures of A", "mine s/GiB"]);
    compare(&["b.json", "--role", "full"]).refused(2, &["--role", "on runs only"]);
    compare(&["tree"]).refused(2, &["a.json is a file and tree is a tree", "inspect PLACE --json"]);
    fs::write(lab.path("disk.img"), [0; 8192]).unwrap();
    compare(&["disk.img"]).refused(2, &["compare reads the output of", "senesce inspect disk.img --json --no-map"]);
    let text = fs::read_to_string(lab.path("a.json")).unwrap();
    fs::write(lab.path("two.json"), [&*text, &text].concat()).unwrap();
    compare(&["two.json"]).refused(2, &["two.json has 2 inspections"]);
    fs::write(lab.path("old.json"), text.replace("senesce-inspect/2", "senesce-inspect/1")).unwrap();
    compare(&["old.json"]).refused(2, &["this version reads"]);
    fs::write(lab.path("huge.json"), text.replace("\"files\": 20", "\"files\": -1")).unwrap();
    compare(&["huge.json"]).refused(2, &["huge.json is no inspection"]);
}

#[test]
fn impossible_inspections_are_refused_in_short_messages() {
    let refuse = |change: &dyn Fn(&mut Value), says: &str| {
        let lab = lab_of_two(change);
        let refused = lab.run(["compare", "a.json", "b.json", "--fail-if", "+5%"]);
        refused.refused(2, &[says]);
        assert!(refused.stderr.len() < 4_000, "{} bytes", refused.stderr.len());
    };
    let long = "x".repeat(200_000);
    refuse(&|other| other["costs"][0]["seconds_per_gib"]["as_it_lies"] = json!(-1.0), "which is below 0");
    refuse(&|other| other["tree"]["layout"]["layout_score"] = json!(-0.5), "which is below 0");
    let copy = |other: &mut Value, count: usize| {
        let cost = other["costs"][0].clone();
        other["costs"] = Value::Array(vec![cost; count]);
    };
    refuse(&|other| copy(other, 2), "two costs on the device");
    refuse(&|other| copy(other, 65), "it has 65 modelled devices; at most 64 are compared");
    refuse(&|other| other["schema"] = json!(long), "its schema is");
    refuse(&|other| other["tree"]["files"] = json!(long), "b.json is no inspection");

    let lab = lab_of_two(|other| {
        other["target"]["kernel"] = json!(long);
        other["costs"][0]["device"] = json!(long);
    });
    let shown = lab.run(["compare", "a.json", "b.json"]).good().stdout;
    assert!(shown.len() < 8_000 && shown.contains("unlike: kernel: release is "), "{} bytes", shown.len());
}

#[test]
fn gate_is_undecided_about_a_tree_that_was_not_read_whole() {
    let lab = lab_of_two(|other| other["tree"]["not_looked_at"] = json!(1000));
    let reason = "B lacks 1,000 entries that could not be read";
    let shown = lab.run(["compare", "a.json", "b.json"]).good().stdout;
    assert!(shown.starts_with(&format!("{reason}.\n")), "{shown}");
    assert_eq!(shown.matches("could not be read").count(), 1, "once is enough: {shown}");
    assert!(!shown.contains("unread_entries"), "{shown}");
    let gate = ["compare", "a.json", "b.json", "--fail-if", "+5%"];
    lab.run(gate).refused(6, &["gate undecided: a part is not compared", reason]);
    lab.run([&gate[..], &["--on-undecided", "pass"]].concat()).good();
}

#[test]
fn options_of_runs_and_trees_are_refused_for_inspections() {
    let lab = lab_of_two(age);
    let options: [&[&str]; 5] =
        [&["--cold"], &["-w", "0"], &["-r", "5"], &["--fail-if", "+5%", "--measured"], &["--arm", "ext4"]];
    for options in options {
        lab.run([&["compare", "a.json", "b.json"], options].concat()).refused(2, &["leave them out"]);
    }
}

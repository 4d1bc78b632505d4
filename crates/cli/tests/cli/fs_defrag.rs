//! Files of a garden that are written together again, as a user does it.

use serde_json::Value;

use super::lab::Lab;

fn json(lab: &Lab, args: &[&str]) -> Value {
    serde_json::from_str(&lab.run([args, &["--json"]].concat()).good().stdout).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn check(lab: &Lab) {
    let told = lab.run(["fs", "check", "g"]).good().stdout;
    assert!(told.starts_with("as it is: clean"), "{told}");
}

/// A garden whose files were written over for a while.
fn aged() -> Lab {
    let lab = Lab::new();
    lab.run(["fs", "mkfs", "garden", "g", "--size", "64MiB", "--data-drives", "3", "--seed", "7"]).good();
    let until = ["--until", "fullness=60%,turnover=2", "--dir", "tmp"];
    lab.run([&["age", "fsfb", "--on", "garden:g"][..], &until].concat()).good();
    lab.run(["fs", "snapshot", "create", "g", "main", "before"]).good();
    lab
}

#[test]
fn defrag_joins_files_and_keeps_snapshots() {
    let lab = aged();
    let would = json(&lab, &["fs", "defrag", "garden:g", "--dry-run"]);
    println!("{would}");
    assert!(number(&would["moved_blocks"]) > 0 && would["requests"]["after"].is_null(), "{would}");
    let told = lab.run(["fs", "defrag", "g", "--dry-run"]).good().stdout;
    assert!(told.contains(" would move\n") && told.contains("  read chain: "), "{told}");
    let done = json(&lab, &["fs", "defrag", "garden:g"]);
    println!("{done}");
    assert!(done["moved_blocks"].as_u64() >= would["moved_blocks"].as_u64(), "nothing happened in the dry run");
    let requests = |which: &str| number(&done["requests"][which]);
    assert!(requests("after") < requests("before") && requests("after") <= requests("predicted") * 11 / 10, "{done}");
    assert_eq!((&done["newly_held_blocks"], &done["unread_blocks"]), (&0.into(), &0.into()));
    assert_eq!(json(&lab, &["fs", "diff", "g", "main", "before"])["changes"], Value::Array(Vec::new()));
    check(&lab);
    let mut again = json(&lab, &["fs", "defrag", "g", "/"]);
    for _ in 0..4 {
        println!("{again}");
        if again["moved_blocks"] == 0 {
            break;
        }
        again = json(&lab, &["fs", "defrag", "g", "/"]);
    }
    assert_eq!(again["moved_blocks"], 0, "it comes to rest: {again}");
    check(&lab);
}

#[test]
fn the_traditional_way_costs_space() {
    let lab = aged();
    let free = number(&json(&lab, &["fs", "stat", "g"])["aggregate"]["free_bytes"]);
    let done = json(&lab, &["fs", "defrag", "g", "--traditional"]);
    let moved = number(&done["moved_blocks"]);
    assert!(moved > 0 && number(&done["newly_held_blocks"]) >= moved, "{done}");
    assert!(number(&json(&lab, &["fs", "stat", "g"])["aggregate"]["free_bytes"]) + moved * 4096 <= free);
    let told = lab.run(["fs", "diff", "g", "main", "before"]).good().stdout;
    assert!(told.contains(" changed; "), "{told}");
    check(&lab);
}

#[test]
fn missing_paths_are_reported() {
    let lab = Lab::new();
    lab.run(["fs", "mkfs", "garden", "g", "--size", "64MiB", "--data-drives", "3", "--seed", "7"]).good();
    lab.run(["fs", "defrag", "g", "/nowhere/file"]).refused(2, &["/nowhere/file is not in the volume"]);
    lab.run(["fs", "defrag", "g", "--volume", "home"]).refused(2, &["no volume home", "its volumes: main"]);
    lab.run(["fs", "defrag"]).refused(2, &["no garden is named"]);
    let told = lab.run(["fs", "defrag", "g"]).good().stdout;
    assert!(told.contains("0 blocks of 0 files, 0 moved") && told.contains("read chain: none blocks before"), "{told}");
}

//! Gates of runs that do not share the last state of a volume.

use senesce_store::{CellKey, CellResults, CellRow, ResultStore, Role};
use serde_json::{Value, json};

use super::{
    gate::{Made, PLAIN, make},
    lab::Lab,
};

#[test]
fn runs_that_share_only_the_first_state_are_undecided() {
    let lab = Lab::new();
    make(&lab, "whole", &Made { checkpoints: &[0, 40], ..PLAIN });
    make(&lab, "first", &Made { checkpoints: &[0], ..PLAIN });
    let note = "Only checkpoint 0 is common: ext4 full; aging is not compared.";
    for (a, b, reason) in [
        ("first", "whole", "ext4 full 40: the last valid checkpoint is 0 in A and 40 in B"),
        ("whole", "first", "ext4 full 40: B did not measure it"),
    ] {
        let shown = lab.run(["compare", a, b]).good().stdout;
        assert!(shown.starts_with(&format!("{note}\n")), "{shown}");
        assert!(shown.contains(&format!("not compared: {reason}")), "{shown}");
        let gated = lab.run(["compare", a, b, "--fail-if", "+5%", "--json"]);
        gated.refused(6, &["gate undecided: 1 cell is not compared", reason]);
        let json: Value = serde_json::from_str(&gated.stdout).unwrap();
        assert_eq!((&json["notes"][0], &json["gate"]["outcome"]), (&note.into(), &"undecided".into()));
        lab.run(["gate", b, "--baseline", a])
            .refused(6, &["undecided: 1 cell or figure is not compared", "ext4 full 40"]);
    }
    // Without a later cell in either run there is no aging that a comparison could miss.
    let same = lab.run(["compare", "first", "first", "--fail-if", "+5%"]).good().stdout;
    assert!(same.starts_with("gate passed"), "{same}");
    let json: Value = serde_json::from_str(&lab.run(["compare", "whole", "whole", "--json"]).good().stdout).unwrap();
    assert_eq!(json["notes"], Value::Array(Vec::new()));
}

#[test]
fn runs_that_fail_at_their_last_checkpoint_are_undecided() {
    let lab = Lab::new();
    for name in ["one", "two", "whole"] {
        let checkpoints: &[u64] = if name == "whole" { &[0, 20, 300] } else { &[0, 20] };
        make(&lab, name, &Made { checkpoints, ..PLAIN });
    }
    for name in ["one", "two"] {
        let mut store = ResultStore::open(&lab.path(name).join("results")).unwrap();
        let key = CellKey { arm: "ext4".into(), file_system: "ext4".into(), role: Role::Full, pulls: 300 };
        let cell = store.read_all().unwrap().cells[0].clone();
        store.append_cell(&CellResults::of(CellRow { key, valid: false, reason: "it broke".into(), ..cell })).unwrap();
    }
    let note = "The last common checkpoint is 20 of 300: ext4 full; later aging is not compared.";
    for (a, b) in [("one", "two"), ("one", "whole")] {
        let gated = lab.run(["compare", a, b, "--fail-if", "+5%", "--json"]);
        gated.refused(
            6,
            &["gate undecided: 1 cell is not compared", "ext4 full 300: the last valid checkpoint is 20 in A"],
        );
        let json: Value = serde_json::from_str(&gated.stdout).unwrap();
        assert_eq!(json["notes"], json!([note]));
        lab.run(["compare", a, b, "--all", "--fail-if", "+5%", "--figure", "layout"]).refused(6, &["ext4 full 300"]);
        lab.run(["gate", a, "--baseline", b]).refused(6, &["ext4 full 300"]);
    }
    // The volume is not selected.
    lab.run(["compare", "one", "two", "--fail-if", "+5%", "--role", "unaged"]).good();
}

//! Values that a plan names as published, beside those of the run.

mod common;

use senesce_report::{ReportOptions, render_report, summary_table};
use senesce_store::{CircumstanceRow, PUBLISHED, Results, Role};

/// The made-up run, with these published values in its plan.
fn with(values: &str) -> Results {
    let mut results = common::results();
    let row = CircumstanceRow { arm: String::new(), key: PUBLISHED.to_owned(), value: values.to_owned() };
    results.circumstances.push(row);
    results
}

/// The row of an arm: its words, without the width of the columns.
fn row(text: &str, arm: &str) -> String {
    let table = text.split("Beside the publication").nth(1).unwrap();
    let line = table.lines().find(|line| line.starts_with(arm)).unwrap();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

const RATIO: &str =
    r#"[{"place": "figure 3a", "ratio": "full/empty", "device": "model: HDD 7.2K", "value": 1.4, "file_systems": FS}]"#;

#[test]
fn each_arm_has_its_verdict() {
    let text = summary_table(&with(&RATIO.replace("FS", "[]")));
    assert!(text.contains("3 comparisons with published values (1 met, 1 direction only and 1 not met)."));
    assert_eq!(row(&text, "ext4"), "ext4 figure 3a read: full/empty 1.4 1.40 met within 40% HDD 7.2K – (1)");
    assert_eq!(row(&text, "btrfs"), "btrfs figure 3a read: full/empty 1.4 2.39 direction only HDD 7.2K – (1)");
    // Within 40% of 1.4, but the volumes do not settle, so 1.10 is no difference.
    assert_eq!(row(&text, "xfs"), "xfs figure 3a read: full/empty 1.4 1.10 not met HDD 7.2K – (1)");
}

#[test]
fn only_named_file_systems_are_compared() {
    let text = summary_table(&with(&RATIO.replace("FS", r#"["ext4"]"#)));
    assert!(text.contains("1 comparison with published values (1 met)."), "{text}");
    assert!(!summary_table(&common::results()).contains("Beside the publication"));
}

#[test]
fn missing_figure_is_not_comparable() {
    let of_ext4 = RATIO.replace("FS", r#"["ext4"]"#);
    let verdict = |results: &Results| row(&summary_table(results), "ext4");
    let ssd = with(&of_ext4.replace("HDD 7.2K", "SATA SSD"));
    assert!(verdict(&ssd).contains("– not comparable: no figures of SATA SSD"), "{}", verdict(&ssd));
    let step = with(&of_ext4.replace("\"value\"", "\"cost\": \"step\", \"value\""));
    assert!(verdict(&step).contains("not comparable: the volumes are not on HDD 7.2K in virtual time"));
    let mut invalid = with(&of_ext4);
    let last = |key: &senesce_store::CellKey| key.arm == "ext4" && key.role == Role::Full && key.pulls == 200;
    invalid.cells.iter_mut().filter(|cell| last(&cell.key)).for_each(|cell| cell.valid = false);
    assert!(verdict(&invalid).contains("not comparable: nearly full: no valid result at 200 pulls"));
}

#[test]
fn page_has_the_table_and_survives_other_versions() {
    let page = |values: &str| render_report(&with(values), &ReportOptions::default()).unwrap();
    let shown = page(&RATIO.replace("FS", "[]").replace("figure 3a", "<b>3a\\nwarning: x</b>"));
    assert!(shown.contains("<section id=\"published\">") && shown.contains("&lt;b&gt;3a\\nwarning"));
    assert!(shown.contains("<span class=\"verdict direction\">direction only</span>"));
    for other in ["no JSON", "[{}]", r#"[{"place": 3}]"#, "{}"] {
        assert!(!page(other).contains("<section id=\"published\">"), "{other}");
    }
}

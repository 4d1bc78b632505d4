//! The docs' table of published figures equals that of the stored run.

use std::path::Path;

use senesce_timed::published::{FigureLine, render_docs_table, render_time_table, replace_docs_table};
use senesce_trials::{Claim, Figure};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn kept() -> Vec<FigureLine> {
    FigureLine::read_all(&read("golden/reproduction-eighth.tsv")).unwrap()
}

#[test]
fn docs_have_the_tables_of_the_stored_run() {
    for (path, table) in [
        ("docs/results/garden-trials.md", render_docs_table(&kept())),
        ("docs/results/timed.md", render_time_table(&kept())),
    ] {
        let docs = read(path);
        let wanted = replace_docs_table(&docs, &table).expect("the docs have a place for the table");
        assert!(docs == wanted, "run `cargo run -p senesce-timed --example docs_table`; wanted in {path}:\n{wanted}");
    }
}

#[test]
fn stored_verdicts_follow_from_stored_numbers() {
    use senesce_trials::Verdict::{Met, NotComparable};
    let mut numbers = 0;
    for FigureLine { experiment, figure, .. } in kept() {
        let Some(published) = figure.published else { continue };
        numbers += 1;
        let name = format!("{experiment}: {}", figure.name);
        if figure.verdict == Some(NotComparable) {
            assert!(figure.cause.is_some(), "{name} has no reason");
            continue;
        }
        let ours = figure.value.unwrap_or(f64::INFINITY);
        // The paper states bounds in these words.
        let is_bound = ["a fraction of a core", "within a month"].contains(&figure.paper.as_str());
        let claim = if is_bound { Claim::AtMost(published) } else { Claim::Number(published) };
        let judged = Figure::new("", ours).quoted(claim, "", "").verdict();
        assert_eq!(judged == Some(Met), figure.verdict == Some(Met), "{name} is {ours} of {published}");
    }
    assert!(numbers >= 30, "{numbers} published numbers");
}

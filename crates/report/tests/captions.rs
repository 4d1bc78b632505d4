//! Captions, legends and tables name only what their figures show.

mod common;

use senesce_report::{ReportOptions, render_figures, render_report};
use senesce_store::{Results, Role};

fn page(results: &Results) -> String {
    render_report(results, &ReportOptions::default()).unwrap()
}

/// The section of a figure.
fn section<'p>(page: &'p str, name: &str) -> &'p str {
    let start = page.find(&format!("id=\"{name}\">")).unwrap();
    page[start..].split("</section>").next().unwrap()
}

/// The run with one repetition of each test.
fn single() -> Results {
    let mut results = common::results();
    results.grep.retain(|row| row.repetition == 0);
    results
}

/// The run with these checkpoints alone.
fn at(checkpoints: &[u64]) -> Results {
    let mut results = common::results();
    results.cells.retain(|cell| checkpoints.contains(&cell.key.pulls));
    results.modelled.retain(|row| checkpoints.contains(&row.key.pulls));
    results
}

#[test]
fn caption_of_one_repetition_names_no_intervals() {
    let (many, one) = (page(&common::results()), page(&single()));
    for words in ["bars their bootstrap 95% intervals", "Small dots are the repetitions."] {
        assert!(section(&many, "grep-cost").contains(words), "{words}");
        assert!(!section(&one, "grep-cost").contains(words), "{words}");
    }
    assert!(section(&one, "grep-cost").contains("Each cell was measured once (n = 1)."));
    assert!(section(&many, "slowdown").contains("ratio of medians, with its bootstrap 95% interval"));
    assert!(!section(&one, "slowdown").contains("bootstrap"));
    // The fresh copies of the checkpoints still make a band.
    assert!(section(&one, "grep-cost").contains("grey band") && section(&one, "slowdown").contains("grey band"));
    let mut without = single();
    without.grep.retain(|row| row.key.role != Role::Unaged);
    assert!(!section(&page(&without), "grep-cost").contains("grey band"));
}

#[test]
fn caption_names_crosses_only_if_cells_are_invalid() {
    let mut results = common::results();
    let words = "A cross on the x axis marks an invalid cell";
    assert!(section(&page(&results), "modelled-slowdown-hdd-7-2k").contains(words));
    for cell in &mut results.cells {
        cell.valid = true;
    }
    assert!(!page(&results).contains(words));
}

#[test]
fn legend_without_lines_has_marks_alone() {
    let legend_line = "<line class=\"line\"";
    let name = "modelled-slowdown-hdd-7-2k";
    let (two, three) = (page(&at(&[0, 200])), page(&at(&[0, 100, 200])));
    assert!(section(&three, name).contains(legend_line) && !section(&two, name).contains(legend_line));
    assert!(section(&two, name).contains("No line joins them") && section(&two, name).contains("class=\"marker\""));
    let drawn = |results: &Results| {
        let dir = tempfile::tempdir().unwrap();
        render_figures(results, dir.path()).unwrap();
        std::fs::read_to_string(dir.path().join(format!("{name}-shared.svg"))).unwrap()
    };
    assert!(drawn(&at(&[0, 100, 200])).contains(legend_line) && !drawn(&at(&[0, 200])).contains(legend_line));
}

#[test]
fn slowdown_without_a_valid_fresh_copy_is_an_invalid_checkpoint() {
    // The fresh copy of ext4 at 60 pulls is invalid.
    let page = page(&at(&[0, 40, 60]));
    let ext4 = section(&page, "modelled-slowdown-hdd-7-2k")
        .split("aria-label=\"")
        .find(|panel| panel.starts_with("Modelled slowdown against a fresh copy: HDD 7.2K, ext4"));
    let ext4 = ext4.unwrap();
    assert_eq!((ext4.matches("class=\"cross\"").count(), ext4.matches("<polyline").count()), (2, 2), "{ext4}");
    assert!(ext4.contains("invalid: fresh copy: mkfs.ext4 failed"), "{ext4}");
    assert!(!section(&page, "modelled-slowdown-hdd-7-2k").contains("No line joins"));
}

#[test]
fn notes_of_cells_stay_on_one_line() {
    let summary = page(&at(&[0, 40, 60]));
    let summary = section(&summary, "summary");
    assert!(summary.contains("(at\u{a0}40)") && !summary.contains("(at 40)"), "{summary}");
    assert!(summary.contains("(0\u{a0}to\u{a0}40)"), "{summary}");
    assert!(page(&single()).contains("<td class=\"unbroken\">– (1)</td>"));
}

#[test]
fn maps_of_all_pages_share_their_colours() {
    let page = page(&common::results());
    assert_eq!(page.matches("const PLACES = {").count(), 1);
    assert!(page.contains("partly filled by files") && !page.contains("is pale"));
}

//! Cures in the report: a table, a figure and lines for the terminal.

mod common;

use senesce_report::{ReportOptions, render_figures, render_report, summary_table};
use senesce_store::{CellKey, CureRow, Results, Role};

/// The made-up run, with a cure of XFS's roomy volume after its last step.
fn cured() -> Results {
    let mut results = common::results();
    let key = |role| CellKey { arm: "xfs".into(), file_system: "xfs".into(), role, pulls: 200 };
    let cell = results.cells.iter().find(|cell| cell.key == key(Role::Empty)).unwrap().clone();
    results.cells.push(senesce_store::CellRow { key: key(Role::CuredEmpty), ..cell });
    let grep = results.grep.iter().find(|row| row.key == key(Role::Empty)).unwrap().clone();
    results.grep.push(senesce_store::GrepRow {
        key: key(Role::CuredEmpty),
        wall_seconds: 0.25,
        seconds_per_gib: 1.0,
        ..grep
    });
    results.cures = [("model: HDD 7.2K", 5.5), ("model: NVMe SSD", 0.5)]
        .map(|(device, predicted)| CureRow {
            key: key(Role::CuredEmpty),
            tool: "senesce".into(),
            strategies: "order,pieces".into(),
            written_bytes: Some(48 << 20),
            wall_seconds: 3.0,
            disk_seconds: f64::NAN,
            moved_files: Some(1234),
            skipped_files: Some(3),
            skipped: "3 changed meanwhile".into(),
            device: device.into(),
            modelled_before_seconds: 9.25,
            predicted_seconds: predicted,
            modelled_after_seconds: 5.75,
            read_before_seconds: 7.0,
            read_after_seconds: 0.25,
        })
        .to_vec();
    let aged = results.modelled.iter_mut().find(|row| row.key == key(Role::Empty)).unwrap();
    aged.best_order_seconds = 1.75;
    results
}

#[test]
fn a_cure_has_a_line_in_the_table_and_one_for_each_device() {
    let page = render_report(&cured(), &ReportOptions::default()).unwrap();
    let section = page.split("<section id=\"cure-table\">").nth(1).unwrap().split("</section>").next().unwrap();
    for text in
        ["senesce (order, pieces)", ">7.00 s<", ">0.250 s<", ">48 MiB<", ">1,234<", ">3 changed meanwhile<", ">1.75 s<"]
    {
        assert_eq!(section.matches(text).count(), if text.starts_with("senesce") { 3 } else { 1 }, "{text}: {section}");
    }
    assert!(section.contains(">5.50 s<") && section.contains(">0.500 s<"), "{section}");
    assert!(page.contains("<section class=\"figure\" id=\"cures\">"));
    let shown = summary_table(&cured());
    assert!(
        shown.contains("Cures: cold read before and after")
            && shown.matches("best order").count() == 1
            && shown.matches("1.75 s").count() == 1
            && shown.contains("senesce (order, pieces)"),
        "{shown}"
    );
}

#[test]
fn a_cure_does_not_change_the_figures_of_aging() {
    let (with, without) = (summary_table(&cured()), summary_table(&common::results()));
    // The arm with the cure is the first.
    let table = |text: &str| {
        let table = text.split("\n\n").nth(2).unwrap();
        let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(table(&with), table(&without));
    let page = render_report(&common::results(), &ReportOptions::default()).unwrap();
    assert!(!page.contains("id=\"cure-table\"") && !page.contains("id=\"cures\""));
}

#[test]
fn the_figure_of_cures_is_written_with_its_data() {
    let dir = tempfile::tempdir().unwrap();
    render_figures(&cured(), dir.path()).unwrap();
    let svg = std::fs::read_to_string(dir.path().join("cures-last.svg")).unwrap();
    assert_eq!(svg.matches("data-role=\"cured-empty\"").count(), 1, "one cured volume");
    let csv = std::fs::read_to_string(dir.path().join("cures.csv")).unwrap();
    assert!(csv.lines().any(|line| line.contains("xfs,cured-empty,") && line.contains(",200,1,0.25")), "{csv}");
}

/// The first sentences of a page, in its order.
fn lead(results: &Results) -> String {
    summary_table(results).lines().next().unwrap().to_owned()
}

/// Sets the modelled seconds of XFS's fresh copies at the checkpoint of the cure.
fn set_fresh(results: &mut Results, seconds: f64) {
    let is_it = |key: &CellKey| key.arm == "xfs" && key.pulls == 200 && key.role == Role::Unaged;
    results.modelled.iter_mut().filter(|row| is_it(&row.key)).for_each(|row| row.seconds = seconds);
}

#[test]
fn a_report_with_cures_leads_with_their_gain() {
    let mut results = cured();
    for (role, seconds) in [(Role::Empty, 9.0), (Role::CuredEmpty, 1.0), (Role::Unaged, 2.0)] {
        let row = common::results().modelled[0].clone();
        let key = CellKey { arm: "xfs".into(), file_system: "xfs".into(), role, pulls: 200 };
        let device = row.device.clone();
        results.modelled.retain(|row| row.key != key || row.device != device || row.method != "extents");
        results.modelled.push(senesce_store::ModelledRow { key, method: "extents".into(), seconds, ..row });
    }
    let shown = summary_table(&results);
    let mut lines = shown.lines();
    let first = lines.next().unwrap();
    assert!(
        first.starts_with("After 200 pulls, a cure by senesce makes xfs 9.0× faster to read on a modelled "),
        "{first}"
    );
    let why = "This is possible: a cure can store files in the order of reading, but a fresh copy does not always have \
               this order.";
    let expected = format!("After the cure, xfs is 2.0× faster to read than a fresh copy. {why}");
    assert_eq!(lines.next().unwrap(), expected);
    let page = render_report(&results, &ReportOptions::default()).unwrap();
    assert!(page.contains("<p class=\"lead\">After 200 pulls, a cure by senesce makes xfs 9.0× faster"));
    let of_cured = |row: &&mut senesce_store::ModelledRow| row.key.role == Role::CuredEmpty;
    // A fresh copy takes 2 s. Two of them can differ by a third.
    for (seconds, beside_fresh) in [
        (1.6, "xfs has no measurable difference from a fresh copy (0.80×)"),
        (2.0, "xfs is as fast to read as a fresh copy"),
        (2.6, "xfs has no measurable difference from a fresh copy (1.3×)"),
        (2.8, "xfs is nearly as fast to read as a fresh copy (1.4×)"),
        (4.0, "xfs takes 2.0× as long to read as a fresh copy"),
    ] {
        results.modelled.iter_mut().filter(of_cured).for_each(|row| row.seconds = seconds);
        let shown = summary_table(&results);
        assert_eq!(shown.lines().nth(1).unwrap(), format!("After the cure, {beside_fresh}."));
    }
    // Before the cure it was as fast as a fresh copy: the gain is that of an order.
    set_fresh(&mut results, 9.2);
    assert!(
        lead(&results).starts_with(
            "After 200 pulls, the volumes had no measurable age before the cure (0.98× the cost of a fresh copy); a cure by senesce \
             makes xfs 2.2× faster to read on a modelled "
        ),
        "{}",
        lead(&results)
    );
    let before = summary_table(&results);
    assert!(before.contains("After 200 pulls (before the cure of xfs), xfs takes "), "{before}");
    set_fresh(&mut results, 2.0);
    results.cures.iter_mut().for_each(|row| row.tool = "xfs_fsr".into());
    results.modelled.iter_mut().filter(of_cured).for_each(|row| row.seconds = 8.9);
    let vain = lead(&results);
    assert!(
        vain.starts_with("After 200 pulls, no cure makes a measurable difference to reading on a modelled ")
            && vain.ends_with(": xfs_fsr (xfs)."),
        "{vain}"
    );
    let page = render_report(&results, &ReportOptions::default()).unwrap();
    assert!(page.contains("<b>no difference</b><span>xfs</span><small>after xfs_fsr, modelled HDD 7.2K</small>"));
}

#[test]
fn gain_of_an_earlier_checkpoint_is_not_shown_beside_later_ones() {
    let mut results = cured();
    // Btrfs had its cure at an earlier checkpoint, where all its cells are valid.
    let moved = |key: &CellKey| {
        let pulls = if key.role == Role::CuredEmpty { 100 } else { key.pulls };
        CellKey { arm: "btrfs".into(), file_system: "btrfs".into(), role: key.role, pulls }
    };
    let cell = results.cells.iter().find(|cell| cell.key.role == Role::CuredEmpty).unwrap().clone();
    results.cells.push(senesce_store::CellRow { key: moved(&cell.key), ..cell });
    let grep = results.grep.iter().find(|row| row.key.role == Role::CuredEmpty).unwrap().clone();
    results.grep.push(senesce_store::GrepRow { key: moved(&grep.key), ..grep });
    let cures: Vec<CureRow> = results.cures.iter().map(|row| CureRow { key: moved(&row.key), ..row.clone() }).collect();
    results.cures.extend(cures);
    let first = lead(&results);
    assert!(first.starts_with("After 200 pulls, a cure by senesce makes xfs "), "{first}");
    assert!(first.ends_with("; not measured at 200 pulls: btrfs."), "{first}");
    let page = render_report(&results, &ReportOptions::default()).unwrap();
    let tiles = page.split("<ul class=\"key-figures\">").nth(1).unwrap().split("</ul>").next().unwrap();
    assert!(tiles.contains("<b>–</b><span>btrfs</span>") && tiles.contains("not measured at 200 pulls"), "{tiles}");
    let is_it = |cell: &&mut senesce_store::CellRow| (cell.key.arm.as_str(), cell.key.pulls) == ("btrfs", 200);
    results.cells.iter_mut().filter(is_it).for_each(|cell| (cell.valid, cell.reason) = (false, "in use".into()));
    assert!(lead(&results).ends_with("; no valid result at 200 pulls: btrfs."), "{}", lead(&results));
}

#[test]
fn a_cure_that_did_not_run_is_a_warning() {
    let mut results = common::results();
    let value = "the cure by senesce after 300 pulls did not run: the steps ended after 200 pulls".to_owned();
    let key = senesce_store::MISSED_CURE.to_owned();
    results.circumstances.push(senesce_store::CircumstanceRow { arm: "xfs".into(), key, value });
    let shown = summary_table(&results);
    assert!(shown.contains("warning: xfs: the cure by senesce after 300 pulls did not run"), "{shown}");
}

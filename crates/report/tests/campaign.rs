//! The report of the merged run of a campaign: arms of several plans and devices.

mod common;

use senesce_report::{ReportOptions, render_report, summary_table};
use senesce_store::{CellKey, CircumstanceRow, ModelledRow, Results, Role};

/// A campaign: a plan of 200 pulls and one of 60 on a slow disk, and one of 60 on a fast disk. The
/// arms of the plans of 60 pulls age most.
fn campaign() -> Results {
    let mut merged = Results { run: common::results().run, ..Results::default() };
    for (workload, device, model, last, factor) in [
        ("git", "hdd-7200", "model: HDD 7.2K", 200, 1.0),
        ("mail", "hdd-7200", "model: HDD 7.2K", 60, 4.0),
        ("mail", "sata-ssd", "model: SATA SSD", 60, 2.0),
    ] {
        let mut task = common::results();
        task.rename_arms(|arm| format!("{arm}.{workload}.{device}"));
        let is_early = |key: &CellKey| key.pulls <= last;
        let aged = task.modelled.into_iter().filter(|row| row.device == "model: HDD 7.2K" && is_early(&row.key));
        merged.modelled.extend(aged.map(|row| {
            let factor = if row.key.role == Role::Unaged { 1.0 } else { factor };
            ModelledRow { device: model.to_owned(), seconds_per_gib: row.seconds_per_gib * factor, ..row }
        }));
        let arms: std::collections::BTreeSet<_> = task.cells.iter().map(|cell| cell.key.arm.clone()).collect();
        for (key, value) in [("campaign.workload", workload), ("campaign.device", device)] {
            let row = |arm: &String| CircumstanceRow { arm: arm.clone(), key: key.to_owned(), value: value.to_owned() };
            merged.circumstances.extend(arms.iter().map(row));
        }
        merged.cells.extend(task.cells.into_iter().filter(|cell| is_early(&cell.key)));
        merged.layout.extend(task.layout.into_iter().filter(|row| is_early(&row.key)));
        merged.maps.extend(task.maps.into_iter().filter(|row| is_early(&row.key)));
    }
    merged
}

#[test]
fn arms_of_a_campaign_are_judged_at_the_end_of_their_plan() {
    let results = campaign();
    let text = summary_table(&results);
    let sentences: Vec<&str> = text.lines().collect();
    assert!(sentences[0].starts_with("After 60 pulls, btrfs.mail.hdd-7200 takes 8.7× "), "{}", sentences[0]);
    assert!(sentences[0].contains(", btrfs.git.hdd-7200 (after 200 pulls) 4.9× "), "{}", sentences[0]);
    // Its fresh copy at 60 pulls is invalid.
    assert!(sentences[0].contains("; fresh copy invalid at 60 pulls: ext4.mail.hdd-7200."), "{}", sentences[0]);
    assert!(!text.contains("not measured at"), "{text}");
    assert_eq!(
        sentences[1],
        "The arms are compared at different checkpoints, each at the last one of its plan with a slowdown: mail at 60 \
         pulls and git at 200 pulls."
    );
    let of_ssd = sentences.iter().find(|line| line.starts_with("On a modelled SATA SSD: ")).unwrap();
    assert!(of_ssd.contains("xfs.mail.sata-ssd (after 60 pulls) ") && !of_ssd.contains("hdd-7200"), "{of_ssd}");
    let row = sentences.iter().find(|line| line.starts_with("xfs.mail.sata-ssd ")).unwrap();
    assert!(row.contains("SATA SSD") && row.contains('×') && !row.contains("(at "), "{row}");
}

#[test]
fn a_merged_run_without_all_tasks_has_a_warning() {
    let mut results = campaign();
    let row = |arm: &str, key: &str, value: &str| CircumstanceRow {
        arm: arm.to_owned(),
        key: key.to_owned(),
        value: value.to_owned(),
    };
    results.circumstances.push(row("ext4.git.hdd-7200", "campaign.task", "0"));
    results.circumstances.push(row("", "campaign.tasks", "3"));
    let warning = "2 of 3 tasks have no result, and may have the largest slowdown";
    assert!(summary_table(&results).contains(warning));
    assert!(render_report(&results, &ReportOptions::default()).unwrap().contains(warning));
    results.circumstances.last_mut().unwrap().value = "1".to_owned();
    assert!(!summary_table(&results).contains("no result, and may"));
}

#[test]
fn each_device_of_a_campaign_has_charts_of_its_own_arms() {
    let page = render_report(&campaign(), &ReportOptions::default()).unwrap();
    assert!(!page.contains("no valid data"));
    for title in ["Modelled slowdown against a fresh copy", "Modelled cost of reading the tree", "Cost and layout"] {
        for (device, own, other) in [("HDD 7.2K", "hdd-7200", "sata-ssd"), ("SATA SSD", "sata-ssd", "hdd-7200")] {
            let section = page.split(&format!("<h2>{title}: {device}</h2>")).nth(1).unwrap();
            let section = section.split("</section>").next().unwrap();
            let labels: Vec<&str> =
                section.split("aria-label=\"").skip(1).filter(|label| label.starts_with(title)).collect();
            let label = |arm: &str| labels.iter().any(|label| label.split('"').next().unwrap().ends_with(arm));
            assert!(label(&format!("xfs.mail.{own}")) && !label(&format!("xfs.mail.{other}")), "{title} {device}");
        }
    }
}

#[test]
fn second_method_of_a_device_is_named() {
    let mut results = campaign();
    for row in results.modelled.iter_mut().filter(|row| row.key.arm.contains(".git.")) {
        row.method = "virtual-time".to_owned();
    }
    let text = summary_table(&results);
    assert!(text.starts_with("After 200 pulls, btrfs.git.hdd-7200 takes 4.9× "), "{text}");
    let second = "\nOn a modelled HDD 7.2K, from the places of blocks: btrfs.mail.hdd-7200 (after 60 pulls) 8.7× ";
    assert!(text.contains(second), "{text}");
    assert!(text.contains("\nOn a modelled SATA SSD: btrfs.mail.sata-ssd (after 60 pulls) "), "{text}");
}

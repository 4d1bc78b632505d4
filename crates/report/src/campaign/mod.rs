//! The page of a campaign: a heat map of slowdowns by file system and workload, and the order of
//! the file systems, fresh and aged.

mod contrast;
mod figures;
mod planned;

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Value, context};
use senesce_core::statistics::{Change, ENOUGH_FIGURES, Ranking, Row, Spread, compute_ranking, compute_rows};
use senesce_store::Results;

use self::contrast::text_colours;
use self::figures::{Atlas, RelativeCosts, Slowdown};
use self::planned::of_tasks;
pub(crate) use self::planned::warn_of_missing_tasks;
pub use self::planned::{MissingTask, PlannedTasks, merged_tasks, tell_missing_tasks};
use crate::{
    Error,
    csv::{Csv, exact},
    format::{count, figure, list, page_json},
    html::style,
    page::render_page,
    warnings::shortened_reason,
};

/// Renders the merged results of a campaign as one HTML page that loads no other file. Returns the
/// same bytes for the same results. The page warns of planned tasks without a result.
///
/// Errors: [`Error::NoCampaign`] if the results are not those of a campaign.
pub fn render_campaign(results: &Results, planned: &PlannedTasks) -> Result<String, Error> {
    let atlas = Atlas::collect(results, planned).ok_or(Error::NoCampaign)?;
    // A table of a device without a slowdown has only dashes.
    let (shown, without): (Vec<&String>, Vec<&String>) =
        atlas.devices.iter().partition(|device| atlas.slowdowns.keys().any(|(of, ..)| of == *device));
    let maps: Vec<Value> = shown.into_iter().map(|device| map(&atlas, device)).collect();
    let without: Vec<String> =
        without.into_iter().map(|device| atlas.label(device).to_owned()).filter(|name| !name.is_empty()).collect();
    let rankings: Vec<Value> = atlas.devices.iter().filter_map(|device| ranking(&atlas, device)).collect();
    let description = results.circumstances.iter().find(|row| row.arm.is_empty() && row.key == "plan.description");
    let context = context! {
        name => results.run.plan_name.as_str(),
        description => description.map(|row| row.value.as_str()),
        version => results.run.senesce_version.as_str(),
        lead => lead(&atlas),
        warnings => warnings(&atlas),
        without => list(&without),
        most => most(&atlas).map(|most| figure(most.max(LEAST_END))),
        tasks => count(atlas.count_with_slowdown()),
        planned => count(atlas.planned.0),
        kernels => kernels(&atlas),
        maps,
        rankings,
        failed => atlas.failed.iter().map(|(arm, reason)| context! { arm => arm.as_str(), reason => reason.as_str() }).collect::<Vec<_>>(),
        style => style() + include_str!("../../assets/campaign.css"),
        script => include_str!("../../assets/report.js"),
        data => page_json(&serde_json::to_string(&atlas.figures).unwrap_or_default()),
    };
    render_page("campaign.html", include_str!("../../assets/campaign.html"), context)
}

/// The largest slowdown of each device, in one sentence.
fn lead(atlas: &Atlas) -> String {
    let worst = |device: &String| {
        let of_device = atlas.slowdowns.iter().filter(|((of, ..), _)| of == device);
        let (key, slowdown) = of_device.max_by(|a, b| a.1.spread.median.total_cmp(&b.1.spread.median))?;
        let on = on_device(atlas, device);
        let (median, n) = (figure(slowdown.spread.median), slowdown.spread.count);
        Some(format!("{median}× for {} under {}{on} (n\u{a0}=\u{a0}{n})", key.1, key.2))
    };
    let worst: Vec<String> = atlas.devices.iter().filter_map(worst).collect();
    match worst.is_empty() {
        true => "No task has a slowdown.".to_owned(),
        false => {
            let modelled = if atlas.is_modelled() { "modelled " } else { "" };
            let (have, all) = (atlas.count_with_slowdown(), atlas.planned.0);
            let part = if have < all { format!(", in {} of {} tasks", count(have), count(all)) } else { String::new() };
            format!("The largest {modelled}slowdown of a cold read against a fresh copy{part}: {}.", list(&worst))
        }
    }
}

/// ` on SSD`; empty if the campaign names no device.
fn on_device(atlas: &Atlas, device: &str) -> String {
    if device.is_empty() { String::new() } else { format!(" on {}", atlas.label(device)) }
}

/// The warnings above the figures: tasks without a result, those without a slowdown, and those with
/// other invalid cells.
fn warnings(atlas: &Atlas) -> Vec<String> {
    let (all, missing) = &atlas.planned;
    let missing = (!missing.is_empty()).then(|| {
        let tasks = tell_missing_tasks(missing.iter().cloned(), missing.len() as u64, *all);
        format!("{tasks}. A task without a result may have the largest slowdown.")
    });
    let failed = atlas.failed.first().map(|(arm, reason)| {
        format!(
            "{} no slowdown (the first: {arm}: {}). All figures leave out such tasks; the list is at the end of the page.",
            of_tasks(atlas.failed_tasks, *all),
            shortened_reason(reason)
        )
    });
    let invalid = atlas.partly_invalid.first().map(|(arm, cell)| {
        format!(
            "{} invalid results (the first: {arm}, {}). Their other cells are valid, and their slowdowns are included.",
            of_tasks(atlas.partly_invalid_tasks, *all),
            shortened_reason(cell)
        )
    });
    missing.into_iter().chain(failed).chain(invalid).collect()
}

/// The largest slowdown.
fn most(atlas: &Atlas) -> Option<f64> {
    atlas.slowdowns.values().map(|slowdown| slowdown.spread.median).max_by(f64::total_cmp)
}

/// The kernels with their releases.
fn kernels(atlas: &Atlas) -> String {
    let tell = |(kernel, releases): (&String, &BTreeSet<String>)| {
        format!("{kernel} {}", releases.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
    };
    atlas.releases.iter().map(tell).collect::<Vec<_>>().join("; ")
}

/// The heat map of a device.
fn map(atlas: &Atlas, device: &str) -> Value {
    let most = most(atlas).unwrap_or(1.0);
    let cell = |file_system: &String, workload: &String| {
        let key = (device.to_owned(), file_system.clone(), workload.clone());
        match atlas.slowdowns.get(&key) {
            None => {
                context! { text => "–", heat => Value::UNDEFINED, title => format!("{file_system}, {workload}: no result") }
            }
            Some(Slowdown { spread, .. }) => {
                let heat = heat(spread.median, most);
                context! {
                    text => format!("{}×", figure(spread.median)),
                    heat,
                    colours => text_colours(heat),
                    sure => range(spread),
                    title => format!("{file_system}, {workload}: {}× a fresh copy, {}", figure(spread.median), range(spread)),
                }
            }
        }
    };
    let rows = atlas.file_systems.iter().map(|file_system| {
        let cells: Vec<Value> = atlas.workloads.iter().map(|workload| cell(file_system, workload)).collect();
        let mean =
            atlas.mean_slowdown(device, file_system).map_or("–".to_owned(), |mean| format!("{}×", figure(mean)));
        let is_it = |(of, name, _): &&(String, String, String)| of == device && name == file_system;
        let of_device = atlas.slowdowns.keys().filter(|(of, ..)| of == device).map(|(.., workload)| workload);
        let (have, all) = (atlas.slowdowns.keys().filter(is_it).count(), of_device.collect::<BTreeSet<_>>().len());
        // A mean over fewer workloads cannot be compared with the others.
        let part = (have < all).then(|| format!("{have} of {all}"));
        context! { file_system => file_system.as_str(), cells, mean, part }
    });
    context! { csv => csv(atlas, device), device => atlas.label(device), rows => rows.collect::<Vec<_>>(), workloads => &atlas.workloads }
}

/// The smallest end of the scale of colours.
const LEAST_END: f64 = 2.0;

/// The share of the colour, percent, on a logarithmic scale: none at 1, all at the largest
/// slowdown. A scale ends at 2 or above, so that small slowdowns stay pale.
fn heat(slowdown: f64, most: f64) -> u64 {
    (slowdown.max(1.0).ln() / most.max(LEAST_END).ln() * 100.0).min(100.0).round() as u64
}

/// The interval of a median and the number of values. One value has none, and few have their range:
/// `n = 1`, `range 3.22 to 10.2, n = 2`, `95% 3.00 to 4.00, n = 5`.
fn range(spread: &Spread) -> String {
    let n = spread.count;
    // No line breaks within it.
    let n_text = format!("n\u{a0}=\u{a0}{n}");
    match n {
        0 | 1 => n_text,
        few if few < ENOUGH_FIGURES => format!("range {} to {}, {n_text}", figure(spread.min), figure(spread.max)),
        _ => format!("95% {} to {}, {n_text}", figure(spread.interval_low), figure(spread.interval_high)),
    }
}

/// The order of file systems on a device. `None`: fewer than two have results.
fn ranking(atlas: &Atlas, device: &str) -> Option<Value> {
    let RelativeCosts { figures: all, left_out } = atlas.relative_costs(device);
    let rows = compute_rows(&all);
    let ranking = compute_ranking(&all, &rows, false)?;
    let order = |names: &[String], aged: bool| -> Vec<Value> {
        let row = |name: &String| {
            let row = rows.iter().find(|row| row.name == *name)?;
            let spread = if aged { &row.aged } else { row.unaged.as_ref()? };
            Some(context! {
                name => name.as_str(),
                cost => format!("{}×", figure(spread.median)),
                sure => range(spread),
            })
        };
        names.iter().filter_map(row).collect()
    };
    // The values of workloads are pairs, so the test of the ranking does not apply to them.
    let change =
        |change: &Change| format!("{} is better fresh, {} is better aged", change.better_unaged, change.better_aged);
    let is_ranked = |name: &&String| all.iter().any(|figures| figures.name == **name);
    let unranked: Vec<String> = atlas.file_systems.iter().filter(|name| !is_ranked(name)).cloned().collect();
    Some(context! {
        csv => order_csv(&ranking, &rows),
        device => atlas.label(device),
        fresh => order(&ranking.unaged, false),
        aged => order(&ranking.aged, true),
        changes => ranking.changes.iter().map(change).collect::<Vec<_>>(),
        unranked => unranked,
        left_out => left_out,
    })
}

/// The places of file systems on a device, fresh and aged.
fn order_csv(ranking: &Ranking, rows: &[Row]) -> String {
    let mut csv = Csv::new(&["state", "place", "file_system", "cost", "n"]);
    for (state, names) in [("fresh", &ranking.unaged), ("aged", &ranking.aged)] {
        for (at, name) in names.iter().enumerate() {
            let row = rows.iter().find(|row| row.name == *name);
            let spread = row.and_then(|row| if state == "aged" { Some(&row.aged) } else { row.unaged.as_ref() });
            let Some(spread) = spread else { continue };
            let place = (at + 1).to_string();
            csv.row(&[state.to_owned(), place, name.clone(), exact(spread.median), spread.count.to_string()]);
        }
    }
    csv.finish()
}

/// The figures of all tasks on a device.
fn csv(atlas: &Atlas, device: &str) -> String {
    let mut csv = Csv::new(&[
        "arm",
        "file_system",
        "workload",
        "device",
        "kernel",
        "seed",
        "series",
        "fresh",
        "aged",
        "slowdown",
    ]);
    for task in atlas.figures.iter().filter(|task| task.device == device) {
        csv.row(&[
            task.arm.clone(),
            task.file_system.clone(),
            task.workload.clone(),
            task.device.clone(),
            task.kernel.clone(),
            task.seed.clone(),
            task.costs.series.clone(),
            exact(task.costs.fresh),
            exact(task.costs.aged),
            exact(task.costs.aged / task.costs.fresh),
        ]);
    }
    csv.finish()
}

/// Values by key, in the order of the first use.
fn in_order<'a>(values: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = BTreeMap::new();
    let mut found = Vec::new();
    for value in values {
        if seen.insert(value.clone(), ()).is_none() {
            found.push(value.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::figures::tests::{all, results};

    #[test]
    fn page_has_a_cell_for_each_pair() {
        let page = render_campaign(&results(), &all(&results())).unwrap();
        assert!(page.contains("ext4, git: 2.00× a fresh copy, range 2.00 to 2.00, n\u{a0}=\u{a0}2"), "{page}");
        assert!(page.contains("xfs, git: 4.00×"), "{page}");
        assert!(page.contains("xfs, mail: no result"), "{page}");
        assert!(page.contains("the disk is gone"), "{page}");
        // The ranking has one workload, and one value has no interval.
        assert!(page.contains("4.00×<small>n\u{a0}=\u{a0}1</small>") && !page.contains("4.00 to 4.00, 1"), "{page}");
        let warnings = page.split("class=\"warnings\"").nth(1).unwrap();
        assert!(
            warnings.contains("2 of 8 tasks have no slowdown (the first: xfs.mail.s1: the disk is gone)"),
            "{page}"
        );
        assert!(page.contains("4.00× <small>(1 of 2)</small>"), "a mean over fewer workloads: {page}");
        assert!(page.contains("<span>4.00×</span>"), "the scale ends at the largest slowdown: {page}");
        // The device has its name, as on other pages, and not that of its preset.
        assert!(page.contains("Slowdown by file system and workload: d<") && !page.contains(": hdd-7200<"), "{page}");
        assert!(page.contains("Kernels: host 6.1."), "{page}");
        assert!(page.contains("Left out, because a file system has no result: mail."), "{page}");
        // Each table has its figures.
        assert_eq!(page.matches("<template class=\"csv\">").count(), 2, "{page}");
        assert!(page.contains("fresh,1,") && page.contains("aged,2,xfs,4,1\n"), "{page}");
        assert_eq!(page, render_campaign(&results(), &all(&results())).unwrap());
    }

    #[test]
    fn tasks_with_other_invalid_cells_are_in_the_warnings() {
        let mut results = results();
        let is_it = |cell: &&mut senesce_store::CellRow| cell.key.arm == "ext4.git.s1" && cell.key.pulls == 0;
        for cell in results.cells.iter_mut().filter(is_it) {
            (cell.valid, cell.reason) = (false, "it was killed".to_owned());
        }
        let page = render_campaign(&results, &all(&results)).unwrap();
        let warnings = page.split("class=\"warnings\"").nth(1).unwrap().split("</div>").next().unwrap();
        assert!(warnings.contains("2 of 8 tasks have no slowdown"), "{warnings}");
        let invalid =
            "1 of 8 tasks has invalid results (the first: ext4.git.s1, roomy at checkpoint 0: it was killed). ";
        assert!(warnings.contains(invalid), "{warnings}");
    }

    /// A missing task of this file system, workload and device.
    fn missing([file_system, workload, device, title]: [&str; 4]) -> MissingTask {
        MissingTask {
            words: format!("{file_system}, {workload}, {title}"),
            file_system: file_system.to_owned(),
            workload: workload.to_owned(),
            kernel: "host".to_owned(),
            device: device.to_owned(),
            device_title: title.to_owned(),
        }
    }

    #[test]
    fn planned_task_without_a_result_is_in_headline_and_warnings() {
        let mut results = results();
        results.cells.iter_mut().for_each(|cell| cell.valid = true);
        assert!(!render_campaign(&results, &all(&results)).unwrap().contains("class=\"warnings\""));
        // No other file system has a result of this workload or device.
        let absent = vec![missing(["btrfs", "profile", "sata-ssd", "SATA SSD"])];
        let page = render_campaign(&results, &PlannedTasks { all: 9, missing: absent }).unwrap();
        let part = |from: &str, to: &str| page.split(from).nth(1).unwrap().split(to).next().unwrap();
        let warnings = part("class=\"warnings\"", "</div>");
        let expected = "1 of 9 tasks has no result: btrfs, profile, SATA SSD. A task without a result may have the \
                        largest slowdown.";
        assert!(warnings.contains(expected), "{warnings}");
        let lead = part("class=\"lead\">", "</p>");
        assert!(
            lead.starts_with("The largest modelled slowdown of a cold read against a fresh copy, in 8 of 9 tasks: "),
            "{lead}"
        );
        assert!(page.contains(">8 of 9 tasks with a slowdown"), "{page}");
        // The table of another device has a place for it. Its own device has no table of dashes.
        assert!(page.contains("btrfs, profile: no result"), "{page}");
        assert!(!page.contains("Slowdown by file system and workload: SATA SSD<"), "{page}");
        assert!(page.contains("No task has a slowdown on SATA SSD."), "{page}");
    }

    #[test]
    fn device_whose_tasks_all_failed_has_no_table() {
        let mut results = results();
        assert!(!render_campaign(&results, &all(&results)).unwrap().contains("No task has"));
        for row in results.circumstances.iter_mut().filter(|row| row.key == "campaign.device") {
            if row.arm.starts_with("xfs.mail") {
                row.value = "nvme".to_owned();
            }
        }
        let page = render_campaign(&results, &all(&results)).unwrap();
        assert!(page.contains("No task has a slowdown on nvme."), "{page}");
        assert_eq!(page.matches("<h2>Slowdown by file system and workload").count(), 1, "{page}");
    }

    #[test]
    fn another_run_is_refused() {
        let mut results = results();
        results.circumstances.clear();
        assert!(matches!(render_campaign(&results, &all(&results)), Err(Error::NoCampaign)));
    }

    #[test]
    fn more_heat_is_a_larger_slowdown() {
        assert_eq!([0.9, 1.0, 14.9].map(|slowdown| heat(slowdown, 14.9)), [0, 0, 100]);
        assert!(heat(2.0, 14.9) < heat(3.0, 14.9) && heat(10.2, 14.9) < heat(14.9, 14.9));
        assert!(heat(1.04, 1.04) < 10, "a small slowdown is pale");
    }

    #[test]
    fn few_values_have_a_range_and_one_has_none() {
        let of =
            |values: &[f64]| range(&senesce_core::statistics::compute_spread(values, senesce_core::Seed(1)).unwrap());
        assert_eq!(of(&[0.611]), "n\u{a0}=\u{a0}1");
        assert_eq!(of(&[3.22, 10.2]), "range 3.22 to 10.2, n\u{a0}=\u{a0}2");
        assert!(of(&[1.0, 2.0, 3.0, 4.0]).starts_with("95% "), "{}", of(&[1.0, 2.0, 3.0, 4.0]));
    }
}

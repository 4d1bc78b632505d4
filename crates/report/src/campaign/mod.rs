//! The page of a campaign: a heat map of slowdowns by file system and workload, and the order of
//! the file systems, fresh and aged.

mod figures;

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Value, context};
use senesce_core::statistics::{Change, compute_ranking, compute_rows};
use senesce_store::Results;

use self::figures::{Atlas, RelativeCosts, Slowdown};
use crate::{
    Error,
    csv::{Csv, exact},
    format::{figure, page_json},
    html::style,
    page::render_page,
};

/// Renders the merged results of a campaign as one HTML page that loads no other file. Returns the
/// same bytes for the same results.
///
/// Errors: [`Error::NoCampaign`] if the results are not those of a campaign.
pub fn render_campaign(results: &Results) -> Result<String, Error> {
    let atlas = Atlas::collect(results).ok_or(Error::NoCampaign)?;
    let maps: Vec<Value> = atlas.devices.iter().map(|device| map(&atlas, device)).collect();
    let rankings: Vec<Value> = atlas.devices.iter().filter_map(|device| ranking(&atlas, device)).collect();
    let description = results.circumstances.iter().find(|row| row.arm.is_empty() && row.key == "plan.description");
    let context = context! {
        name => results.run.plan_name.as_str(),
        description => description.map(|row| row.value.as_str()),
        version => results.run.senesce_version.as_str(),
        lead => lead(&atlas),
        tasks => atlas.figures.len(),
        kernels => kernels(&atlas),
        maps,
        rankings,
        failed => atlas.failed.iter().map(|(arm, reason)| context! { arm => arm.as_str(), reason => reason.as_str() }).collect::<Vec<_>>(),
        csv => csv(&atlas),
        style => style() + include_str!("../../assets/campaign.css"),
        script => include_str!("../../assets/report.js"),
        data => page_json(&serde_json::to_string(&atlas.figures).unwrap_or_default()),
    };
    render_page("campaign.html", include_str!("../../assets/campaign.html"), context)
}

/// The largest and the smallest slowdown, in two sentences.
fn lead(atlas: &Atlas) -> String {
    let mut all: Vec<(&(String, String, String), f64)> =
        atlas.slowdowns.iter().map(|(key, slowdown)| (key, slowdown.spread.median)).collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (Some((best, least)), Some((worst, most))) = (all.first(), all.last()) else {
        return "No task has a slowdown.".to_owned();
    };
    let name = |(device, file_system, workload): &(String, String, String)| match device.is_empty() {
        true => format!("{file_system} under {workload}"),
        false => format!("{file_system} under {workload} on {device}"),
    };
    format!(
        "The largest slowdown of a cold read is {} times a fresh copy, for {}. The smallest is {} times, for {}.",
        figure(*most),
        name(worst),
        figure(*least),
        name(best),
    )
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
    let cell = |file_system: &String, workload: &String| {
        let key = (device.to_owned(), file_system.clone(), workload.clone());
        match atlas.slowdowns.get(&key) {
            None => {
                context! { text => "–", heat => Value::UNDEFINED, title => format!("{file_system}, {workload}: no result") }
            }
            Some(Slowdown { spread, .. }) => context! {
                text => figure(spread.median),
                heat => heat(spread.median),
                title => format!(
                    "{file_system}, {workload}: {} times a fresh copy, {} to {} in {} runs",
                    figure(spread.median), figure(spread.min), figure(spread.max), spread.count
                ),
            },
        }
    };
    let rows = atlas.file_systems.iter().map(|file_system| {
        let cells: Vec<Value> = atlas.workloads.iter().map(|workload| cell(file_system, workload)).collect();
        let mean = atlas.mean_slowdown(device, file_system).map_or("–".to_owned(), figure);
        context! { file_system => file_system.as_str(), cells, mean }
    });
    context! { device, rows => rows.collect::<Vec<_>>(), workloads => &atlas.workloads }
}

/// The share of the colour, percent: none at 1, half at 2.6, all at 7 and more.
fn heat(slowdown: f64) -> u64 {
    const MOST: f64 = 7.0;
    (slowdown.max(1.0).ln() / MOST.ln() * 100.0).min(100.0).round() as u64
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
                median => figure(spread.median),
                low => figure(spread.interval_low),
                high => figure(spread.interval_high),
                count => spread.count,
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
        device,
        fresh => order(&ranking.unaged, false),
        aged => order(&ranking.aged, true),
        changes => ranking.changes.iter().map(change).collect::<Vec<_>>(),
        unranked => unranked,
        left_out => left_out,
    })
}

/// The figures of all tasks.
fn csv(atlas: &Atlas) -> String {
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
    for task in &atlas.figures {
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
    use crate::campaign::figures::tests::results;

    #[test]
    fn page_has_a_cell_for_each_pair() {
        let page = render_campaign(&results()).unwrap();
        assert!(page.contains("ext4, git: 2.00 times a fresh copy, 2.00 to 2.00 in 2 runs"), "{page}");
        assert!(page.contains("xfs, git: 4.00 times"), "{page}");
        assert!(page.contains("xfs, mail: no result"), "{page}");
        assert!(page.contains("the disk is gone"), "{page}");
        assert!(page.contains("Kernels: host 6.1."), "{page}");
        assert!(page.contains("Left out, because a file system has no result: mail."), "{page}");
        assert_eq!(page, render_campaign(&results()).unwrap());
    }

    #[test]
    fn another_run_is_refused() {
        let mut results = results();
        results.circumstances.clear();
        assert!(matches!(render_campaign(&results), Err(Error::NoCampaign)));
    }

    #[test]
    fn more_heat_is_a_larger_slowdown() {
        assert_eq!([0.9, 1.0, 7.0, 70.0].map(heat), [0, 0, 100, 100]);
        assert!(heat(2.0) < heat(3.0));
    }
}

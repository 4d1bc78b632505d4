//! Reads the histories of kept runs: the modelled costs of aged volumes and of their fresh copies.

use std::{collections::BTreeMap, fs, path::Path};

use senesce_core::statistics::forecast::Point;

/// The kept runs with modelled costs, fresh copies and at least five checkpoints.
const RUNS: [&str; 10] = [
    "btrfs-node-sizes",
    "cure-lasts",
    "cure-lasts-btrfs",
    "evergreen-git",
    "fast17-interfile",
    "fast17-intrafile",
    "fast17-mail-small",
    "full-disk-eighth",
    "hotstorage19-fsfb-small",
    "quick-start",
];
/// The least number of checkpoints of a history.
const LEAST: usize = 5;

/// The history of a volume on a modelled device.
pub struct History {
    /// The kept run.
    pub run: String,
    /// Arm and volume.
    pub volume: String,
    /// The modelled device.
    pub device: String,
    /// Costs over those of fresh copies.
    pub slowdown: Vec<Point>,
    /// Costs, s/GiB.
    pub cost: Vec<Point>,
}

impl History {
    /// The plan: runs of one plan with several seeds are alike.
    pub fn plan(&self) -> &str {
        self.run.trim_end_matches(|letter: char| letter.is_ascii_digit()).trim_end_matches("-seed-")
    }
}

/// The histories of all runs. Cured volumes are left out.
///
/// Errors: a table cannot be read.
pub fn read_histories(kept: &Path) -> Result<Vec<History>, String> {
    let mut found = Vec::new();
    for run in RUNS {
        let path = kept.join(run).join("cells.tsv");
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        found.extend(read_run(run, &text));
    }
    Ok(found)
}

fn read_run(run: &str, text: &str) -> Vec<History> {
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let heads = lines.next().unwrap_or_default();
    let rows: Vec<BTreeMap<&str, &str>> = lines.map(|line| heads.iter().copied().zip(line).collect()).collect();
    let mut found = Vec::new();
    for device in heads.iter().filter_map(|head| head.strip_prefix("extents.")) {
        let mut costs: BTreeMap<(&str, &str), BTreeMap<u64, f64>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row["valid"] == "true") {
            let cost = row.get(format!("extents.{device}").as_str()).and_then(|cost| cost.parse::<f64>().ok());
            if let (Ok(pulls), Some(cost)) = (row["pulls"].parse(), cost.filter(|cost| *cost > 0.0)) {
                costs.entry((row["arm"], row["role"])).or_default().insert(pulls, cost);
            }
        }
        for ((arm, role), aged) in costs.iter().filter(|((_, role), _)| ["full", "empty"].contains(role)) {
            let is_cured = costs.keys().any(|(other, role)| other == arm && role.starts_with("cured"));
            let Some(fresh) = costs.get(&(*arm, "unaged")).filter(|_| !is_cured) else { continue };
            let both = || aged.iter().filter_map(|(pulls, cost)| Some((*pulls as f64, *cost, *fresh.get(pulls)?)));
            if both().count() >= LEAST {
                found.push(History {
                    run: run.to_owned(),
                    volume: format!("{arm} {role}"),
                    device: device.to_owned(),
                    slowdown: both().map(|(at, cost, fresh)| Point { at, value: cost / fresh }).collect(),
                    cost: both().map(|(at, cost, _)| Point { at, value: cost }).collect(),
                });
            }
        }
    }
    found
}

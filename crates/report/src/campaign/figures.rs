//! The costs of a campaign's tasks, by the axes of the grid.

use std::collections::{BTreeMap, BTreeSet};

use senesce_core::{
    Seed,
    statistics::{Figures, Spread, compute_median, compute_spread},
};
use senesce_store::{CellKey, Results, Role};
use serde::Serialize;

use super::in_order;

/// The costs of one arm at its last checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TaskFigures {
    pub arm: String,
    pub file_system: String,
    pub workload: String,
    pub device: String,
    pub kernel: String,
    pub seed: String,
    /// Seconds per GiB of a fresh copy.
    pub fresh: f64,
    /// Seconds per GiB of the aged volume: the nearly full one, if there is one.
    pub aged: f64,
}

/// The slowdown of a file system under a workload, over the seeds.
#[derive(Clone, Debug)]
pub(super) struct Slowdown {
    pub spread: Spread,
}

/// The figures of a campaign. Invalid cells are left out.
pub(super) struct Atlas {
    pub figures: Vec<TaskFigures>,
    /// In the order of the mean slowdown, the largest first.
    pub file_systems: Vec<String>,
    pub workloads: Vec<String>,
    pub devices: Vec<String>,
    /// By device, file system and workload.
    pub slowdowns: BTreeMap<(String, String, String), Slowdown>,
    /// Arms without a slowdown, and why.
    pub failed: Vec<(String, String)>,
}

/// The circumstances that a merge adds to an arm.
const AXES: [&str; 5] =
    ["campaign.file_system", "campaign.workload", "campaign.device", "campaign.kernel", "campaign.seed"];

impl Atlas {
    /// Collects the figures. `None`: the results are not those of a campaign.
    pub(super) fn collect(results: &Results) -> Option<Self> {
        let mut axes: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
        for row in results.circumstances.iter().filter(|row| AXES.contains(&row.key.as_str())) {
            axes.entry(&row.arm).or_default().insert(&row.key, &row.value);
        }
        let number = |arm: &str| -> Option<u64> {
            let row = results.circumstances.iter().find(|row| row.arm == arm && row.key == "campaign.task")?;
            row.value.parse().ok()
        };
        let mut arms: Vec<(u64, &str)> = axes.keys().filter_map(|arm| Some((number(arm)?, *arm))).collect();
        arms.sort_unstable();
        if arms.is_empty() {
            return None;
        }
        let costs = Costs::collect(results);
        let (mut figures, mut failed) = (Vec::new(), Vec::new());
        for (_, arm) in arms {
            let axis = |key: &str| axes[arm].get(key).map_or_else(String::new, |value| (*value).to_owned());
            match costs.of(arm) {
                Ok((fresh, aged)) => figures.push(TaskFigures {
                    arm: arm.to_owned(),
                    file_system: axis(AXES[0]),
                    workload: axis(AXES[1]),
                    device: axis(AXES[2]),
                    kernel: axis(AXES[3]),
                    seed: axis(AXES[4]),
                    fresh,
                    aged,
                }),
                Err(reason) => failed.push((arm.to_owned(), reason)),
            }
        }
        let mut of_cells: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for task in &figures {
            let key = (task.device.clone(), task.file_system.clone(), task.workload.clone());
            of_cells.entry(key).or_default().push(task.aged / task.fresh);
        }
        let spread = |(key, values): (_, Vec<f64>)| Some((key, Slowdown { spread: compute_spread(&values, Seed(1))? }));
        let mut atlas = Self {
            file_systems: in_order(figures.iter().map(|task| &task.file_system)),
            workloads: in_order(figures.iter().map(|task| &task.workload)),
            devices: in_order(figures.iter().map(|task| &task.device)),
            slowdowns: of_cells.into_iter().filter_map(spread).collect(),
            figures,
            failed,
        };
        let mut file_systems = std::mem::take(&mut atlas.file_systems);
        let first = atlas.devices.first().cloned().unwrap_or_default();
        let mean = |name: &String| atlas.mean_slowdown(&first, name).unwrap_or(0.0);
        file_systems.sort_by(|a, b| mean(b).total_cmp(&mean(a)).then(a.cmp(b)));
        atlas.file_systems = file_systems;
        Some(atlas)
    }

    /// The geometric mean of the slowdowns of a file system over its workloads.
    pub(super) fn mean_slowdown(&self, device: &str, file_system: &str) -> Option<f64> {
        let of_it = |(of, name, _): &&(String, String, String)| of == device && name == file_system;
        let logs: Vec<f64> = self
            .slowdowns
            .iter()
            .filter(|(key, _)| of_it(key))
            .map(|(_, slowdown)| slowdown.spread.median.ln())
            .collect();
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    }

    /// The costs of the file systems, divided by the median cost of fresh copies of the same
    /// workload. A workload counts only if all file systems have a result for it.
    pub(super) fn relative_costs(&self, device: &str) -> Vec<Figures> {
        let of_device: Vec<&TaskFigures> = self.figures.iter().filter(|task| task.device == device).collect();
        let names: Vec<&String> =
            self.file_systems.iter().filter(|name| of_device.iter().any(|task| task.file_system == **name)).collect();
        let has = |name: &String, workload: &String| {
            of_device.iter().any(|task| task.file_system == *name && task.workload == *workload)
        };
        let common: BTreeSet<&String> =
            self.workloads.iter().filter(|workload| names.iter().all(|name| has(name, workload))).collect();
        let base: BTreeMap<&String, f64> = common
            .iter()
            .filter_map(|workload| {
                let fresh = of_device.iter().filter(|task| task.workload == **workload).map(|task| task.fresh);
                Some((*workload, compute_median(&fresh.collect::<Vec<_>>())?))
            })
            .collect();
        let relative = |name: &String, cost: fn(&TaskFigures) -> f64| -> Vec<f64> {
            let tasks = of_device.iter().filter(|task| task.file_system == *name);
            tasks.filter_map(|task| Some(cost(task) / base.get(&task.workload)?)).collect()
        };
        let figures = names.into_iter().map(|name| Figures {
            name: name.clone(),
            aged: relative(name, |task| task.aged),
            unaged: relative(name, |task| task.fresh),
        });
        figures.filter(|figures| !figures.aged.is_empty()).collect()
    }
}

/// The costs of reading cells, seconds per GiB.
struct Costs<'a> {
    /// By arm, checkpoint and volume.
    costs: BTreeMap<&'a str, BTreeMap<u64, BTreeMap<Role, f64>>>,
    /// The reason of an invalid cell, by arm.
    reasons: BTreeMap<&'a str, &'a str>,
}

impl<'a> Costs<'a> {
    fn collect(results: &'a Results) -> Self {
        let valid: BTreeSet<&CellKey> = results.cells.iter().filter(|cell| cell.valid).map(|cell| &cell.key).collect();
        let invalid = results.cells.iter().filter(|cell| !cell.valid);
        let reasons = invalid.map(|cell| (cell.key.arm.as_str(), cell.reason.as_str())).collect();
        // Prefer a time on a modelled disk, then a prediction from places, then the time of the
        // machine.
        let mut rows: BTreeMap<&CellKey, Vec<(u8, f64)>> = BTreeMap::new();
        for row in results.modelled.iter().filter(|row| valid.contains(&row.key)) {
            let rank = match row.method.as_str() {
                "virtual-time" => 0,
                "extents" => 1,
                _ => continue,
            };
            rows.entry(&row.key).or_default().push((rank, row.seconds_per_gib));
        }
        for row in results.counted_grep().filter(|row| valid.contains(&row.key)) {
            rows.entry(&row.key).or_default().push((2, row.seconds_per_gib));
        }
        let mut costs: BTreeMap<&str, BTreeMap<u64, BTreeMap<Role, f64>>> = BTreeMap::new();
        for (key, rows) in rows {
            let usable: Vec<&(u8, f64)> = rows.iter().filter(|(_, cost)| cost.is_finite() && *cost > 0.0).collect();
            let Some(best) = usable.iter().map(|(rank, _)| *rank).min() else { continue };
            let of_best: Vec<f64> = usable.iter().filter(|(rank, _)| *rank == best).map(|(_, cost)| *cost).collect();
            if let Some(median) = compute_median(&of_best) {
                costs.entry(&key.arm).or_default().entry(key.pulls).or_default().insert(key.role, median);
            }
        }
        Self { costs, reasons }
    }

    /// The costs of the fresh copy and of the aged volume at the last checkpoint that has both.
    fn of(&self, arm: &str) -> Result<(f64, f64), String> {
        let checkpoints = self.costs.get(arm).into_iter().flat_map(|checkpoints| checkpoints.iter().rev());
        // The first checkpoint is before any aging.
        let aged = checkpoints.filter(|(pulls, _)| **pulls > 0).find_map(|(_, roles)| {
            let aged = roles.get(&Role::Full).or_else(|| roles.get(&Role::Empty))?;
            Some((*roles.get(&Role::Unaged)?, *aged))
        });
        aged.ok_or_else(|| self.reasons.get(arm).map_or("no checkpoint has both volumes", |reason| reason).to_owned())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use senesce_store::{CellRow, CircumstanceRow, ModelledRow};

    use super::*;

    /// A campaign of two file systems, two workloads and two seeds; one task failed.
    pub(in crate::campaign) fn results() -> Results {
        let mut results = Results::default();
        let mut number = 0;
        for seed in 1..=2 {
            for workload in ["git", "mail"] {
                for (file_system, slowdown) in [("ext4", 2.0), ("xfs", 4.0)] {
                    let arm = format!("{file_system}.{workload}.s{seed}");
                    let failed = (file_system, workload) == ("xfs", "mail");
                    let key = |role, pulls| CellKey { arm: arm.clone(), file_system: file_system.into(), role, pulls };
                    for (role, pulls, cost) in [
                        (Role::Empty, 0, 1.0),
                        (Role::Unaged, 0, 1.0),
                        (Role::Empty, 40, slowdown * f64::from(seed)),
                        (Role::Unaged, 40, f64::from(seed)),
                    ] {
                        let reason = if failed { "the disk is gone" } else { "" };
                        results.cells.push(CellRow::without_figures(key(role, pulls), reason));
                        let modelled = |method: &str, cost| ModelledRow {
                            key: key(role, pulls),
                            device: "d".into(),
                            method: method.into(),
                            seconds: cost,
                            best_order_seconds: cost,
                            seconds_per_gib: cost,
                            requests: 1,
                            read_bytes: 1,
                        };
                        results.modelled.push(modelled("virtual-time", cost));
                        results.modelled.push(modelled("extents", 99.0));
                    }
                    let seed = seed.to_string();
                    let values = [file_system, workload, "hdd-7200", "host", &seed];
                    let task = ("campaign.task", number.to_string());
                    let axes = AXES.into_iter().zip(values.map(str::to_owned)).chain([task]);
                    results.circumstances.extend(axes.map(|(key, value)| CircumstanceRow {
                        arm: arm.clone(),
                        key: key.to_owned(),
                        value,
                    }));
                    number += 1;
                }
            }
        }
        results
    }

    #[test]
    fn slowdown_uses_virtual_time_of_the_last_checkpoint() {
        let atlas = Atlas::collect(&results()).unwrap();
        assert_eq!(atlas.file_systems, ["xfs", "ext4"], "the largest slowdown first");
        assert_eq!(atlas.workloads, ["git", "mail"]);
        let of = |file_system: &str, workload: &str| {
            let key = ("hdd-7200".to_owned(), file_system.to_owned(), workload.to_owned());
            atlas.slowdowns.get(&key).map(|slowdown| (slowdown.spread.median, slowdown.spread.count))
        };
        assert_eq!((of("ext4", "git"), of("xfs", "git"), of("xfs", "mail")), (Some((2.0, 2)), Some((4.0, 2)), None));
        assert_eq!(atlas.failed.len(), 2);
        assert_eq!(atlas.mean_slowdown("hdd-7200", "ext4").map(|mean| (mean * 1e6).round()), Some(2e6));
    }

    #[test]
    fn ranks_compare_workloads_that_all_have() {
        let atlas = Atlas::collect(&results()).unwrap();
        let costs = atlas.relative_costs("hdd-7200");
        // The median fresh cost of git is 1.5.
        let expected = |aged: [f64; 2]| aged.map(|cost| cost / 1.5).to_vec();
        assert_eq!((costs[0].name.as_str(), &costs[0].aged), ("xfs", &expected([4.0, 8.0])));
        assert_eq!((costs[1].name.as_str(), &costs[1].aged), ("ext4", &expected([2.0, 4.0])));
        assert!(atlas.relative_costs("nvme").is_empty());
    }
}

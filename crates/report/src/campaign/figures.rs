//! The costs of a campaign's tasks, by the axes of the grid.

use std::collections::{BTreeMap, BTreeSet};

use senesce_core::{
    Seed,
    statistics::{Figures, Spread, compute_median, compute_spread},
};
use senesce_store::{Results, Role};
use serde::Serialize;

use super::{
    in_order,
    planned::{PlannedTasks, TASK},
};
use crate::{devices::short, format::count, model::words};

/// The costs of one arm at its last checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TaskFigures {
    pub arm: String,
    /// The number of the task. A task can have several arms.
    #[serde(skip)]
    pub number: u64,
    /// The arm in its task, with the kernel if the campaign has several: what tables compare.
    pub name: String,
    pub file_system: String,
    pub workload: String,
    pub device: String,
    pub kernel: String,
    pub seed: String,
    #[serde(flatten)]
    pub costs: ArmCosts,
}

/// The costs of an arm, both by one method on one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ArmCosts {
    pub series: String,
    /// Seconds per GiB of a fresh copy.
    pub fresh: f64,
    /// Seconds per GiB of the aged volume: the nearly full one, if the plan has one.
    pub aged: f64,
}

/// The slowdown of a file system under a workload, over the seeds.
#[derive(Clone, Debug)]
pub(super) struct Slowdown {
    pub spread: Spread,
}

/// The costs of file systems over those of fresh copies, one value for each workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RelativeCosts {
    pub figures: Vec<Figures>,
    /// Workloads that not all of them have.
    pub left_out: Vec<String>,
}

/// The figures of a campaign. Invalid cells are left out.
pub(super) struct Atlas {
    pub figures: Vec<TaskFigures>,
    /// Names of file systems, in the order of the mean slowdown, the largest first.
    pub file_systems: Vec<String>,
    pub workloads: Vec<String>,
    pub devices: Vec<String>,
    /// By device, file system and workload.
    pub slowdowns: BTreeMap<(String, String, String), Slowdown>,
    /// The releases of each kernel.
    pub releases: BTreeMap<String, BTreeSet<String>>,
    /// The number of planned tasks, and the names of those without a result.
    pub planned: (u64, Vec<String>),
    /// The names of planned devices for readers.
    titles: BTreeMap<String, String>,
    /// Arms without a slowdown, and why.
    pub failed: Vec<(String, String)>,
    /// The number of tasks that have such an arm.
    pub failed_tasks: u64,
    /// The number of tasks with valid figures and other invalid cells.
    pub partly_invalid_tasks: u64,
    /// Arms that have a slowdown and an invalid cell, each with its first such cell and the reason.
    pub partly_invalid: Vec<(String, String)>,
}

/// The circumstances that a merge adds to an arm.
const AXES: [&str; 7] = [
    "campaign.file_system",
    "campaign.workload",
    "campaign.device",
    "campaign.kernel",
    "campaign.seed",
    TASK,
    "campaign.arm",
];

impl Atlas {
    /// Collects the figures. `None`: the results are not those of a campaign.
    pub(super) fn collect(results: &Results, planned: &PlannedTasks) -> Option<Self> {
        let mut axes: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
        for row in results.circumstances.iter().filter(|row| AXES.contains(&row.key.as_str())) {
            axes.entry(&row.arm).or_default().insert(&row.key, &row.value);
        }
        let number = |values: &BTreeMap<&str, &str>| -> Option<u64> { values.get(AXES[5])?.parse().ok() };
        let mut arms: Vec<(u64, &str)> =
            axes.iter().filter_map(|(arm, values)| Some((number(values)?, *arm))).collect();
        arms.sort_unstable();
        if arms.is_empty() {
            return None;
        }
        let missing = || planned.missing.iter();
        let kernels: BTreeSet<&str> = axes.values().filter_map(|values| values.get(AXES[3]).copied()).collect();
        let has_kernels =
            kernels.into_iter().chain(missing().map(|task| task.kernel.as_str())).collect::<BTreeSet<_>>().len() > 1;
        let name_of = |own: &str, kernel: &str| if has_kernels { format!("{own} ({kernel})") } else { own.to_owned() };
        let costs = Costs::collect(results);
        let (mut figures, mut failed, mut failed_tasks) = (Vec::new(), Vec::new(), BTreeSet::new());
        // The name, workload and device of each arm, with and without a slowdown.
        let mut places: Vec<[String; 3]> = Vec::new();
        for (number, arm) in arms {
            let axis = |key: &str| axes[arm].get(key).map_or_else(String::new, |value| (*value).to_owned());
            // Engines and arms with gc of one file system differ in the name alone.
            let own = axes[arm].get(AXES[6]).map_or_else(|| axis(AXES[0]), |own| (*own).to_owned());
            let (kernel, workload, device) = (axis(AXES[3]), axis(AXES[1]), axis(AXES[2]));
            let name = name_of(&own, &kernel);
            places.push([name.clone(), workload.clone(), device.clone()]);
            match costs.of(arm) {
                Ok(costs) => figures.push(TaskFigures {
                    arm: arm.to_owned(),
                    number,
                    name,
                    file_system: axis(AXES[0]),
                    workload,
                    device,
                    kernel,
                    seed: axis(AXES[4]),
                    costs,
                }),
                Err(reason) => {
                    failed.push((arm.to_owned(), reason));
                    failed_tasks.insert(number);
                }
            }
        }
        // The arms of a missing task are not known. Its file system has a row of its own only if no
        // arm has this file system.
        let with_arm: BTreeSet<String> =
            axes.values().filter_map(|values| Some(name_of(values.get(AXES[0])?, values.get(AXES[3])?))).collect();
        let absent: Vec<String> = missing()
            .map(|task| name_of(&task.file_system, &task.kernel))
            .filter(|name| !with_arm.contains(name))
            .collect();
        let mut first_invalid = BTreeMap::new();
        for cell in results.cells.iter().filter(|cell| !cell.valid) {
            first_invalid.entry(cell.key.arm.as_str()).or_insert(cell);
        }
        let invalid_cell = |task: &TaskFigures| {
            let cell = first_invalid.get(task.arm.as_str())?;
            let volume = words(cell.key.role);
            Some((task.arm.clone(), format!("{volume} at checkpoint {}: {}", count(cell.key.pulls), cell.reason)))
        };
        let partly_invalid: Vec<_> = figures.iter().filter_map(invalid_cell).collect();
        let is_partly = |task: &&TaskFigures| first_invalid.contains_key(task.arm.as_str());
        let partly_invalid_tasks: BTreeSet<u64> = figures.iter().filter(is_partly).map(|task| task.number).collect();
        let partly_invalid_tasks = partly_invalid_tasks.len() as u64;
        let mut of_cells: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for task in &figures {
            let key = (task.device.clone(), task.name.clone(), task.workload.clone());
            of_cells.entry(key).or_default().push(task.costs.aged / task.costs.fresh);
        }
        let mut releases: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in &results.circumstances {
            let is_release = row.key.rsplit('.').next() == Some("kernel_release");
            let kernel = axes.get(row.arm.as_str()).and_then(|values| values.get(AXES[3]));
            if let Some(kernel) = kernel.filter(|_| is_release) {
                releases.entry((*kernel).to_owned()).or_default().insert(row.value.clone());
            }
        }
        let spread = |(key, values): (_, Vec<f64>)| Some((key, Slowdown { spread: compute_spread(&values, Seed(1))? }));
        let mut atlas = Self {
            file_systems: in_order(places.iter().map(|[name, ..]| name).chain(&absent)),
            workloads: in_order(
                places.iter().map(|[_, workload, _]| workload).chain(missing().map(|task| &task.workload)),
            ),
            devices: in_order(places.iter().map(|[.., device]| device).chain(missing().map(|task| &task.device))),
            slowdowns: of_cells.into_iter().filter_map(spread).collect(),
            releases,
            planned: (planned.all, missing().map(|task| task.words.clone()).collect()),
            titles: missing().map(|task| (task.device.clone(), task.device_title.clone())).collect(),
            figures,
            failed,
            failed_tasks: failed_tasks.len() as u64,
            partly_invalid_tasks,
            partly_invalid,
        };
        let mut file_systems = std::mem::take(&mut atlas.file_systems);
        let first = atlas.devices.first().cloned().unwrap_or_default();
        let mean = |name: &String| atlas.mean_slowdown(&first, name).unwrap_or(0.0);
        file_systems.sort_by(|a, b| mean(b).total_cmp(&mean(a)).then(a.cmp(b)));
        atlas.file_systems = file_systems;
        Some(atlas)
    }

    /// The number of tasks with a slowdown.
    pub(super) fn count_with_slowdown(&self) -> u64 {
        self.figures.iter().map(|task| task.number).collect::<BTreeSet<_>>().len() as u64
    }

    /// The name of a device for readers: the name of its model if all its costs are of one model,
    /// else its name in the plan.
    pub(super) fn label<'a>(&'a self, device: &'a str) -> &'a str {
        let of_device = || self.figures.iter().filter(|task| task.device == device);
        if of_device().next().is_none() {
            return self.titles.get(device).map_or(device, String::as_str);
        }
        let mut models =
            of_device().map(|task| task.costs.series.split_once(' ').filter(|(how, _)| *how != METHODS[2]));
        let Some(Some((_, first))) = models.next() else { return device };
        if models.all(|model| model.is_some_and(|(_, model)| model == first)) { short(first) } else { device }
    }

    /// Whether all costs are those of models.
    pub(super) fn is_modelled(&self) -> bool {
        self.figures.iter().all(|task| !task.costs.series.starts_with(METHODS[2]))
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

    /// The costs of the file systems over the median cost of fresh copies of the same workload: one
    /// value for each workload, the median over its seeds. Only workloads that all the file systems
    /// have count, and only costs of the usual method and device.
    pub(super) fn relative_costs(&self, device: &str) -> RelativeCosts {
        let of_device = self.figures.iter().filter(|task| task.device == device);
        let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
        of_device.clone().for_each(|task| *uses.entry(&task.costs.series).or_default() += 1);
        let Some((usual, _)) = uses.into_iter().rev().max_by_key(|(_, uses)| *uses) else {
            return RelativeCosts::default();
        };
        let mut values: BTreeMap<(&str, &str), Vec<&ArmCosts>> = BTreeMap::new();
        for task in of_device.filter(|task| task.costs.series == usual) {
            values.entry((&task.name, &task.workload)).or_default().push(&task.costs);
        }
        let names: Vec<&String> =
            self.file_systems.iter().filter(|name| values.keys().any(|(of, _)| of == name)).collect();
        let is_common =
            |workload: &&String| names.iter().all(|name| values.contains_key(&(name.as_str(), workload.as_str())));
        let (common, others): (Vec<&String>, Vec<&String>) = self.workloads.iter().partition(is_common);
        let base: Vec<Option<f64>> = common
            .iter()
            .map(|workload| {
                let costs = values.iter().filter(|((_, of), _)| of == workload).flat_map(|(_, costs)| costs);
                compute_median(&costs.map(|costs| costs.fresh).collect::<Vec<f64>>())
            })
            .collect();
        let relative = |name: &str, is_aged: bool| -> Vec<f64> {
            let of_workload = |(workload, base): (&&String, &Option<f64>)| {
                let costs = values.get(&(name, workload.as_str()))?.iter();
                let costs: Vec<f64> = costs.map(|costs| if is_aged { costs.aged } else { costs.fresh }).collect();
                Some(compute_median(&costs)? / (*base)?)
            };
            common.iter().zip(&base).filter_map(of_workload).collect()
        };
        let figures = names.iter().map(|name| Figures {
            name: (*name).clone(),
            aged: relative(name, true),
            unaged: relative(name, false),
        });
        let left_out = others.into_iter().filter(|workload| values.keys().any(|(_, of)| of == workload));
        RelativeCosts {
            figures: figures.filter(|figures| !figures.aged.is_empty()).collect(),
            left_out: left_out.cloned().collect(),
        }
    }
}

/// The method of a cost, the best first, and its device or program. A time on a modelled disk is
/// better than a prediction from places, and both are better than the time of the machine.
type Series<'a> = (u8, &'a str);

const METHODS: [&str; 3] = ["virtual-time", "extents", "wall-time"];

/// The costs of reading cells, seconds per GiB.
struct Costs<'a> {
    /// By arm, checkpoint and volume, then by method and device.
    costs: BTreeMap<(&'a str, u64, Role), BTreeMap<Series<'a>, f64>>,
    /// The last checkpoint of each arm and its volumes there, with the reason of an invalid one.
    last: BTreeMap<&'a str, (u64, BTreeMap<Role, Option<&'a str>>)>,
}

impl<'a> Costs<'a> {
    fn collect(results: &'a Results) -> Self {
        let mut last: BTreeMap<&str, (u64, BTreeMap<Role, Option<&str>>)> = BTreeMap::new();
        for cell in &results.cells {
            let (pulls, roles) = last.entry(&cell.key.arm).or_default();
            if cell.key.pulls > *pulls {
                (*pulls, *roles) = (cell.key.pulls, BTreeMap::new());
            }
            if cell.key.pulls == *pulls {
                roles.insert(cell.key.role, (!cell.valid).then_some(cell.reason.as_str()));
            }
        }
        let mut rows: BTreeMap<(&str, u64, Role), BTreeMap<Series<'_>, Vec<f64>>> = BTreeMap::new();
        let modelled = results.modelled.iter().filter_map(|row| {
            let method = METHODS[..2].iter().position(|method| *method == row.method)?;
            Some((&row.key, (method as u8, row.device.as_str()), row.seconds_per_gib))
        });
        let measured = results.counted_grep().map(|row| (&row.key, (2, row.scanner.as_str()), row.seconds_per_gib));
        for (key, series, cost) in modelled.chain(measured).filter(|(.., cost)| cost.is_finite() && *cost > 0.0) {
            rows.entry((&*key.arm, key.pulls, key.role)).or_default().entry(series).or_default().push(cost);
        }
        let median = |(series, costs): (_, Vec<f64>)| Some((series, compute_median(&costs)?));
        let costs = rows.into_iter().map(|(key, rows)| (key, rows.into_iter().filter_map(median).collect()));
        Self { costs: costs.collect(), last }
    }

    /// The costs of the fresh copy and of the aged volume at the last planned checkpoint, by the
    /// best method that both have.
    fn of(&self, arm: &str) -> Result<ArmCosts, String> {
        let none = || "it has no cell after aging".to_owned();
        // The first checkpoint is before any aging.
        let (pulls, roles) = self.last.get(arm).filter(|(pulls, _)| *pulls > 0).ok_or_else(none)?;
        let aged = if roles.contains_key(&Role::Full) { Role::Full } else { Role::Empty };
        for role in [aged, Role::Unaged] {
            match roles.get(&role) {
                None => return Err(format!("the last checkpoint has no volume {}", role.name())),
                Some(Some(reason)) => return Err((*reason).to_owned()),
                Some(None) => {}
            }
        }
        let of = |role: Role| self.costs.get(&(arm, *pulls, role));
        let both = of(aged).zip(of(Role::Unaged)).and_then(|(aged, fresh)| {
            aged.iter().find_map(|(series, aged)| Some((*series, *fresh.get(series)?, *aged)))
        });
        let ((method, device), fresh, aged) = both.ok_or("no method has the costs of both volumes")?;
        let series = format!("{} {device}", METHODS[usize::from(method)]).trim_end().to_owned();
        Ok(ArmCosts { series, fresh, aged })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use senesce_store::{CellKey, CellRow, CircumstanceRow, ModelledRow};

    use super::*;
    use crate::campaign::merged_tasks;

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
                    let number_text = number.to_string();
                    let values = [file_system, workload, "hdd-7200", "host", &seed, &number_text, file_system];
                    let axes = AXES.into_iter().zip(values.map(str::to_owned));
                    let release = ("empty.kernel_release", "6.1".to_owned());
                    let axes = axes.chain([release]);
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

    /// A plan whose tasks all have results.
    pub(in crate::campaign) fn all(results: &Results) -> PlannedTasks {
        PlannedTasks { all: merged_tasks(results).len() as u64, missing: Vec::new() }
    }

    #[test]
    fn slowdown_uses_virtual_time_of_the_last_checkpoint() {
        let atlas = Atlas::collect(&results(), &all(&results())).unwrap();
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
    fn ranks_have_one_value_for_each_workload_that_all_have() {
        let atlas = Atlas::collect(&results(), &all(&results())).unwrap();
        let RelativeCosts { figures, left_out } = atlas.relative_costs("hdd-7200");
        // The median costs of git are 1.5 fresh, 6 aged with XFS and 3 with ext4.
        assert_eq!(
            (figures[0].name.as_str(), &figures[0].aged[..], &figures[0].unaged[..]),
            ("xfs", &[4.0][..], &[1.0][..])
        );
        assert_eq!(
            (figures[1].name.as_str(), &figures[1].aged[..], &figures[1].unaged[..]),
            ("ext4", &[2.0][..], &[1.0][..])
        );
        assert_eq!(left_out, ["mail"]);
        assert_eq!(atlas.relative_costs("nvme"), RelativeCosts::default());
    }

    /// Sets a circumstance of an arm.
    fn set(results: &mut Results, arm: &str, key: &str, value: &str) {
        let mut rows = results.circumstances.iter_mut();
        rows.find(|row| row.arm == arm && row.key == key).unwrap().value = value.to_owned();
    }

    #[test]
    fn engines_and_kernels_are_no_repetitions() {
        let mut results = results();
        set(&mut results, "ext4.git.s2", "campaign.arm", "ext4-git");
        let atlas = Atlas::collect(&results, &all(&results)).unwrap();
        assert_eq!(atlas.file_systems, ["xfs", "ext4", "ext4-git"]);
        let counts =
            atlas.slowdowns.iter().map(|((_, name, workload), slowdown)| (&**name, &**workload, slowdown.spread.count));
        let expected = [("ext4", "git", 1), ("ext4", "mail", 2), ("ext4-git", "git", 1), ("xfs", "git", 2)];
        assert_eq!(counts.collect::<Vec<_>>(), expected);
        for (key, value) in [("campaign.kernel", "uml"), ("empty.kernel_release", "6.6")] {
            set(&mut results, "xfs.git.s1", key, value);
        }
        let atlas = Atlas::collect(&results, &all(&results)).unwrap();
        assert_eq!(atlas.file_systems, ["xfs (host)", "xfs (uml)", "ext4 (host)", "ext4-git (host)"]);
        let releases: Vec<_> = atlas.releases.iter().map(|(kernel, all)| (kernel.as_str(), all.len())).collect();
        assert_eq!(releases, [("host", 1), ("uml", 1)]);
    }

    #[test]
    fn both_costs_are_of_one_volume_checkpoint_method_and_device() {
        let arm = "ext4.git.s1";
        let of = |results: &Results| {
            let atlas = Atlas::collect(results, &all(results)).unwrap();
            let found = atlas.figures.iter().find(|task| task.arm == arm).map(|task| task.costs.clone());
            found.ok_or_else(|| atlas.failed.iter().find(|(failed, _)| failed == arm).unwrap().1.clone())
        };
        let is_cell = |key: &CellKey, role: Role, pulls: u64| key.arm == arm && key.role == role && key.pulls == pulls;
        // The fresh copy has no virtual time: both costs are predictions.
        let mut other_method = results();
        other_method.modelled.retain(|row| !(is_cell(&row.key, Role::Unaged, 40) && row.method == "virtual-time"));
        assert_eq!(of(&other_method), Ok(ArmCosts { series: "extents d".into(), fresh: 99.0, aged: 99.0 }));
        // The two devices are not mixed.
        let mut other_device = other_method.clone();
        for row in other_device.modelled.iter_mut().filter(|row| is_cell(&row.key, Role::Unaged, 40)) {
            row.device = "e".into();
        }
        assert_eq!(of(&other_device), Err("no method has the costs of both volumes".into()));
        // An invalid cell at the last checkpoint is not replaced by one of an earlier checkpoint.
        let mut earlier = results();
        for mut cell in earlier.cells.clone().into_iter().filter(|cell| cell.key.arm == arm && cell.key.pulls == 40) {
            cell.key.pulls = 80;
            (cell.valid, cell.reason) = (false, "it was killed".into());
            earlier.cells.push(cell);
        }
        assert_eq!(of(&earlier), Err("it was killed".into()));
        // A plan with a full volume has no cost without it.
        let mut full = results();
        let key = CellKey { arm: arm.into(), file_system: "ext4".into(), role: Role::Full, pulls: 40 };
        full.cells.push(CellRow::without_figures(key, "it does not fit"));
        assert_eq!(of(&full), Err("it does not fit".into()));
    }
}

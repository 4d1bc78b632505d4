//! Results arranged for reading: per arm, volume and checkpoint, with medians, spreads and ratios.

use std::collections::{BTreeMap, BTreeSet};

use senesce_store::{CellKey, GrepRow, Results, Role};

use crate::arm_colour::arm_classes;
use crate::arm_order::by_effect;
use crate::devices::{DeviceOrder, METHOD_TRACE, METHOD_VIRTUAL_TIME, TRACED, VIRTUAL_TIME};
use crate::noise::{Alike, Noise, noise_bands};
use crate::plans::Plans;
use crate::slowdown::slowdown;
pub(crate) use crate::spread::Spread;
use crate::workload::x_title;
use crate::write_amplification::{amplification_of_all, amplified};

/// The operations whose latencies have drawings: their names in table `latency`, and for readers.
pub(crate) const OPERATIONS: [(&str, &str); 15] = [
    ("all", "all but syncs"),
    ("create", "create"),
    ("write", "write"),
    ("read", "read"),
    ("allocate", "allocate"),
    ("truncate", "truncate"),
    ("mkdir", "mkdir"),
    ("rmdir", "rmdir"),
    ("rename", "rename"),
    ("unlink", "unlink"),
    ("remove-tree", "remove tree"),
    ("symlink", "symlink"),
    ("link", "link"),
    ("fsync", "fsync"),
    ("syncfs", "syncfs"),
];

/// Names of the quantiles of latencies, in the order of [`Model::latency`]'s figures.
pub(crate) const QUANTILES: [(&str, &str); 3] = [
    ("p50", "p50 (ms): half take longer"),
    ("p99", "p99 (ms): 1 in 100 takes longer"),
    ("p99.9", "p99.9 (ms): 1 in 1,000 takes longer"),
];

/// The cost of counted steps, each per step.
#[derive(Default)]
pub(crate) struct StepCosts {
    /// Seconds within operations, without those that synchronise.
    pub seconds: Lines,
    /// Seconds with synchronising.
    pub seconds_with_sync: Lines,
    /// MiB of content per second of `seconds`.
    pub rate: Lines,
    /// MiB of content per second of `seconds_with_sync`.
    pub rate_with_sync: Lines,
    /// Seconds of a disk in virtual time.
    pub disk_seconds: Lines,
    /// MiB of content per second of it.
    pub disk_rate: Lines,
}

/// Buckets (smallest value in bytes, requests, bytes) by arm and volume, of the last traced
/// checkpoint of the plan.
pub(crate) type Histograms = BTreeMap<(String, Role), Vec<(u64, u64, u64)>>;

/// Reads of the traced grep tests.
#[derive(Default)]
pub(crate) struct TraceFigures {
    pub dynamic_score: Lines,
    /// KiB of a chain: requests that follow each other on the device.
    pub chain_kib: Lines,
    /// KiB of a request.
    pub request_kib: Lines,
    pub sizes: Histograms,
    pub seeks: Histograms,
}

/// Figures of one kind by checkpoint.
pub(crate) type Line = BTreeMap<u64, Spread>;
/// Figures of one kind by arm and volume, then checkpoint.
pub(crate) type Lines = BTreeMap<(String, Role), Line>;

/// Buckets (smallest extent, bytes in it; both bytes) by checkpoint.
pub(crate) type Buckets = BTreeMap<u64, Vec<(u64, u64)>>;

/// Method of a grep test: scanner, order, cache.
pub(crate) type Method = (String, String, String);

pub(crate) const ROLES: [Role; 3] = [Role::Full, Role::Empty, Role::Unaged];

/// The name of a volume for readers. Plans, tables and classes have the short name, [`Role::name`].
pub(crate) fn words(role: Role) -> &'static str {
    match role {
        Role::Full => "nearly full",
        Role::Empty => "roomy",
        Role::Unaged => "fresh copy",
        Role::CuredFull => "nearly full, cured",
        Role::CuredEmpty => "roomy, cured",
    }
}

/// A cell with repetitions of the grep test that other work disturbed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DisturbedCell {
    /// Repetitions that were disturbed.
    pub disturbed: usize,
    /// All repetitions.
    pub repetitions: usize,
    /// The disturbance of the first of them, in words.
    pub reason: String,
}

/// The results, arranged. Measurements of invalid cells are left out.
pub(crate) struct Model<'a> {
    pub results: &'a Results,
    /// The unit of checkpoints, in the plural: `pulls`.
    pub unit: String,
    /// The title of the axis of checkpoints.
    pub x_title: String,
    /// Arms with their file systems, the one with the largest effect first (see
    /// [`crate::arm_order`]).
    pub arms: Vec<(String, String)>,
    /// The classes with the colours of arms (see [`crate::arm_colour`]).
    pub arm_classes: BTreeMap<String, String>,
    /// Whether all volumes settle, so that two runs of the plan place blocks alike.
    pub settles: bool,
    /// Checkpoints of any arm.
    pub checkpoints: Vec<u64>,
    /// The plans of the arms.
    pub plans: Plans,
    /// Invalid cells and why.
    pub invalid: BTreeMap<(String, Role, u64), String>,
    /// Cells that other work disturbed.
    pub disturbed: BTreeMap<(String, Role, u64), DisturbedCell>,
    /// The noise bands of arms, by `method`.
    pub noise: BTreeMap<String, Noise>,
    /// The method of the charts and of the summary.
    pub method: Option<Method>,
    /// Seconds per GiB, per method.
    pub grep: BTreeMap<Method, Lines>,
    /// Grep cost over the unaged one of the same checkpoint (medians), by `method`.
    pub slowdown: Lines,
    /// FUSE floor, seconds per GiB of the volume's tree; of file systems that are mounted through
    /// FUSE.
    pub fuse_floor: Lines,
    /// Modelled seconds per GiB, per device, and per `DEVICE, virtual time` where the volumes were
    /// such disks.
    pub modelled: BTreeMap<String, Lines>,
    /// The order of the devices, from `modelled` and `plans`.
    pub device_order: DeviceOrder,
    /// Modelled cost over the unaged one of the same checkpoint, per device.
    pub modelled_slowdown: BTreeMap<String, Lines>,
    pub layout_score: Lines,
    pub extents_per_file: Lines,
    pub adjacent_files_share: Lines,
    /// Percent of the capacity in use.
    pub fullness: Lines,
    /// Steps per second.
    pub aging_speed: Lines,
    /// Bytes written to the device for each byte of content, since the checkpoint before.
    pub write_amplification: Lines,
    /// The same from the first step on.
    pub write_amplification_of_all: BTreeMap<(String, Role), f64>,
    pub steps: StepCosts,
    /// Milliseconds of the three quantiles, by operation.
    pub latency: BTreeMap<&'static str, [Lines; 3]>,
    pub trace: TraceFigures,
    /// Bytes per bucket and checkpoint.
    pub free_space: BTreeMap<(String, Role), Buckets>,
}

impl<'a> Model<'a> {
    pub(crate) fn compute(results: &'a Results) -> Self {
        // The section of cures has the cured volumes: they are at the same checkpoints as the
        // others.
        let is_aging = |cell: &&senesce_store::CellRow| cell.valid && !cell.key.role.is_cured();
        let valid: BTreeSet<&CellKey> = results.cells.iter().filter(is_aging).map(|cell| &cell.key).collect();
        let arms: BTreeSet<_> =
            results.cells.iter().map(|cell| (cell.key.arm.clone(), cell.key.file_system.clone())).collect();
        let checkpoints: BTreeSet<_> = results.cells.iter().map(|cell| cell.key.pulls).collect();
        let invalid = results.cells.iter().filter(|cell| !cell.valid);
        // Disturbed repetitions are left out, unless a cell has no others.
        let grep = grep_lines(results.counted_grep().filter(|row| valid.contains(&row.key)));
        let method = main_method(&grep);
        let floors = results.grep.iter().filter(|row| valid.contains(&row.key));
        let floor = |row: &GrepRow| row.fuse_floor_seconds * (1u64 << 30) as f64 / row.allocated_bytes as f64;
        let layout = |figure: fn(&senesce_store::LayoutRow) -> f64| {
            let rows = results.layout.iter().filter(|row| valid.contains(&row.key));
            lines(rows.map(|row| (&row.key, figure(row))))
        };
        let mut modelled: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for row in results.modelled.iter().filter(|row| valid.contains(&row.key)) {
            // The prediction from a map and the cost of the traced requests are different figures
            // of one device.
            let device = match row.method.as_str() {
                METHOD_VIRTUAL_TIME => format!("{}{VIRTUAL_TIME}", row.device),
                METHOD_TRACE => format!("{}{TRACED}", row.device),
                _ => row.device.clone(),
            };
            modelled.entry(device).or_default().push((&row.key, row.seconds_per_gib));
        }
        let modelled: BTreeMap<String, Lines> =
            modelled.into_iter().map(|(device, rows)| (device, lines(rows.into_iter()))).collect();
        let aging = results.aging.iter().filter(|row| valid.contains(&row.key) && row.wall_seconds > 0.0);
        let mut free_space: BTreeMap<_, Buckets> = BTreeMap::new();
        for row in results.free_space.iter().filter(|row| valid.contains(&row.key)) {
            let checkpoints = free_space.entry((row.key.arm.clone(), row.key.role)).or_default();
            checkpoints.entry(row.key.pulls).or_default().push((row.bucket_bytes, row.bytes));
        }
        let plans = Plans::of(results);
        let unit = results.circumstances.iter().find(|row| row.arm.is_empty() && row.key == "workload.step_unit");
        let mut model = Self {
            results,
            x_title: String::new(),
            unit: unit.map_or_else(|| "pulls".to_owned(), |row| row.value.clone()),
            arm_classes: arm_classes(arms.iter().map(|(arm, kind)| (arm.as_str(), kind.as_str()))),
            arms: arms.into_iter().collect(),
            settles: settles(results),
            checkpoints: checkpoints.into_iter().collect(),
            invalid: invalid
                .map(|cell| ((cell.key.arm.clone(), cell.key.role, cell.key.pulls), cell.reason.clone()))
                .collect(),
            disturbed: disturbed_cells(results, &valid),
            noise: method.as_ref().map(|method| noise_bands(&grep[method])).unwrap_or_default(),
            slowdown: method.as_ref().map(|method| slowdown(&grep[method])).unwrap_or_default(),
            method,
            grep,
            fuse_floor: lines(floors.map(|row| (&row.key, floor(row)))),
            modelled_slowdown: modelled.iter().map(|(device, lines)| (device.clone(), slowdown(lines))).collect(),
            modelled,
            device_order: DeviceOrder::default(),
            layout_score: layout(|row| row.layout_score),
            extents_per_file: layout(|row| row.extents_per_file),
            adjacent_files_share: layout(|row| row.adjacent_files_share),
            fullness: lines(
                results
                    .cells
                    .iter()
                    .filter(|cell| valid.contains(&cell.key))
                    .map(|cell| (&cell.key, 100.0 * cell.used_bytes as f64 / cell.capacity_bytes as f64)),
            ),
            write_amplification: lines(amplified(results, &valid)),
            write_amplification_of_all: amplification_of_all(results, &valid),
            aging_speed: lines(aging.map(|row| (&row.key, row.steps as f64 / row.wall_seconds))),
            steps: step_costs(results, &valid),
            latency: latency(results, &valid),
            trace: trace_figures(results, &valid, &plans),
            plans,
            free_space,
        };
        model.device_order = DeviceOrder::of(&model);
        model.x_title = x_title(&model);
        model.arms = by_effect(&model);
        model
    }

    /// Whether the modelled ratio of an aged volume to a fresh copy is a difference beyond chance.
    pub(crate) fn is_difference(&self, ratio: &Spread) -> bool {
        Alike::fresh(self.settles).is_difference(ratio)
    }

    /// The class with the colour of an arm.
    pub(crate) fn arm_class(&self, arm: &str) -> String {
        self.arm_classes.get(arm).cloned().unwrap_or_default()
    }

    /// The repetitions of a grep test that the plan requests. Those that other work disturbed are
    /// repeated, so a cell can have more.
    pub(crate) fn planned_repetitions(&self) -> Option<usize> {
        let rows = &self.results.circumstances;
        rows.iter().find(|row| row.arm.is_empty() && row.key == "measure.repetitions")?.value.parse().ok()
    }

    /// Grep cost by the method of the charts.
    pub(crate) fn grep_cost(&self) -> Lines {
        self.method.as_ref().map(|method| self.grep[method].clone()).unwrap_or_default()
    }

    /// The FUSE floor of an arm at the last checkpoint that has one, see [`Model::floor_at`].
    pub(crate) fn floor_of(&self, arm: &str) -> Option<f64> {
        let of_arm = self.fuse_floor.iter().filter(|((name, _), _)| name == arm);
        self.floor_at(arm, *of_arm.filter_map(|(_, line)| line.last_key_value()).map(|(pulls, _)| pulls).max()?)
    }

    /// The FUSE floor of an arm: the median over its volumes, seconds per GiB.
    pub(crate) fn floor_at(&self, arm: &str, pulls: u64) -> Option<f64> {
        let of_arm = self.fuse_floor.iter().filter(|((name, _), _)| name == arm);
        let medians = of_arm.filter_map(|(_, line)| line.get(&pulls)).map(|spread| spread.median);
        Spread::compute(medians).map(|all| all.median)
    }
}

/// Whether the run's volumes settle. Those of a plan without the key do not, and neither does a
/// volume whose circumstance `unsettled` names what the kernel lacks.
fn settles(results: &Results) -> bool {
    let mut rows = results.circumstances.iter();
    rows.clone().all(|row| !row.key.ends_with(".unsettled"))
        && rows.any(|row| row.arm.is_empty() && row.key == "workload.settle_every_operations" && row.value != "0")
}

fn disturbed_cells(results: &Results, valid: &BTreeSet<&CellKey>) -> BTreeMap<(String, Role, u64), DisturbedCell> {
    let mut cells: BTreeMap<_, DisturbedCell> = BTreeMap::new();
    for row in results.load.iter().filter(|row| valid.contains(&row.key)) {
        let key = (row.key.arm.clone(), row.key.role, row.key.pulls);
        let cell = cells.entry(key).or_default();
        cell.repetitions += 1;
        if !row.disturbance.is_empty() {
            cell.disturbed += 1;
            if cell.reason.is_empty() {
                cell.reason.clone_from(&row.disturbance);
            }
        }
    }
    cells.retain(|_, cell| cell.disturbed > 0);
    cells
}

fn grep_lines<'r>(rows: impl Iterator<Item = &'r GrepRow>) -> BTreeMap<Method, Lines> {
    let mut by_method: BTreeMap<Method, Vec<_>> = BTreeMap::new();
    for row in rows {
        let method = (row.scanner.clone(), row.order.clone(), row.cache.clone());
        by_method.entry(method).or_default().push((&row.key, row.seconds_per_gib));
    }
    by_method.into_iter().map(|(method, rows)| (method, lines(rows.into_iter()))).collect()
}

/// The method with most figures. Among equals: this program's scanner, then the first in order.
fn main_method(grep: &BTreeMap<Method, Lines>) -> Option<Method> {
    let figures = |lines: &Lines| lines.values().map(BTreeMap::len).sum::<usize>();
    let best = grep.iter().min_by_key(|(method, lines)| (usize::MAX - figures(lines), method.0 != "senesce"));
    best.map(|(method, _)| method.clone())
}

/// Figures of cells, arranged.
pub(crate) fn lines<'r>(figures: impl Iterator<Item = (&'r CellKey, f64)>) -> Lines {
    let mut values: BTreeMap<_, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    for (key, value) in figures {
        values.entry((key.arm.clone(), key.role)).or_default().entry(key.pulls).or_default().push(value);
    }
    let line = |points: BTreeMap<u64, Vec<f64>>| -> Line {
        points.into_iter().filter_map(|(pulls, values)| Some((pulls, Spread::compute(values)?))).collect()
    };
    values.into_iter().map(|(key, points)| (key, line(points))).filter(|(_, line)| !line.is_empty()).collect()
}

fn step_costs(results: &Results, valid: &BTreeSet<&CellKey>) -> StepCosts {
    let counted = || results.steps.iter().filter(|row| row.counted && valid.contains(&row.key));
    // The single operations of the git binary are not recorded.
    let work = |row: &senesce_store::StepRow| match row.operation_seconds.is_nan() {
        true => row.wall_seconds,
        false => row.operation_seconds,
    };
    let mib = |row: &senesce_store::StepRow| match row.written_bytes {
        0 => f64::NAN,
        bytes => bytes as f64 / (1u64 << 20) as f64,
    };
    StepCosts {
        seconds: lines(counted().map(|row| (&row.key, work(row)))),
        seconds_with_sync: lines(counted().map(|row| (&row.key, work(row) + row.sync_seconds))),
        rate: lines(counted().map(|row| (&row.key, mib(row) / work(row)))),
        rate_with_sync: lines(counted().map(|row| (&row.key, mib(row) / (work(row) + row.sync_seconds)))),
        disk_seconds: lines(counted().map(|row| (&row.key, row.disk_seconds))),
        disk_rate: lines(counted().map(|row| (&row.key, mib(row) / row.disk_seconds))),
    }
}

fn latency(results: &Results, valid: &BTreeSet<&CellKey>) -> BTreeMap<&'static str, [Lines; 3]> {
    let mut by_operation = BTreeMap::new();
    for (name, _) in OPERATIONS {
        let rows = || results.latency.iter().filter(|row| row.operation == name && valid.contains(&row.key));
        let quantiles = [
            lines(rows().map(|row| (&row.key, row.p50_seconds * 1e3))),
            lines(rows().map(|row| (&row.key, row.p99_seconds * 1e3))),
            lines(rows().map(|row| (&row.key, row.p99_9_seconds * 1e3))),
        ];
        if quantiles.iter().any(|lines| !lines.is_empty()) {
            by_operation.insert(name, quantiles);
        }
    }
    by_operation
}

fn trace_figures(results: &Results, valid: &BTreeSet<&CellKey>, plans: &Plans) -> TraceFigures {
    let reads = || results.trace.iter().filter(|row| row.access == "read" && valid.contains(&row.key));
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    for row in reads() {
        let known = last.entry(plans.name(&row.key.arm)).or_default();
        *known = (*known).max(row.key.pulls);
    }
    let is_last = |key: &CellKey| last.get(plans.name(&key.arm)) == Some(&key.pulls);
    let histograms = |histogram: &str| {
        let mut found = Histograms::new();
        let rows = results.trace_buckets.iter().filter(|row| row.access == "read" && row.histogram == histogram);
        for row in rows.filter(|row| is_last(&row.key) && valid.contains(&row.key)) {
            let buckets = found.entry((row.key.arm.clone(), row.key.role)).or_default();
            buckets.push((row.bucket_bytes, row.requests, row.bytes.unwrap_or(0)));
        }
        found
    };
    TraceFigures {
        dynamic_score: lines(reads().map(|row| (&row.key, row.dynamic_layout_score))),
        chain_kib: lines(reads().map(|row| (&row.key, row.blocks_per_chain * 4.0))),
        request_kib: lines(reads().map(|row| (&row.key, row.blocks_per_request * 4.0))),
        sizes: histograms("request-size"),
        seeks: histograms("seek-distance"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_cost_operations_or_wall_time_of_git() {
        let key = CellKey { arm: "a".into(), file_system: "ext4".into(), role: Role::Full, pulls: 5 };
        let step = |step, operation_seconds, sync_seconds| senesce_store::StepRow {
            key: key.clone(),
            step,
            counted: step < 2,
            operations: 3,
            written_bytes: 4 << 20,
            no_space: false,
            wall_seconds: 8.0,
            operation_seconds,
            sync_seconds,
            disk_seconds: 2.0 * operation_seconds,
        };
        let results = Results {
            steps: vec![step(0, 1.0, 3.0), step(1, f64::NAN, f64::NAN), step(2, 100.0, 100.0)],
            ..Results::default()
        };
        let costs = step_costs(&results, &BTreeSet::from([&key]));
        let of = |lines: &Lines| lines[&("a".to_owned(), Role::Full)][&5].values.clone();
        assert_eq!(of(&costs.seconds), [1.0, 8.0], "what does not count is left out");
        assert_eq!(of(&costs.rate), [0.5, 4.0]);
        assert_eq!((of(&costs.seconds_with_sync), of(&costs.rate_with_sync)), (vec![4.0], vec![1.0]));
        assert_eq!(
            (of(&costs.disk_seconds), of(&costs.disk_rate)),
            (vec![2.0], vec![2.0]),
            "where there is such a disk"
        );
        assert!(step_costs(&results, &BTreeSet::new()).seconds.is_empty(), "nothing of an invalid cell");
    }
}

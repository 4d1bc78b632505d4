//! Results arranged for reading: per arm, volume and checkpoint, with medians, spreads and ratios.

use std::collections::{BTreeMap, BTreeSet};

use senesce_store::{CellKey, GrepRow, Results, Role};

/// What follows a device's name where the volumes were that device, in virtual time.
pub(crate) const VIRTUAL_TIME: &str = ", virtual time";

/// Repetitions of one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// Repetitions.
    pub count: usize,
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// The spread of the numbers among `values`; none if there is no number.
    pub(crate) fn compute(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { count: values.len(), median, min, max })
    }
}

/// Figures of one kind by checkpoint.
pub(crate) type Line = BTreeMap<u64, Spread>;
/// Figures of one kind by arm and volume, then checkpoint.
pub(crate) type Lines = BTreeMap<(String, Role), Line>;

/// Buckets (smallest extent, bytes in it; both bytes) by checkpoint.
pub(crate) type Buckets = BTreeMap<u64, Vec<(u64, u64)>>;

/// How a grep test was done: scanner, order, cache.
pub(crate) type Method = (String, String, String);

pub(crate) const ROLES: [Role; 3] = [Role::Full, Role::Empty, Role::Unaged];

/// The results, arranged. Measurements of invalid cells are left out.
pub(crate) struct Model<'a> {
    pub results: &'a Results,
    /// Arms in order of name, with their file systems.
    pub arms: Vec<(String, String)>,
    /// Checkpoints of any arm.
    pub checkpoints: Vec<u64>,
    /// Invalid cells and why.
    pub invalid: BTreeMap<(String, Role, u64), String>,
    /// The method of the charts and of the summary.
    pub method: Option<Method>,
    /// Seconds per GiB, per method.
    pub grep: BTreeMap<Method, Lines>,
    /// Grep cost over the unaged one of the same checkpoint (medians), by `method`.
    pub slowdown: Lines,
    /// Modelled seconds per GiB, per device, and per `DEVICE, virtual time` where the volumes were such disks.
    pub modelled: BTreeMap<String, Lines>,
    /// Modelled cost over the unaged one of the same checkpoint, per device.
    pub modelled_slowdown: BTreeMap<String, Lines>,
    pub layout_score: Lines,
    pub extents_per_file: Lines,
    pub adjacent_files_share: Lines,
    /// Steps per second.
    pub aging_speed: Lines,
    /// Bytes per bucket and checkpoint.
    pub free_space: BTreeMap<(String, Role), Buckets>,
}

impl<'a> Model<'a> {
    pub(crate) fn compute(results: &'a Results) -> Self {
        let valid: BTreeSet<&CellKey> = results.cells.iter().filter(|cell| cell.valid).map(|cell| &cell.key).collect();
        let arms: BTreeSet<_> =
            results.cells.iter().map(|cell| (cell.key.arm.clone(), cell.key.file_system.clone())).collect();
        let checkpoints: BTreeSet<_> = results.cells.iter().map(|cell| cell.key.pulls).collect();
        let invalid = results.cells.iter().filter(|cell| !cell.valid);
        let grep = grep_lines(results.grep.iter().filter(|row| valid.contains(&row.key)));
        let method = main_method(&grep);
        let layout = |figure: fn(&senesce_store::LayoutRow) -> f64| {
            let rows = results.layout.iter().filter(|row| valid.contains(&row.key));
            lines(rows.map(|row| (&row.key, figure(row))))
        };
        let mut modelled: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for row in results.modelled.iter().filter(|row| valid.contains(&row.key)) {
            // What a map predicts and what a file system asked for are two figures of one device.
            let device = match row.method.as_str() {
                "virtual-time" => format!("{}{VIRTUAL_TIME}", row.device),
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
        Self {
            results,
            arms: arms.into_iter().collect(),
            checkpoints: checkpoints.into_iter().collect(),
            invalid: invalid
                .map(|cell| ((cell.key.arm.clone(), cell.key.role, cell.key.pulls), cell.reason.clone()))
                .collect(),
            slowdown: method.as_ref().map(|method| slowdown(&grep[method])).unwrap_or_default(),
            method,
            grep,
            modelled_slowdown: modelled.iter().map(|(device, lines)| (device.clone(), slowdown(lines))).collect(),
            modelled,
            layout_score: layout(|row| row.layout_score),
            extents_per_file: layout(|row| row.extents_per_file),
            adjacent_files_share: layout(|row| row.adjacent_files_share),
            aging_speed: lines(aging.map(|row| (&row.key, row.steps as f64 / row.wall_seconds))),
            free_space,
        }
    }

    /// The modelled device of the summary: the one that the volumes were in virtual time, or else the slowest, whose cost
    /// the layout decides most. With its costs and slowdowns.
    pub(crate) fn main_device(&self) -> Option<(&str, &Lines, &Lines)> {
        let worst =
            |lines: &Lines| lines.values().flat_map(BTreeMap::values).map(|cost| cost.median).fold(0.0, f64::max);
        let rank = |device: &str, lines: &Lines| (device.ends_with(VIRTUAL_TIME), worst(lines));
        let (device, costs) = self.modelled.iter().max_by(|a, b| {
            let (a, b) = (rank(a.0, a.1), rank(b.0, b.1));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })?;
        Some((device, costs, self.modelled_slowdown.get(device)?))
    }

    /// Grep cost by the method of the charts.
    pub(crate) fn grep_cost(&self) -> Lines {
        self.method.as_ref().map(|method| self.grep[method].clone()).unwrap_or_default()
    }
}

fn grep_lines<'r>(rows: impl Iterator<Item = &'r GrepRow>) -> BTreeMap<Method, Lines> {
    let mut by_method: BTreeMap<Method, Vec<_>> = BTreeMap::new();
    for row in rows {
        let method = (row.scanner.clone(), row.order.clone(), row.cache.clone());
        by_method.entry(method).or_default().push((&row.key, row.seconds_per_gib));
    }
    by_method.into_iter().map(|(method, rows)| (method, lines(rows.into_iter()))).collect()
}

/// The method with most figures; of equals the scanner of this program, then the first in order.
fn main_method(grep: &BTreeMap<Method, Lines>) -> Option<Method> {
    let figures = |lines: &Lines| lines.values().map(BTreeMap::len).sum::<usize>();
    let best = grep.iter().min_by_key(|(method, lines)| (usize::MAX - figures(lines), method.0 != "senesce"));
    best.map(|(method, _)| method.clone())
}

fn lines<'r>(figures: impl Iterator<Item = (&'r CellKey, f64)>) -> Lines {
    let mut values: BTreeMap<_, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    for (key, value) in figures {
        values.entry((key.arm.clone(), key.role)).or_default().entry(key.pulls).or_default().push(value);
    }
    let line = |points: BTreeMap<u64, Vec<f64>>| -> Line {
        points.into_iter().filter_map(|(pulls, values)| Some((pulls, Spread::compute(values)?))).collect()
    };
    values.into_iter().map(|(key, points)| (key, line(points))).filter(|(_, line)| !line.is_empty()).collect()
}

/// Aged over unaged at the same checkpoint; the range divides the extremes, so it holds every pair of repetitions.
fn slowdown(grep: &Lines) -> Lines {
    let mut ratios = Lines::new();
    for ((arm, role), line) in grep.iter().filter(|((_, role), _)| *role != Role::Unaged) {
        let Some(unaged) = grep.get(&(arm.clone(), Role::Unaged)) else { continue };
        for (pulls, aged) in line {
            let Some(fresh) = unaged.get(pulls).filter(|fresh| fresh.min > 0.0) else { continue };
            let ratio = Spread {
                count: aged.count.min(fresh.count),
                median: aged.median / fresh.median,
                min: aged.min / fresh.max,
                max: aged.max / fresh.min,
            };
            ratios.entry((arm.clone(), *role)).or_default().insert(*pulls, ratio);
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_odd_even_and_nothing() {
        let spread = Spread::compute([3.0, 1.0, f64::NAN, 2.0]).unwrap();
        assert_eq!((spread.count, spread.median, spread.min, spread.max), (3, 2.0, 1.0, 3.0));
        assert_eq!(Spread::compute([1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Spread::compute([f64::NAN]), None);
    }

    #[test]
    fn slowdown_divides_medians_and_extremes() {
        let spread = |median, min, max| Spread { count: 3, median, min, max };
        let line = |spread| Line::from([(10, spread)]);
        let arm = || "ext4".to_owned();
        let grep = Lines::from([
            ((arm(), Role::Full), line(spread(6.0, 5.0, 8.0))),
            ((arm(), Role::Unaged), line(spread(3.0, 2.0, 4.0))),
        ]);
        assert_eq!(slowdown(&grep)[&(arm(), Role::Full)][&10], spread(2.0, 1.25, 4.0));
        assert_eq!(slowdown(&grep).len(), 1);
    }
}

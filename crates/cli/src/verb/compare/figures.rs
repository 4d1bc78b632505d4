//! The figures that two runs have in common.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use anyhow::Result;
use schemars::JsonSchema;
use senesce_core::{
    Printable, Seed,
    statistics::{compute_comparison, compute_median},
};
use senesce_store::{CellKey, CellRow, Results, Role};
use serde::Serialize;

use super::{Row, names::short};
use crate::{args::SelectArgs, exit::usage, verb::bench::Pattern};

/// The origin of a figure's values, which decides how they are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::verb) enum Kind {
    /// Counted in the layout of a volume or in a trace: exact.
    Counted,
    /// Computed by a model from counted values: exact.
    Modelled,
    /// Wall time, which has noise.
    Measured,
}

impl Kind {
    /// The text for the column of the interval.
    pub(in crate::verb) fn tell(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Modelled => "model",
            Self::Measured => "measured",
        }
    }
}

/// A regular expression for names of figures, without regard to case.
#[derive(Clone, Debug)]
pub struct FigurePattern(Pattern);

impl FromStr for FigurePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut is_escaped = false;
        let lower = text.chars().map(|letter| {
            let kept = is_escaped;
            is_escaped = letter == '\\' && !kept;
            // `\D` is not `\d`.
            if kept { letter } else { letter.to_ascii_lowercase() }
        });
        Pattern::parse_any(&lower.collect::<String>()).map(Self)
    }
}

impl FigurePattern {
    /// Whether the name of a figure, or the short name that a terminal shows, matches.
    pub(in crate::verb) fn is_match(&self, figure: &str) -> bool {
        [figure, &short(figure)].iter().any(|name| self.0.is_match(&name.to_lowercase()))
    }
}

/// Arm, role, checkpoint, figure.
pub(in crate::verb) type FigureKey = (String, Role, u64, String);
/// The figures of a run or of a baseline.
pub(in crate::verb) type Figures = BTreeMap<FigureKey, Values>;

/// All values of one figure of one cell.
#[derive(Clone)]
pub(in crate::verb) struct Values {
    /// The origin of the values.
    pub(in crate::verb) kind: Kind,
    /// Whether more is better.
    pub(in crate::verb) more_is_better: bool,
    /// The values, one for each repetition.
    pub(in crate::verb) values: Vec<f64>,
}

/// The names of the arms that have figures.
fn name_arms<T>(figures: &BTreeMap<FigureKey, T>) -> String {
    let mut arms: Vec<&str> = figures.keys().map(|(arm, ..)| arm.as_str()).collect();
    arms.dedup();
    if arms.is_empty() { "none".to_owned() } else { arms.join(", ") }
}

/// The last checkpoint at which two runs have a common figure, for each arm and volume.
pub(in crate::verb) type LastCommon = BTreeMap<(String, Role), u64>;

/// Finds the last common checkpoint of each volume, by all figures.
pub(in crate::verb) fn find_last_common(of_a: &Figures, of_b: &Figures) -> LastCommon {
    let mut last = LastCommon::new();
    for (arm, role, pulls, _) in of_a.keys().filter(|key| of_b.contains_key(*key)) {
        let last = last.entry((arm.clone(), *role)).or_default();
        *last = (*last).max(*pulls);
    }
    last
}

/// The figures of the cells that both runs have, of the last common checkpoint or of all.
///
/// Errors: the runs have no figure in common, or none of those is selected.
pub(in crate::verb) fn compare_figures(mut of_a: Figures, mut of_b: Figures, args: &SelectArgs) -> Result<Vec<Row>> {
    let (arms_of_a, arms_of_b) = (name_arms(&of_a), name_arms(&of_b));
    of_a.retain(|key, _| of_b.contains_key(key));
    if of_a.is_empty() {
        let message = format!("the two runs have no figure in common; arms of A: {arms_of_a}; arms of B: {arms_of_b}");
        let hint = "only arms with the same name in both are compared, at checkpoints that both have";
        return Err(usage(message, Some(hint)));
    }
    let last = find_last_common(&of_a, &of_b);
    let is_selected = |(arm, role, pulls, figure): &FigureKey| {
        (args.all || last.get(&(arm.clone(), *role)) == Some(pulls))
            && (args.arm.is_empty() || args.arm.contains(arm))
            && (args.role.is_empty() || args.role.contains(role))
            && (args.figure.is_empty() || args.figure.iter().any(|pattern| pattern.is_match(figure)))
    };
    let mut rows = Vec::new();
    for (key, found_a) in of_a.iter().filter(|(key, _)| is_selected(key)) {
        let Some(found_b) = of_b.remove(key) else { continue };
        let (arm, role, pulls, figure) = key;
        rows.push(Row {
            of: vec![arm.clone(), role.name().to_owned(), pulls.to_string()],
            figure: figure.clone(),
            kind: found_b.kind,
            more_is_better: found_a.more_is_better,
            comparison: compute_comparison(&found_a.values, &found_b.values, Seed(1)),
            figures_a: found_a.values.clone(),
            figures_b: found_b.values,
            outcome: None,
            judgement: None,
        });
    }
    match rows.is_empty() {
        true => Err(nothing_selected(of_a.keys())),
        false => Ok(rows),
    }
}

/// A state that is not compared, because a side has no valid result of it.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(in crate::verb) struct Missing {
    /// Arm, volume, checkpoint. For inspections: `tree`.
    of: Vec<String>,
    /// Why the cell is not compared.
    reason: String,
}

impl Missing {
    /// A cell by arm, volume and checkpoint.
    pub(in crate::verb) fn new(of: &[&str], reason: impl Into<String>) -> Self {
        Self { of: of.iter().map(|word| (*word).to_owned()).collect(), reason: reason.into() }
    }

    /// Arm, volume, checkpoint.
    pub(in crate::verb) fn of(&self) -> &[String] {
        &self.of
    }

    /// The reason as a sentence.
    pub(in crate::verb) fn sentence(&self) -> String {
        format!("{}.", self.reason)
    }

    /// Whether the default gate would judge it: it does not judge fresh copies.
    pub(in crate::verb) fn is_subject(&self) -> bool {
        self.of.get(1).is_none_or(|role| role != Role::Unaged.name())
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}: {}", self.of.join(" "), self.reason);
        write!(f, "{}", Printable::new(&text))
    }
}

/// The selected cells that are valid in A at its last checkpoint of their volume and not valid in
/// B. With `--all` also those of the checkpoints before. `planned` has the arms of B's plan. Arms
/// that neither B's cells nor its plan name belong to another plan, and are left out. The reasons
/// call B `name_of_b`.
///
/// A gate must not pass because the second run failed or stopped where the first one did not.
pub(in crate::verb) fn find_missing(
    a: &Results,
    b: &Results,
    (planned, name_of_b): (&BTreeSet<String>, &str),
    args: &SelectArgs,
) -> Vec<Missing> {
    let measured = b.cells.iter().map(|cell| cell.key.arm.as_str());
    let arms_of_b: BTreeSet<&str> = measured.chain(planned.iter().map(String::as_str)).collect();
    let cells_of_b: BTreeMap<&CellKey, &CellRow> = b.cells.iter().map(|cell| (&cell.key, cell)).collect();
    let mut last: BTreeMap<(&str, Role), u64> = BTreeMap::new();
    for CellKey { arm, role, pulls, .. } in a.cells.iter().map(|cell| &cell.key) {
        let last = last.entry((arm, *role)).or_default();
        *last = (*last).max(*pulls);
    }
    let missing = |cell: &CellRow| {
        let CellKey { arm, role, pulls, .. } = &cell.key;
        let is_last = last.get(&(arm, *role)) == Some(pulls);
        let is_selected = cell.valid
            && arms_of_b.contains(arm.as_str())
            && (args.arm.is_empty() || args.arm.contains(arm))
            && (args.role.is_empty() || args.role.contains(role));
        let reason = match cells_of_b.get(&cell.key) {
            Some(found) if found.valid => None,
            Some(found) => Some(format!("it is not valid in {name_of_b}: {}", found.reason)),
            None => Some(format!("{name_of_b} did not measure it")).filter(|_| is_last),
        };
        let reason = reason.filter(|_| is_selected && (is_last || args.all))?;
        Some(Missing::new(&[arm, role.name(), &pulls.to_string()], reason))
    };
    a.cells.iter().filter_map(missing).collect()
}

/// No figure has the selected arm, role and name. The hint lists those that exist.
fn nothing_selected<'a>(keys: impl Iterator<Item = &'a FigureKey> + Clone) -> anyhow::Error {
    let list = |words: BTreeSet<&str>| words.into_iter().collect::<Vec<_>>().join(", ");
    let hint = format!(
        "arms: {}; roles: {}; figures: {}",
        list(keys.clone().map(|key| key.0.as_str()).collect()),
        list(keys.clone().map(|key| key.1.name()).collect()),
        list(keys.map(|key| key.3.as_str()).collect()),
    );
    usage("no common figure matches --arm, --role and --figure", Some(&hint))
}

/// Every figure of the valid cells.
pub(in crate::verb) fn collect_figures(results: &Results) -> Figures {
    let valid: BTreeSet<&CellKey> = results.cells.iter().filter(|cell| cell.valid).map(|cell| &cell.key).collect();
    let mut found = Figures::new();
    let mut add = |key: &CellKey, figure: &str, kind: Kind, value: f64| {
        if !value.is_finite() || !valid.contains(key) {
            return;
        }
        let more_is_better = figure == LAYOUT_SCORE;
        let key = (key.arm.clone(), key.role, key.pulls, figure.to_owned());
        let none = || Values { kind, more_is_better, values: Vec::new() };
        found.entry(key).or_insert_with(none).values.push(value);
    };
    // On a disk in virtual time, wall time is the time of memory; the cost is the disk's own time.
    let is_virtual = |key: &CellKey| results.modelled.iter().any(|row| row.key == *key && row.method == "virtual-time");
    for row in results.counted_grep().filter(|row| !is_virtual(&row.key)) {
        add(&row.key, "grep s/GiB", Kind::Measured, row.seconds_per_gib);
    }
    for row in &results.modelled {
        let device = format!("{} ({})", row.device, row.method);
        add(&row.key, &format!("{device} s/GiB"), Kind::Modelled, row.seconds_per_gib);
        add(&row.key, &format!("{device} requests"), Kind::Modelled, row.requests as f64);
    }
    for row in &results.layout {
        add(&row.key, LAYOUT_SCORE, Kind::Counted, row.layout_score);
        add(&row.key, "extents per file", Kind::Counted, row.extents_per_file);
    }
    let mut free: BTreeMap<&CellKey, u64> = BTreeMap::new();
    for row in &results.free_space {
        *free.entry(&row.key).or_default() += row.extents;
    }
    for (key, extents) in free {
        add(key, FREE_EXTENTS, Kind::Counted, extents as f64);
    }
    // A trace that lost events does not have all requests of the test.
    for row in results.trace.iter().filter(|row| row.access == "read" && row.lost_events == 0) {
        add(&row.key, "traced read requests", Kind::Counted, row.requests as f64);
    }
    found
}

/// Adds the slowdown of each aged volume: each of its modelled costs divided by the median cost of
/// its fresh copy at the same checkpoint.
pub(super) fn add_slowdowns(mut figures: Figures) -> Figures {
    let slowdown = |((arm, role, pulls, figure), of_aged): (&FigureKey, &Values)| {
        let device =
            figure.strip_suffix(" s/GiB").filter(|_| of_aged.kind == Kind::Modelled && *role != Role::Unaged)?;
        let of_fresh = figures.get(&(arm.clone(), Role::Unaged, *pulls, figure.clone()))?;
        let fresh = compute_median(&of_fresh.values).filter(|fresh| *fresh > 0.0)?;
        let values = of_aged.values.iter().map(|aged| aged / fresh).collect();
        Some(((arm.clone(), *role, *pulls, format!("{device} {SLOWDOWN}")), Values { values, ..of_aged.clone() }))
    };
    let slowdowns: Vec<_> = figures.iter().filter_map(slowdown).collect();
    figures.extend(slowdowns);
    figures
}

/// Counted, but two runs of one plan differ by up to a tenth: writeback decides where small extents
/// are.
pub(in crate::verb) const FREE_EXTENTS: &str = "free extents";
/// The end of the names of slowdowns. A slowdown divides by the cost of another volume. So between
/// two runs of one plan, slowdowns differ by more than the costs of the aged volumes.
pub(super) const SLOWDOWN: &str = "slowdown";
/// The only figure of which more is better.
pub(in crate::verb) const LAYOUT_SCORE: &str = "layout score";

#[cfg(test)]
mod tests {
    use clap::Parser;
    use senesce_store::{GrepRow, LoadRow};

    use super::*;
    use crate::args::{Cli, Verb};

    fn cell(arm: &str, role: Role, pulls: u64, reason: &str) -> CellRow {
        CellRow {
            key: CellKey { arm: arm.into(), file_system: "ext4".into(), role, pulls },
            valid: reason.is_empty(),
            reason: reason.into(),
            tree_hash: String::new(),
            work_tree_hash: String::new(),
            files: 1,
            directories: 1,
            content_bytes: 1,
            capacity_bytes: 2,
            used_bytes: 1,
        }
    }

    #[test]
    fn cells_that_b_lost_are_missing() {
        let results = |cells: Vec<CellRow>| Results { cells, ..Results::default() };
        let a = results(vec![
            cell("ext4", Role::Full, 0, ""),
            cell("ext4", Role::Full, 40, ""),
            cell("ext4", Role::Empty, 40, ""),
            cell("ext4", Role::Unaged, 40, "no space"),
            cell("xfs", Role::Full, 40, ""),
        ]);
        let find_planned = |b: Vec<CellRow>, planned: &[&str], words: &[&str]| {
            let line = [&["senesce", "compare", "a", "b"], words].concat();
            let Verb::Compare(args) = Cli::try_parse_from(line).unwrap().verb else { unreachable!() };
            let planned = planned.iter().map(|arm| (*arm).to_owned()).collect();
            find_missing(&a, &results(b), (&planned, "B"), &args.select)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        let find = |b: Vec<CellRow>, words: &[&str]| find_planned(b, &[], words);
        let whole = || vec![cell("ext4", Role::Full, 40, ""), cell("ext4", Role::Empty, 40, "")];
        assert!(find(whole(), &[]).is_empty(), "B has other checkpoints, and no arm `xfs`");
        assert!(find(vec![], &[]).is_empty());
        // B's plan has the arm, and B stopped before its first cell.
        let unmeasured = "xfs full 40: B did not measure it";
        assert_eq!(find_planned(whole(), &["ext4", "xfs"], &[]), [unmeasured]);
        let failed = || vec![cell("ext4", Role::Full, 0, "mkfs failed"), cell("ext4", Role::Empty, 40, "damaged")];
        let full = "ext4 full 40: B did not measure it";
        let empty = "ext4 empty 40: it is not valid in B: damaged";
        assert_eq!(find(failed(), &[]), [full, empty]);
        assert_eq!(find(failed(), &["--role", "empty"]), [empty]);
        assert!(find(failed(), &["--arm", "xfs"]).is_empty());
        assert_eq!(find(failed(), &["--all"]), ["ext4 full 0: it is not valid in B: mkfs failed", full, empty]);
    }

    #[test]
    fn slowdowns_divide_by_the_fresh_copy() {
        let key = |role, figure: &str| ("ext4".to_owned(), role, 40, figure.to_owned());
        let of = |kind, values: &[f64]| Values { kind, more_is_better: false, values: values.to_vec() };
        let figures = Figures::from([
            (key(Role::Empty, "model: HDD s/GiB"), of(Kind::Modelled, &[30.0, 60.0])),
            (key(Role::Unaged, "model: HDD s/GiB"), of(Kind::Modelled, &[20.0])),
            (key(Role::Full, "model: SSD s/GiB"), of(Kind::Modelled, &[5.0])),
            (key(Role::Empty, "grep s/GiB"), of(Kind::Measured, &[9.0])),
            (key(Role::Unaged, "grep s/GiB"), of(Kind::Measured, &[3.0])),
        ]);
        let before = figures.len();
        let found = add_slowdowns(figures);
        assert_eq!(found[&key(Role::Empty, "model: HDD slowdown")].values, [1.5, 3.0]);
        assert_eq!(found.len(), before + 1, "no fresh copy on the SSD, and wall times have none");
    }

    #[test]
    fn patterns_match_name_parts_in_any_case() {
        let is_match = |pattern: &str, figure: &str| pattern.parse::<FigurePattern>().unwrap().is_match(figure);
        assert!(is_match("hdd", "model: HDD 7.2K (extents) s/GiB"));
        assert!(is_match("^(grep|layout)", "layout score") && is_match("GREP", "grep s/GiB"));
        assert!(is_match(r"\D\.\d", "x.2") && !is_match(r"\D\.\d", "7.2"));
        assert!(!is_match("^score", "layout score"));
        assert!(is_match("^hdd 7.2k s/", "model: HDD 7.2K (extents) s/GiB"));
        assert!("(".parse::<FigurePattern>().is_err());
    }

    #[test]
    fn disturbed_repetitions_are_left_out() {
        let key = CellKey { arm: "a".into(), file_system: "ext4".into(), role: Role::Full, pulls: 3 };
        let cell = cell("a", Role::Full, 3, "");
        let grep = |repetition, seconds_per_gib| GrepRow {
            key: key.clone(),
            repetition,
            scanner: "senesce".into(),
            order: "readdir".into(),
            cache: "warm".into(),
            wall_seconds: 1.0,
            allocated_bytes: 1,
            seconds_per_gib,
            read_bytes: 1,
            files: 1,
            user_seconds: 0.0,
            system_seconds: 0.0,
            device_read_bytes: None,
            device_read_requests: None,
            cpu_bound: false,
            fuse_floor_seconds: f64::NAN,
        };
        let load = |repetition, disturbance: &str| LoadRow {
            key: key.clone(),
            repetition,
            disturbance: disturbance.into(),
            load_average: 1.0,
            cpu_pressure_seconds: 0.0,
            io_pressure_seconds: 0.0,
            memory_pressure_seconds: 0.0,
            steal_seconds: 0.0,
            own_user_seconds: 0.0,
            other_user_seconds: 0.0,
            kernel_seconds: 0.0,
            processors: 2,
            own_drive_bytes: f64::NAN,
            other_drive_bytes: f64::NAN,
        };
        let results = |first: &str, second: &str| Results {
            cells: vec![cell.clone()],
            grep: vec![grep(0, 2.0), grep(1, 99.0)],
            load: vec![load(0, first), load(1, second)],
            ..Results::default()
        };
        let values = |results: &Results| {
            let found = collect_figures(results);
            found.into_iter().find(|(key, _)| key.3 == "grep s/GiB").map(|(_, figure)| figure.values)
        };
        let why = "the hypervisor took 9% of a processor";
        assert_eq!(values(&results("", why)), Some(vec![2.0]));
        // A cell of disturbed repetitions alone has no better ones.
        assert_eq!(values(&results(why, why)), Some(vec![2.0, 99.0]));
    }
}

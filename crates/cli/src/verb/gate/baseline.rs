//! Baselines: the figures of a run in a small file, to commit to a repository.
//!
//! The file is JSON with a line for each tolerance, circumstance and figure. So a change of one
//! figure changes one line. The file is untrusted input.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::Path,
};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::{Printable, input::read_text};
use senesce_store::{CellKey, CellRow, CircumstanceRow, Results, Role};
use serde::{Deserialize, Serialize};

use super::tolerance::{Tolerance, default_tolerances};
use crate::{
    exit::usage,
    verb::compare::{
        figures::{FigureKey, Figures, Kind, LAYOUT_SCORE, Values, collect_figures},
        unlike::keep_circumstances,
    },
};

/// The format of the file.
pub(in crate::verb) const BASELINE_FORMAT: &str = "senesce-baseline/1";
/// The largest file that is read, bytes. A figure has about 200.
const LARGEST: usize = 64 << 20;
/// The hint for a baseline that cannot be used.
const WRITE_AGAIN: &str = "write it again with `senesce gate RUN --save-baseline FILE`";

/// The baseline side of a gate.
pub(super) struct Baseline {
    /// The figures of its valid cells.
    pub(super) figures: Figures,
    /// The file system of each arm.
    pub(super) file_systems: BTreeMap<String, String>,
    /// Cells, circumstances and load; other tables may be empty.
    pub(super) results: Results,
    /// The tolerances; the first that matches a figure counts.
    pub(super) tolerances: Vec<Tolerance>,
}

/// The contents of the file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::verb) struct Document {
    /// The name of the schema and its version.
    format: String,
    /// The plan of the run.
    plan: PlanName,
    /// The version of senesce.
    senesce_version: String,
    /// The tolerances. The first that matches a figure counts.
    tolerances: Vec<Tolerance>,
    /// The circumstances of the run.
    circumstances: Vec<Circumstance>,
    /// The figures of all cells.
    figures: Vec<Figure>,
}

/// The plan of the run.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanName {
    name: String,
    hash: String,
}

/// A circumstance of the run, or of an arm.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Circumstance {
    /// The arm. Absent if the circumstance is one of the whole run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    arm: String,
    /// The key.
    key: String,
    /// The value as text.
    value: String,
}

/// How a figure is compared.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum FigureKind {
    /// Counted or modelled, without noise of the clock.
    Deterministic,
    /// Wall time.
    Time,
}

/// The better direction of a figure.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Better {
    Less,
    More,
}

/// A figure of a cell.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Figure {
    /// The name of the arm.
    arm: String,
    /// The file system.
    file_system: String,
    /// The volume of the arm.
    volume: Role,
    /// The checkpoint, as the number of counted steps (pulls) before it.
    checkpoint: u64,
    /// The name of the figure.
    name: String,
    /// The unit. Empty if it is not known.
    unit: String,
    /// How the figure is compared.
    kind: FigureKind,
    /// The better direction.
    better: Better,
    /// The values of the figure.
    values: Vec<f64>,
}

/// The unit of a figure, by the end of its name. Empty if it is not known.
pub(super) fn unit_of(figure: &str) -> &'static str {
    match figure {
        LAYOUT_SCORE => "ratio",
        _ if figure.ends_with("s/GiB") => "s/GiB",
        _ if figure.ends_with("requests") => "requests",
        _ if figure.ends_with("extents") => "extents",
        _ if figure.ends_with("extents per file") => "extents/file",
        _ => "",
    }
}

impl Baseline {
    /// The figures of a run.
    pub(super) fn of_results(results: Results) -> Self {
        let file_systems =
            results.cells.iter().map(|cell| (cell.key.arm.clone(), cell.key.file_system.clone())).collect();
        Self { figures: collect_figures(&results), file_systems, results, tolerances: default_tolerances() }
    }

    /// Adds the values of another run of the same plan. A value of an exact figure that exists
    /// already is not added.
    ///
    /// Errors: one of both runs lacks an exact figure of the other.
    pub(super) fn merge(&mut self, other: &Self) -> Result<(), String> {
        let shown =
            |(arm, role, checkpoint, figure): &FigureKey| format!("{arm} {} {checkpoint} {figure}", role.name());
        let is_exact = |found: &Values| found.kind != Kind::Measured;
        let lacks = |a: &Figures, b: &Figures| {
            a.iter().find(|(key, found)| is_exact(found) && !b.contains_key(*key)).map(|(key, _)| shown(key))
        };
        if let Some(figure) = lacks(&self.figures, &other.figures).or_else(|| lacks(&other.figures, &self.figures)) {
            return Err(format!("only one of the runs has the figure {figure:?}"));
        }
        for (key, found) in &mut self.figures {
            let added = other.figures.get(key).map_or(&[][..], |other| &other.values);
            let is_new = |value: &&f64| !is_exact(found) || !found.values.contains(value);
            let added: Vec<f64> = added.iter().filter(is_new).copied().collect();
            found.values.extend(added);
        }
        Ok(())
    }

    /// Reads a file of `--save-baseline`.
    ///
    /// Errors: it cannot be read; it is no baseline, or of another format; a value is impossible.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let file = File::open(path).with_context(|| format!("cannot read the baseline {shown}"))?;
        let text = read_text(file, LARGEST).with_context(|| format!("cannot read the baseline {shown}"))?;
        Self::parse(&text).map_err(|problem| {
            usage(format!("{shown} is no baseline: {}", Printable::new(&problem)), Some(WRITE_AGAIN))
        })
    }

    /// Parses the text of a file.
    ///
    /// Errors: a description of the fault.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        // Check the format first, because a later format may have other keys.
        #[derive(Deserialize)]
        struct Format {
            format: String,
        }
        let found: Format = serde_json::from_str(text).map_err(|error| match error.is_data() {
            true => error.to_string(),
            false => format!("it is not JSON ({error})"),
        })?;
        if found.format != BASELINE_FORMAT {
            return Err(format!("its format is {:?}; this version reads {BASELINE_FORMAT:?}", found.format));
        }
        let document: Document = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut baseline = Self {
            figures: Figures::new(),
            file_systems: BTreeMap::new(),
            results: Results::default(),
            tolerances: document.tolerances,
        };
        baseline.results.run.plan_name = document.plan.name;
        baseline.results.run.plan_hash = document.plan.hash;
        baseline.results.run.senesce_version = document.senesce_version;
        let row = |Circumstance { arm, key, value }| CircumstanceRow { arm, key, value };
        baseline.results.circumstances = document.circumstances.into_iter().map(row).collect();
        let mut cells = BTreeSet::new();
        for figure in document.figures {
            cells.insert(baseline.add(figure)?);
        }
        baseline.results.cells = cells.into_iter().map(|key| CellRow::without_figures(key, "")).collect();
        Ok(baseline)
    }

    /// Adds a figure. Returns its cell.
    fn add(&mut self, figure: Figure) -> Result<CellKey, String> {
        let Figure { arm, file_system, volume, checkpoint, name, unit: _, kind, better, values } = figure;
        let shown = format!("{arm} {} {checkpoint} {name}", volume.name());
        if values.is_empty() || values.iter().any(|value| *value < 0.0) {
            return Err(format!("the figure {shown:?} needs values of at least 0"));
        }
        let kind = if kind == FigureKind::Time { Kind::Measured } else { Kind::Counted };
        let values = Values { kind, more_is_better: better == Better::More, values };
        let known = self.file_systems.entry(arm.clone()).or_insert_with(|| file_system.clone());
        if *known != file_system {
            return Err(format!("the arm {arm:?} has two file systems: {known}, {file_system}"));
        }
        if self.figures.insert((arm.clone(), volume, checkpoint, name), values).is_some() {
            return Err(format!("the figure {shown:?} appears twice"));
        }
        Ok(CellKey { arm, file_system, role: volume, pulls: checkpoint })
    }

    /// Errors: a cell is invalid, so its figures are missing.
    pub(super) fn check_cells(&self) -> Result<()> {
        match self.results.cells.iter().all(|cell| cell.valid) {
            true => Ok(()),
            false => {
                let message = "the run has invalid cells, so it cannot be a baseline";
                Err(usage(message, Some("`senesce show RUN` lists them")))
            }
        }
    }

    /// The text of a file.
    ///
    /// Errors: there is no figure; a cell is invalid.
    pub(super) fn render(&self) -> Result<String> {
        let file_system = |arm: &String| self.file_systems.get(arm).cloned().unwrap_or_default();
        let figures: Vec<Figure> = self
            .figures
            .iter()
            .map(|((arm, role, checkpoint, name), found)| Figure {
                arm: arm.clone(),
                file_system: file_system(arm),
                volume: *role,
                checkpoint: *checkpoint,
                name: name.clone(),
                unit: unit_of(name).to_owned(),
                kind: if found.kind == Kind::Measured { FigureKind::Time } else { FigureKind::Deterministic },
                better: if found.more_is_better { Better::More } else { Better::Less },
                values: found.values.clone(),
            })
            .collect();
        if figures.is_empty() {
            return Err(usage("the run has no valid cell, so it cannot be a baseline", None));
        }
        self.check_cells()?;
        let circumstance = |CircumstanceRow { arm, key, value }| Circumstance { arm, key, value };
        let circumstances = keep_circumstances(&self.results.circumstances);
        let circumstances: Vec<Circumstance> = circumstances.into_iter().map(circumstance).collect();
        let run = &self.results.run;
        let plan = PlanName { name: run.plan_name.clone(), hash: run.plan_hash.clone() };
        Ok(format!(
            "{{\n\"format\": {},\n\"plan\": {},\n\"senesce_version\": {},\n\"tolerances\": {},\n\"circumstances\": \
             {},\n\"figures\": {}\n}}\n",
            serde_json::to_string(BASELINE_FORMAT)?,
            serde_json::to_string(&plan)?,
            serde_json::to_string(&run.senesce_version)?,
            render_lines(&self.tolerances)?,
            render_lines(&circumstances)?,
            render_lines(&figures)?,
        ))
    }
}

/// A JSON array with a line for each item.
fn render_lines<T: Serialize>(items: &[T]) -> Result<String> {
    let lines = items.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("[\n{}\n]", lines.join(",\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Baseline {
        let mut baseline = Baseline {
            figures: Figures::new(),
            file_systems: BTreeMap::from([("new\n::error::x".to_owned(), "xfs".to_owned())]),
            results: Results::default(),
            tolerances: default_tolerances(),
        };
        let mut add = |figure: &str, kind, more_is_better, values: &[f64]| {
            let key = ("new\n::error::x".to_owned(), Role::Full, 40, figure.to_owned());
            baseline.figures.insert(key, Values { kind, more_is_better, values: values.to_vec() });
        };
        add(LAYOUT_SCORE, Kind::Counted, true, &[0.1 + 0.2]);
        add("grep s/GiB", Kind::Measured, false, &[1.0, 2.5]);
        let row = |key: &str, value: &str| CircumstanceRow { arm: String::new(), key: key.into(), value: value.into() };
        baseline.results.circumstances = vec![row("plan.seed", "1"), row("run.begun_unix_seconds", "5")];
        baseline
    }

    #[test]
    fn a_written_baseline_reads_back_equal() {
        let text = sample().render().unwrap();
        let found = Baseline::parse(&text).unwrap();
        assert_eq!(found.figures.len(), 2);
        assert!(found.figures.values().any(|figure| figure.values == [0.1 + 0.2] && figure.more_is_better));
        assert_eq!(found.render().unwrap(), text);
        assert_eq!(found.results.cells.len(), 1);
        // The time of the run differs in every run, and is left out.
        assert_eq!(found.results.circumstances.len(), 1);
        let line = text.lines().find(|line| line.contains("\"name\":\"layout score\"")).unwrap();
        assert!(line.contains(r#""unit":"ratio","kind":"deterministic","better":"more""#), "{line}");
    }

    #[test]
    fn every_bit_of_a_value_is_kept() {
        let mut written = sample();
        let values: Vec<f64> = (1..2_000).map(|n| 1000.0 / f64::from(2 * n + 1)).collect();
        written.figures.values_mut().for_each(|figure| figure.values.clone_from(&values));
        let found = Baseline::parse(&written.render().unwrap()).unwrap();
        assert!(found.figures.values().all(|figure| figure.values == values));
    }

    #[test]
    fn several_runs_make_one_range() {
        let mut base = sample();
        let mut other = sample();
        other.figures.values_mut().for_each(|figure| figure.values[0] += 0.5);
        base.merge(&other).unwrap();
        base.merge(&sample()).unwrap();
        let values: Vec<&[f64]> = base.figures.values().map(|figure| figure.values.as_slice()).collect();
        // All repetitions of times stay. Equal exact values are stored once.
        assert_eq!(values, [&[1.0, 2.5, 1.5, 2.5, 1.0, 2.5][..], &[0.1 + 0.2, 0.1 + 0.2 + 0.5]]);
        other.figures.pop_last();
        assert!(base.merge(&other).unwrap_err().contains("layout score"));
    }

    #[test]
    fn a_foreign_file_is_refused_with_its_fault() {
        let text = sample().render().unwrap();
        let refused = |text: &str| Baseline::parse(text).err().unwrap();
        assert!(refused("").contains("EOF"));
        assert!(refused("[1]").contains("invalid type"));
        let later = text.replace("senesce-baseline/1", "senesce-baseline/2");
        assert!(refused(&later).contains("its format is \"senesce-baseline/2\""), "{}", refused(&later));
        assert!(refused(&text.replace("[1.0,2.5]", "[]")).contains("needs values"));
        assert!(refused(&text.replace("[1.0,2.5]", "[-1]")).contains("needs values"));
        assert!(refused(&text.replace("[1.0,2.5]", "[1e999]")).contains("out of range"));
        assert!(refused(&text.replace("\"full\"", "\"new\"")).contains("unknown variant"));
        assert!(refused(&text.replace("grep s/GiB", LAYOUT_SCORE)).contains("appears twice"));
        assert!(refused(&text.replacen("\"xfs\"", "\"ext4\"", 1)).contains("two file systems"));
        assert!(refused(&text.replace("\"plan\"", "\"plot\"")).contains("unknown field"));
        assert!(
            refused(&text.replace("requests$", "(")).contains("pattern"),
            "{}",
            refused(&text.replace("requests$", "("))
        );
    }
}

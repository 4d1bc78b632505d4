//! Writes the run's figures for services that plot them over time: Bencher and
//! github-action-benchmark.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use schemars::JsonSchema;
use senesce_core::{Printable, Seed, statistics::compute_spread};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{baseline::unit_of, write_file};
use crate::{
    args::GateOutputArgs,
    verb::{
        compare::figures::{Figures, Kind, LAYOUT_SCORE},
        output::check_file_by,
    },
};

/// The longest name of a measure, characters: a limit of Bencher.
const LONGEST_MEASURE: usize = 64;
/// The longest name of a benchmark, characters.
const LONGEST_BENCHMARK: usize = 1024;

/// A figure of Bencher.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(in crate::verb) struct Metric {
    /// The median.
    value: f64,
    /// The lower end of the 95% interval of the median. Absent for figures that are not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    /// The upper end of the 95% interval of the median. Absent for figures that are not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// A figure of github-action-benchmark.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(in crate::verb) struct SmallIsBetter {
    /// Arm, volume, checkpoint and figure.
    name: String,
    /// The unit. Empty if it is not known.
    unit: String,
    /// The median.
    value: f64,
    /// The 95% interval of the median. Absent for figures that are not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    /// The kind of figure and the number of values.
    extra: String,
}

/// Checks whether the files that the user named may be replaced. The formats have no field for a
/// mark of senesce, so every file of the same format may be.
///
/// Errors: a file has another format; those of [`check_file_by`].
pub(super) fn check(outputs: &GateOutputArgs) -> Result<()> {
    fn check<T: DeserializeOwned>(path: Option<&Path>, has_figures: impl Fn(T) -> bool) -> Result<()> {
        let is_like = |contents: &[u8]| serde_json::from_slice(contents).is_ok_and(&has_figures);
        path.map_or(Ok(()), |path| check_file_by(path, is_like))
    }
    check(outputs.bmf.as_deref(), |all: BencherMetrics| all.values().any(|measures| !measures.is_empty()))?;
    check(outputs.small_is_better.as_deref(), |all: Vec<SmallIsBetter>| !all.is_empty())
}

/// Shortens a name that is too long: its start, and a hash of the whole name.
fn shorten(name: &str, longest: usize) -> String {
    const HASH: usize = 8;
    if name.chars().count() <= longest {
        return name.to_owned();
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    let start: String = name.chars().take(longest - HASH - 1).collect();
    format!("{start}~{}", &hash[..HASH])
}

/// The figures as Bencher reads them: by benchmark, then by measure.
pub(in crate::verb) type BencherMetrics = BTreeMap<String, BTreeMap<String, Metric>>;

fn render_bmf(figures: &Figures) -> Result<String> {
    let mut all = BencherMetrics::new();
    for ((arm, role, checkpoint, figure), found) in figures {
        let Some(spread) = compute_spread(&found.values, Seed(1)) else { continue };
        let has_interval = found.kind == Kind::Measured && found.values.len() > 1;
        let benchmark = format!("{}/{}/{checkpoint}", Printable::new(arm), role.name());
        let metric = Metric {
            value: spread.median,
            lower_value: has_interval.then_some(spread.interval_low),
            upper_value: has_interval.then_some(spread.interval_high),
        };
        let measure = shorten(&Printable::new(figure).to_string(), LONGEST_MEASURE);
        all.entry(shorten(&benchmark, LONGEST_BENCHMARK)).or_default().insert(measure, metric);
    }
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

fn render_small_is_better(figures: &Figures) -> Result<String> {
    let mut all = Vec::new();
    for ((arm, role, checkpoint, figure), found) in figures {
        let Some(spread) = compute_spread(&found.values, Seed(1)) else { continue };
        let is_score = figure == LAYOUT_SCORE;
        let name = format!("{} {} {checkpoint} {}", Printable::new(arm), role.name(), Printable::new(figure));
        let range = (found.kind == Kind::Measured && found.values.len() > 1)
            .then(|| format!("{:.4}..{:.4}", spread.interval_low, spread.interval_high));
        all.push(SmallIsBetter {
            name: if is_score { format!("{name}: distance from 1") } else { name },
            unit: unit_of(figure).to_owned(),
            value: if is_score { 1.0 - spread.median } else { spread.median },
            range,
            extra: format!("{}, n={}", found.kind.tell(), found.values.len()),
        });
    }
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

/// Writes the files that the user named.
pub(super) fn write(outputs: &GateOutputArgs, figures: &Figures) -> Result<()> {
    if let Some(path) = &outputs.bmf {
        write_file(path, &render_bmf(figures)?)?;
    }
    if let Some(path) = &outputs.small_is_better {
        write_file(path, &render_small_is_better(figures)?)?;
    }
    Ok(())
}

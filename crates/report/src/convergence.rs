//! How close profile-driven aging came to its profile: deviations by checkpoint, and both
//! distributions at the end.

use std::collections::BTreeMap;

use senesce_store::Role;

use crate::chart::{Axis, LinePanel, PairsPanel, Point, Series};
use crate::csv::{Csv, exact};
use crate::model::{Model, Spread};
use crate::panels::{Figure, Legend, Panel, Variant, part_class};
use crate::panels_lines::x_axis_of;

/// The quantities that are compared with the profile, by their names at checkpoints.
const PARTS: [&str; 4] = ["size", "depth", "age", "fullness"];
/// Deviations below this are drawn here: an axis of decades has no 0.
const LEAST: f64 = 1e-5;

/// Figures by checkpoint and name, of each arm.
type Reached<'m> = BTreeMap<&'m str, BTreeMap<u64, BTreeMap<&'m str, &'m str>>>;

fn reached<'m>(model: &'m Model<'_>) -> Reached<'m> {
    let mut all = Reached::new();
    for row in &model.results.circumstances {
        let Some((pulls, name)) = row.key.strip_prefix("reached.").and_then(|key| key.split_once('.')) else {
            continue;
        };
        let Ok(pulls) = pulls.parse() else { continue };
        all.entry(&row.arm).or_default().entry(pulls).or_default().insert(name, &row.value);
    }
    all.retain(|_, checkpoints| checkpoints.values().any(|figures| figures.contains_key("age.total_variation")));
    all
}

/// A figure's number, also if words follow it.
fn number(figures: &BTreeMap<&str, &str>, name: &str) -> Option<f64> {
    figures.get(name)?.split_whitespace().next()?.parse().ok()
}

/// A kind of deviation: its name in the records, on the button, and on the axis.
struct Kind {
    name: &'static str,
    label: &'static str,
    y_label: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind { name: "total_variation", label: "total variation", y_label: "share of files in a wrong bin" },
    Kind { name: "largest", label: "largest deviation", y_label: "largest difference of a bin's share" },
    Kind { name: "chi_square", label: "chi-square", y_label: "chi-square" },
];

/// The compared properties: name in the records, label, and x axis.
const PROPERTIES: [(&str, &str, &str); 3] = [
    ("size", "sizes", "bytes, up to"),
    ("depth", "depths", "directories above the file"),
    ("age", "ages", "age, up to"),
];

/// Deviations over checkpoints; no panels for arms without a profile.
pub(crate) fn convergence_figure(model: &Model) -> Figure {
    let reached = reached(model);
    let ends = reached.iter().filter_map(|(arm, checkpoints)| {
        let (_, last) = checkpoints.last_key_value()?;
        let accuracy = number(last, "accuracy").map_or(String::new(), |asked| format!(" (asked: {asked})"));
        Some(format!(" {arm}: {}{accuracy}.", ended_by(last.get("ended_by").copied().unwrap_or_default())))
    });
    let caption = format!(
        "Deviation of sizes, depths and ages of the files from the profile, and of the fullness from the requested one, at \
         every checkpoint. Total variation: the share of files that are in a wrong bin. Largest: of any bin, in shares of \
         all files. Chi-square: Pearson's, over the bins. The dotted line is the requested total variation. Ages match \
         only at the end of the life. Deviations below 0.00001 are drawn at the bottom.{}",
        ends.collect::<String>()
    );
    let draw = |kind: &Kind| {
        let variant = Variant::Choice { name: kind.name, label: kind.label };
        (variant, reached.iter().map(|(arm, checkpoints)| panel(model, kind, arm, checkpoints)).collect())
    };
    Figure {
        name: "convergence".to_owned(),
        title: "Convergence to the profile".to_owned(),
        caption,
        legend: Legend::Parts(PARTS.map(str::to_owned).to_vec()),
        csv: convergence_csv(&reached),
        variants: KINDS.iter().map(draw).collect(),
    }
}

/// The deviation of a part from the profile; none if the results do not have it.
fn deviation(kind: &Kind, figures: &BTreeMap<&str, &str>, part: &str) -> Option<f64> {
    match part {
        "fullness" if kind.name == "chi_square" => None,
        "fullness" => Some((number(figures, "fullness")? - number(figures, "fullness_asked")?).abs()),
        _ => number(figures, &format!("{part}.{}", kind.name)),
    }
}

fn convergence_csv(reached: &Reached<'_>) -> String {
    let mut csv = Csv::new(&["measure", "arm", "checkpoint", "part", "deviation"]);
    for kind in &KINDS {
        for (arm, checkpoints) in reached {
            for (pulls, figures) in checkpoints {
                for part in PARTS {
                    let Some(value) = deviation(kind, figures, part) else { continue };
                    let texts = [kind.label, arm, &pulls.to_string(), part, &exact(value)].map(str::to_owned);
                    csv.row(&texts);
                }
            }
        }
    }
    csv.finish()
}

fn reached_csv(reached: &Reached<'_>) -> String {
    let mut csv = Csv::new(&["property", "arm", "bin", "asked_share", "reached_share"]);
    for (name, label, _) in PROPERTIES {
        for (arm, checkpoints) in reached {
            let last = checkpoints.last_key_value().and_then(|(_, last)| last.get(format!("{name}.shares").as_str()));
            for (bin, [asked, found]) in last.and_then(|text| bins(text, name)).unwrap_or_default() {
                csv.row(&[label.to_owned(), (*arm).to_owned(), bin, exact(asked), exact(found)]);
            }
        }
    }
    csv.finish()
}

fn panel(model: &Model, kind: &Kind, arm: &str, checkpoints: &BTreeMap<u64, BTreeMap<&str, &str>>) -> Panel {
    let series = PARTS.iter().enumerate().map(|(at, part)| Series {
        role: Role::Full,
        name: (*part).to_owned(),
        label: (*part).to_owned(),
        colour: part_class(at),
        points: checkpoints
            .iter()
            .filter_map(|(pulls, figures)| {
                Some((*pulls, Spread::compute(vec![deviation(kind, figures, part)?.max(LEAST)])?))
            })
            .map(|(pulls, spread)| Point { pulls, spread })
            .collect(),
        invalid: Vec::new(),
    });
    let series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
    let accuracy = checkpoints.values().last().and_then(|figures| number(figures, "accuracy"));
    let reference = accuracy.filter(|_| kind.name == "total_variation").map(|accuracy| (accuracy, "asked"));
    let shown = || series.iter().flat_map(|series| &series.points).map(|point| point.spread.median);
    let values = || shown().chain(reference.map(|(accuracy, _)| accuracy));
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let y = if low.is_finite() { Axis::logarithmic(low, high) } else { Axis::from_zero(1.0) };
    let drawn = LinePanel {
        title: arm.to_owned(),
        x_unit: model.unit.clone(),
        x_label: model.x_title.clone(),
        y_label: kind.y_label,
        unit: "",
        series,
        x: x_axis_of(model, arm),
        y,
        has_own_x: model.plans.differ(),
        reference,
        noise: None,
    };
    Panel::new(format!("Convergence ({}), {arm}", kind.label), drawn)
}

/// The bound that ended an aging, in words.
fn ended_by(bound: &str) -> &str {
    match bound {
        "accuracy" => "ended because everything was as near as asked",
        "whole-files" => "ended as near as so few whole files can be",
        "no-space" => "ended because the file system had no space",
        "most-lives" => "ended after the most lives that it may have",
        "end-of-schedule" => "ended with its schedule, further off than asked",
        _ => "had not ended at the last checkpoint",
    }
}

/// The requested beside the reached distribution, bin by bin, at the end.
pub(crate) fn reached_figure(model: &Model) -> Figure {
    let reached = reached(model);
    let draw = |(name, label, x_label): (&'static str, &'static str, &'static str)| {
        let panels = reached.iter().filter_map(|(arm, checkpoints)| {
            let (_, last) = checkpoints.last_key_value()?;
            let bins = bins(last.get(format!("{name}.shares").as_str())?, name)?;
            let panel = PairsPanel {
                title: (*arm).to_owned(),
                x_label,
                y_label: "% of files",
                names: ["asked", "reached"],
                bins,
            };
            Some(Panel::new(format!("{label} asked and reached, {arm}"), panel))
        });
        (Variant::Choice { name, label }, panels.collect())
    };
    Figure {
        name: "reached-profile".to_owned(),
        title: "The requested and the reached profile".to_owned(),
        caption: "Shares of the files in every bin of the profile at the last checkpoint, beside the requested ones."
            .to_owned(),
        legend: Legend::Parts(vec!["asked".to_owned(), "reached".to_owned()]),
        csv: reached_csv(&reached),
        variants: PROPERTIES.into_iter().map(draw).collect(),
    }
}

/// `LIMIT=ASKED/REACHED` for each bin, separated by spaces.
fn bins(text: &str, name: &str) -> Option<Vec<(String, [f64; 2])>> {
    let bin = |text: &str| {
        let (limit, shares) = text.split_once('=')?;
        let (asked, reached) = shares.split_once('/')?;
        let limit: u64 = limit.parse().ok()?;
        let label = match name {
            "size" => short_bytes(limit),
            "age" => short_time(limit),
            _ => limit.to_string(),
        };
        Some((label, [asked.parse().ok()?, reached.parse().ok()?]))
    };
    text.split_whitespace().map(bin).collect()
}

fn short_bytes(bytes: u64) -> String {
    let unit = if bytes == 0 { 0 } else { (bytes.ilog2() / 10).min(5) };
    format!("{}{}", short(bytes as f64 / (1u64 << (10 * unit)) as f64), ["", "K", "M", "G", "T", "P"][unit as usize])
}

fn short_time(seconds: u64) -> String {
    const UNITS: [(u64, &str); 5] = [(31_557_600, "y"), (86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1, "s"));
    format!("{}{name}", short(seconds as f64 / unit as f64))
}

/// With one decimal if it is not whole, so that different limits have different texts.
fn short(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    rounded.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_read_with_labels_that_fit() {
        let found = bins("0=0.1/0.2 2097152=0.9/0.8", "size").unwrap();
        assert_eq!(found, [("0".to_owned(), [0.1, 0.2]), ("2M".to_owned(), [0.9, 0.8])]);
        let ages = bins("40=0/0 36000=0/0 63115200=1/1", "age").unwrap();
        assert_eq!(ages.iter().map(|bin| bin.0.as_str()).collect::<Vec<_>>(), ["40s", "10h", "2y"]);
        let odd = bins("3000=0/0 3072=1/1", "size").unwrap();
        assert_eq!(odd.iter().map(|bin| bin.0.as_str()).collect::<Vec<_>>(), ["2.9K", "3K"]);
        assert!(bins("5=0.1", "depth").is_none());
    }
}

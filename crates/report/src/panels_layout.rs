//! The figure of layout: the last checkpoint as dots, and the courses of its scores.

use crate::chart::{Axis, DotPanel, LinePanel, StoreysPanel};
use crate::csv::lines_csv;
use crate::devices::short;
use crate::format::figure;
use crate::model::{Lines, Model, ROLES, Spread};
use crate::panels::{Figure, Legend, Panel, Variant};
use crate::panels_lines::{LineFigure, arm_panels, drawn_lines, ending, line_panels};
use crate::panels_modelled::slug;

/// A measure of layout: title, unit, its lines, the least range of its axis.
struct Measure {
    title: &'static str,
    unit: &'static str,
    lines: Lines,
    range: (f64, f64),
    along: &'static str,
}

/// Shares as percentages.
fn percent(lines: &Lines) -> Lines {
    let mut lines = lines.clone();
    for spread in lines.values_mut().flat_map(|line| line.values_mut()) {
        *spread = Spread::compute(spread.values.iter().map(|share| share * 100.0)).unwrap_or_default();
    }
    lines
}

/// The cost of reading above the layout, on one x axis, as in FAST 2017. The layout is the dynamic
/// score of traced requests, or else the share of adjacent files. Each device has its own figure.
pub(crate) fn cost_and_layout_figures(model: &Model) -> Vec<Figure> {
    let devices = model.first_devices();
    let of_device = |(at, device): (usize, &&str)| Figure {
        name: if at == 0 { NAME.to_owned() } else { format!("{NAME}-{}", slug(device)) },
        ..cost_and_layout_figure(model, Some(device))
    };
    match devices.is_empty() {
        true => vec![cost_and_layout_figure(model, None)],
        false => devices.iter().enumerate().map(of_device).collect(),
    }
}

/// The name of the first figure of [`cost_and_layout_figures`]. The names of the others begin with
/// it.
pub(crate) const NAME: &str = "cost-and-layout";

fn cost_and_layout_figure(model: &Model, device: Option<&str>) -> Figure {
    let measured = model.grep_cost();
    let modelled = device.and_then(|device| Some((short(device), model.modelled.get(device)?)));
    let (name, costs, label) = match modelled {
        Some((name, costs)) => (name, costs, "seconds per GiB (model)"),
        None => ("measured", &measured, "seconds per GiB"),
    };
    let is_traced = !model.trace.dynamic_score.is_empty();
    let adjacent = percent(&model.adjacent_files_share);
    let layout = match is_traced {
        true => LineFigure {
            from_zero: false,
            limit: Some(1.0),
            device,
            ..LineFigure::of(&model.trace.dynamic_score, "dynamic layout score (1 = no seek)", "")
        },
        false => LineFigure {
            limit: Some(100.0),
            device,
            ..LineFigure::of(&adjacent, "% of files adjacent (to the one before)", "%")
        },
    };
    let cost = LineFigure { device, ..LineFigure::of(costs, label, " s/GiB") };
    let title = format!("Cost and layout: {name}");
    let lower = arm_panels(model, &layout, Variant::Shared);
    let panel = |((arm, upper), (_, lower)): ((String, _), (String, _))| {
        let lower = LinePanel { title: String::new(), ..lower };
        Panel::new(format!("{title}, {arm}"), StoreysPanel { upper, lower })
    };
    let panels = arm_panels(model, &cost, Variant::Shared).into_iter().zip(lower).map(panel).collect();
    let below = match is_traced {
        true => {
            "Below: the dynamic layout score of the traced grep test, 1 less the share of blocks (4 KiB) at which a request \
             did not begin where the previous one ended (FAST 2017)."
        }
        false => "Below: the share of files that begin where the file before them in the directory ends.",
    };
    Figure {
        name: NAME.to_owned(),
        title,
        caption: format!(
            "Above: the cost of a cold read of the whole tree, per GiB of allocated size.{} {below} Both charts have the same \
             x axis, so you can compare cost and layout of a volume.",
            ending(model, &[&cost])
        ),
        legend: Legend::Roles(ROLES.to_vec()),
        csv: lines_csv(&[(cost.y_label, &drawn_lines(model, &cost)), (layout.y_label, &drawn_lines(model, &layout))]),
        variants: vec![(Variant::Shared, panels)],
    }
}

/// Layout score, extents per file and adjacent files.
pub(crate) fn layout_figure(model: &Model) -> Figure {
    let measures = [
        Measure {
            title: "Layout score",
            unit: "",
            lines: model.layout_score.clone(),
            range: (0.5, 1.0),
            along: "1 = no file is split",
        },
        Measure {
            title: "Extents per file",
            unit: "",
            lines: model.extents_per_file.clone(),
            range: (1.0, 2.0),
            along: "mean; 1 = no file is split",
        },
        Measure {
            title: "Adjacent files",
            unit: "%",
            lines: percent(&model.adjacent_files_share),
            range: (0.0, 100.0),
            along: "% of files (each begins where the one before ends)",
        },
    ];
    // If hardly any file is split, two measures are almost constant, and show nothing about the
    // layout.
    let (score_end, extents_end) = (end(&measures[0], f64::min), end(&measures[1], f64::max));
    let is_whole = score_end.is_some_and(|least| least >= WHOLE.0) && extents_end.is_some_and(|most| most <= WHOLE.1);
    let shown = if is_whole { &measures[2..] } else { &measures[..] };
    let dots = shown.iter().filter_map(|measure| dot_panel(model, measure)).collect();
    let score = LineFigure {
        from_zero: false,
        limit: Some(1.0),
        ..LineFigure::of(&measures[0].lines, "layout score (1 = contiguous)", "")
    };
    let extents = LineFigure {
        from_zero: false,
        least: Some(measures[1].range),
        ..LineFigure::of(&measures[1].lines, "extents per file (mean)", "")
    };
    let adjacent = LineFigure {
        limit: Some(100.0),
        ..LineFigure::of(&measures[2].lines, "% of files adjacent to the one before", "%")
    };
    let course = |name, label, figure: &LineFigure| {
        (Variant::Choice { name, label }, line_panels(model, label, figure, Variant::Shared))
    };
    let mut variants = vec![(Variant::Choice { name: "last", label: "last checkpoint" }, dots)];
    if !is_whole {
        variants.extend([course("score", "layout score", &score), course("extents", "extents per file", &extents)]);
    }
    variants.push(course("adjacent", "adjacent files", &adjacent));
    let of_files = match is_whole {
        true => format!(
            "Hardly any file is split, so layout score (at least {}) and extents per file (at most {}) are not drawn.",
            figure(score_end.unwrap_or(1.0)),
            figure(extents_end.unwrap_or(1.0))
        ),
        false => "Layout score: the share of blocks that directly follow their predecessor in the same file (Smith and \
                  Seltzer 1997), over all files with at least two blocks. Extents per file: neighbouring extents are merged."
            .to_owned(),
    };
    Figure {
        name: "layout".to_owned(),
        title: "Layout of files".to_owned(),
        caption: format!(
            "The dots show the last checkpoint. {of_files} Adjacent files: the share of files that begin where the file before \
             them in the directory ends."
        ),
        legend: Legend::Roles(ROLES.to_vec()),
        csv: lines_csv(&measures.each_ref().map(|measure| (measure.title, &measure.lines))),
        variants,
    }
}

/// The least layout score and the most extents per file that a drawing does not distinguish from 1.
const WHOLE: (f64, f64) = (0.99, 1.05);

/// The least or the largest value of a measure; none without figures.
fn end(measure: &Measure, pick: fn(f64, f64) -> f64) -> Option<f64> {
    measure.lines.values().flat_map(|line| line.values()).map(|spread| spread.median).reduce(pick)
}

/// The dots of a measure at the last checkpoint of each volume; none without data.
fn dot_panel(model: &Model, measure: &Measure) -> Option<Panel> {
    let value = |arm: &str, role| {
        let (_, spread) = measure.lines.get(&(arm.to_owned(), role))?.last_key_value()?;
        Some((role, spread.median))
    };
    let row = |(arm, _): &(String, String)| {
        let values: Vec<_> = ROLES.iter().filter_map(|role| value(arm, *role)).collect();
        (!values.is_empty()).then(|| (arm.clone(), values))
    };
    let rows: Vec<_> = model.arms.iter().filter_map(row).collect();
    let values = || rows.iter().flat_map(|(_, values)| values).map(|(_, value)| *value);
    let (low, high) = (values().fold(measure.range.0, f64::min), values().fold(measure.range.1, f64::max));
    let panel = DotPanel {
        title: measure.title.to_owned(),
        x_label: measure.along,
        unit: measure.unit,
        x: Axis::between(low, high),
        rows,
    };
    (!panel.rows.is_empty()).then(|| Panel::new(format!("{} at the last checkpoint", measure.title), panel))
}

#[cfg(test)]
mod tests {
    use senesce_store::{Results, Role};

    use super::*;

    #[test]
    fn measures_of_unsplit_files_are_a_sentence() {
        let results = Results::default();
        let figure = |score: f64, extents: f64| {
            let mut model = Model::compute(&results);
            model.arms = vec![("ext4".to_owned(), "ext4".to_owned())];
            let line = |value: f64| [(40, Spread::compute([value]).unwrap())].into();
            let lines = |value: f64| Lines::from([(("ext4".to_owned(), Role::Full), line(value))]);
            (model.layout_score, model.extents_per_file, model.adjacent_files_share) =
                (lines(score), lines(extents), lines(0.5));
            layout_figure(&model)
        };
        let panels = |figure: &Figure| figure.variants.iter().map(|(_, panels)| panels.len()).collect::<Vec<_>>();
        let whole = figure(0.995, 1.03);
        assert_eq!(panels(&whole), [1, 1]);
        let said = "Hardly any file is split, so layout score (at least 0.995) and extents per file (at most 1.03) are not drawn.";
        assert!(whole.caption.contains(said), "{}", whole.caption);
        for (score, extents) in [(0.9, 1.03), (0.995, 1.2)] {
            let split = figure(score, extents);
            assert_eq!(panels(&split), [3, 1, 1, 1]);
            assert!(split.caption.contains("Smith and Seltzer 1997"), "{}", split.caption);
        }
    }
}

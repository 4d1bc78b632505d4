//! The page of published experiments with the garden beside what came out here.
//!
//! In goes what `senesce garden reproduce --json` prints (`senesce-reproduction/2`), so that this room need not know what runs them.
//! Whether a figure is inside its band was decided there; nothing is computed here but counts of that.

use minijinja::{Value, context};
use serde_json::Value as Json;

use crate::{
    Error,
    chart::{PANEL_HEIGHT, PANEL_WIDTH, PlotLine, PlotPanel},
    format::{count, escape, page_json},
    html::style,
    page::render_page,
};

/// Colours of lines; further ones begin again.
const COLOURS: usize = 5;

/// Renders the table, and charts of what has a course, as one HTML page, which loads nothing.
///
/// In: JSON of schema `senesce-reproduction/2`. Out: the page; the same for the same input. What is missing in the input is
/// shown as a dash.
pub fn render_reproduction(reproduction: &Json) -> Result<String, Error> {
    let experiments: Vec<&Json> = list(&reproduction["experiments"]).collect();
    let values = context! {
        version => text(&reproduction["senesce_version"]),
        schema => text(&reproduction["schema"]),
        scale => scale(&reproduction["scale"]),
        made_at => text(&reproduction["made_at"]),
        build => text(&reproduction["senesce_build"]),
        common => facts(&reproduction["common"]),
        ran => experiments.iter().flat_map(|experiment| ran(experiment)).collect::<Vec<_>>(),
        verdicts => verdicts(&experiments, &reproduction["scale"]),
        rows => experiments.iter().map(|experiment| row(experiment)).collect::<Vec<_>>(),
        drawn => experiments.iter().flat_map(|experiment| drawn(experiment)).collect::<Vec<_>>(),
        style => style() + include_str!("../assets/curve.css") + include_str!("../assets/reproduction.css"),
        script => include_str!("../assets/report.js"),
        data => page_json(&reproduction.to_string()),
    };
    render_page("reproduction.html", include_str!("../assets/reproduction.html"), values)
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or("–").to_owned()
}

/// With signs as they are written.
fn signs(text: &str) -> String {
    text.replace("<=", "≤").replace(">=", "≥").replace("->", "→").replace("..", " to ").replace("+-", "±")
}

fn list(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

fn figures(experiment: &Json) -> impl Iterator<Item = &Json> {
    list(&experiment["parts"]).flat_map(|part| list(&part["figures"]))
}

fn scale(scale: &Json) -> String {
    let shown = |key: &str| scale[key].as_u64().map_or("–".to_owned(), count);
    let cut = match scale["turnover_percent"].as_u64() {
        None | Some(100) => String::new(),
        Some(percent) => format!(", {percent} % of the turnovers"),
    };
    format!("{} allocation areas, {} a consistency point{cut}", shown("areas"), shown("areas_per_point"))
}

fn verdicts(experiments: &[&Json], scale: &Json) -> Vec<String> {
    let of = |verdict: &str| experiments.iter().filter(|experiment| experiment["verdict"] == verdict).count();
    let judged =
        || experiments.iter().flat_map(|experiment| figures(experiment)).filter(|figure| figure["judged"] == true);
    let inside = judged().filter(|figure| figure["inside"] == true).count();
    let cut = scale["turnover_percent"].as_u64().filter(|percent| *percent != 100);
    let cut = cut.map(|percent| format!("Cut down to {percent} % of the turnovers: bands are not meant for that."));
    let said = [
        format!("{inside} of {} figures that have a band are inside it.", judged().count()),
        format!(
            "Of {} published experiments {} are inside with all their figures, {} have some outside, {} were not run.",
            experiments.len(),
            of("inside"),
            of("outside"),
            of("not run")
        ),
    ];
    said.into_iter().chain(cut).collect()
}

/// An experiment in the table: what it is, and a line for each figure.
fn row(experiment: &Json) -> Value {
    let parts = list(&experiment["parts"]).map(|part| {
        let lines = list(&part["figures"]).map(|figure| {
            let (judged, inside) = (figure["judged"] == true, figure["inside"] == true);
            let (class, verdict) = match (judged, inside) {
                (false, _) => ("told", "–"),
                (true, true) => ("inside", "inside"),
                (true, false) => ("outside", "outside"),
            };
            let band = if judged { signs(&text(&figure["band"])) } else { "–".to_owned() };
            let paper = figure["paper"].as_str().filter(|paper| !paper.is_empty()).unwrap_or("–");
            let cause = figure["cause"].as_str();
            context! { name => text(&figure["name"]), paper => signs(paper), band, ours => text(&figure["ours"]), class, verdict, cause }
        });
        context! { kind => text(&part["kind"]), lines => lines.collect::<Vec<_>>() }
    });
    let verdict = text(&experiment["verdict"]);
    context! {
        name => text(&experiment["name"]),
        setup => text(&experiment["setup"]),
        paper => signs(&text(&experiment["paper"])),
        band => signs(&text(&experiment["band"])),
        class => verdict.replace(' ', "-"),
        verdict,
        why => experiment["why"].as_str().unwrap_or(""),
        parts => parts.collect::<Vec<_>>(),
    }
}

/// What was set, and how: a matter and what is told of it.
fn facts(value: &Json) -> Vec<Value> {
    list(value).map(|fact| context! { what => text(&fact["what"]), told => text(&fact["told"]) }).collect()
}

/// How the parts of an experiment were run, and what is particular to each.
fn ran(experiment: &Json) -> Vec<Value> {
    let seconds = |value: &Json| value.as_f64().map_or("–".to_owned(), |seconds| format!("{seconds:.1}"));
    let shown = |part: &Json| {
        let ran = &part["ran"];
        let name = format!("{} {}", text(&experiment["name"]), text(&part["kind"]));
        // Where one run gives two parts it is told once.
        let with = ran["part"].as_str().filter(|with| *with != name);
        context! {
            name => text(&experiment["name"]),
            kind => text(&part["kind"]),
            with,
            processor => seconds(&ran["processor_seconds"]),
            wall => seconds(&ran["wall_seconds"]),
            ended => text(&ran["ended"]),
            facts => facts(&part["particular"]),
        }
    };
    list(&experiment["parts"]).map(shown).collect()
}

/// The parts of an experiment that have something to draw or to note.
fn drawn(experiment: &Json) -> Vec<Value> {
    let parts = list(&experiment["parts"])
        .filter(|part| list(&part["charts"]).next().is_some() || list(&part["notes"]).next().is_some());
    parts
        .map(|part| {
            let mut names: Vec<&str> = Vec::new();
            let panels: Vec<String> = list(&part["charts"]).map(|chart| panel(chart, &mut names)).collect();
            let legend = names.iter().enumerate().map(|(at, &name)| context! { class => class(at), name });
            context! {
                name => text(&experiment["name"]),
                kind => text(&part["kind"]),
                title => text(&part["title"]),
                notes => list(&part["notes"]).map(text).collect::<Vec<_>>(),
                legend => legend.collect::<Vec<_>>(),
                panels,
            }
        })
        .collect()
}

fn class(at: usize) -> String {
    format!("curve-{}", at % COLOURS + 1)
}

/// A chart; a line that bears a name that another chart has bears its colour too.
fn panel<'c>(chart: &'c Json, names: &mut Vec<&'c str>) -> String {
    let lines = list(&chart["lines"]).map(|line| {
        let name = line["name"].as_str().unwrap_or("–");
        let at = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        let points = list(&line["places"]).filter_map(|place| {
            let (x, y) = place["x"].as_f64().zip(place["y"].as_f64())?;
            (x.abs() < 1e12 && y.abs() < 1e12).then_some((x, y, place["unkept"] == true))
        });
        PlotLine { class: class(at), name: name.to_owned(), points: points.collect() }
    });
    let panel = PlotPanel {
        title: text(&chart["title"]),
        x_label: text(&chart["x"]),
        y_label: text(&chart["y"]),
        is_logarithmic: chart["logarithmic"] == true,
        mark: " (did not keep up)",
        lines: lines.collect(),
    };
    format!(
        r#"<svg class="panel" viewBox="0 0 {PANEL_WIDTH} {PANEL_HEIGHT}" role="img" tabindex="0" aria-label="{}">{}</svg>"#,
        escape(&panel.title),
        panel.draw()
    )
}

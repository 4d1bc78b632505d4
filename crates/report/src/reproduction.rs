//! The page of published experiments with the garden, beside the figures of a run.
//!
//! The input is the output of `senesce garden reproduce --json` (`senesce-reproduction/3`), so that
//! this crate does not import the experiments. Verdicts are computed there and shown here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use minijinja::{Value, context};
use senesce_core::verdict::Verdict;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::{
    Error,
    chart::{PANEL_HEIGHT, PANEL_WIDTH, PlotLine, PlotPanel},
    csv::{Csv, exact},
    figures::light_css,
    format::{count, escape, figure, page_json},
    html::style,
    page::render_page,
    reproduction_strip::{strip_csv, strips},
};

/// Lines with these names have the first colours in all charts, so that a colour has one meaning.
const FIXED: [&str; 2] = ["without cleaning", "with cleaning"];
/// Colours of other lines. Further lines reuse them from the start.
const COLOURS: usize = 3;

/// The cause of a figure whose cause is not known. The page says it once.
const UNKNOWN_CAUSE: &str = "The cause is not known.";

/// Renders the table, and charts of figures over time, as one HTML page, which loads nothing.
///
/// In: JSON of schema `senesce-reproduction/3`. Out: the page; the same for the same input. Values
/// that are missing in the input are shown as dashes.
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
        verdicts => verdicts(reproduction, &experiments),
        is_smoke => is_smoke(reproduction),
        strips => strips(reproduction),
        strip_csv => strip_csv(reproduction),
        rows => experiments.iter().map(|experiment| row(experiment, is_smoke(reproduction))).collect::<Vec<_>>(),
        drawn => experiments.iter().flat_map(|experiment| parts(experiment, true)).collect::<Vec<_>>(),
        undrawn => experiments.iter().flat_map(|experiment| parts(experiment, false)).collect::<Vec<_>>(),
        style => style() + include_str!("../assets/curve.css") + include_str!("../assets/reproduction.css"),
        script => include_str!("../assets/report.js"),
        data => page_json(&reproduction.to_string()),
    };
    render_page("reproduction.html", include_str!("../assets/reproduction.html"), values)
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or("–").to_owned()
}

/// The text with typographic signs, and with "per" for a rate.
pub(crate) fn signs(text: &str) -> String {
    let text = text.replace("ms a read", "ms per read").replace("operations a second", "operations per second");
    let text =
        text.replace(" a write chain", " per write chain").replace("1 a consistency point", "1 per consistency point");
    let text = text.replace("GiB a minute", "GiB per minute").replace("chunks a block", "chunks per block");
    text.replace("<=", "≤").replace(">=", "≥").replace("->", "→").replace("..", " to ").replace("+-", "±")
}

fn list(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

fn scale(scale: &Json) -> String {
    let shown = |key: &str| scale[key].as_u64().map_or("–".to_owned(), count);
    let cut = match scale["turnover_percent"].as_u64() {
        None | Some(100) => String::new(),
        Some(percent) => format!(", {percent}% of the turnovers"),
    };
    format!("{} allocation areas, {} per consistency point{cut}", shown("areas"), shown("areas_per_point"))
}

/// Whether the run was cut down: its verdicts mean nothing.
pub(crate) fn is_smoke(reproduction: &Json) -> bool {
    reproduction["scale"]["turnover_percent"].as_u64().is_some_and(|percent| percent != 100)
}

fn verdicts(reproduction: &Json, experiments: &[&Json]) -> Vec<String> {
    let of = |status: &str| experiments.iter().filter(|experiment| experiment["status"] == status).count();
    let cut = reproduction["scale"]["turnover_percent"].as_u64().filter(|percent| *percent != 100);
    let cut = cut.map(|percent| {
        format!("A smoke test with {percent}% of the turnovers: its verdicts mean nothing. They show only that all of it runs.")
    });
    // The verdicts of a smoke test mean nothing, so they are not counted.
    let first = cut.unwrap_or_else(|| text(&reproduction["summary"]));
    vec![
        first,
        format!("Of {} published experiments {} were run, {} not.", experiments.len(), of("run"), of("not run")),
    ]
}

/// The class of the colour of a verdict, and its words.
fn verdict(figure: &Json) -> (&'static str, &'static str) {
    let verdict = Verdict::deserialize(&figure["verdict"]);
    verdict.map_or(("told", "–"), |verdict| (verdict_class(verdict), verdict.words()))
}

/// The class of the colour of a verdict.
pub(crate) fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "met",
        Verdict::DirectionOnly => "direction",
        Verdict::NotMet => "not-met",
        Verdict::NotComparable => "incomparable",
    }
}

/// An experiment in the table: its description, and a line for each figure. A smoke test has no
/// verdicts.
fn row(experiment: &Json, is_smoke: bool) -> Value {
    let parts = list(&experiment["parts"]).map(|part| {
        let lines = list(&part["figures"]).map(|figure| {
            let (class, verdict) = if is_smoke { ("told", "–") } else { verdict(figure) };
            let paper = figure["paper"].as_str().filter(|paper| !paper.is_empty()).unwrap_or("–");
            let section = figure["section"].as_str().filter(|section| !section.is_empty());
            let ratio = figure["ratio"].as_f64().map_or("–".to_owned(), crate::format::figure);
            let cause = figure["cause"].as_str().filter(|cause| *cause != UNKNOWN_CAUSE);
            let fitted = figure["fitted"].as_str();
            context! { name => signs(&text(&figure["name"])), paper => signs(paper), section, ratio, ours => text(&figure["ours"]), class, verdict, cause, fitted }
        });
        context! { kind => text(&part["kind"]), lines => lines.collect::<Vec<_>>() }
    });
    let status = text(&experiment["status"]);
    context! {
        name => text(&experiment["name"]),
        setup => text(&experiment["setup"]),
        paper => signs(&text(&experiment["paper"])),
        class => status.replace(' ', "-"),
        mark => if status == "run" && !is_smoke { tally(&experiment["tally"]) } else { status },
        why => experiment["why"].as_str().unwrap_or(""),
        parts => parts.collect::<Vec<_>>(),
    }
}

/// The numbers of an experiment that are met; its directions, if it has no number.
fn tally(tally: &Json) -> String {
    let count = |value: &Json| value.as_u64().map_or("–".to_owned(), |count| count.to_string());
    match tally["numbers"].as_u64() {
        Some(0) => format!("{} of {} directions", count(&tally["kept"]), count(&tally["directions"])),
        _ => format!("{} of {} met", count(&tally["verdicts"][0]), count(&tally["numbers"])),
    }
}

/// The settings: a subject and its text.
fn facts(value: &Json) -> Vec<Value> {
    list(value).map(|fact| context! { what => text(&fact["what"]), told => text(&fact["told"]) }).collect()
}

/// How the parts of an experiment were run, and the particulars of each.
fn ran(experiment: &Json) -> Vec<Value> {
    let seconds = |value: &Json| value.as_f64().map_or("–".to_owned(), figure);
    let shown = |part: &Json| {
        let ran = &part["ran"];
        let name = format!("{} {}", text(&experiment["name"]), text(&part["kind"]));
        // If two parts come from one run, it is described once.
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

/// The parts of an experiment with charts, or those with notes only.
fn parts(experiment: &Json, is_drawn: bool) -> Vec<Value> {
    let has = |part: &Json, key: &str| list(&part[key]).next().is_some();
    let parts = list(&experiment["parts"])
        .filter(|part| if is_drawn { has(part, "charts") } else { !has(part, "charts") && has(part, "notes") });
    parts
        .map(|part| {
            let mut names = Names::default();
            let panels: Vec<String> = plots(part, &mut names).iter().map(panel).collect();
            let legend = names.known.iter().map(|(name, class)| {
                let equal = equal_line(part, name).map(|other| format!(" (equal to “{other}”)")).unwrap_or_default();
                context! { class, name => format!("{name}{equal}") }
            });
            context! {
                name => text(&experiment["name"]),
                kind => text(&part["kind"]),
                title => signs(&text(&part["title"])),
                notes => list(&part["notes"]).map(text).collect::<Vec<_>>(),
                legend => legend.collect::<Vec<_>>(),
                csv => charts_csv(part),
                panels,
            }
        })
        .collect()
}

/// The name of a later line that covers the line in every chart of the part.
fn equal_line<'p>(part: &'p Json, name: &str) -> Option<&'p str> {
    let lines = |chart: &'p Json| list(&chart["lines"]).filter(|line| list(&line["places"]).next().is_some());
    let covers = |chart: &'p Json, other: &str| {
        let of = |name: &str| lines(chart).position(|line| line["name"] == name);
        let places = |at: usize| lines(chart).nth(at).map(|line| &line["places"]);
        matches!((of(name), of(other)), (Some(one), Some(two)) if one < two && places(one) == places(two))
    };
    let names = list(&part["charts"]).flat_map(lines).filter_map(|line| line["name"].as_str());
    names.into_iter().find(|other| list(&part["charts"]).all(|chart| covers(chart, other)))
}

/// The points of the charts of a part as CSV.
fn charts_csv(part: &Json) -> String {
    let mut csv = Csv::new(&["chart", "line", "x_label", "x", "y_label", "y", "kept_up"]);
    for chart in list(&part["charts"]) {
        for line in list(&chart["lines"]) {
            for place in list(&line["places"]) {
                let Some((x, y)) = place["x"].as_f64().zip(place["y"].as_f64()) else { continue };
                let kept = (place["unkept"] != true).to_string();
                let [title, name, x_label, y_label] =
                    [&chart["title"], &line["name"], &chart["x"], &chart["y"]].map(text);
                csv.row(&[title, name, x_label, exact(x), y_label, exact(y), kept]);
            }
        }
    }
    csv.finish()
}

/// The names of the lines of a part with the classes of their colours.
#[derive(Default)]
struct Names {
    known: Vec<(String, String)>,
}

impl Names {
    /// The class of the line of this name.
    fn class(&mut self, name: &str) -> String {
        if let Some((_, class)) = self.known.iter().find(|(known, _)| known == name) {
            return class.clone();
        }
        let is_free = |class: &String| self.known.iter().all(|(_, taken)| taken != class);
        let fixed = FIXED.iter().position(|fixed| name.trim_end_matches(", as old") == *fixed);
        let fixed = fixed.map(|at| format!("curve-{}", at + 1)).filter(is_free);
        let others = self.known.iter().filter(|(_, class)| !["curve-1", "curve-2"].contains(&class.as_str())).count();
        let class = fixed.unwrap_or_else(|| format!("curve-{}", others % COLOURS + FIXED.len() + 1));
        self.known.push((name.to_owned(), class.clone()));
        class
    }
}

fn panel(panel: &PlotPanel) -> String {
    format!(
        r#"<svg class="panel" viewBox="0 0 {PANEL_WIDTH} {PANEL_HEIGHT}" role="img" tabindex="0" aria-label="{}">{}</svg>"#,
        escape(&panel.title),
        panel.draw()
    )
}

/// The points of a line that can be drawn.
fn points(line: &Json) -> impl Iterator<Item = (f64, f64, bool)> {
    list(&line["places"]).filter_map(|place| {
        let (x, y) = place["x"].as_f64().zip(place["y"].as_f64())?;
        (x.abs() < 1e12 && y.abs() < 1e12).then_some((x, y, place["unkept"] == true))
    })
}

/// The charts of a part. Lines with the same name have the same colour in all charts. The panels
/// are beside each other, so those with one x axis share its ends.
fn plots(part: &Json, names: &mut Names) -> Vec<PlotPanel> {
    fn axis(chart: &Json) -> &str {
        chart["x"].as_str().unwrap_or_default()
    }
    // By the x axis: its least and its largest value.
    let mut ends: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for chart in list(&part["charts"]) {
        for (x, ..) in list(&chart["lines"]).flat_map(points) {
            let (least, most) = ends.entry(axis(chart)).or_insert((x, x));
            (*least, *most) = (least.min(x), most.max(x));
        }
    }
    list(&part["charts"]).map(|chart| plot(chart, ends.get(axis(chart)).copied(), names)).collect()
}

fn plot(chart: &Json, x_ends: Option<(f64, f64)>, names: &mut Names) -> PlotPanel {
    // A line without points has no entry in the legend.
    let drawn: Vec<&Json> = list(&chart["lines"]).filter(|line| list(&line["places"]).next().is_some()).collect();
    let lines = drawn.iter().enumerate().map(|(at, line)| {
        let name = line["name"].as_str().unwrap_or("–");
        let is_under = drawn[at + 1..].iter().any(|later| later["places"] == line["places"]);
        PlotLine { class: names.class(name), name: name.to_owned(), is_under, points: points(line).collect() }
    });
    PlotPanel {
        title: signs(&text(&chart["title"])),
        x_label: signs(&text(&chart["x"])),
        y_label: signs(&text(&chart["y"])),
        x_ends,
        is_logarithmic: chart["logarithmic"] == true,
        mark: " (did not keep up)",
        lines: lines.collect(),
    }
}

/// The charts of one part beside each other, as one SVG document in light colours.
///
/// In: the stored record of a part. Out: the same for the same input.
pub fn render_reproduction_svg(part: &Json) -> String {
    const MARGIN: f64 = 20.0;
    const HEAD: f64 = 70.0;
    let mut names = Names::default();
    let panels: Vec<String> = plots(part, &mut names).iter().map(PlotPanel::draw).collect();
    let (width, height) = ((PANEL_WIDTH + MARGIN) * panels.len() as f64 + MARGIN, PANEL_HEIGHT + HEAD + MARGIN);
    let title = escape(&format!("{}: {}", text(&part["experiment"]), signs(&text(&part["title"]))));
    let style = light_css(&[include_str!("../assets/curve.css"), include_str!("../assets/reproduction.css")].concat());
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"><title>{title}</title><style>{style}</style><rect class="paper" width="{width}" height="{height}"/><text class="figure-title" x="{MARGIN}" y="28">{title}</text>"#
    );
    for (at, (name, class)) in names.known.iter().enumerate() {
        let x = MARGIN + at as f64 * 190.0;
        let _ = write!(
            svg,
            r#"<g class="series {}"><line class="line" x1="{x}" x2="{}" y1="48" y2="48"/></g><text class="tick" x="{}" y="52">{}</text>"#,
            class,
            x + 30.0,
            x + 37.0,
            escape(name)
        );
    }
    for (at, panel) in panels.iter().enumerate() {
        let x = MARGIN + at as f64 * (PANEL_WIDTH + MARGIN);
        let _ = write!(svg, r#"<g transform="translate({x},{HEAD})">{panel}</g>"#);
    }
    svg.push_str("</svg>\n");
    svg
}

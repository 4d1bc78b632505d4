//! The page of a benchmark: every run on the aged volumes and on their fresh copies.
//!
//! The input is the output of `senesce bench --json` (`senesce-bench/1`), so that this crate does
//! not import the measuring code. This module computes only the positions of dots.

use std::{collections::BTreeMap, fmt::Write as _};

use minijinja::{Value, context};
use serde_json::Value as Json;

use crate::{
    Error,
    arm_colour::arm_classes,
    chart::{Axis, labelled_along, width_of_letters},
    format::{count, escape, figure, number, page_json},
    html::style,
    page::render_page,
    reproduction_strip::shortened,
};

/// Options of the page.
#[derive(Clone, Debug, Default)]
pub struct BenchOptions {
    /// The findings as sentences; the first is the headline.
    pub findings: Vec<String>,
    /// Version of the program, for the footer.
    pub senesce_version: String,
    /// Time of making, as text; `None` shows nothing.
    pub made_at: Option<String>,
}

/// Widths of the drawing on wide and on narrow screens, px.
const WIDTHS: [(&str, f64); 2] = [("wide", 1116.0), ("narrow", 358.0)];
/// The height of a row, px.
const ROW: f64 = 24.0;
/// The height of the labels above all rows, px.
const TOP: f64 = 34.0;
/// The space at the right of the axis, px.
const RIGHT: f64 = 14.0;

/// Renders a benchmark as one HTML page, which loads nothing.
///
/// In: JSON of schema `senesce-bench/1`. Out: the page; the same for the same input. Values that
/// are missing in the input are shown as dashes.
pub fn render_bench(bench: &Json, options: &BenchOptions) -> Result<String, Error> {
    let states = states(bench);
    let command = list(&bench["command"]).map(text).collect::<Vec<_>>().join(" ");
    let personality = bench["personality"]["personality"]["name"].as_str();
    let better = if bench["more_is_better"] == true { "more is better" } else { "less is better" };
    let runs = states.iter().map(|state| state.figures.len()).max().unwrap_or(0);
    let disturbed = |state: &Json| list(&state["disturbances"]).any(|reason| !text(reason).is_empty());
    let unlike = list(&bench["volumes"]).flat_map(|volume| {
        list(&volume["unlike"]).map(|unlike| format!("{}: {}", text(&volume["name"]), text(unlike)))
    });
    let values = context! {
        title => personality.map_or(command, |name| format!("personality {name}")),
        runs => count(runs as u64),
        unit => text(&bench["unit"]),
        better,
        findings => &options.findings,
        made_at => options.made_at.as_deref(),
        version => options.senesce_version.as_str(),
        schema => text(&bench["schema"]),
        warnings => list(&bench["warnings"]).map(text).chain(unlike).collect::<Vec<_>>(),
        drawings => WIDTHS.map(|(class, width)| draw(&states, (class, width), &text(&bench["unit"]))),
        rows => list(&bench["rows"]).map(row).collect::<Vec<_>>(),
        states => list(&bench["volumes"]).flat_map(|volume| {
            list(&volume["states"]).map(move |state| {
                let cells = [text(&volume["name"]), text(&state["role"]), text(&state["cold"])];
                context! { cells, disturbed => disturbed(state) }
            })
        }).collect::<Vec<_>>(),
        facts => facts(bench),
        style => style() + include_str!("../assets/suite.css"),
        script => include_str!("../assets/report.js"),
        data => page_json(&bench.to_string()),
    };
    render_page("bench.html", include_str!("../assets/bench.html"), values)
}

/// The runs on one state of a volume.
struct State {
    name: String,
    is_aged: bool,
    class: String,
    figures: Vec<f64>,
    /// The median and its interval.
    spread: Option<[f64; 3]>,
}

/// The states in the order of the volumes, the fresh copy of each first.
fn states(bench: &Json) -> Vec<State> {
    let volumes = || list(&bench["volumes"]);
    let named: Vec<(String, String)> =
        volumes().map(|volume| (text(&volume["name"]), text(&volume["file_system"]))).collect();
    let classes: BTreeMap<String, String> =
        arm_classes(named.iter().map(|(name, file_system)| (name.as_str(), file_system.as_str())));
    let mut found: Vec<State> = Vec::new();
    for volume in volumes() {
        let name = text(&volume["name"]);
        let row = list(&bench["rows"]).find(|row| row["name"] == volume["name"]).unwrap_or(&Json::Null);
        let mut of_volume: Vec<State> = list(&volume["states"])
            .map(|state| {
                let role = text(&state["role"]);
                let spread = &row[role.as_str()];
                let at = |key: &str| spread[key].as_f64();
                let spread = || Some([at("median")?, at("interval_low")?, at("interval_high")?]);
                State {
                    name: format!("{name} {role}"),
                    is_aged: role == "aged",
                    class: classes.get(&name).map_or(String::new(), |class| class.replace("arm-", "fs-")),
                    figures: list(&state["figures"]).filter_map(Json::as_f64).collect(),
                    spread: spread(),
                }
            })
            .collect();
        of_volume.sort_by_key(|state| state.is_aged);
        found.extend(of_volume);
    }
    found
}

/// A row for each state: a dot for each run, a whisker for the interval of the median, a line for
/// the median. The axis starts at 0.
fn draw(states: &[State], (class, width): (&str, f64), unit: &str) -> String {
    let most = states.iter().flat_map(|state| &state.figures).copied().fold(0.0, f64::max);
    let axis = Axis::from_zero(most);
    let letters = states.iter().map(|state| state.name.chars().count()).max().unwrap_or(0);
    // Names are wider than digits, and text is larger in print.
    let space = width_of_letters(0);
    let letter = 1.2 * (width_of_letters(1) - space);
    let most = ((width / 2.0 - space) / letter) as usize;
    let left = letters.min(most) as f64 * letter + space;
    let (bottom, end) = (TOP + ROW * states.len() as f64, width - RIGHT);
    // A negative figure has no place on the axis. Its text is in the table.
    let x = |value: f64| left + (end - left) * axis.position(value.max(0.0));
    let mut svg = format!(
        r#"<svg class="panel {class}" viewBox="0 0 {width} {}" role="img" aria-label="{unit} of each run"><text class="axis-label" x="0" y="11">{unit}</text>"#,
        bottom + 4.0,
        unit = escape(unit)
    );
    for tick in labelled_along(&axis, 40.0, x) {
        let at = x(tick);
        let _ = write!(
            svg,
            r#"<line class="grid" x1="{at:.1}" x2="{at:.1}" y1="{TOP}" y2="{bottom:.1}"/><text class="tick" x="{at:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            TOP - 6.0,
            number(tick)
        );
    }
    for (at, state) in states.iter().enumerate() {
        let y = TOP + ROW * (at as f64 + 0.5);
        let name = escape(&shortened(&state.name, most));
        let _ = write!(
            svg,
            r#"<text class="tick" x="{:.1}" y="{:.1}" text-anchor="end">{name}</text><g class="{}">"#,
            left - 8.0,
            y + 4.0,
            state.class
        );
        if let Some([median, low, high]) = state.spread {
            let (at, low, high) = (x(median), x(low), x(high));
            let (top, foot) = (y - 8.0, y + 8.0);
            let _ = write!(
                svg,
                r#"<path class="whisker" d="M{low:.1},{y:.1}H{high:.1}"/><path class="whisker" d="M{at:.1},{top:.1}V{foot:.1}"/>"#
            );
        }
        let fresh = if state.is_aged { "" } else { " fresh" };
        for figure in &state.figures {
            let _ = write!(svg, r#"<circle class="bar{fresh}" cx="{:.1}" cy="{y:.1}" r="4"/>"#, x(*figure));
        }
        let runs: Vec<String> = state.figures.iter().map(|value| figure(*value)).collect();
        let tip = escape(&format!("{}\n{}", state.name, runs.join(", ")));
        let _ = write!(
            svg,
            r#"</g><rect class="column" x="0" y="{:.1}" width="{width}" height="{ROW}" data-tip="{tip}"/>"#,
            y - ROW / 2.0
        );
    }
    svg + "</svg>"
}

/// A row of the table: the spreads of both states, and their comparison.
fn row(row: &Json) -> Value {
    let shown = |value: &Json| value.as_f64().map_or("–".to_owned(), figure);
    let spread = |spread: &Json| {
        let interval = match spread["count"].as_u64() {
            Some(0 | 1) | None => "–".to_owned(),
            _ => format!("{}–{}", shown(&spread["interval_low"]), shown(&spread["interval_high"])),
        };
        [spread["count"].as_u64().map_or("–".to_owned(), count), shown(&spread["median"]), interval]
    };
    let of_both = &row["comparison"];
    let interval = format!("{}–{}", shown(&of_both["ratio_low"]), shown(&of_both["ratio_high"]));
    let p = of_both["test"]["p"].as_f64().map_or("–".to_owned(), |p| format!("{p:.3}"));
    let compared = [shown(&of_both["ratio"]), if of_both.is_object() { interval } else { "–".to_owned() }, p];
    let cells: Vec<String> = [spread(&row["aged"]), spread(&row["unaged"]), compared].concat();
    context! { name => text(&row["name"]), cells }
}

/// The circumstances of each state, equal ones once.
fn facts(bench: &Json) -> Vec<[String; 2]> {
    let states =
        || list(&bench["volumes"]).flat_map(|volume| list(&volume["states"]).map(move |state| (volume, state)));
    let mut facts: Vec<[String; 2]> = Vec::new();
    for (volume, state) in states() {
        for (key, value) in state["circumstances"].as_object().into_iter().flatten() {
            let is_alike = states().all(|(_, other)| other["circumstances"].get(key) == Some(value));
            let of = format!("{} {}: {key}", text(&volume["name"]), text(&state["role"]));
            let fact = [if is_alike { key.clone() } else { of }, text(value)];
            if !facts.contains(&fact) {
                facts.push(fact);
            }
        }
    }
    facts
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or("–").to_owned()
}

fn list(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bench() -> Json {
        let state = |role: &str, figures: [f64; 4]| {
            json!({ "role": role, "figures": figures, "cold": "remount", "disturbances": ["", "", "", ""],
                    "circumstances": { "kernel_release": "6.1", "device": role } })
        };
        let spread = |median: f64| json!({ "count": 4, "median": median, "interval_low": median * 0.9, "interval_high": median * 1.1 });
        json!({
            "schema": "senesce-bench/1", "command": ["tar", "cf", "<file>"], "personality": null,
            "unit": "wall seconds", "more_is_better": false,
            "warnings": ["ext4 aged: the command read <little>"],
            "volumes": [{ "name": "ext4", "file_system": "ext4", "unlike": ["capacity: 1 aged, 2 unaged"],
                "states": [state("aged", [4.0, 4.1, 4.2, 4.3]), state("unaged", [1.0, 1.1, 1.2, 1.3])] }],
            "rows": [{ "name": "ext4", "aged": spread(4.15), "unaged": spread(1.15),
                "comparison": { "ratio": 3.6, "ratio_low": 3.1, "ratio_high": 4.0, "test": { "p": 0.029 } } }],
        })
    }

    #[test]
    fn page_has_every_run_and_the_findings() {
        let findings = vec!["ext4: aged takes 3.60 times as long as unaged.".to_owned()];
        let options = BenchOptions { findings, senesce_version: "1".to_owned(), made_at: Some("today".to_owned()) };
        let page = render_bench(&bench(), &options).unwrap();
        assert_eq!(page, render_bench(&bench(), &options).unwrap());
        // Two drawings with eight dots each; the hollow ones are of the fresh copy.
        assert_eq!((page.matches("<circle class=\"bar").count(), page.matches("bar fresh\"").count()), (16, 8));
        for said in [
            "<p class=\"lead\">ext4: aged takes 3.60 times",
            "tar cf &lt;file&gt;",
            "read &lt;little&gt;",
            "ext4: capacity: 1 aged, 2 unaged",
            "<td>3.60</td><td>3.10–4.00</td><td>0.029</td>",
            "<td>kernel_release</td><td>6.1</td>",
            "<td>ext4 unaged: device</td><td>unaged</td>",
            "wall seconds",
            "today",
        ] {
            assert!(page.contains(said), "{said}\n{page}");
        }
        assert!(!page.contains("NaN") && !page.contains("<polyline") && !page.contains("<file>"));
    }

    #[test]
    fn page_without_fresh_copies_has_dashes() {
        let mut alone = bench();
        alone["volumes"][0]["states"].as_array_mut().unwrap().truncate(1);
        alone["rows"][0]["unaged"] = Json::Null;
        alone["rows"][0]["comparison"] = Json::Null;
        let page = render_bench(&alone, &BenchOptions::default()).unwrap();
        assert!(page.contains("<td>–</td><td>–</td><td>–</td><td>–</td><td>–</td><td>–</td></tr>"), "{page}");
    }
}

//! The page: figures, tables and data in one HTML file that needs nothing else.

use std::collections::BTreeMap;

use minijinja::{Value, context};
use senesce_store::{Results, Role};

use crate::Error;
use crate::baseline::{self, Baseline};
use crate::chart::{CLASS_NAMES, LINE, PANEL_WIDTH, arm_marker, marker};
use crate::cures;
use crate::film::film;
use crate::format::{count, escape, figure, page_json};
use crate::headline::{KeyFigure, headline, key_figures};
use crate::methods::methods;
use crate::model::{Model, ROLES, words};
use crate::page::render_page;
use crate::panels::{Legend, Panel, figures, part_class};
use crate::published;
use crate::shelf::{Placed, place};
use crate::summary::{self, Cell};
use crate::warnings::warnings_with_reasons;

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct ReportOptions {
    /// Its title; the run's name if none.
    pub title: Option<String>,
    /// Time of making, as text. `None` shows nothing, and the page then depends on the results
    /// alone.
    pub made_at: Option<String>,
    /// For an unfinished run: the missing part, as a sentence. The page shows it and reloads itself
    /// every few seconds.
    pub unfinished: Option<String>,
    /// An earlier run: the page shows the change since it.
    pub baseline: Option<Baseline>,
}

/// Renders the report as one HTML page, which loads nothing: style, script, charts and data are in
/// it.
///
/// In: the results of a run. Out: the page; the same for the same input. Cost: linear in the rows.
pub fn render_report(results: &Results, options: &ReportOptions) -> Result<String, Error> {
    let model = Model::compute(results);
    let figures = place(&model, figures(&model));
    let first_modelled =
        figures.iter().map(|placed| placed.figure.name.clone()).find(|name| name.starts_with("modelled-"));
    let figures: Vec<Value> = figures.iter().map(|placed| figure_value(&model, placed)).collect();
    let published = published::Section::of(&model, words);
    let key_figure = |figure: &KeyFigure| {
        let factors: Vec<Value> = figure
            .factors
            .iter()
            .map(|(factor, volume)| context! { factor => factor.as_str(), volume => *volume })
            .collect();
        context! { arm => &figure.arm, factors, device => &figure.device, cost => &figure.cost, is_difference => figure.is_difference }
    };
    let run = &results.run;
    let title = options.title.clone().unwrap_or_else(|| run.run_name.clone());
    let valid = results.cells.iter().filter(|cell| cell.valid).count();
    let values = context! {
        title => title,
        run => context! {
            plan_name => run.plan_name.as_str(),
            plan_hash => run.plan_hash.as_str(),
            senesce_version => run.senesce_version.as_str(),
            format => run.format.as_str(),
        },
        made_at => options.made_at.as_deref(),
        unfinished => options.unfinished.as_deref(),
        arms => model.arms.iter().map(|(arm, _)| arm.clone()).collect::<Vec<_>>(),
        checkpoints => model.plans.checkpoints(),
        up_to => model.plans.up_to(&model.unit),
        cells => results.cells.len(),
        valid => valid,
        style => style(),
        script => include_str!("../assets/report.js"),
        headline => headline(&model).iter().chain(published.iter().map(|section| &section.conclusion)).map(|sentence| unbroken(sentence)).collect::<Vec<_>>(),
        key_figures => key_figures(&model).iter().map(key_figure).collect::<Vec<_>>(),
        warnings => warnings_with_reasons(&model),
        heads => summary::heads(&model).iter().map(|head| (*head).to_owned()).collect::<Vec<_>>(),
        has_wall => !model.is_wall_of_memory(),
        legend => summary::legend(&model),
        unit => model.unit.as_str(),
        note => summary::note(&model).replace("model: ", ""),
        rows => summary::rows(&model).iter().map(|row| page_row(row)).collect::<Vec<_>>(),
        cures => context! {
            note => cures::note(&model),
            heads => cures::READ_HEADS.map(str::to_owned),
            texts => cures::READ_TEXTS,
            // The reasons of skipped files contain options. A line break must not cut an option.
            rows => cures::read_rows(&model).iter().map(|row| row.iter().map(|cell| unbroken(cell)).collect()).collect::<Vec<Vec<Value>>>(),
            model_heads => cures::MODEL_HEADS.map(str::to_owned),
            model_texts => cures::MODEL_TEXTS,
            model_rows => cures::model_rows(&model),
        },
        published => published.map(|section| context! {
            conclusion => section.conclusion,
            note => published::note(&model),
            rows => section.rows.iter().map(published_row).collect::<Vec<_>>(),
        }),
        first_modelled => first_modelled,
        change => baseline::section(&model, options.baseline.as_ref()),
        figures => figures,
        sizes => CLASS_NAMES,
        spreads => spreads(&model),
        invalid => invalid(&model),
        methods => methods(&model),
        circumstances => circumstances(results),
        maps => film(&model),
        film_script => concat!(include_str!("../assets/mapview.js"), include_str!("../assets/film.js")),
        data => embedded(results),
    };
    render_page("report.html", include_str!("../assets/report.html"), values)
}

pub(crate) fn style() -> String {
    let light = include_str!("../assets/light.css");
    let dark = include_str!("../assets/dark.css");
    let themes = format!(
        ":root {{\n{light}}}\n@media screen and (prefers-color-scheme: dark) {{\n:root:not([data-theme=light]) {{\n{dark}}}\n}}\n\
         @media screen {{\n:root[data-theme=dark] {{\n{dark}}}\n}}\n"
    );
    themes + include_str!("../assets/chart.css") + include_str!("../assets/page.css")
}

/// The number of volumes of an arm that have maps, at most: a row of the page shows one arm.
fn columns_of_maps(model: &Model) -> usize {
    let has_map = |role: &&Role| model.results.maps.iter().any(|row| row.key.role == **role);
    ROLES.iter().filter(has_map).count().max(1)
}

fn figure_value(model: &Model, placed: &Placed) -> Value {
    let figure = &placed.figure;
    let panels = |panels: &[Panel]| -> Vec<String> { panels.iter().map(page_svg).collect() };
    let drawn: Vec<_> = figure.variants.iter().map(|(variant, drawn)| (variant, panels(drawn))).collect();
    let has_lines = drawn.iter().flat_map(|(_, panels)| panels).any(|svg| svg.contains(LINE));
    let variants = drawn.iter().map(|(variant, panels)| {
        context! { name => variant.name(), label => variant.label(), panels }
    });
    let (arms, roles): (Vec<(String, String)>, &[Role]) = match &figure.legend {
        Legend::Roles(roles) => (Vec::new(), roles),
        Legend::Arms(arms, roles) => (arms.clone(), roles),
        Legend::Parts(parts) => {
            (parts.iter().enumerate().map(|(at, part)| (part.clone(), part_class(at))).collect(), &[])
        }
        Legend::Sizes | Legend::Places => (Vec::new(), &[]),
    };
    let arms = arms.iter().map(|(arm, class)| {
        let mark = arm_marker(class, 12.0, 6.0).unwrap_or_default();
        context! { name => arm.as_str(), class => class.as_str(), mark => Value::from_safe_string(mark) }
    });
    let roles = roles.iter().map(|role| {
        context! {
            key => role.name(), words => words(*role), mark => Value::from_safe_string(marker(*role, 15.0, 5.0)),
        }
    });
    context! {
        name => figure.name.as_str(),
        title => figure.title.as_str(),
        caption => figure.caption.as_str(),
        shelf => placed.shelf,
        why => placed.why,
        // The page's script makes the rows of maps from the film: they are many.
        csv => if figure.name == "maps" { "" } else { &figure.csv },
        arms => arms.collect::<Vec<_>>(),
        roles => roles.collect::<Vec<_>>(),
        has_lines,
        sizes => figure.legend == Legend::Sizes,
        columns => (figure.name == "maps").then(|| columns_of_maps(model)),
        four => figure.variants.iter().any(|(_, panels)| panels.len() == 4),
        variants => variants.collect::<Vec<_>>(),
    }
}

/// A sentence as HTML, whose ranges (`12–13×`) and names of arms (`ext4-senesce`) stay on one line:
/// dashes allow a break. Very long names may break.
fn unbroken(sentence: &str) -> Value {
    const LONG: usize = 28;
    let word = |word: &str| match word.contains(['–', '-']) && word.chars().count() < LONG {
        true => format!("<span class=\"range\">{}</span>", escape(word)),
        false => escape(word),
    };
    Value::from_safe_string(sentence.split(' ').map(word).collect::<Vec<_>>().join(" "))
}

/// A row of the published values. Rows with one title follow each other.
fn published_row(row: &published::Row) -> Value {
    let [arm, place, quantity, published, ours, verdict, device, interval] = &row.cells;
    let title = format!("{place}: {quantity}, {device}");
    context! { title, arm, published, ours, verdict, interval, class => row.class }
}

/// A row of the summary, with the volume in words.
fn page_row(row: &[Cell]) -> Vec<Value> {
    let mut row = row.to_vec();
    if let Some(role) = ROLES.iter().find(|role| role.name() == row[1].text) {
        row[1].text = words(*role).to_owned();
    }
    row.iter().map(cell_value).collect()
}

fn cell_value(cell: &Cell) -> Value {
    context! { text => unbroken_note(&cell.text), class => cell.class }
}

/// A text of a cell whose note in parentheses, `(at 200)`, stays on one line.
fn unbroken_note(text: &str) -> String {
    match text.split_once(" (") {
        Some((figure, note)) => format!("{figure} ({}", note.replace(' ', "\u{a0}")),
        None => text.to_owned(),
    }
}

fn page_svg(panel: &Panel) -> String {
    let (svg, height) = panel.page();
    format!(
        r#"<svg class="panel" viewBox="0 0 {PANEL_WIDTH} {height}" role="img" tabindex="0" aria-label="{}">{svg}</svg>"#,
        escape(&panel.label)
    )
}

/// Every grep cost with its spread: arm, volume, pulls, method, n, median, its 95% interval, min,
/// max, outliers, and disturbances.
fn spreads(model: &Model) -> Vec<[String; 11]> {
    let mut rows = Vec::new();
    for ((scanner, order, cache), lines) in &model.grep {
        for ((arm, role), line) in lines {
            for (pulls, spread) in line {
                rows.push([
                    arm.clone(),
                    words(*role).to_owned(),
                    count(*pulls),
                    format!("{scanner}, {order}, {cache}"),
                    spread.count.to_string(),
                    figure(spread.median),
                    match spread.count {
                        1 => "–".to_owned(),
                        _ => format!("{} to {}", figure(spread.low), figure(spread.high)),
                    },
                    figure(spread.min),
                    figure(spread.max),
                    spread.outliers.iter().map(|outlier| figure(*outlier)).collect::<Vec<_>>().join(", "),
                    model.disturbed.get(&(arm.clone(), *role, *pulls)).map_or_else(String::new, |cell| {
                        format!("{} of {}: {}", cell.disturbed, cell.repetitions, cell.reason)
                    }),
                ]);
            }
        }
    }
    rows
}

fn invalid(model: &Model) -> Vec<[String; 4]> {
    let row = |((arm, role, pulls), reason): (&(String, senesce_store::Role, u64), &String)| {
        [arm.clone(), words(*role).to_owned(), count(*pulls), reason.clone()]
    };
    model.invalid.iter().map(row).collect()
}

/// Circumstances: those of the run first, then those of each arm.
fn circumstances(results: &Results) -> Vec<(String, Vec<(String, String)>)> {
    let mut by_arm: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for row in &results.circumstances {
        by_arm.entry(&row.arm).or_default().push((row.key.clone(), row.value.clone()));
    }
    let name = |arm: &str| if arm.is_empty() { "Whole run".to_owned() } else { arm.to_owned() };
    by_arm.into_iter().map(|(arm, rows)| (name(arm), rows)).collect()
}

/// The results as JSON that can stand in a script element: nothing in it can end the element. The
/// maps are omitted: they are already in the page, in a smaller form. The steps are omitted too:
/// there may be very many.
fn embedded(results: &Results) -> String {
    let results = Results { maps: Vec::new(), steps: Vec::new(), ..results.clone() };
    let json = serde_json::to_string(&results).expect("rows are plain structures with text keys");
    page_json(&json)
}

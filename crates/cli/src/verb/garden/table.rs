//! All experiments with what came out, for the screen, as JSON and for the page.

use senesce_timed::published::{PUBLISHED, Part, Published, Record, Told};
use senesce_trials::{Fact, Scale};
use serde::Serialize;

use super::{
    circumstances::{find_common, find_particular, print_circumstances},
    kept::{Ran, RunPart, tell_scale},
};
use crate::table::render_table;

/// The table.
#[derive(Debug, Serialize)]
pub struct Reproduction {
    schema: &'static str,
    senesce_version: &'static str,
    /// BLAKE3 of the executable.
    senesce_build: String,
    /// When the table was made; each part says when it ended.
    made_at: String,
    scale: Scale,
    /// What most parts have in common.
    common: Vec<Fact>,
    experiments: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    setup: &'static str,
    paper: &'static str,
    band: &'static str,
    /// inside, outside, in part (inside as far as it was run), told (nothing is judged), failed (a part of it, whatever the other says) or
    /// not run.
    verdict: &'static str,
    /// Why it is not run.
    why: String,
    parts: Vec<Shown>,
}

/// A part that was run.
#[derive(Debug, Serialize)]
pub struct Shown {
    #[serde(flatten)]
    pub record: Record,
    pub ran: Ran,
    /// What it does not have in common with most parts.
    pub particular: Vec<Fact>,
}

/// Who made the table, and when.
pub struct Made {
    /// BLAKE3 of the executable.
    pub build: String,
    /// The time of day.
    pub at: String,
}

impl Reproduction {
    /// All published experiments, with what came out of parts; `wanted` were asked for.
    pub fn new(
        made: Made,
        scale: Scale,
        wanted: &[&Published],
        mut records: Vec<RunPart>,
        failures: &[(Part, String)],
    ) -> Self {
        // They come in the order in which they ended.
        let place = |part: &RunPart| {
            let at = PUBLISHED.iter().position(|published| published.name == part.record.experiment);
            (at, part.record.kind.clone())
        };
        records.sort_by_key(place);
        let common = find_common(&records);
        let row = |published: &Published| {
            let of = |kind: &str| {
                let is_it = |record: &Record| record.experiment == published.name && record.kind == kind;
                let part = records.iter().find(|part| is_it(&part.record)).cloned();
                part.map(|part| Shown {
                    particular: find_particular(&part, &common),
                    record: part.record,
                    ran: part.ran,
                })
            };
            let parts: Vec<Shown> = ["structure", "time"].into_iter().filter_map(of).collect();
            let has_failed = failures.iter().any(|(part, _)| part.experiment() == published.name);
            let missing: Vec<Part> = published.parts().into_iter().filter(|part| of(part.kind()).is_none()).collect();
            let verdict = match judge(&parts) {
                _ if has_failed => "failed",
                // What is inside with a part of its figures may be outside with the others.
                "inside" | "told" if !missing.is_empty() => "in part",
                verdict => verdict,
            };
            let is_wanted = wanted.iter().any(|wanted| wanted.name == published.name);
            let mut why = explain(published, is_wanted || !parts.is_empty(), failures);
            if !parts.is_empty() && !has_failed {
                why.extend(missing.iter().map(|part| format!(" Not run: its part on {}.", part.kind())));
            }
            let Published { name, setup, paper, band, .. } = *published;
            Row { name, setup, paper, band, verdict, why, parts }
        };
        Self {
            schema: "senesce-reproduction/2",
            senesce_version: env!("CARGO_PKG_VERSION"),
            senesce_build: made.build,
            made_at: made.at,
            scale,
            experiments: PUBLISHED.iter().map(row).collect(),
            common,
        }
    }
}

fn judge(parts: &[Shown]) -> &'static str {
    let mut judged = parts.iter().flat_map(|part| &part.record.figures).filter(|figure| figure.judged).peekable();
    match (parts.is_empty(), judged.peek().is_none()) {
        (true, _) => "not run",
        (_, true) => "told",
        _ if judged.all(|figure| figure.inside) => "inside",
        _ => "outside",
    }
}

fn explain(published: &Published, is_wanted: bool, failures: &[(Part, String)]) -> String {
    let mut said = Vec::new();
    if !is_wanted {
        said.push("Not asked for.".to_owned());
    }
    let failed = failures.iter().filter(|(part, _)| part.experiment() == published.name);
    let mut failed: Vec<String> =
        failed.map(|(part, reason)| format!("The part on {} failed: {reason}.", part.kind())).collect();
    // They come in the order in which they ended.
    failed.sort();
    said.extend(failed);
    said.join(" ")
}

/// The table as text: a heading for each experiment, a line for each figure.
pub fn render(table: &Reproduction) -> String {
    let mut text = format!(
        "Published experiments (Storage Gardening, FAST 2019) and ours; {}. Times are a model's.\n",
        tell_scale(table.scale)
    );
    for Row { name, setup, verdict, why, parts, paper, band } in &table.experiments {
        text.push_str(&format!("\n{name}  {verdict}: {setup}\n"));
        if parts.is_empty() {
            text.push_str(&format!("     published: {paper}\n     accepted:  {band}\n"));
        }
        if !why.is_empty() {
            text.push_str(&format!("     {why}\n"));
        }
        let lines: Vec<Vec<String>> = parts
            .iter()
            .flat_map(|Shown { record, .. }| record.figures.iter().map(|figure| line(figure, &record.kind)))
            .collect();
        let heading = ["", "figure", "", "published", "accepted", "ours", ""].map(str::to_owned).to_vec();
        if !lines.is_empty() {
            text.push_str(&render_table(&[vec![heading], lines].concat()));
        }
        for Told { name, cause, .. } in parts.iter().flat_map(|part| &part.record.figures) {
            cause.iter().for_each(|cause| text.push_str(&format!("     outside: {name}: {cause}\n")));
        }
        for note in parts.iter().flat_map(|part| &part.record.notes) {
            text.push_str(&format!("     note: {note}\n"));
        }
    }
    let parts = || table.experiments.iter().flat_map(|row| &row.parts);
    text.push_str(&print_circumstances(&table.common, &table.senesce_build, parts()));
    let figures = || parts().flat_map(|part| &part.record.figures);
    let judged = figures().filter(|figure| figure.judged).count();
    let inside = figures().filter(|figure| figure.judged && figure.inside).count();
    let of = |verdict: &str| table.experiments.iter().filter(|row| row.verdict == verdict).count();
    let (whole, some, none) = (of("inside"), of("outside"), of("not run"));
    text.push_str(&format!("\n{inside} of {judged} figures with a band are inside it. Experiments: {whole} inside, {some} outside, {none} not run.\n"));
    text
}

fn line(figure: &Told, kind: &str) -> Vec<String> {
    let Told { name, paper, ours, band, judged, inside, .. } = figure;
    let (band, verdict) = match (judged, inside) {
        (false, _) => ("", "told"),
        (true, true) => (band.as_str(), "inside"),
        (true, false) => (band.as_str(), "OUTSIDE"),
    };
    ["   ", name, kind, paper, band, ours, verdict].map(str::to_owned).to_vec()
}

//! All experiments with their results, for the screen, as JSON and for the page.

use schemars::JsonSchema;
use senesce_core::names::list;
use senesce_timed::published::{PUBLISHED, Part, Published, Record, ShownFigure, Tally};
use senesce_trials::{Fact, Scale, Verdict};
use serde::Serialize;

use super::{
    circumstances::{find_common, find_particular, print_circumstances},
    kept::{Ran, RunPart, tell_scale},
};
use crate::{table::render_table, version};

/// The reason why an experiment without results is not run.
const NOT_REQUESTED: &str = "Not requested.";

/// The table.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reproduction {
    /// The name of the schema and its version.
    schema: &'static str,
    /// The version and the commit of senesce.
    senesce_version: &'static str,
    /// BLAKE3 of the executable.
    senesce_build: String,
    /// The time when the table was made. Each part has the time of its end.
    made_at: String,
    /// The size of the trials.
    scale: Scale,
    /// Settings that most parts have in common.
    common: Vec<Fact>,
    /// The number of published numbers that our figures meet, over all experiments.
    tally: Tally,
    /// The tally in words.
    summary: String,
    /// The published experiments.
    experiments: Vec<Row>,
}

/// A published experiment.
#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    /// Its name.
    name: &'static str,
    /// Its setup.
    setup: &'static str,
    /// The result of the paper.
    paper: &'static str,
    /// `run`, `in part` (only one of its parts), `failed` (one of its parts) or `not run`.
    status: &'static str,
    /// The number of published numbers that our figures meet.
    tally: Tally,
    /// The reason why the experiment is not run. Empty if it is run.
    why: String,
    /// The parts that were run.
    parts: Vec<Shown>,
}

/// A part that was run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Shown {
    #[serde(flatten)]
    pub record: Record,
    /// How it was run.
    pub ran: Ran,
    /// Settings that differ from those of most parts.
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
    /// All published experiments, with the results of parts; `wanted` were requested.
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
            let status = match (has_failed, parts.is_empty(), missing.is_empty()) {
                (true, ..) => "failed",
                (_, true, _) => "not run",
                (.., false) => "in part",
                _ => "run",
            };
            let tally = Tally::of(parts.iter().flat_map(|part| &part.record.figures));
            let is_wanted = wanted.iter().any(|wanted| wanted.name == published.name);
            let mut why = explain(published, is_wanted || !parts.is_empty(), failures);
            if !parts.is_empty() && !has_failed {
                why.extend(missing.iter().map(|part| format!(" Not run: its part on {}.", part.kind())));
            }
            let Published { name, setup, paper, .. } = *published;
            Row { name, setup, paper, status, tally, why, parts }
        };
        let experiments: Vec<Row> = PUBLISHED.iter().map(row).collect();
        let tally = Tally::of(experiments.iter().flat_map(|row| &row.parts).flat_map(|part| &part.record.figures));
        Self {
            schema: version::REPRODUCTION,
            senesce_version: senesce_cli::VERSION,
            senesce_build: made.build,
            made_at: made.at,
            scale,
            summary: tally.words(),
            tally,
            experiments,
            common,
        }
    }

    /// All parts that ran.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.experiments.iter().flat_map(|row| &row.parts).map(|part| &part.record)
    }
}

fn explain(published: &Published, is_wanted: bool, failures: &[(Part, String)]) -> String {
    let mut said = Vec::new();
    if !is_wanted {
        said.push(NOT_REQUESTED.to_owned());
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
    let smoke = smoke_test(table.scale);
    smoke.iter().for_each(|smoke| text.push_str(&format!("{smoke}\n")));
    let is_shown = |row: &&Row| row.why != NOT_REQUESTED;
    for Row { name, setup, status, tally, why, parts, paper } in table.experiments.iter().filter(is_shown) {
        let mark = if *status == "run" && smoke.is_none() { tell_tally(tally) } else { (*status).to_owned() };
        text.push_str(&format!("\n{name}  {mark}: {setup}\n     published: {paper}\n"));
        if !why.is_empty() {
            text.push_str(&format!("     {why}\n"));
        }
        let lines: Vec<Vec<String>> = parts
            .iter()
            .flat_map(|Shown { record, .. }| {
                record.figures.iter().map(|figure| line(figure, &record.kind, smoke.is_none()))
            })
            .collect();
        // A narrow terminal shows the first columns.
        let verdict = if smoke.is_none() { "verdict" } else { "" };
        let heading = ["", "figure", "published", "ours", "ratio", verdict, "part", "section"];
        if !lines.is_empty() {
            text.push_str(&render_table(&[vec![heading.map(str::to_owned).to_vec()], lines].concat()));
        }
        for ShownFigure { name, cause, fitted, verdict, .. } in parts.iter().flat_map(|part| &part.record.figures) {
            let verdict = verdict.map_or("", Verdict::words);
            let cause = cause.iter().filter(|_| smoke.is_none());
            cause.for_each(|cause| text.push_str(&format!("     {verdict}: {name}: {cause}\n")));
            fitted.iter().for_each(|how| text.push_str(&format!("     fitted: {name}: {how}\n")));
        }
        for note in parts.iter().flat_map(|part| &part.record.notes) {
            text.push_str(&format!("     note: {note}\n"));
        }
    }
    let unasked: Vec<bool> = table.experiments.iter().map(|row| row.why == NOT_REQUESTED).collect();
    if unasked.contains(&true) {
        text.push_str(&format!("\n{} not requested.\n", list(&name_ranges(&unasked, |at| table.experiments[at].name))));
    }
    let parts = || table.experiments.iter().flat_map(|row| &row.parts);
    text.push_str(&print_circumstances(&table.common, &table.senesce_build, parts()));
    let of = |status: &str| table.experiments.iter().filter(|row| row.status == status).count();
    let summary = smoke.as_deref().unwrap_or(&table.summary);
    text.push_str(&format!("\n{summary} Experiments not run: {}.\n", of("not run")));
    text
}

/// The sentence about a scale that runs only a share of the turnovers. `None` for all others.
pub(super) fn smoke_test(scale: Scale) -> Option<String> {
    let percent = scale.turnover_percent;
    (percent < 100).then(|| {
        format!(
            "A smoke test with {percent}% of the turnovers: its verdicts mean nothing. They show only that all of it runs."
        )
    })
}

/// The numbers of an experiment that are met; its directions, if it has no number.
fn tell_tally(tally: &Tally) -> String {
    match tally.numbers {
        0 => format!("{} of {} directions", tally.kept, tally.directions),
        numbers => format!("{} of {numbers} met", tally.verdicts[0]),
    }
}

/// The names of the marked places. Three or more in a row are a range: `E3 to E14`.
fn name_ranges<'n>(marked: &[bool], name: impl Fn(usize) -> &'n str) -> Vec<String> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for at in (0..marked.len()).filter(|at| marked[*at]) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == at => *last = at,
            _ => ranges.push((at, at)),
        }
    }
    let names = ranges.into_iter().flat_map(|(first, last)| match last - first {
        0 => vec![name(first).to_owned()],
        1 => vec![name(first).to_owned(), name(last).to_owned()],
        _ => vec![format!("{} to {}", name(first), name(last))],
    });
    names.collect()
}

fn line(figure: &ShownFigure, kind: &str, has_verdict: bool) -> Vec<String> {
    let ShownFigure { name, paper, section, ours, ratio, verdict, fitted, .. } = figure;
    let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
    let verdict = verdict.filter(|_| has_verdict).map_or("", Verdict::words);
    let verdict = if fitted.is_some() && has_verdict { format!("{verdict} (fitted)") } else { verdict.to_owned() };
    ["   ", name, paper, ours, &ratio, &verdict, kind, section].map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use senesce_cli::fit_to;
    use senesce_timed::published::FigureLine;

    use super::*;

    #[test]
    fn consecutive_experiments_are_a_range() {
        let of = |marks: &str| {
            let marked: Vec<bool> = marks.chars().map(|mark| mark == 'x').collect();
            list(&name_ranges(&marked, |at| PUBLISHED[at].name))
        };
        let found = ["..xxxxxxxxxxxx", "xx....x.......", "x.............", "xxx.xxx......x"].map(of);
        assert_eq!(found, ["E3 to E14", "E1, E2 and E7", "E1", "E1 to E3, E5 to E7 and E14"]);
    }

    /// The table of the kept figures of some experiments.
    fn kept(names: &[&str]) -> Reproduction {
        let scale = Scale::EIGHTH;
        let lines = FigureLine::read_all(include_str!("../../../../../golden/reproduction-eighth.tsv")).unwrap();
        let wanted: Vec<&Published> = PUBLISHED.iter().filter(|published| names.contains(&published.name)).collect();
        let part = |part: Part| {
            let is_of = |line: &&FigureLine| line.experiment == part.experiment() && line.kind == part.kind();
            let record = Record {
                experiment: part.experiment(),
                kind: part.kind().to_owned(),
                title: part.title().to_owned(),
                scale,
                figures: lines.iter().filter(is_of).map(|line| line.figure.clone()).collect(),
                notes: Vec::new(),
                circumstances: Vec::new(),
                charts: Vec::new(),
            };
            let (ended, host) = ("2026-11-30 20:00:00 UTC".to_owned(), "2 x a processor".to_owned());
            let ran = Ran { part: part.to_string(), ended, processor_seconds: 1.0, wall_seconds: 1.0, jobs: 1, host };
            RunPart { record, ran }
        };
        let records = wanted.iter().flat_map(|published| published.parts()).map(part).collect();
        let made = Made { build: "0".repeat(64), at: "2026-11-30 20:00:01 UTC".to_owned() };
        Reproduction::new(made, scale, &wanted, records, &[])
    }

    #[test]
    fn decisive_cells_are_shown_at_every_width() {
        let names = ["E3", "E5", "E10"];
        let table = kept(&names);
        for columns in [60, 80, 100] {
            let shown = fit_to(&render(&table), columns);
            let too_long = |line: &&str| line.chars().count() > columns && !line.contains(&table.senesce_build);
            assert_eq!(shown.lines().find(too_long), None, "{columns}:\n{shown}");
            assert!(shown.contains("\nE1, E2, E4, E6 to E9 and E11 to E14 not requested.\n"), "{shown}");
            let words: Vec<&str> = shown.split(|letter: char| letter.is_whitespace() || letter == ',').collect();
            for figure in table.records().flat_map(|record| &record.figures) {
                let [_, _, published, ours, ratio, verdict, ..] = &line(figure, "", true)[..] else { unreachable!() };
                for word in [published, ours, ratio, verdict].into_iter().flat_map(|cell| cell.split_whitespace()) {
                    let word = word.trim_end_matches(',');
                    assert!(words.contains(&word), "{word} of {} at {columns}:\n{shown}", figure.name);
                }
            }
            assert_eq!(names.map(|name| shown.matches(&format!("\n{name} ")).count()), [1; 3], "{shown}");
        }
    }
}

//! Writes the tables of published figures into the docs, from the stored run of the default scale.
//!
//! `cargo run --release -p senesce-timed --example docs_table [-- E3 E5]` in the project's
//! directory. First it runs the named experiments and stores their figures. For E1 it also stores
//! the charts, from which `reproduction_picture` of senesce-report makes the docs' picture.

use std::fs;

use senesce_timed::published::{
    FigureLine, PUBLISHED, Part, Record, render_docs_table, render_time_table, replace_docs_table,
};
use senesce_trials::Scale;

const KEPT: &str = "golden/reproduction-eighth.tsv";
const KEPT_CHARTS: &str = "golden/reproduction-eighth-E1.json";
const STRUCTURE: &str = "docs/results/garden-trials.md";
const TIME: &str = "docs/results/timed.md";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut kept = fs::read_to_string(KEPT)?;
    for name in std::env::args().skip(1) {
        let published = PUBLISHED.iter().find(|published| published.name == name);
        let parts = published.ok_or_else(|| format!("no experiment {name:?}"))?.parts();
        let mut sources: Vec<Part> = Vec::new();
        parts.into_iter().map(Part::source).for_each(|source| {
            if !sources.contains(&source) {
                sources.push(source);
            }
        });
        let mut records = Vec::new();
        for source in sources {
            records.extend(source.run(Scale::EIGHTH)?);
        }
        kept = replace_lines(&kept, &name, &records);
        if let Some(Record { experiment, title, charts, .. }) =
            records.iter().find(|record| record.experiment == "E1" && record.kind == "time")
        {
            let kept = serde_json::json!({ "experiment": experiment, "title": title, "charts": charts });
            fs::write(KEPT_CHARTS, format!("{kept}\n"))?;
        }
    }
    fs::write(KEPT, &kept)?;
    let lines = FigureLine::read_all(&kept)?;
    for (path, table) in [(STRUCTURE, render_docs_table(&lines)), (TIME, render_time_table(&lines))] {
        let docs = fs::read_to_string(path)?;
        let replaced = replace_docs_table(&docs, &table).ok_or_else(|| format!("{path} has no place for the table"))?;
        fs::write(path, replaced)?;
    }
    Ok(())
}

/// The stored lines with those of an experiment replaced, in the order of the experiments.
fn replace_lines(kept: &str, experiment: &str, records: &[Record]) -> String {
    let new = FigureLine::write_all(records);
    let (heading, _) = new.split_once('\n').unwrap_or_default();
    let mut text = format!("{heading}\n");
    for published in PUBLISHED {
        let from = if published.name == experiment { &new } else { kept };
        let own = from.lines().filter(|line| line.split('\t').next() == Some(published.name));
        own.for_each(|line| text += &format!("{line}\n"));
    }
    text
}

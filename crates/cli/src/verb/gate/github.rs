//! Annotations and the step summary of GitHub Actions.

use std::{env, fs::OpenOptions, io::Write};

use anyhow::{Context, Result};

use super::{
    Report,
    judge::{Judged, Verdict},
    markdown, screen,
};
use crate::out::print_command;

/// The file to which the summary is appended.
const SUMMARY: &str = "GITHUB_STEP_SUMMARY";
/// The number of annotations of each kind that GitHub shows for a step.
const MOST: usize = 10;

/// Escapes a text for the message of a command, so that it cannot end the line.
fn escape_message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a text for a property of a command.
fn escape_property(text: &str) -> String {
    escape_message(text).replace(':', "%3A").replace(',', "%2C")
}

/// The commands for the figures that differ beyond their tolerance, the worst first.
fn annotations(report: &Report<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (verdict, command) in
        [(Verdict::Regressed, "error"), (Verdict::Undecided, "warning"), (Verdict::Improved, "notice")]
    {
        let found: Vec<&Judged> = report.judged.iter().filter(|figure| figure.verdict == Some(verdict)).collect();
        for figure in found.iter().take(MOST) {
            lines.push(annotation(command, figure));
        }
    }
    for missing in report.missing.iter().take(MOST) {
        let message = escape_message(&format!("not compared: {missing}"));
        lines.push(format!("::warning title=senesce gate::{message}"));
    }
    lines
}

fn annotation(command: &str, figure: &Judged) -> String {
    let (a, b) = figure.medians();
    let name = figure.row.name();
    let verdict = figure.verdict.map_or("", Verdict::word).to_lowercase();
    let title = escape_property(&format!("{name} {verdict}"));
    let (a, b) = (screen::number(a), screen::number(b));
    let change = figure.change();
    let percent = figure.tolerance_percent;
    let message = escape_message(&format!("{name}: {a} -> {b} ({change}, tolerance {percent}%)"));
    format!("::{command} title={title}::{message}")
}

/// Prints the log and the annotations, and appends the table to the summary of the step.
///
/// Errors: the file of the summary cannot be written.
pub(super) fn print(report: &Report<'_>) -> Result<()> {
    print!("{}", screen::render(report));
    annotations(report).iter().for_each(|line| print_command(line));
    append_summary(&markdown::render(report))
}

/// Prints an error that left the gate without a verdict, and appends `summary` to the summary.
///
/// Errors: the file of the summary cannot be written.
pub(super) fn print_failure(message: &str, summary: &str) -> Result<()> {
    print_command(&format!("::error title=senesce gate::{}", escape_message(message)));
    append_summary(summary)
}

fn append_summary(text: &str) -> Result<()> {
    let Some(path) = env::var_os(SUMMARY).filter(|path| !path.is_empty()) else {
        eprintln!("senesce: {SUMMARY} is not set, so there is no summary of the step");
        return Ok(());
    };
    let written =
        OpenOptions::new().append(true).create(true).open(&path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write the summary of the step {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_be_a_command() {
        assert_eq!(escape_message("a\n::error::b\r100%"), "a%0A::error::b%0D100%25");
        assert_eq!(escape_property("a,file=x::b"), "a%2Cfile=x%3A%3Ab");
    }
}

//! The gate as Markdown, for a comment on a pull request.

use std::fmt::Write;

use senesce_core::{Printable, statistics::Outcome};

use super::{
    Report,
    judge::{Judged, Verdict},
    screen::{counts, number, sort_news},
};

/// The most rows of the table. GitHub limits a comment to 65,536 characters.
const MOST_ROWS: usize = 100;
/// The most circumstances that the text lists.
const MOST_UNLIKE: usize = 50;

/// Renders a name as code in HTML. No character of it then has a meaning in Markdown or HTML, and
/// the name mentions no user and makes no link.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::from("<code>");
    for letter in Printable::new(text).to_string().chars() {
        match letter {
            ' ' | '-' | '.' | ',' | '(' | ')' | '/' | '%' | '+' => escaped.push(letter),
            letter if letter.is_alphanumeric() => escaped.push(letter),
            letter => {
                let _ = write!(escaped, "&#{};", u32::from(letter));
            }
        }
    }
    escaped.push_str("</code>");
    escaped
}

/// Renders the table with heading and circumstances.
pub(super) fn render(report: &Report<'_>) -> String {
    let title = match report.summary.outcome {
        Outcome::Pass => "no regression",
        Outcome::Undecided => "undecided",
        Outcome::Fail => "regression",
    };
    let mut text = format!("### senesce gate: {title}\n\nPlan {}. ", escape(report.plan));
    text.push_str(&counts(report).join(" "));
    text.push_str("\n\n");
    let news = sort_news(report);
    if !news.is_empty() {
        text.push_str("| verdict | figure | baseline | run | change | tolerance |\n|---|---|--:|--:|--:|--:|\n");
    }
    for figure in news.iter().take(MOST_ROWS) {
        text.push_str(&row(figure));
    }
    if news.len() > MOST_ROWS {
        let _ = writeln!(text, "\n{} more figures are in the log.", news.len() - MOST_ROWS);
    }
    if !report.missing.is_empty() {
        text.push_str("\nNot compared:\n\n");
        for missing in report.missing.iter().take(MOST_ROWS) {
            let _ = writeln!(text, "- {}", escape(&missing.to_string()));
        }
    }
    if !report.unlike.is_empty() {
        let _ = write!(text, "\n<details><summary>{} circumstances differ</summary>\n\n", report.unlike.len());
        for unlike in report.unlike.iter().take(MOST_UNLIKE) {
            let _ = writeln!(text, "- {}", escape(&unlike.text("the baseline", "the run")));
        }
        text.push_str("\n</details>\n");
    }
    text
}

/// Renders an error that left the gate without a verdict.
pub(super) fn render_failure(message: &str) -> String {
    let lines: Vec<String> = message.lines().map(|line| escape(line.trim())).collect();
    format!("### senesce gate: no verdict\n\n{}\n", lines.join("<br>\n"))
}

fn row(figure: &Judged) -> String {
    let (a, b) = figure.medians();
    let verdict = figure.verdict.map_or("", Verdict::word);
    format!(
        "| {verdict} | {} | {} | {} | {} | {}% |\n",
        escape(&figure.row.name()),
        number(a),
        number(b),
        figure.change(),
        figure.tolerance_percent
    )
}

//! Prints the gate on a terminal: the figures that differ beyond their tolerance, and the outcome.

use senesce_core::{Printable, statistics::Outcome};

use super::{
    Report,
    judge::{Judged, Verdict},
};
use crate::{table::render_table, verb::compare::figures::Kind};

/// Whether tables show the figure: it differs, or may differ, beyond its tolerance.
pub(super) fn is_news(figure: &Judged) -> bool {
    matches!(figure.verdict, Some(Verdict::Regressed | Verdict::Undecided | Verdict::Improved))
}

/// The figures that tables show, the worst first.
pub(super) fn sort_news<'a>(report: &Report<'a>) -> Vec<&'a Judged> {
    let mut news: Vec<&Judged> = report.judged.iter().filter(|figure| is_news(figure)).collect();
    news.sort_by_key(|figure| std::cmp::Reverse(figure.verdict));
    news
}

/// Formats a number with four digits or two to four decimals.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// The number of figures with each verdict, and the smallest change that the gate could detect.
pub(super) fn counts(report: &Report<'_>) -> Vec<String> {
    let summary = report.summary;
    let all = report.judged.len();
    let mut lines = vec![format!(
        "{} figures judged: {} equal, {} within their tolerance, {} improved, {} undecided, {} regressed; {} not judged.",
        summary.figures,
        summary.equal,
        summary.within,
        summary.improved,
        summary.undecided,
        summary.regressed,
        all - summary.figures
    )];
    let exact: Vec<f64> = report
        .judged
        .iter()
        .filter(|figure| figure.verdict.is_some() && figure.row.kind != Kind::Measured)
        .map(|figure| figure.tolerance_percent)
        .collect();
    if let Some((least, most)) = exact.iter().fold(None, |range: Option<(f64, f64)>, &percent| {
        Some(range.map_or((percent, percent), |(low, high)| (low.min(percent), high.max(percent))))
    }) {
        let range = if least == most { format!("{least}%") } else { format!("{least}% to {most}%, by figure") };
        lines.push(format!("Exact figures show a change above their tolerance: {range}."));
        let mut largest = report.judged.iter().filter(|figure| {
            figure.verdict.is_some() && figure.row.kind != Kind::Measured && figure.tolerance_percent == most
        });
        if least < most && largest.all(|figure| figure.row.figure.ends_with("s/GiB")) {
            lines.push(format!("Only modelled seconds may grow by {most}%."));
        }
    }
    lines.extend(summary.least_effect.clone());
    lines
}

/// Renders the text for stdout. No line starts with a name, because CI systems execute lines that
/// start with `::`.
pub(super) fn render(report: &Report<'_>) -> String {
    let mut lines = Vec::new();
    let news = sort_news(report);
    if !news.is_empty() {
        lines.push(["verdict", "figure", "baseline", "run", "change", "tolerance"].map(str::to_owned).to_vec());
    }
    for figure in news {
        let (a, b) = figure.medians();
        let verdict = figure.verdict.map_or("", Verdict::word).to_owned();
        let tolerance = format!("{}%", figure.tolerance_percent);
        lines.push(vec![verdict, figure.row.name(), number(a), number(b), figure.change(), tolerance]);
    }
    let mut text = render_table(&lines);
    if !text.is_empty() {
        text.push('\n');
    }
    for line in counts(report) {
        text.push_str(&format!("{line}\n"));
    }
    for missing in &report.missing {
        text.push_str(&format!("not compared: {missing}\n"));
    }
    for unlike in report.unlike {
        text.push_str(&format!("unlike: {}\n", Printable::new(&unlike.text("the baseline", "the run"))));
    }
    if report.summary.outcome == Outcome::Pass || report.passes_undecided {
        text.push_str(&format!("gate: {}\n", report.summary.text));
    }
    text
}

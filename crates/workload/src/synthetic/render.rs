//! Statistics as a text table.

use std::fmt::Write;

use super::{FittedHistory, HistoryStatistics, REFERENCE, reference::tolerance};

/// A text table `documented (real) | this history`, one figure a line, in the order of the
/// reference.
///
/// Figures of the tails and of growth match only in a history as long as the real one. The heading
/// states the number of commits of this one.
pub fn render_statistics(statistics: &HistoryStatistics) -> String {
    let mut out = String::new();
    let mut line = |group: &str, name: &str, real: &str, here: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{group:<34} {name:<34} {real:>17} | {here:>12}");
    };
    line("", "commits along first parents", "34,397 (real)", &format!("{} here", statistics.commits));
    let mut last_group = "";
    for reference in REFERENCE {
        let group = if reference.group == last_group { "" } else { reference.group };
        last_group = reference.group;
        let real = match (number(reference.low), number(reference.high)) {
            (low, high) if low == high => low,
            (low, high) => format!("{low}..{high}"),
        };
        let here = statistics.get(reference.group, reference.name).map_or_else(|| "-".to_owned(), number);
        line(group, reference.name, &real, &here);
    }
    out
}

/// A text table `figure, real history, synthetic history, alike`, one figure a line, and the number
/// of figures in which both are alike.
///
/// The limit depends on the figure: 8 to 50% of it, or an absolute distance, such as 0.2 for the
/// logarithm of a size. Figures that are a matter of chance, such as the largest commit, have
/// no limit. Figures that are 0 in both are not counted.
pub fn render_fit(fitted: &FittedHistory) -> String {
    let mut out = String::new();
    let mut line = |group: &str, name: &str, real: &str, made: &str, alike: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{group:<34} {name:<34} {real:>12} {made:>12}  {alike}");
    };
    line("", "", "repository", "synthetic", "alike");
    let (mut last_group, mut alike, mut limited) = ("", 0, 0);
    for figure in fitted.real.figures() {
        let group = if figure.group == last_group { "" } else { figure.group };
        last_group = figure.group;
        let made = fitted.synthetic.get(figure.group, figure.name).unwrap_or(0.0);
        // A history without merges has no figures of merges to compare.
        let is_empty = figure.value == 0.0 && made == 0.0;
        let verdict = tolerance(figure.group, figure.name).filter(|_| !is_empty).map(|(absolute, percent)| {
            limited += 1;
            let is_alike = (made - figure.value).abs() <= absolute.max(figure.value.abs() * percent / 100.0);
            alike += u32::from(is_alike);
            if is_alike { "yes" } else { "no" }
        });
        line(group, figure.name, &number(figure.value), &number(made), verdict.unwrap_or(""));
    }
    let _ = writeln!(out, "\n{alike} of {limited} figures are alike");
    out
}

/// An integer without a fraction, anything else with two digits.
fn number(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() >= 1000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

//! Statistics as a text table.

use std::fmt::Write;

use super::{HistoryStatistics, REFERENCE};

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

/// An integer without a fraction, anything else with two digits.
fn number(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() >= 1000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

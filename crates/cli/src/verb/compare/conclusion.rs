//! The first sentence of a comparison, and the choice of the rows below it.

use senesce_core::{
    Printable,
    names::list,
    statistics::{Comparison, Outcome, compute_median},
};

use super::{
    Row,
    figures::{Kind, SLOWDOWN},
    gate::count,
    names::{Names, short},
};
use crate::table::{tell_ratio, tell_value};

/// Slowdowns whose ratio is up to this are about equal.
const NEAR: f64 = 1.05;
/// A table of up to this many rows has all of them.
const SHORT_TABLE: usize = 20;

/// The first sentences of a comparison. Two trees or inspections: which one is slower or more aged,
/// and by how much. Two runs: how many figures differ, and the slowdown that changed most.
pub(super) fn conclude(rows: &[Row], headline: Option<&str>) -> String {
    match rows.first().map_or(0, |row| row.of.len()) {
        0 => rows.first().map(conclude_reading).unwrap_or_default(),
        1 => {
            let age = headline.and_then(|figure| conclude_age(rows, figure));
            format!("{}{}\n", age.unwrap_or_default(), count_differences(rows))
        }
        _ => format!("{}{}\n", count_differences(rows), most_changed(rows)),
    }
}

fn count_differences(rows: &[Row]) -> String {
    let start = format!("{} compared:", count(rows.len()));
    match rows.iter().filter(|row| differs(row)).count() {
        0 => format!("{start} no difference of over 0.1%."),
        differ => format!("{start} {differ} with a difference of over 0.1%."),
    }
}

/// The slowdown that changed most.
fn most_changed(rows: &[Row]) -> String {
    let slowdowns: Vec<&Row> = rows.iter().filter(|row| is_exact_slowdown(row)).collect();
    let changed = slowdowns.iter().filter(|row| differs(row));
    match changed.max_by(|a, b| change(a).total_cmp(&change(b))) {
        Some(row) => {
            let (volume, figure, [a, b]) = (row.of.join(" "), Names::of(rows).of_figure(&row.figure), medians(row));
            let name = Printable::new(&format!("{volume} {figure}")).to_string();
            format!(" The slowdown that changed most: {name}, {a} in A and {b} in B.")
        }
        None if slowdowns.is_empty() || !rows.iter().any(differs) => String::new(),
        None => " No modelled slowdown changed by that much.".to_owned(),
    }
}

/// Which of two inspections is more aged by the headline figure, and the ratio on each other
/// device.
fn conclude_age(rows: &[Row], headline: &str) -> Option<String> {
    let main = rows.iter().find(|row| row.figure == headline)?;
    let ratio = main.comparison.as_ref()?.ratio;
    let quantity = [SLOWDOWN, "s/GiB"].into_iter().find(|end| headline.ends_with(end))?;
    let device = |row: &Row| Printable::new(short(&row.figure).trim_end_matches(quantity).trim_end()).to_string();
    let (on, [a, b]) = (device(main), medians(main));
    let times = format!("B/A {}", tell_ratio(ratio));
    let is_near = (1.0 / NEAR..=NEAR).contains(&ratio);
    let first = match (quantity == SLOWDOWN, differs(main), ratio > 1.0) {
        (true, true, _) if is_near => {
            format!("A and B are about equally aged on {on}: slowdown {a} and {b} ({times}).")
        }
        (true, false, _) => format!("A and B are equally aged on {on}: slowdown {a} and {b}."),
        (true, true, true) => format!("B is more aged than A on {on}: slowdown {b} instead of {a} ({times})."),
        (true, true, false) => format!("A is more aged than B on {on}: slowdown {a} instead of {b} ({times})."),
        (false, false, _) => format!("A and B cost the same on {on}: {a} and {b} s/GiB."),
        (false, true, true) => format!("B costs more than A on {on}: {b} instead of {a} s/GiB ({times})."),
        (false, true, false) => format!("A costs more than B on {on}: {a} instead of {b} s/GiB ({times})."),
    };
    let others = rows.iter().filter(|row| row.figure != headline && row.figure.ends_with(quantity));
    let ratios = others.filter_map(|row| Some((row, row.comparison.as_ref()?.ratio)));
    let others: Vec<String> = ratios.map(|(row, ratio)| format!("{} on {}", tell_ratio(ratio), device(row))).collect();
    let more = if others.is_empty() { String::new() } else { format!("B/A ({quantity}) is {}.\n", list(&others)) };
    Some(format!("{first}\n{more}"))
}

/// Which of two trees takes longer to read on this machine.
fn conclude_reading(row: &Row) -> String {
    let Some(Comparison { ratio, ratio_low, ratio_high, .. }) = row.comparison else { return String::new() };
    let is_enough = row.comparison.as_ref().is_some_and(Comparison::is_enough);
    let interval = format!("B/A {}, 95%: {} to {}", tell_ratio(ratio), tell_ratio(ratio_low), tell_ratio(ratio_high));
    let [a, b] = medians(row);
    let costs = |more: &str, less: &str, of_more: &str, of_less: &str| {
        format!("{more} costs more than {less} on this machine: {of_more} instead of {of_less} s/GiB")
    };
    let text = if ratio > 1.0 { costs("B", "A", &b, &a) } else { costs("A", "B", &a, &b) };
    match (differs(row), is_enough) {
        (true, _) => format!("{text} ({interval}).\n"),
        (false, true) => format!("No difference beyond chance on this machine: {a} and {b} s/GiB ({interval}).\n"),
        (false, false) => format!("{text}, but chance may explain it (B/A {}).\n", tell_ratio(ratio)),
    }
}

/// The medians of A and B as text.
fn medians(row: &Row) -> [String; 2] {
    [&row.figures_a, &row.figures_b].map(|side| compute_median(side).map_or("unknown".to_owned(), tell_value))
}

/// The size of a change, without its direction.
fn change(row: &Row) -> f64 {
    let is_new = || row.figures_a.iter().chain(&row.figures_b).any(|figure| *figure != 0.0);
    match &row.comparison {
        Some(comparison) => comparison.ratio.ln().abs(),
        None => {
            if is_new() {
                f64::INFINITY
            } else {
                0.0
            }
        }
    }
}

/// Sorts the rows of a table: those of the headline figure, then those that a gate does not pass,
/// then all others. Within each, differences come before what chance explains, the largest change
/// first.
pub(super) fn order(rows: &mut [&Row], headline: Option<&str>) {
    let is_headline = |row: &Row| Some(row.figure.as_str()) == headline;
    let is_stopped = |row: &Row| matches!(row.outcome, Some(Outcome::Fail | Outcome::Undecided));
    let first = |row: &Row| (is_headline(row), is_stopped(row), differs(row));
    rows.sort_by(|a, b| first(b).cmp(&first(a)).then(change(b).total_cmp(&change(a))));
}

/// The rows of the table, and how many it leaves out because they have no difference.
pub(super) fn select(rows: &[Row]) -> (Vec<&Row>, usize) {
    let is_shown = |row: &&Row| {
        rows.len() <= SHORT_TABLE
            || row.kind == Kind::Measured
            || differs(row)
            || matches!(row.outcome, Some(Outcome::Fail | Outcome::Undecided))
    };
    let shown: Vec<&Row> = rows.iter().filter(is_shown).collect();
    let left_out = rows.len() - shown.len();
    (shown, left_out)
}

/// Whether the table prints another ratio than 1.000. A measured figure also differs beyond chance.
fn differs(row: &Row) -> bool {
    match &row.comparison {
        Some(comparison) => {
            let is_chance = || !comparison.is_enough() || (comparison.ratio_low..=comparison.ratio_high).contains(&1.0);
            tell_ratio(comparison.ratio) != tell_ratio(1.0) && (row.kind != Kind::Measured || !is_chance())
        }
        None => row.figures_a.iter().chain(&row.figures_b).any(|figure| *figure != 0.0),
    }
}

/// Measured slowdowns have noise: their rows have the probability.
fn is_exact_slowdown(row: &Row) -> bool {
    row.kind != Kind::Measured && row.figure.ends_with(SLOWDOWN)
}

#[cfg(test)]
mod tests {
    use senesce_core::{Seed, statistics::compute_comparison};

    use super::*;

    fn row(figure: &str, a: f64, b: f64) -> Row {
        Row {
            of: ["xfs", "full", "400"].map(str::to_owned).to_vec(),
            figure: figure.to_owned(),
            kind: Kind::Modelled,
            more_is_better: false,
            figures_a: vec![a],
            figures_b: vec![b],
            comparison: compute_comparison(&[a], &[b], Seed(1)),
            outcome: None,
            judgement: None,
        }
    }

    #[test]
    fn first_sentence_has_the_largest_change_of_a_slowdown() {
        let rows = [
            row("HDD 7.2K s/GiB", 10.0, 40.0),
            row("HDD 7.2K slowdown", 2.0, 3.0),
            row("NVMe SSD slowdown", 2.0, 0.5),
            row("layout score", 0.0, 0.0),
        ];
        let age = "NVMe SSD slowdown, 2 in A and 0.500 in B.\n";
        let expected = format!(
            "4 figures compared: 3 with a difference of over 0.1%. The slowdown that changed most: xfs full 400 {age}"
        );
        assert_eq!(conclude(&rows, None), expected);
        assert_eq!(conclude(&rows[3..], None), "1 figure compared: no difference of over 0.1%.\n");
        let equal = [row("HDD 7.2K s/GiB", 10.0, 40.0), row("HDD 7.2K slowdown", 2.0, 2.0001)];
        let expected =
            "2 figures compared: 1 with a difference of over 0.1%. No modelled slowdown changed by that much.\n";
        assert_eq!(conclude(&equal, None), expected);
    }

    #[test]
    fn rows_start_with_the_headline_then_the_largest_change() {
        let rows = [
            row("layout score", 0.5, 0.5),
            row("HDD 7.2K slowdown", 2.0, 2.2),
            row("free extents", 0.0, 9.0),
            row("NVMe SSD slowdown", 2.0, 0.5),
            row("HDD 7.2K s/GiB", 10.0, 30.0),
        ];
        let mut shown: Vec<&Row> = rows.iter().collect();
        order(&mut shown, Some("HDD 7.2K slowdown"));
        let figures: Vec<&str> = shown.iter().map(|row| row.figure.as_str()).collect();
        let expected = ["HDD 7.2K slowdown", "free extents", "NVMe SSD slowdown", "HDD 7.2K s/GiB", "layout score"];
        assert_eq!(figures, expected);
    }

    #[test]
    fn first_sentence_about_two_inspections_says_which_is_more_aged() {
        let tree = |figure: &str, a, b| Row { of: vec!["tree".to_owned()], ..row(figure, a, b) };
        let first = |rows: &[Row], headline: &str| conclude(rows, Some(headline)).lines().next().unwrap().to_owned();
        let slowdown = "HDD 7.2K slowdown";
        let said = "B is more aged than A on HDD 7.2K: slowdown 4.81 instead of 1.20 (B/A 4.01).";
        assert_eq!(first(&[tree(slowdown, 1.2, 4.81)], slowdown), said);
        let said = "A is more aged than B on HDD 7.2K: slowdown 4.81 instead of 1.20 (B/A 0.249).";
        assert_eq!(first(&[tree(slowdown, 4.81, 1.2)], slowdown), said);
        let said = "A and B are equally aged on HDD 7.2K: slowdown 1.20 and 1.20.";
        assert_eq!(first(&[tree(slowdown, 1.2, 1.2)], slowdown), said);
        let said = "A and B are about equally aged on HDD 7.2K: slowdown 1.20 and 1.24 (B/A 1.033).";
        assert_eq!(first(&[tree(slowdown, 1.2, 1.24)], slowdown), said);
        let said = "B costs more than A on HDD 7.2K: 30 instead of 10 s/GiB (B/A 3.00).";
        assert_eq!(first(&[tree("HDD 7.2K s/GiB", 10.0, 30.0)], "HDD 7.2K s/GiB"), said);
        let rows = [tree(slowdown, 1.2, 4.81), tree("NVMe SSD slowdown", 2.0, 1.0)];
        assert!(
            conclude(&rows, Some(slowdown))
                .contains("\nB/A (slowdown) is 0.500 on NVMe SSD.\n2 figures compared: 2 with")
        );
    }

    #[test]
    fn first_sentence_about_two_trees_says_which_costs_more() {
        let read = |b: &[f64]| {
            let a = [10.0, 10.1, 10.2, 10.3];
            let comparison = compute_comparison(&a, b, Seed(1));
            let (figures_a, figures_b, of) = (a.to_vec(), b.to_vec(), Vec::new());
            let row = row("grep s/GiB", 1.0, 1.0);
            conclude(&[Row { kind: Kind::Measured, comparison, figures_a, figures_b, of, ..row }], None)
        };
        let slower = read(&[20.0, 20.1, 20.2, 20.3]);
        assert!(slower.starts_with("B costs more than A on this machine: 20.1 instead of 10.1 s/GiB (B/A"), "{slower}");
        assert!(read(&[9.0, 10.0, 11.0, 12.0]).starts_with("No difference beyond chance on this machine: "));
        assert!(read(&[20.0]).contains("but chance may explain it"));
        assert!(read(&[5.0, 5.1, 5.2, 5.3]).starts_with("A costs more than B on this machine: 10.1 instead of 5.15"));
    }

    #[test]
    fn measured_differences_within_chance_do_not_count() {
        let measured = |b: &[f64]| Row {
            kind: Kind::Measured,
            comparison: compute_comparison(&[10.0, 10.1, 10.2, 10.3], b, Seed(1)),
            figures_b: b.to_vec(),
            ..row("grep s/GiB", 10.0, 10.0)
        };
        assert!(differs(&measured(&[20.0, 20.1, 20.2, 20.3])));
        assert!(!differs(&measured(&[9.0, 10.0, 11.0, 12.0])) && !differs(&measured(&[20.0])));
        let mut rows: Vec<Row> = (0..30).map(|_| row("layout score", 0.5, 0.5)).collect();
        rows.push(measured(&[20.0]));
        assert_eq!(select(&rows).1, 30, "the table has all measured figures");
    }

    #[test]
    fn long_tables_leave_out_equal_figures_that_no_gate_fails() {
        let mut rows: Vec<Row> = (0..30).map(|_| row("layout score", 0.5, 0.5)).collect();
        rows[3] = row("layout score", 0.5, 0.6);
        rows[7].outcome = Some(Outcome::Undecided);
        let (shown, left_out) = select(&rows);
        assert_eq!((shown.len(), left_out), (2, 28));
        assert_eq!(select(&rows[..20]).1, 0);
    }
}

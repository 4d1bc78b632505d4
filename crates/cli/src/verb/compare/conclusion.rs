//! The first sentence of a comparison, and the choice of the rows below it.

use senesce_core::statistics::{Outcome, compute_median};

use super::{
    Row,
    figures::{Kind, SLOWDOWN},
};
use crate::table::{tell_ratio, tell_value};

/// A table of up to this many rows has all of them.
const SHORT_TABLE: usize = 20;

/// The number of figures that differ, and the slowdown that changed most. Empty for trees: their
/// few rows show it.
pub(super) fn conclude(rows: &[Row]) -> String {
    if rows.iter().all(|row| row.of.is_empty()) {
        return String::new();
    }
    let start = format!("{} figures compared:", rows.len());
    let differ = rows.iter().filter(|row| differs(row)).count();
    if differ == 0 {
        return format!("{start} no difference of over 0.1%.\n");
    }
    let slowdowns: Vec<&Row> = rows.iter().filter(|row| is_exact_slowdown(row)).collect();
    let change = |row: &Row| row.comparison.as_ref().map_or(0.0, |comparison| comparison.ratio.ln().abs());
    let changed = slowdowns.iter().filter(|row| differs(row)).max_by(|a, b| change(a).total_cmp(&change(b)));
    let age = match changed {
        Some(row) => {
            let side = |figures: &[f64]| compute_median(figures).map_or("unknown".to_owned(), tell_value);
            let (name, a, b) = (row.name(), side(&row.figures_a), side(&row.figures_b));
            format!(" The slowdown that changed most: {name}, {a} in A and {b} in B.")
        }
        None if slowdowns.is_empty() => String::new(),
        None => " No modelled slowdown changed by that much.".to_owned(),
    };
    format!("{start} {differ} with a difference of over 0.1%.{age}\n")
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
        assert_eq!(conclude(&rows), expected);
        assert_eq!(conclude(&rows[3..]), "1 figures compared: no difference of over 0.1%.\n");
        let equal = [row("HDD 7.2K s/GiB", 10.0, 40.0), row("HDD 7.2K slowdown", 2.0, 2.0001)];
        let expected =
            "2 figures compared: 1 with a difference of over 0.1%. No modelled slowdown changed by that much.\n";
        assert_eq!(conclude(&equal), expected);
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

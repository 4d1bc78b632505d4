//! The first sentence of a comparison, and the choice of the rows below it.

use senesce_core::statistics::{Outcome, compute_median};

use super::{
    Row,
    figures::{Kind, SLOWDOWN},
};
use crate::table::{tell_ratio, tell_value};

/// A table of up to this many rows has equal figures too.
const SHORT_TABLE: usize = 20;

/// How many figures differ, and the slowdown that changed most. Empty for trees, whose few rows say
/// it themselves.
pub(super) fn conclude(rows: &[Row]) -> String {
    if rows.iter().all(|row| row.of.is_empty()) {
        return String::new();
    }
    let differ = rows.iter().filter(|row| !is_equal(row)).count();
    if differ == 0 {
        return format!("Figures compared: {}, all equal.\n", rows.len());
    }
    let slowdowns: Vec<&Row> = rows.iter().filter(|row| is_exact_slowdown(row)).collect();
    let change = |row: &Row| row.comparison.as_ref().map_or(0.0, |comparison| comparison.ratio.ln().abs());
    let changed = slowdowns.iter().filter(|row| !is_equal(row)).max_by(|a, b| change(a).total_cmp(&change(b)));
    let age = match changed {
        Some(row) => {
            let side = |figures: &[f64]| compute_median(figures).map_or("unknown".to_owned(), tell_value);
            let (name, a, b) = (row.name(), side(&row.figures_a), side(&row.figures_b));
            format!(" The slowdown that changed most: {name}, {a} in A and {b} in B.")
        }
        None if slowdowns.is_empty() => String::new(),
        None => " No modelled slowdown differs.".to_owned(),
    };
    format!("Figures compared: {}, different: {differ}.{age}\n", rows.len())
}

/// The rows of the table, and how many equal ones it leaves out.
pub(super) fn select(rows: &[Row]) -> (Vec<&Row>, usize) {
    let is_shown = |row: &&Row| {
        rows.len() <= SHORT_TABLE || !is_equal(row) || matches!(row.outcome, Some(Outcome::Fail | Outcome::Undecided))
    };
    let shown: Vec<&Row> = rows.iter().filter(is_shown).collect();
    let left_out = rows.len() - shown.len();
    (shown, left_out)
}

/// Whether the table would print the ratio 1.000.
fn is_equal(row: &Row) -> bool {
    match &row.comparison {
        Some(comparison) => tell_ratio(comparison.ratio) == tell_ratio(1.0),
        None => row.figures_a.iter().chain(&row.figures_b).all(|figure| *figure == 0.0),
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
        let expected = format!("Figures compared: 4, different: 3. The slowdown that changed most: xfs full 400 {age}");
        assert_eq!(conclude(&rows), expected);
        assert_eq!(conclude(&rows[3..]), "Figures compared: 1, all equal.\n");
        let equal = [row("HDD 7.2K s/GiB", 10.0, 40.0), row("HDD 7.2K slowdown", 2.0, 2.0001)];
        assert_eq!(conclude(&equal), "Figures compared: 2, different: 1. No modelled slowdown differs.\n");
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

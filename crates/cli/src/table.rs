//! Figures of comparisons as aligned text.

use senesce_core::statistics::Comparison;
use senesce_report::{count, three_digits};

/// A value of a figure: whole numbers as counts, others with three significant digits. 1 can
/// be a layout score, so it is no count.
pub fn tell_value(value: f64) -> String {
    match value.fract() == 0.0 && (2.0..1e15).contains(&value) {
        true => count(value as u64),
        false => three_digits(value),
    }
}

/// A ratio with three significant digits. Near 1 it has three decimals, so that a change of 0.1%
/// shows.
pub fn tell_ratio(ratio: f64) -> String {
    if (0.9..1.1).contains(&ratio) { format!("{ratio:.3}") } else { three_digits(ratio) }
}

/// The probability of such a difference by chance, or a dash where there are too few figures.
pub fn tell_p(comparison: &Comparison) -> String {
    comparison.p().map_or("–".to_owned(), |p| format!("{p:.3}"))
}

/// Lines of cells as text, each column as wide as its widest cell; columns in which nothing stands
/// are left out. A line may be shorter than others.
pub fn render_table(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        let shown = line.iter().zip(&widths).filter(|(_, width)| **width > 0);
        let cells: Vec<String> = shown.map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_digits_that_a_reader_needs() {
        assert_eq!([12474.0, 507.0, 51.49, 1.0, 0.993].map(tell_value), ["12,474", "507", "51.5", "1.00", "0.993"]);
        assert_eq!([1.0012, 0.5, 12.345].map(tell_ratio), ["1.001", "0.500", "12.3"]);
    }

    #[test]
    fn columns_align_and_empty_ones_are_left_out() {
        let line = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let text = render_table(&[line(["", "", "median"]), line(["äöü", "", "1"]), vec!["x".to_owned()]]);
        assert_eq!(text, "     median\näöü  1\nx\n");
    }
}

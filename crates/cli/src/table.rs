//! Figures of comparisons as aligned text.

use senesce_core::statistics::Comparison;

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
    fn columns_align_and_empty_ones_are_left_out() {
        let line = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let text = render_table(&[line(["", "", "median"]), line(["äöü", "", "1"]), vec!["x".to_owned()]]);
        assert_eq!(text, "     median\näöü  1\nx\n");
    }
}

//! Columns of text for a terminal.

/// The width of each column: characters of its longest cell.
pub(crate) fn column_widths<S: AsRef<str>>(lines: &[Vec<S>]) -> Vec<usize> {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |at: usize| lines.iter().map(|line| line[at].as_ref().chars().count()).max().unwrap_or(0);
    (0..columns).map(width).collect()
}

/// A line with a newline. The columns `texts` are aligned to the left, the others to the right.
pub(crate) fn align<S: AsRef<str>>(line: &[S], widths: &[usize], texts: &[usize]) -> String {
    let cells = line.iter().map(AsRef::as_ref).zip(widths).enumerate().map(|(at, (cell, width))| {
        if texts.contains(&at) { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    });
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
}

/// Heads and rows in columns. The columns `texts` are aligned to the left.
pub(crate) fn text_table<const N: usize>(heads: [&str; N], rows: &[[String; N]], texts: &[usize]) -> String {
    let heads = heads.map(str::to_owned);
    let lines: Vec<Vec<String>> = [&heads].into_iter().chain(rows).map(|line| line.to_vec()).collect();
    let widths = column_widths(&lines);
    lines.iter().map(|line| align(line, &widths, texts)).collect()
}

//! Fits tables to a number of columns. A table keeps its texts, its first figure and its decisive
//! columns. It loses the last of the others. If the kept columns do not fit, heads and texts wrap
//! within their columns. If that is not enough, each row becomes lines of its own.

use std::iter::repeat_n;

use super::{cell, common_columns, fill, wrap};

/// Heads of columns that answer the question of a table: of `compare`, of `show`, of `garden
/// reproduce` and published values, of `bench`.
const DECISIVE: [&[&str]; 4] = [
    &["A", "B", "B/A", "gate"],
    &["model slowdown", "last model s/GiB", "last wall s/GiB", "last / first"],
    &["published", "ours", "ratio", "verdict"],
    &["aged/unaged"],
];
/// Heads of columns that name a row.
const NAMES: [&str; 2] = ["volume", "figure"];
/// Heads of columns whose texts wrap, beside [`NAMES`].
const TEXTS: [&str; 3] = ["published", "quantity", "verdict"];
/// A text wraps to no less than this number of letters.
const LEAST_TEXT: usize = 14;
/// The shortest form of a path, in letters. With less space, its column is left out.
const LEAST_PATH: usize = 16;
/// The blanks between two columns.
const GAP: usize = 2;

/// Adds a table.
pub(super) fn push_table(fitted: &mut String, lines: &[&str], columns: usize) {
    let mut rows: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
    let unshortened = common_columns(&rows);
    shorten_paths(&mut rows, &unshortened, columns);
    let all = common_columns(&rows);
    if all.last().is_none_or(|(_, end)| *end <= columns) {
        for row in &rows {
            fitted.push_str(row.iter().collect::<String>().trim_end());
            fitted.push('\n');
        }
        return;
    }
    let table = Table::of(&rows, &all);
    match table.choose(columns) {
        Some(shown) => table.push_shown(fitted, &shown, columns),
        None => table.push_stacked(fitted, columns),
    }
}

/// Shortens the column `path` so that the line fits `columns`, if at least [`LEAST_PATH`] letters
/// are left for it.
fn shorten_paths(rows: &mut [Vec<char>], all: &[(usize, usize)], columns: usize) {
    let is_path = |(start, _): &&(usize, usize)| {
        rows.iter().any(|row| row.get(*start..*start + 4).is_some_and(|name| name == ['p', 'a', 't', 'h']))
    };
    let Some(&(start, end)) = all.iter().find(is_path) else { return };
    let room = columns.saturating_sub(start);
    if end <= columns || room < LEAST_PATH {
        return;
    }
    for row in rows {
        let rest: Vec<char> = row.drain(end.min(row.len())..).collect();
        let letters = row[start.min(row.len())..].iter().rposition(|letter| *letter != ' ').map_or(0, |last| last + 1);
        if letters > room {
            let tail = room - room / 3 - 1;
            row.truncate(start + letters);
            row.splice(start + room / 3..start + letters - tail, ['…']);
        }
        row.resize(start + room, ' ');
        row.extend(rest);
    }
}

/// A column of a table.
struct Column {
    head: String,
    /// The cells below the head. A rule has none.
    cells: Vec<Option<String>>,
    /// Whether the cells are aligned to the right.
    is_right: bool,
    width: usize,
}

impl Column {
    /// Whether the column holds figures: each cell starts with a digit or a sign, or is empty.
    fn is_figure(&self) -> bool {
        let is_number = |cell: &String| {
            let first = cell.chars().find(|letter| !matches!(letter, '-' | '−' | '+' | '~'));
            first.is_some_and(|first| first.is_ascii_digit())
        };
        let cells = || self.cells.iter().flatten();
        cells().any(is_number) && cells().all(|cell| matches!(cell.as_str(), "" | "–") || is_number(cell))
    }

    fn has_head(&self, heads: &[&str]) -> bool {
        heads.contains(&self.head.as_str())
    }

    /// Whether its cells may wrap.
    fn is_text(&self) -> bool {
        self.has_head(&NAMES) || self.has_head(&TEXTS)
    }

    /// The least width that breaks no word of a text and no cell of another column.
    fn least_width(&self) -> usize {
        let word = |text: &str| text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
        let cells = self.cells.iter().flatten();
        let of_cells = match self.is_text() {
            true => cells.map(|cell| word(cell)).max().unwrap_or(0).max(LEAST_TEXT),
            false => cells.map(|cell| cell.chars().count()).max().unwrap_or(0),
        };
        of_cells.max(word(&self.head)).min(self.width)
    }

    fn pad(&self, text: &str, width: usize) -> String {
        if self.is_right { format!("{text:>width$}") } else { format!("{text:<width$}") }
    }
}

/// A table that is wider than the terminal.
struct Table {
    indent: usize,
    columns: Vec<Column>,
}

impl Table {
    fn of(rows: &[Vec<char>], all: &[(usize, usize)]) -> Self {
        let is_rule = |row: &[char]| row.iter().all(|letter| matches!(letter, '-' | ' '));
        let column = |&(start, end): &(usize, usize)| {
            let is_indented = |row: &&Vec<char>| row.get(start) == Some(&' ') && !cell(row, (start, end)).is_empty();
            Column {
                head: cell(&rows[0], (start, end)),
                cells: rows.iter().skip(1).map(|row| (!is_rule(row)).then(|| cell(row, (start, end)))).collect(),
                is_right: rows.iter().any(|row| is_indented(&row)),
                width: end - start,
            }
        };
        Self { indent: all.first().map_or(0, |(start, _)| *start), columns: all.iter().map(column).collect() }
    }

    /// The columns that fit, with their widths. `None` if those that a table keeps do not fit.
    fn choose(&self, columns: usize) -> Option<Vec<(usize, usize)>> {
        let all = || self.columns.iter().enumerate();
        let full: Vec<_> = all().map(|(at, column)| (at, column.width)).collect();
        let of_head = |column: &Column| if column.is_text() { column.width } else { column.least_width() };
        let wrapped_heads: Vec<_> = all().map(|(at, column)| (at, of_head(column))).collect();
        if let Some(shown) = self.choose_of(&full, columns).or_else(|| self.choose_of(&wrapped_heads, columns)) {
            return Some(shown);
        }
        let mut kept: Vec<(usize, usize)> = wrapped_heads.into_iter().filter(|(at, _)| self.is_kept(*at)).collect();
        while self.total(&kept) > columns {
            let can_shrink = |(at, width): &&mut (usize, usize)| *width > self.columns[*at].least_width();
            let widest = kept.iter_mut().filter(can_shrink).max_by_key(|(_, width)| *width)?;
            widest.1 -= 1;
        }
        Some(kept)
    }

    /// The kept columns, and the first of the others that fit. `None` if the kept ones do not fit.
    fn choose_of(&self, all: &[(usize, usize)], columns: usize) -> Option<Vec<(usize, usize)>> {
        let (mut shown, others): (Vec<_>, Vec<_>) = all.iter().copied().partition(|(at, _)| self.is_kept(*at));
        let mut width = Some(self.total(&shown)).filter(|width| *width <= columns)?;
        let fits = |column: &(usize, usize)| {
            width += GAP + column.1;
            width <= columns
        };
        shown.extend(others.into_iter().take_while(fits));
        shown.sort_unstable();
        Some(shown)
    }

    /// Whether a narrow table keeps a column.
    fn is_kept(&self, at: usize) -> bool {
        let column = &self.columns[at];
        at <= self.columns.iter().position(Column::is_figure).unwrap_or(0)
            || column.has_head(&NAMES)
            || DECISIVE.iter().any(|heads| column.has_head(heads))
    }

    /// The width of a line.
    fn total(&self, shown: &[(usize, usize)]) -> usize {
        let widths = shown.iter().map(|(_, width)| width).sum::<usize>();
        self.indent + widths + GAP * shown.len().saturating_sub(1)
    }

    /// Adds the chosen columns, and a line with the heads of all others.
    fn push_shown(&self, fitted: &mut String, shown: &[(usize, usize)], columns: usize) {
        let heads = shown.iter().map(|(at, width)| wrapped(&self.columns[*at].head, *width)).collect();
        self.push_row(fitted, shown, heads);
        let rows = self.columns.first().map_or(0, |column| column.cells.len());
        for row in 0..rows {
            let lines = shown.iter().map(|(at, width)| match &self.columns[*at].cells[row] {
                Some(cell) => wrapped(cell, *width),
                None => vec!["-".repeat(*width)],
            });
            self.push_row(fitted, shown, lines.collect());
        }
        let is_left_out =
            |(at, column): &(usize, &Column)| !column.head.is_empty() && shown.iter().all(|(other, _)| other != at);
        let names: Vec<&str> =
            self.columns.iter().enumerate().filter(is_left_out).map(|(_, column)| column.head.as_str()).collect();
        if !names.is_empty() {
            wrap(fitted, &format!("(columns not shown: {})", names.join(", ")), columns);
        }
    }

    /// Adds the lines of one row, given as the lines of each of its cells.
    fn push_row(&self, fitted: &mut String, shown: &[(usize, usize)], cells: Vec<Vec<String>>) {
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let cells = shown
                .iter()
                .zip(&cells)
                .map(|((at, width), lines)| self.columns[*at].pad(lines.get(line).map_or("", String::as_str), *width));
            let text = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
            fitted.extend(repeat_n(' ', self.indent));
            fitted.push_str(text.trim_end());
            fitted.push('\n');
        }
    }

    /// Adds each row as lines: its names, then all other cells with their heads. In a table of
    /// figures, the names are the columns of [`NAMES`], else the texts before the first figure.
    fn push_stacked(&self, fitted: &mut String, columns: usize) {
        /// Stands for a blank at which no line breaks.
        const JOINED: char = '\u{1}';
        let has_names = self.columns.iter().any(|column| column.has_head(&["figure"]));
        // The first column names the row, also if all its names begin with a digit.
        let first_figure = self.columns.iter().position(Column::is_figure).unwrap_or(1).max(1);
        let is_name = |at: usize| if has_names { self.columns[at].has_head(&NAMES) } else { at < first_figure };
        let rows = self.columns.first().map_or(0, |column| column.cells.len());
        for row in 0..rows {
            let cells = |names: bool| {
                let of_kind = self.columns.iter().enumerate().filter(move |(at, _)| is_name(*at) == names);
                of_kind.filter_map(move |(_, column)| Some((column.head.as_str(), column.cells[row].as_ref()?)))
            };
            let names: Vec<&str> = cells(true).map(|(_, cell)| cell.as_str()).collect();
            if names.is_empty() {
                continue;
            }
            let indent = " ".repeat(self.indent);
            wrap(fitted, &format!("{indent}{}", names.join("  ")), columns);
            let pair = |(head, cell): (&str, &String)| {
                let pair = format!("{head} {cell}").trim_start().to_owned();
                let fits = pair.chars().count() + self.indent + GAP < columns;
                if fits { pair.replace(' ', &JOINED.to_string()) } else { pair }
            };
            let pairs: Vec<String> = cells(false).filter(|(_, cell)| !cell.is_empty()).map(pair).collect();
            let mut lines = String::new();
            wrap(&mut lines, &format!("{indent}  {}", pairs.join(", ")), columns);
            fitted.push_str(&lines.replace(JOINED, " "));
        }
    }
}

/// The lines of a cell.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    match text.chars().count() <= width {
        true => vec![text.to_owned()],
        false => fill(text, (0, 0), width).lines().map(str::to_owned).collect(),
    }
}

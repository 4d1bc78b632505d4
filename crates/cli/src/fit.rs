//! Fits results to the width of a terminal: tables lose their last columns, paths their middle,
//! sentences wrap. Rows are stacked if a table would lose all its figures.

use std::{io::IsTerminal, os::fd::AsFd};

/// A table has at least this number of columns; other lines are sentences.
const LEAST_COLUMNS: usize = 3;
/// The shortest form of a path, in letters. With less space, its column is left out.
const LEAST_PATH: usize = 16;
/// The narrowest width that is fitted to.
const LEAST_WIDTH: usize = 40;

/// The columns of the terminal: `COLUMNS`, or what the terminal reports. `None`: the stream is no
/// terminal, so there is no limit, and a file or a pipe gets the same text from every shell.
fn columns(stream: impl IsTerminal + AsFd) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    choose_columns(named_columns().as_deref(), || Some(rustix::termios::tcgetwinsize(&stream).ok()?.ws_col.into()))
}

/// The value of `COLUMNS`. One that is no text counts as none.
fn named_columns() -> Option<String> {
    std::env::var("COLUMNS").ok()
}

/// `COLUMNS` if it is a number, else the width of the terminal. 0 means that it is not known.
fn choose_columns(named: Option<&str>, reported: impl Fn() -> Option<usize>) -> Option<usize> {
    let named = named.and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    named.or_else(reported).filter(|columns| *columns > 0).map(|columns: usize| columns.max(LEAST_WIDTH))
}

/// The width of a help text: `COLUMNS`, or else the width of the terminal, or else `most`. Never
/// more than `most`.
pub fn help_columns(most: usize) -> usize {
    let stdout = std::io::stdout();
    // A pager reads stdout, and writes to the terminal of stderr.
    let size = || rustix::termios::tcgetwinsize(&stdout).or_else(|_| rustix::termios::tcgetwinsize(std::io::stderr()));
    let reported = || Some(size().ok()?.ws_col.into());
    choose_columns(named_columns().as_deref(), reported).map_or(most, |columns| columns.min(most))
}

/// The columns of the terminal of stderr. `None`: it is no terminal.
pub fn stderr_columns() -> Option<usize> {
    columns(std::io::stderr())
}

/// The text for stdout.
pub fn fit(text: &str) -> String {
    columns(std::io::stdout()).map_or_else(|| text.to_owned(), |columns| fit_to(text, columns))
}

/// The message for stderr, its lines wrapped.
pub fn fit_message(text: &str) -> String {
    let Some(columns) = columns(std::io::stderr()) else { return text.to_owned() };
    let mut fitted = String::new();
    text.lines().for_each(|line| wrap(&mut fitted, line, columns));
    fitted.trim_end().to_owned()
}

/// Fits a text to a number of columns. Lines that fit stay as they are.
pub(crate) fn fit_to(text: &str, columns: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut fitted = String::new();
    let mut at = 0;
    while at < lines.len() {
        let block = table_at(&lines[at..]);
        if block > 1 {
            push_table(&mut fitted, &lines[at..at + block], columns);
        } else {
            wrap(&mut fitted, lines[at], columns);
        }
        at += block.max(1);
    }
    fitted
}

/// The starts and ends of columns that a block of lines has in common: they are separated by two
/// blanks in every line.
fn common_columns(lines: &[Vec<char>]) -> Vec<(usize, usize)> {
    let width = lines.iter().map(Vec::len).max().unwrap_or(0);
    let is_blank = |at: usize| lines.iter().all(|line| line.get(at).is_none_or(|letter| *letter == ' '));
    let blank: Vec<bool> = (0..width).map(is_blank).collect();
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    while at < width {
        if blank[at] {
            at += 1;
            continue;
        }
        let start = at;
        while at < width && !(blank[at] && blank.get(at + 1).is_none_or(|next| *next)) {
            at += 1;
        }
        found.push((start, at));
    }
    found
}

/// The number of lines of the table that starts here; 1 if none does.
fn table_at(lines: &[&str]) -> usize {
    let rows: Vec<Vec<char>> =
        lines.iter().take_while(|line| !line.trim().is_empty()).map(|line| line.chars().collect()).collect();
    let mut length = 1;
    let mut count = usize::MAX;
    for end in 2..=rows.len() {
        let all = common_columns(&rows[..end]);
        // Two blanks in a path make a column without a head.
        let now = all.iter().filter(|column| !cell(&rows[0], **column).is_empty()).count();
        // A further row of the table never reduces the number of columns; a sentence below does.
        if all.len() < LEAST_COLUMNS || (count != usize::MAX && now < count) {
            break;
        }
        (length, count) = (end, now);
    }
    length
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

/// Adds a table with its first columns that fit, and the number of the others.
fn push_table(fitted: &mut String, lines: &[&str], columns: usize) {
    let mut rows: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
    let unshortened = common_columns(&rows);
    shorten_paths(&mut rows, &unshortened, columns);
    let all = common_columns(&rows);
    let shown = all.iter().take_while(|(_, end)| *end <= columns).count().max(1);
    let first_figure = all.iter().position(|column| is_figure(&rows, *column));
    if let Some(first) = first_figure.filter(|first| *first >= shown) {
        return push_stacked(fitted, &rows, (&all, first), columns);
    }
    let end = all[shown - 1].1;
    for row in &rows {
        let cut: String = if shown == all.len() { row.iter().collect() } else { row.iter().take(end).collect() };
        fitted.push_str(cut.trim_end());
        fitted.push('\n');
    }
    if shown < all.len() {
        let head = &rows[0];
        let names: Vec<String> =
            all[shown..].iter().map(|column| cell(head, *column)).filter(|name| !name.is_empty()).collect();
        wrap(fitted, &format!("(columns not shown: {})", names.join(", ")), columns);
    }
}

/// The text of a row in a column.
fn cell(row: &[char], (start, end): (usize, usize)) -> String {
    row.iter().take(end).skip(start).collect::<String>().trim().to_owned()
}

/// Whether a row is a rule below the heads.
fn is_rule(row: &[char]) -> bool {
    row.iter().all(|letter| matches!(letter, '-' | ' '))
}

/// Whether a column holds figures below its head: each cell starts with a digit or a sign, or is
/// empty.
fn is_figure(rows: &[Vec<char>], column: (usize, usize)) -> bool {
    let cells = || rows.iter().skip(1).filter(|row| !is_rule(row)).map(|row| cell(row, column));
    let is_number = |cell: &String| {
        cell.chars().find(|letter| !matches!(letter, '-' | '−' | '+' | '~')).is_some_and(|first| first.is_ascii_digit())
    };
    cells().any(|cell| is_number(&cell)) && cells().all(|cell| matches!(cell.as_str(), "" | "–") || is_number(&cell))
}

/// Adds each row of a table as lines: its texts before the first figure, then all other cells with
/// their heads.
fn push_stacked(fitted: &mut String, rows: &[Vec<char>], (all, first): (&[(usize, usize)], usize), columns: usize) {
    /// Stands for a blank at which no line breaks.
    const JOINED: char = '\u{1}';
    for row in rows.iter().skip(1).filter(|row| !is_rule(row)) {
        let names: Vec<String> = all[..first].iter().map(|column| cell(row, *column)).collect();
        wrap(fitted, &names.join("  "), columns);
        let pair = |column: &(usize, usize)| {
            let (head, cell) = (cell(&rows[0], *column), cell(row, *column));
            let pair = format!("{head} {cell}");
            let fits = pair.chars().count() + 3 <= columns;
            (!cell.is_empty()).then(|| if fits { pair.replace(' ', &JOINED.to_string()) } else { pair })
        };
        let pairs: Vec<String> = all[first..].iter().filter_map(pair).collect();
        let mut lines = String::new();
        wrap(&mut lines, &format!("  {}", pairs.join(", ")), columns);
        fitted.push_str(&lines.replace(JOINED, " "));
    }
}

/// Adds a line, broken at blanks; further lines keep its indentation, and two blanks more.
fn wrap(fitted: &mut String, line: &str, columns: usize) {
    if line.chars().count() <= columns {
        fitted.push_str(line);
        fitted.push('\n');
        return;
    }
    let indent = line.chars().take_while(|letter| *letter == ' ').count();
    fitted.push_str(&fill(line, (indent, indent + 2), columns));
    fitted.push('\n');
}

/// The words of a text in lines of at most `columns`. `first` and `further` blanks are before the
/// first line and before all others. A longer word has a line of its own.
pub(crate) fn fill(text: &str, (first, further): (usize, usize), columns: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            last => {
                let indent = if last.is_none() { first } else { further };
                lines.push(format!("{:indent$}{word}", ""));
            }
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
arm   volume  model slowdown  model s/GiB  noise band
----  ------  --------------  -----------  ----------
xfs   full             11.9×         40.2  0.9 to 1.1
ext4  empty             1.5×          9.3  –
a sentence that stands directly below the table and is long enough to be wrapped at sixty columns
";

    #[test]
    fn tables_lose_their_last_columns() {
        let fitted = fit_to(TABLE, 50);
        assert!(fitted.lines().all(|line| line.chars().count() <= 50), "{fitted}");
        assert!(fitted.starts_with("arm   volume  model slowdown  model s/GiB\n----"), "{fitted}");
        assert!(fitted.contains("(columns not shown: noise band)\n"), "{fitted}");
        assert!(fitted.contains("xfs   full             11.9×         40.2\n"), "{fitted}");
    }

    #[test]
    fn decisive_columns_of_inspect_fit_in_60() {
        let loser =
            |path: &str| serde_json::json!({ "path": path, "lost_seconds": 1.5, "slowdown": 3.0, "bytes": 4096 });
        let screen = senesce_report::inspection_screen(&serde_json::json!({
            "target": { "read_ahead_kib": 128 },
            "costs": [
                { "device": "model: HDD 7.2K", "seconds": { "as_it_lies": 9.0 }, "slowdown": 4.81 },
                { "device": "model: NVMe SSD", "seconds": { "as_it_lies": 9.0 }, "slowdown": 1.01 },
            ],
            "worst_files": [loser("usr/share/doc/a-package/with/a/deep/tree/of/many/directories/notes.txt"), loser("x")],
        }));
        for columns in [60, 80] {
            let fitted = fit_to(&screen, columns);
            assert!(fitted.lines().all(|line| line.chars().count() <= columns), "{fitted}");
            let below = "\nreadahead modelled: 128 KiB (the kernel's default)\n";
            for part in ["now  slowdown  fresh copy", "4.81×", "  path", "usr/share/", "/notes.txt", "  x\n", below] {
                assert!(fitted.contains(part), "{part} at {columns}:\n{fitted}");
            }
        }
        assert!(fit_to(&screen, 160).contains("/with/a/deep/tree/of/many/directories/notes.txt"));
    }

    #[test]
    fn rows_are_stacked_if_no_figure_fits() {
        let table = "\
arm                             volume       cured by  before  after   took
------------------------------  -----------  --------  ------  ------  ----
ext4-e4defrag.mail.hdd-7200.s1  nearly full  e4defrag  9.25 s  5.75 s  –
xfs-senesce.mail.hdd-7200.s1    roomy        senesce   7.00 s  0.25 s  3 s
";
        let fitted = fit_to(table, 60);
        let expected = "\
ext4-e4defrag.mail.hdd-7200.s1  nearly full  e4defrag
  before 9.25 s, after 5.75 s, took –
xfs-senesce.mail.hdd-7200.s1  roomy  senesce
  before 7.00 s, after 0.25 s, took 3 s
";
        assert_eq!(fitted, expected);
        let narrow = fit_to(table, 40);
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        assert!(narrow.contains("  before 9.25 s, after 5.75 s, took –\n"), "{narrow}");
        // One figure that fits is better than none, and the others are named.
        assert!(fit_to(table, 64).contains("(columns not shown: after, took)\n"), "{}", fit_to(table, 64));
    }

    #[test]
    fn sentences_wrap_and_keep_every_word() {
        let fitted = fit_to(TABLE, 60);
        let words = |text: &str| text.split_whitespace().skip_while(|word| *word != "sentence").count();
        assert_eq!(words(&fitted), words(TABLE), "{fitted}");
    }

    #[test]
    fn columns_variable_precedes_the_terminal() {
        assert_eq!(choose_columns(Some("72"), || Some(132)), Some(72));
        assert_eq!(choose_columns(Some("10"), || Some(132)), Some(LEAST_WIDTH));
        for named in [None, Some(""), Some("wide"), Some("0")] {
            assert_eq!(choose_columns(named, || Some(132)), Some(132), "{named:?}");
        }
        assert_eq!(choose_columns(None, || Some(0)), None);
    }

    #[test]
    fn wide_terminals_change_nothing() {
        assert_eq!(fit_to(TABLE, 120), TABLE);
    }
}

//! Fits results to the width of a terminal: tables lose their last columns, sentences wrap.

use std::io::IsTerminal;

/// A table has at least this number of columns; other lines are sentences.
const LEAST_COLUMNS: usize = 3;
/// The narrowest width that is fitted to.
const LEAST_WIDTH: usize = 40;

/// The columns of the terminal: `COLUMNS`, or what the terminal reports. `None`: stdout is no
/// terminal, so there is no limit, and a file or a pipe gets the same text from every shell.
fn columns() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let named = std::env::var("COLUMNS").ok();
    choose_columns(named.as_deref(), || Some(rustix::termios::tcgetwinsize(&stdout).ok()?.ws_col.into()))
}

/// `COLUMNS` if it is a number, else the width of the terminal. 0 means that it is not known.
fn choose_columns(named: Option<&str>, reported: impl Fn() -> Option<usize>) -> Option<usize> {
    let named = named.and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    named.or_else(reported).filter(|columns| *columns > 0).map(|columns: usize| columns.max(LEAST_WIDTH))
}

/// The text for stdout.
pub fn fit(text: &str) -> String {
    columns().map_or_else(|| text.to_owned(), |columns| fit_to(text, columns))
}

/// Fits a text to a number of columns. Lines that fit stay as they are.
fn fit_to(text: &str, columns: usize) -> String {
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
        let now = common_columns(&rows[..end]).len();
        // A sentence below a table joins columns.
        if now < LEAST_COLUMNS || (count != usize::MAX && now * 3 < count * 2) {
            break;
        }
        (length, count) = (end, now);
    }
    length
}

/// Adds a table with its first columns that fit, and the number of the others.
fn push_table(fitted: &mut String, lines: &[&str], columns: usize) {
    let rows: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
    let all = common_columns(&rows);
    let shown = all.iter().take_while(|(_, end)| *end <= columns).count().max(1);
    let end = all[shown - 1].1;
    for row in &rows {
        let cut: String = if shown == all.len() { row.iter().collect() } else { row.iter().take(end).collect() };
        fitted.push_str(cut.trim_end());
        fitted.push('\n');
    }
    if shown < all.len() {
        let head = &rows[0];
        let names: Vec<String> = all[shown..]
            .iter()
            .map(|(start, end)| head.iter().take(*end).skip(*start).collect::<String>().trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect();
        wrap(fitted, &format!("(columns not shown: {})", names.join(", ")), columns);
    }
}

/// Adds a line, broken at blanks; further lines keep its indentation, and two blanks more.
fn wrap(fitted: &mut String, line: &str, columns: usize) {
    if line.chars().count() <= columns {
        fitted.push_str(line);
        fitted.push('\n');
        return;
    }
    let indent: String = line.chars().take_while(|letter| *letter == ' ').collect();
    let mut current = indent.clone();
    let mut is_empty = true;
    for word in line.split_whitespace() {
        let width = current.chars().count() + 1 + word.chars().count();
        if !is_empty && width > columns {
            fitted.push_str(&current);
            fitted.push('\n');
            current = format!("{indent}  ");
            is_empty = true;
        }
        if !is_empty {
            current.push(' ');
        }
        current.push_str(word);
        is_empty = false;
    }
    fitted.push_str(&current);
    fitted.push('\n');
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

//! Fits results to the width of a terminal: tables lose columns, paths their middle, sentences
//! wrap. [`table`] has the rules of tables.

mod table;

use std::{io::IsTerminal, os::fd::AsFd};

use self::table::push_table;

/// A table has at least this number of columns; other lines are sentences.
const LEAST_COLUMNS: usize = 3;
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
pub fn fit_to(text: &str, columns: usize) -> String {
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
        // One column may lack a head. A sentence above a table has no heads.
        if all.len() < LEAST_COLUMNS || now + 1 < LEAST_COLUMNS || (count != usize::MAX && now < count) {
            break;
        }
        (length, count) = (end, now);
    }
    length
}

/// The text of a row in a column.
fn cell(row: &[char], (start, end): (usize, usize)) -> String {
    row.iter().take(end).skip(start).collect::<String>().trim().to_owned()
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

    /// Tables of `show`, `garden reproduce` and published values, and their decisive cells.
    const DECIDED: [(&str, &[&str]); 3] = [
        (
            "\
arm            volume  model slowdown  first model s/GiB  last model s/GiB  last / first  wall slowdown  wall s/GiB
-------------  ------  --------------  -----------------  ----------------  ------------  -------------  ----------
ext4-e4defrag  full             11.9×               7.10              40.2         5.66×           1.2×        1.35
btrfs          empty             1.5×               6.20              9.30         1.50×           1.1×        1.25
",
            &["11.9×", "40.2", "5.66×", "1.5×", "9.30", "1.50×", "ext4-e4defrag", "btrfs"],
        ),
        (
            "     figure                                              published               ours   ratio  verdict         part
     write chain without cleaning at the end             converges to 1          2.27   2.27   direction only  time
     parity reads of the SSDs without, over those with   a marked improvement    2.37          direction only  time
",
            &["converges", "2.27", "2.37", "direction", "parity", "chain"],
        ),
        // The names of the arms begin with a digit.
        (
            "\
arm  place      quantity            published  ours  verdict         device       95% (n)
4k   figure 1a  read: full/empty     1.5 to 4  1.14  not met         HDD 7.2K  1.12–1.16 (3)
64k  figure 2a  step: empty/unaged          7  5.41  met within 40%  HDD 7.2K          – (1)
",
            &["4k", "64k", "1.14", "5.41", "not met", "within", "1.5 to 4"],
        ),
    ];

    #[test]
    fn decisive_columns_stay_at_every_width() {
        for ((table, decisive), columns) in DECIDED.into_iter().flat_map(|case| [40, 60, 80, 100].map(|at| (case, at)))
        {
            let fitted = fit_to(table, columns);
            assert!(fitted.lines().all(|line| line.chars().count() <= columns), "{columns}:\n{fitted}");
            for part in decisive {
                assert!(fitted.contains(part), "{part} at {columns}:\n{fitted}");
            }
        }
        // The heads wrap before a decisive column is lost, and optional columns are lost first.
        let fitted = fit_to(DECIDED[0].0, 60);
        assert!(fitted.contains("(columns not shown: wall slowdown, wall s/GiB)\n"), "{fitted}");
        let fitted = fit_to(DECIDED[1].0, 80);
        assert!(fitted.contains("(columns not shown: part)"), "{fitted}");
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

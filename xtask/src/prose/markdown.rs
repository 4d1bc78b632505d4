//! Markdown as prose: its sentences with their lines, and the targets of its links.
//!
//! Not a whole Markdown parser. It knows what the pages of the project use: headings, paragraphs, lists, tables, quotes,
//! fenced and indented code, code spans, links and HTML comments.

/// A sentence, and the line on which its paragraph, list item, table cell or heading starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    pub line: usize,
    pub text: String,
}

/// A link to another page or to a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub line: usize,
    pub target: String,
}

/// A paragraph, list item, table cell or heading, in one line.
struct Unit {
    line: usize,
    text: String,
    is_heading: bool,
}

/// Abbreviations whose full stop does not end a sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "cf.", "vs.", "al.", "no.", "fig.", "approx.", "etc."];

/// Every sentence of a page. Code counts as one word; targets of links do not count.
pub fn sentences(page: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    for unit in units(page) {
        let text = strip_inline(&unit.text, None);
        found.extend(split(&text).map(|text| Sentence { line: unit.line, text }));
    }
    found
}

/// Every link of a page, except those in code.
pub fn links(page: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for unit in units(page) {
        let mut targets = Vec::new();
        strip_inline(&unit.text, Some(&mut targets));
        found.extend(targets.into_iter().map(|target| Link { line: unit.line, target }));
    }
    found
}

/// The anchors of the headings of a page, by the rule of GitHub.
pub fn anchors(page: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for unit in units(page).into_iter().filter(|unit| unit.is_heading) {
        let plain = strip_code_marks(&unit.text);
        let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let slug: String =
            plain.to_lowercase().chars().filter(is_kept).map(|c| if c == ' ' { '-' } else { c }).collect();
        let same = found.iter().filter(|known| **known == slug).count();
        found.push(if same == 0 { slug } else { format!("{slug}-{same}") });
    }
    found
}

/// The number of words: parts between blanks that have a letter or a digit.
pub fn count_words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

fn units(page: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut fence: Option<&str> = None;
    let (mut is_open, mut is_after_blank, mut is_in_list, mut is_in_comment) = (false, true, false, false);
    for (number, raw) in page.lines().enumerate() {
        let line = raw.trim_start();
        if let Some(mark) = fence {
            if line.starts_with(mark) {
                fence = None;
            }
            continue;
        }
        if is_in_comment || line.starts_with("<!--") {
            is_in_comment = !line.contains("-->");
            is_open = false;
            continue;
        }
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark)) {
            (fence, is_open) = (Some(mark), false);
            continue;
        }
        if line.is_empty() {
            (is_open, is_after_blank) = (false, true);
            continue;
        }
        let indent = raw.len() - line.len();
        let is_code = indent >= 4 && is_after_blank && !is_in_list;
        if is_code {
            continue; // and the lines after it, until one is not indented
        }
        is_after_blank = false;
        if line.starts_with('#') {
            push_unit(&mut units, number + 1, line.trim_start_matches('#'), true);
            (is_open, is_in_list) = (false, false);
        } else if line.starts_with('|') {
            cells(line).iter().for_each(|cell| push_unit(&mut units, number + 1, cell, false));
            is_open = false;
        } else if let Some(item) = list_item(line) {
            push_unit(&mut units, number + 1, item, false);
            (is_open, is_in_list) = (true, true);
        } else if is_open {
            continue_unit(&mut units, line.trim_start_matches("> "));
        } else {
            push_unit(&mut units, number + 1, line.trim_start_matches("> "), false);
            is_in_list &= indent > 0;
            is_open = true;
        }
    }
    units
}

/// Adds a unit, unless its text is a line of marks.
fn push_unit(units: &mut Vec<Unit>, line: usize, text: &str, is_heading: bool) {
    if text.chars().any(char::is_alphanumeric) {
        units.push(Unit { line, text: text.trim().to_owned(), is_heading });
    }
}

/// Joins a line to the last unit.
fn continue_unit(units: &mut [Unit], line: &str) {
    if let Some(unit) = units.last_mut() {
        unit.text.push(' ');
        unit.text.push_str(line);
    }
}

/// The text of a list item without its mark.
fn list_item(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return Some(rest);
    }
    let (number, rest) = line.split_once(". ")?;
    (!number.is_empty() && number.len() < 4 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest)
}

/// The cells of a row of a table. A bar in code, or after a backslash, does not divide.
fn cells(row: &str) -> Vec<String> {
    let (mut cells, mut cell) = (Vec::new(), String::new());
    let (mut is_code, mut is_escaped) = (false, false);
    for character in row.chars() {
        if character == '|' && !is_code && !is_escaped {
            cells.push(std::mem::take(&mut cell));
        } else {
            is_code ^= character == '`';
            cell.push(character);
        }
        is_escaped = character == '\\';
    }
    cells.push(cell);
    cells
}

/// The text without code spans, marks and targets of links; the targets are collected.
fn strip_inline(text: &str, mut targets: Option<&mut Vec<String>>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if character == '`' {
            let marks = rest.len() - rest.trim_start_matches('`').len();
            let (mark, inner) = rest.split_at(marks);
            if let Some(end) = inner.find(mark) {
                out.push_str("code");
                rest = &inner[end + marks..];
                continue;
            }
        }
        if let Some(after) = rest.strip_prefix("](")
            && let Some(end) = after.find(')')
        {
            if let Some(targets) = targets.as_deref_mut() {
                targets.push(after[..end].split_whitespace().next().unwrap_or_default().to_owned());
            }
            rest = &after[end + 1..];
            continue;
        }
        if !matches!(character, '[' | ']' | '*' | '\\') {
            out.push(character);
        }
        rest = &rest[character.len_utf8()..];
    }
    out
}

/// A heading without the marks of code and links.
fn strip_code_marks(heading: &str) -> String {
    heading.replace(['`', '*'], "")
}

fn split(text: &str) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    let mut sentence = String::new();
    for word in text.split_whitespace() {
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        let bare = word.trim_end_matches(['"', '\'', ')', '”', '_']);
        let is_end = bare.ends_with(['.', '?', '!'])
            && !bare.ends_with("..")
            && !ABBREVIATIONS.contains(&bare.trim_start_matches('(').to_lowercase().as_str());
        if is_end {
            found.push(std::mem::take(&mut sentence));
        }
    }
    found.push(sentence);
    found.into_iter().filter(|sentence| !sentence.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(page: &str) -> Vec<usize> {
        sentences(page).iter().map(|sentence| count_words(&sentence.text)).collect()
    }

    #[test]
    fn sentences_end_at_full_stops_and_blocks() {
        assert_eq!(
            lengths("# A title\n\nOne two. Three\nfour five? six (e.g. Seven) 1.5 ms. senesce says ... so.\n"),
            [2, 2, 3, 5, 3]
        );
    }

    #[test]
    fn list_items_and_cells_are_sentences() {
        assert_eq!(lengths("Intro:\n\n- one two\n  three\n- four\n1. five\n"), [1, 3, 1, 1]);
        assert_eq!(lengths("| a b | c |\n|---|---|\n| d `x|y` | e. F g |\n"), [2, 1, 2, 1, 2]);
    }

    #[test]
    fn code_is_not_prose() {
        assert_eq!(
            lengths("```\nnot this one\n```\nOne `a b c` two.\n\n    nor this\n    one\n\n<!-- nor\nthis -->\nend\n"),
            [3, 1]
        );
        assert_eq!(lengths("- item\n\n      continued words\n"), [1, 2], "an indented paragraph of a list is prose");
    }

    #[test]
    fn link_targets_do_not_count() {
        let page = "See [the\npage](a/b.md#c-d) and ![a picture](x.svg).\n\n    [code](no.md)\n\n`[code](no.md)`\n";
        assert_eq!(lengths(page), [6, 1]);
        let targets: Vec<String> = links(page).into_iter().map(|link| link.target).collect();
        assert_eq!(targets, ["a/b.md#c-d", "x.svg"]);
    }

    #[test]
    fn anchors_follow_the_rule_of_github() {
        assert_eq!(
            anchors("# The `a_b` table, v1\n## Same\n## Same\n```\n# no\n```\n"),
            ["the-a_b-table-v1", "same", "same-1"]
        );
    }
}

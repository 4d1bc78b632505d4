//! Fits help texts to the terminal: examples, paragraphs, and lists of words with their
//! explanations. clap would only wrap them.

use clap::Command;

use crate::fit::fill;

/// The fewest columns for a comment beside an example.
const LEAST_COMMENT: usize = 24;
/// The indentation of the further lines of an example.
const CONTINUED: usize = 6;

/// Fits the texts after the options of all verbs to a number of columns.
pub fn fit_texts(command: Command, columns: usize) -> Command {
    let command = command.mut_subcommands(|verb| fit_texts(verb, columns));
    match command.get_after_long_help().map(ToString::to_string) {
        Some(text) => command.after_long_help(reflow(&text, columns)),
        None => command,
    }
}

/// Fills paragraphs, and gives items a hanging indent. An item is a line with two blanks before it,
/// and the lines below it with more blanks.
pub(super) fn reflow(text: &str, columns: usize) -> String {
    let mut blocks: Vec<String> = Vec::new();
    let mut continues = false;
    for line in text.lines() {
        let words = line.trim();
        let is_item = line.starts_with("  ") && !line.starts_with("   ");
        match blocks.last_mut().filter(|_| continues && !words.is_empty() && !is_item) {
            Some(block) if line.starts_with(' ') || !block.starts_with(' ') => {
                block.push(' ');
                block.push_str(words);
            }
            _ => blocks.push(line.trim_end().to_owned()),
        }
        // The line before a list stays alone.
        continues = !words.is_empty() && !words.ends_with(':');
    }
    let fitted: Vec<String> = blocks.iter().map(|block| fit_block(block, columns)).collect();
    fitted.join("\n")
}

fn fit_block(block: &str, columns: usize) -> String {
    if block.chars().count() <= columns {
        return block.to_owned();
    }
    let Some(item) = block.strip_prefix("  ") else { return fill(block, (0, 0), columns) };
    match item.find("  ") {
        Some(end) => {
            let (name, text) = (&item[..end], item[end..].trim_start());
            let start = block.chars().count() - text.chars().count();
            if start + LEAST_COMMENT <= columns {
                let head = format!("  {name:<width$}", width = start - 2);
                return head + fill(text, (start, start), columns).trim_start();
            }
            let below = fill(text, (CONTINUED, CONTINUED), columns);
            format!("{}\n{below}", fit_command(name, columns))
        }
        None => fit_command(item, columns),
    }
}

/// A command line that can be copied: it is broken only between its words, with a backslash.
fn fit_command(command: &str, columns: usize) -> String {
    let mut words: Vec<String> = vec![String::new()];
    let mut quote = None;
    for letter in command.chars() {
        match quote {
            None if letter == ' ' => {
                words.push(String::new());
                continue;
            }
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            Some(open) if open == letter => quote = None,
            _ => {}
        }
        words.last_mut().expect("it starts with one").push(letter);
    }
    let mut lines = vec![format!("  {}", words[0])];
    for word in &words[1..] {
        let line = lines.last_mut().expect("it starts with one");
        if line.chars().count() + 1 + word.chars().count() + 2 <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{:CONTINUED$}{word}", ""));
        }
    }
    lines.join(" \\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, EXIT_CODES};

    const TEXT: &str = "Examples:\n  \
        senesce demo            the path of the report is printed\n  \
        sudo senesce bench --aged one.img --unaged -- sh -c 'tar cf - . | cat'\n\n\
        One sentence that is broken\nin the source. And another.\n";

    #[test]
    fn comments_hang_and_paragraphs_are_filled() {
        let expected = "Examples:\n  \
            senesce demo            the path of the report\n                          is printed\n  \
            sudo senesce bench --aged one.img --unaged -- \\\n      sh -c 'tar cf - . | cat'\n\n\
            One sentence that is broken in the source. And\nanother.";
        assert_eq!(reflow(TEXT, 50), expected);
        let narrow = reflow(TEXT, 40);
        assert!(narrow.contains("  senesce demo\n      the path of the report is printed\n"), "{narrow}");
        let lost = |text: &str| text.replace(['\\', '\n', ' '], "");
        assert_eq!(lost(&narrow), lost(TEXT), "no letter is lost");
    }

    /// No line of a help is longer than the terminal, and no paragraph is broken too early.
    #[test]
    fn every_help_fits() {
        for columns in [60, 80, 100] {
            let mut command = Cli::for_screen(columns);
            command.build();
            let mut faults = Vec::new();
            check(&mut command, "senesce", columns, &mut faults);
            assert!(faults.is_empty(), "{columns} columns, {} faults:\n{}", faults.len(), faults.join("\n"));
        }
    }

    fn check(command: &mut Command, name: &str, columns: usize, faults: &mut Vec<String>) {
        for text in [command.render_help().to_string(), command.render_long_help().to_string()] {
            // The usage is one line, which the terminal breaks.
            let is_long = |line: &&str| line.chars().count() > columns && !line.starts_with("Usage:");
            faults.extend(text.lines().filter(is_long).map(|line| format!("{name}: {line}")));
        }
        let text = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        check_ragged(&text, name, columns, faults);
        for inner in command.get_subcommands_mut().filter(|inner| !inner.is_hide_set()) {
            let name = format!("{name} {}", inner.get_name());
            check(inner, &name, columns, faults);
        }
    }

    fn check_ragged(text: &str, name: &str, columns: usize, faults: &mut Vec<String>) {
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let next = pair[1].split(' ').next().unwrap_or_default();
            let is_paragraph = !next.is_empty() && !pair[0].is_empty() && !pair[0].starts_with(' ');
            if is_paragraph && pair[0].chars().count() + 1 + next.chars().count() <= columns {
                faults.push(format!("{name}, broken early: {}", pair[0]));
            }
        }
    }

    #[test]
    fn exit_codes_hang_below_their_text() {
        for columns in [60, 80] {
            let fitted = reflow(EXIT_CODES, columns);
            check_fits(&fitted, columns);
            assert!(fitted.contains("\n  7    `fs mount` unmounted in order"), "{fitted}");
            assert!(fitted.lines().all(|line| !line.starts_with("   ") || line.starts_with("       ")), "{fitted}");
        }
    }

    fn check_fits(text: &str, columns: usize) {
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
    }
}

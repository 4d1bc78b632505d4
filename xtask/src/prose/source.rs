//! Comments and messages of Rust sources.

use super::words;

/// The longest comment line, in columns.
const MAX_COLUMNS: usize = 100;

/// Faults of one source file: lines of comments that are too long, replaced words of comments, replaced words of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    pub width: Vec<usize>,
    pub comments: Vec<(usize, String)>,
    pub messages: Vec<(usize, String)>,
}

/// Finds the faults of a source text.
pub fn check(source: &str) -> Faults {
    let mut faults = Faults::default();
    for (number, line) in source.lines().enumerate() {
        let number = number + 1;
        let code = line.trim_start();
        if code.starts_with("//") {
            if line.chars().count() > MAX_COLUMNS {
                faults.width.push(number);
            }
            let prose = without_code(code);
            faults.comments.extend(words::find(&prose).iter().map(|found| (number, found.phrase.to_owned())));
        } else {
            let text = literals(code);
            faults.messages.extend(words::find(&text).iter().map(|found| (number, found.phrase.to_owned())));
        }
    }
    faults
}

/// A comment without what is between backticks.
fn without_code(comment: &str) -> String {
    comment.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// The string literals of a line that have a blank in them: texts for people.
fn literals(code: &str) -> String {
    let mut texts = String::new();
    let mut literal: Option<String> = None;
    let mut characters = code.chars();
    while let Some(character) = characters.next() {
        match (&mut literal, character) {
            (Some(text), '"') => {
                if text.contains(' ') {
                    texts.push_str(text);
                    texts.push_str(" | ");
                }
                literal = None;
            }
            (Some(_), '\\') => drop(characters.next()),
            (Some(text), other) => text.push(other),
            (None, '"') => literal = Some(String::new()),
            (None, _) => {}
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_messages_are_told_apart() {
        let long = format!("// {}", "x".repeat(98));
        let source = format!("/// It told us of `tells`.\nlet tells = \"told\"; say(\"it \\\" lies here\");\n{long}\n");
        let faults = check(&source);
        assert_eq!(faults.comments, [(1, "told".to_owned())]);
        assert_eq!(faults.messages, [(2, "lies".to_owned())]);
        assert_eq!(faults.width, [3]);
    }
}

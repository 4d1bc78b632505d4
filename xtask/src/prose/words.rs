//! Words that the style guide (docs/style.md) replaces.
//!
//! Three rows of its table need a reader and are not checked: `gives`, `takes` and `gets` of values, `is there`, and
//! `wall` of crates.

use super::markdown::Sentence;

/// A phrase in lower case, and what to write.
const PHRASES: &[(&str, &str)] = &[
    ("told", "reports, prints, records"),
    ("tell", "report, print, show"),
    ("tells", "reports, prints, shows"),
    ("whoever", "the caller, a client"),
    ("nobody", "no caller, no client"),
    ("somebody", "a caller, a client"),
    ("anybody", "a caller, a client"),
    ("lies", "is at, is stored"),
    ("lay", "was at, was stored"),
    ("behind", "after"),
    ("anew", "again"),
    ("mend", "fix, repair"),
    ("mends", "fixes, repairs"),
    ("mended", "fixed, repaired"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("went on", "continued"),
    ("so many", "N, up to N"),
    ("so much", "N, up to N"),
    ("as many as", "up to N"),
    ("as much as", "up to N"),
    ("looked at", "read, scanned, checked"),
    ("looks at", "reads, scans, checks"),
    ("has its turn", "runs next"),
    ("comes to rest", "stops"),
    ("house", "project"),
    ("room", "crate, space"),
    ("rooms", "crates"),
    ("walls", "dependency rules"),
    ("asked for", "requested"),
    ("a day ago", "(history belongs to the change log)"),
    ("since it came", "(history belongs to the change log)"),
    ("by now", "(history belongs to the change log)"),
];

/// A replaced phrase of a text, and what to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    pub phrase: &'static str,
    pub instead: &'static str,
}

/// The replaced phrases of a text.
pub fn find(text: &str) -> Vec<Replaced> {
    let words: Vec<String> =
        text.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').map(str::to_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
    let mut found = Vec::new();
    for &(phrase, instead) in PHRASES {
        let parts = phrase.split(' ').count();
        let times = words.windows(parts).filter(|window| phrase.split(' ').eq(window.iter().copied())).count();
        found.extend(std::iter::repeat_n(Replaced { phrase, instead }, times));
    }
    found
}

/// The replaced phrases of a sentence, and a subject without a noun at its start.
pub fn find_in_sentence(sentence: &Sentence) -> Vec<Replaced> {
    let mut found = find(&sentence.text);
    let mut words = sentence.text.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_statement = sentence.text.ends_with('.');
    if is_statement && first == "What" && ["is", "was", "are", "were", "has", "had"].contains(&second) {
        found.push(Replaced { phrase: "What is ... (as a subject)", instead: "name the thing" });
    }
    if is_statement && first == "Who" {
        found.push(Replaced { phrase: "Who ... (as a subject)", instead: "the caller, or: if a client" });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrases(text: &str) -> Vec<&'static str> {
        let sentence = Sentence { line: 1, text: text.to_owned() };
        find_in_sentence(&sentence).into_iter().map(|found| found.phrase).collect()
    }

    #[test]
    fn phrases_match_whole_words_in_any_case() {
        assert_eq!(phrases("It Told us, and goes\non."), ["told", "goes on"]);
        assert_eq!(phrases("Mushrooms, delays and a layout are allowed: go-on."), [""; 0]);
    }

    #[test]
    fn headless_subjects_are_found_in_statements_only() {
        assert_eq!(phrases("What was done is in a log."), ["What is ... (as a subject)"]);
        assert_eq!(phrases("Who asks once waits."), ["Who ... (as a subject)"]);
        assert_eq!(phrases("What is aging?"), [""; 0]);
        assert_eq!(phrases("What is aging"), [""; 0]);
    }
}

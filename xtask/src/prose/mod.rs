//! Prose: replaced words, long sentences, wide comments and missing contents lists, by the rules of docs/style.md.
//!
//! Faults that existed before the rules are counted in `xtask/prose-allowance.txt`, for each page and crate.

mod allowance;
pub mod markdown;
mod source;
mod words;

use std::{collections::BTreeMap, path::Path};

use crate::files::{pages, shown, sources};
use allowance::Counts;

/// The longest sentence of a page, in words.
const MAX_WORDS: usize = 40;
/// A page of docs with more words has a contents list.
const MAX_WORDS_WITHOUT_CONTENTS: usize = 1500;
/// The least number of links to its own headings in a contents list.
const MIN_CONTENTS: usize = 3;
/// The table of allowed faults.
const TABLE: &str = "xtask/prose-allowance.txt";
/// Faults of one place that a complaint lists.
const LISTED: usize = 5;

/// Faults by kind and place, each with where it is and what it is.
type Faults = BTreeMap<(String, String), Vec<String>>;

/// Complains about each place that has more faults than the table allows.
pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let allowed = allowance::parse(&std::fs::read_to_string(root.join(TABLE))?)?;
    Ok(compare(&collect(root)?, &allowed))
}

/// Lowers the table to the faults that exist.
pub fn shrink(root: &Path) -> anyhow::Result<()> {
    let old = std::fs::read_to_string(root.join(TABLE))?;
    let found: Counts = collect(root)?.into_iter().map(|(key, faults)| (key, faults.len())).collect();
    let counts = allowance::shrink(&allowance::parse(&old)?, &found);
    std::fs::write(root.join(TABLE), allowance::render(&old, &counts))?;
    Ok(())
}

fn compare(found: &Faults, allowed: &Counts) -> Vec<String> {
    let mut complaints = Vec::new();
    for (key @ (kind, place), faults) in found {
        let limit = allowed.get(key).copied().unwrap_or(0);
        if faults.len() > limit {
            complaints.push(format!("{place}: {} faults of `{kind}`; at most {limit} ({TABLE}):", faults.len()));
            complaints.extend(faults.iter().rev().take(LISTED).map(|fault| format!("  {fault}")));
        }
    }
    complaints
}

fn collect(root: &Path) -> anyhow::Result<Faults> {
    let mut faults = Faults::new();
    for path in pages(root)? {
        let (page, name) = (std::fs::read_to_string(&path)?, shown(root, &path));
        let mut add = |kind: &str, fault| faults.entry((kind.to_owned(), name.clone())).or_default().push(fault);
        if name.starts_with("docs/") && lacks_contents(&page) {
            add("contents", format!("{name}: over {MAX_WORDS_WITHOUT_CONTENTS} words without a contents list"));
        }
        for sentence in markdown::sentences(&page) {
            let words = markdown::count_words(&sentence.text);
            if words > MAX_WORDS {
                let start: Vec<&str> = sentence.text.split_whitespace().take(6).collect();
                add("sentences", format!("{name}:{}: {words} words: {} ...", sentence.line, start.join(" ")));
            }
            for found in words::find_in_sentence(&sentence) {
                add("words", format!("{name}:{}: {}; write: {}", sentence.line, found.phrase, found.instead));
            }
        }
    }
    for path in sources(root)? {
        let (text, name) = (std::fs::read_to_string(&path)?, shown(root, &path));
        if name.starts_with("xtask/src/prose/") {
            continue; // the tables and tests of this check
        }
        let place = crate_of(&name);
        let mut add = |kind: &str, fault| faults.entry((kind.to_owned(), place.clone())).or_default().push(fault);
        let found = source::check(&text);
        found.width.iter().for_each(|line| add("width", format!("{name}:{line}: a comment of over 100 columns")));
        found.comments.iter().for_each(|(line, phrase)| add("comments", format!("{name}:{line}: {phrase}")));
        if !name.contains("/tests/") {
            found.messages.iter().for_each(|(line, phrase)| add("messages", format!("{name}:{line}: {phrase}")));
        }
    }
    Ok(faults)
}

/// Whether a long page has no list of links to its own headings.
fn lacks_contents(page: &str) -> bool {
    let own = markdown::links(page).iter().filter(|link| link.target.starts_with('#')).count();
    let below_title = markdown::anchors(page).len().saturating_sub(1);
    page.split_whitespace().count() > MAX_WORDS_WITHOUT_CONTENTS && own < below_title.clamp(1, MIN_CONTENTS)
}

/// `filesystems/garden` of a path below it.
fn crate_of(name: &str) -> String {
    let parts: Vec<&str> = name.split('/').collect();
    let depth = match parts[..] {
        ["crates" | "filesystems", ..] => 2,
        _ => 1,
    };
    parts[..depth].join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_beyond_the_allowance_are_listed() {
        let key = |place: &str| ("words".to_owned(), place.to_owned());
        let faults = Faults::from([
            (key("docs/a.md"), vec!["docs/a.md:1: told".to_owned(), "docs/a.md:9: anew".to_owned()]),
            (key("docs/b.md"), vec!["docs/b.md:1: told".to_owned()]),
        ]);
        let allowed = Counts::from([(key("docs/a.md"), 1), (key("docs/b.md"), 1)]);
        let complaints = compare(&faults, &allowed);
        assert_eq!(complaints.len(), 3, "{complaints:?}");
        assert!(complaints[0].starts_with("docs/a.md: 2 faults of `words`; at most 1"), "{complaints:?}");
    }

    #[test]
    fn long_pages_need_a_contents_list() {
        let list = "- [A](#a)\n- [B](#b), [C](#c)\n";
        let long = "word ".repeat(MAX_WORDS_WITHOUT_CONTENTS + 1);
        assert!(lacks_contents(&long));
        assert!(!lacks_contents(&format!("{list}\n{long}")));
        assert!(!lacks_contents("word"));
    }

    #[test]
    fn crates_are_counted_apart() {
        assert_eq!(crate_of("filesystems/garden/src/lib.rs"), "filesystems/garden");
        assert_eq!(crate_of("crates/cli/src/main.rs"), "crates/cli");
        assert_eq!(crate_of("xtask/src/main.rs"), "xtask");
    }
}

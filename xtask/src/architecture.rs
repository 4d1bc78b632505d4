//! The pages of architecture. Their tables of crates are generated from the dependency rules. Each
//! file that they name must exist, and the path of a step must be short.

use std::path::Path;

use anyhow::Context;

use crate::walls::{FILE_SYSTEMS, LABORATORY, Wall};

/// The pages, and the crates in the table of each.
const PAGES: [(&str, &[Wall]); 2] = [("ARCHITECTURE.md", LABORATORY), ("filesystems/ARCHITECTURE.md", FILE_SYSTEMS)];

const START: &str = "<!-- crates: `cargo xtask architecture` writes this table from the dependency rules -->\n";
const END: &str = "<!-- end of crates -->\n";

/// A page is short: a reader has one screen for the path of a step, and one for the crates.
const MOST_LINES: usize = 120;
/// The places on the path of a step.
const MOST_PLACES: usize = 12;

/// Writes the tables of both pages. Returns the pages that changed.
pub fn write(root: &Path) -> anyhow::Result<Vec<&'static str>> {
    let mut changed = Vec::new();
    for (page, walls) in PAGES {
        let path = root.join(page);
        let text = std::fs::read_to_string(&path)?;
        let fresh = with_table(&text, walls).with_context(|| page.to_owned())?;
        if fresh != text {
            std::fs::write(&path, fresh)?;
            changed.push(page);
        }
    }
    Ok(changed)
}

pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut complaints = Vec::new();
    for (page, walls) in PAGES {
        let text = std::fs::read_to_string(root.join(page)).with_context(|| page.to_owned())?;
        if with_table(&text, walls).with_context(|| page.to_owned())? != text {
            complaints.push(format!("{page}: the table of crates is old; run `cargo xtask architecture`"));
        }
        let lines = text.lines().count();
        if lines > MOST_LINES {
            complaints.push(format!("{page} has {lines} lines; at most {MOST_LINES}"));
        }
        let places = text.lines().filter(|line| is_place(line)).count();
        if !(1..=MOST_PLACES).contains(&places) {
            complaints.push(format!("{page}: the path of a step has {places} places; 1 to {MOST_PLACES} are allowed"));
        }
        for file in named_files(&text).filter(|file| !root.join(file).exists()) {
            complaints.push(format!("{page} names {file}, which does not exist"));
        }
    }
    Ok(complaints)
}

/// Whether a line is the first one of a numbered place.
fn is_place(line: &str) -> bool {
    line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}

/// The source files and directories between backticks: paths that start at the root.
fn named_files(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|quoted| quoted.contains("/src/"))
}

/// The page with a fresh table between its marks.
fn with_table(text: &str, walls: &[Wall]) -> anyhow::Result<String> {
    let (before, rest) = text.split_once(START).with_context(|| format!("it has no line {START:?}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("it has no line {END:?}"))?;
    Ok(format!("{before}{START}{}{END}{after}", table(walls)))
}

fn table(walls: &[Wall]) -> String {
    let mut table = "\n| crate | purpose | imports | must not |\n|---|---|---|---|\n".to_owned();
    for wall in walls {
        let imports: Vec<&str> = wall.imports.split_whitespace().filter(|import| *import != "core").collect();
        let others = || walls.iter().filter(|other| other.package != wall.package);
        let imports = if imports.is_empty() {
            "none".to_owned()
        } else if others().all(|other| wall.imports.split_whitespace().any(|import| import == other.short())) {
            let elsewhere: Vec<&str> =
                imports.into_iter().filter(|import| !others().any(|other| other.short() == *import)).collect();
            if elsewhere.is_empty() { "all".to_owned() } else { format!("all, and {}", elsewhere.join(", ")) }
        } else {
            imports.join(", ")
        };
        table.push_str(&format!("| {} | {} | {imports} | {} |\n", wall.short(), wall.purpose, wall.never));
    }
    table.push('\n');
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALLS: &[Wall] = &[
        Wall { package: "senesce-core", imports: "", purpose: "units", never: "read" },
        Wall { package: "senesce-log", imports: "core", purpose: "a log", never: "write" },
        Wall { package: "senesce", imports: "core log", purpose: "all", never: "be imported" },
    ];

    #[test]
    fn a_table_replaces_the_old_one_and_stays() {
        let old = format!("text\n{START}| old |\n{END}more\n");
        let fresh = with_table(&old, WALLS).unwrap();
        assert!(fresh.contains("| log | a log | none | write |"), "{fresh}");
        assert!(fresh.contains("| cli | all | all | be imported |"), "{fresh}");
        assert!(fresh.starts_with("text\n") && fresh.ends_with("more\n") && !fresh.contains("| old |"), "{fresh}");
        assert_eq!(with_table(&fresh, WALLS).unwrap(), fresh);
        assert!(with_table("no marks\n", WALLS).is_err());
    }

    #[test]
    fn places_and_files_are_found() {
        assert!(is_place("12. `a`") && !is_place("A step. It") && !is_place("   12 of"));
        let found: Vec<&str> = named_files("`a::b`, `crates/core/src/rng.rs` and `crates/x/src/`").collect();
        assert_eq!(found, ["crates/core/src/rng.rs", "crates/x/src/"]);
    }
}

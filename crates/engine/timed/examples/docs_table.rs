//! Writes the table of published figures into the docs, from the kept run of the default scale.
//!
//! `cargo run -p senesce-timed --example docs_table` in the project's directory.

use senesce_timed::published::{FigureLine, render_docs_table, replace_docs_table};

const KEPT: &str = "crates/cli/tests/cli/reproduction-eighth.tsv";
const DOCS: &str = "docs/results/garden-trials.md";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lines = FigureLine::read_all(&std::fs::read_to_string(KEPT)?)?;
    let docs = std::fs::read_to_string(DOCS)?;
    let replaced =
        replace_docs_table(&docs, &render_docs_table(&lines)).ok_or("the docs have no place for the table")?;
    std::fs::write(DOCS, replaced)?;
    Ok(())
}

//! The list of all pages of docs/results: question, commands, days and commits.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::{Kept, blocks, circumstances::Shown, table::markdown};
use crate::files::pages;

/// The mark of the list; `<!-- end -->` follows it.
pub const START: &str = "<!-- index -->";
const QUESTION: &str = "<!-- question: ";

/// The pages of docs/results, without the list itself.
pub fn results(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = pages(root)?;
    found.retain(|page| page.starts_with(root.join("docs/results")) && !page.ends_with("README.md"));
    Ok(found)
}

/// The questions as a list of links, then a row for each page and kept run or table.
pub fn render(root: &Path, kept: &mut Kept) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    let mut contents = String::new();
    for path in results(root)? {
        let page = std::fs::read_to_string(&path)?;
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let title =
            page.lines().find_map(|line| line.strip_prefix("# ")).with_context(|| format!("{file}: no title"))?;
        let question = page.lines().find_map(|line| line.strip_prefix(QUESTION)?.strip_suffix(" -->"));
        let question = question.with_context(|| format!("{file}: no line `{QUESTION}... -->`"))?;
        contents.push_str(&format!("- [{title}]({file}): {question}\n"));
        let mut first = format!("[{title}]({file})");
        let mut seen: Vec<String> = Vec::new();
        for run in blocks(&page).with_context(|| file.clone())?.into_iter().flat_map(|block| block.runs) {
            if seen.contains(&run) {
                continue;
            }
            let shown = Shown::read(&run, kept)?;
            rows.push(vec![
                std::mem::take(&mut first),
                format!("`{}`", shown.command.replace('|', "\\|")),
                shown.day,
                shown.commit,
            ]);
            seen.push(run);
        }
        if seen.is_empty() {
            rows.push(vec![first, "no kept run".to_owned(), String::new(), String::new()]);
        }
    }
    let table = markdown(&["page", "command", "day", "commit"].map(str::to_owned), &rows);
    Ok(format!("{contents}\n## Commands, days and commits\n\n{table}"))
}

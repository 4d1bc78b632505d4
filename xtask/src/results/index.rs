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

/// A row for each page and kept run or table. The question is in the first row of its page.
pub fn render(root: &Path, kept: &mut Kept) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    for path in results(root)? {
        let page = std::fs::read_to_string(&path)?;
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let title =
            page.lines().find_map(|line| line.strip_prefix("# ")).with_context(|| format!("{file}: no title"))?;
        let question = page.lines().find_map(|line| line.strip_prefix(QUESTION)?.strip_suffix(" -->"));
        let question = question.with_context(|| format!("{file}: no line `{QUESTION}... -->`"))?;
        let mut first = [format!("[{title}]({file})"), question.to_owned()];
        let mut seen: Vec<String> = Vec::new();
        for run in blocks(&page).with_context(|| file.clone())?.into_iter().flat_map(|block| block.runs) {
            if seen.contains(&run) {
                continue;
            }
            let shown = Shown::read(&run, kept)?;
            let [page, question] = std::mem::take(&mut first);
            rows.push(vec![
                page,
                question,
                format!("`{}`", shown.command.replace('|', "\\|")),
                shown.day,
                shown.commit,
            ]);
            seen.push(run);
        }
        if seen.is_empty() {
            let [page, question] = first;
            rows.push(vec![page, question, "no kept run".to_owned(), String::new(), String::new()]);
        }
    }
    Ok(markdown(&["page", "question", "command", "day", "commit"].map(str::to_owned), &rows))
}

//! Relative links and anchors of all pages, and pages that sources name.

use std::path::{Component, Path, PathBuf};

use crate::{
    files::{pages, shown, sources},
    prose::markdown::{anchors, links},
};

/// Complains about each link to a file or heading that does not exist.
pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut complaints = Vec::new();
    for path in pages(root)? {
        let (page, name) = (std::fs::read_to_string(&path)?, shown(root, &path));
        for link in links(&page) {
            if let Some(why) = broken(&path, &link.target) {
                complaints.push(format!("{name}:{}: {}: {why}", link.line, link.target));
            }
        }
    }
    for index in ["docs/README.md", "docs/SUMMARY.md"] {
        complaints.extend(unlisted(root, index)?);
    }
    // The tests of these checks name pages that do not exist.
    for path in sources(root)?.into_iter().filter(|path| !path.starts_with(root.join("xtask"))) {
        let text = std::fs::read_to_string(&path)?;
        for (number, line) in text.lines().enumerate() {
            for page in named_pages(line).filter(|page| !root.join(page).exists()) {
                complaints.push(format!("{}:{}: {page} does not exist", shown(root, &path), number + 1));
            }
        }
    }
    Ok(complaints)
}

/// The pages below docs/ that an index does not link.
fn unlisted(root: &Path, index: &str) -> anyhow::Result<Vec<String>> {
    let docs = root.join("docs");
    let page = std::fs::read_to_string(root.join(index))?;
    let listed: Vec<PathBuf> = links(&page).iter().map(|link| normal(&docs.join(&link.target))).collect();
    let is_unlisted =
        |path: &PathBuf| path.starts_with(&docs) && !path.ends_with("SUMMARY.md") && !listed.contains(path);
    let names = pages(root)?.into_iter().filter(|path| is_unlisted(path) && *path != root.join(index));
    Ok(names.map(|path| format!("{index} does not list {}", shown(root, &path))).collect())
}

/// Why a link of a page leads nowhere. Links to other sites are not followed.
fn broken(page: &Path, target: &str) -> Option<String> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    if file.contains(':') {
        return None;
    }
    let to = if file.is_empty() { page.to_owned() } else { normal(&page.parent()?.join(file)) };
    if !to.exists() {
        return Some("there is no such file".to_owned());
    }
    if anchor.is_empty() {
        return None;
    }
    let text = std::fs::read_to_string(&to).unwrap_or_default();
    (!anchors(&text).iter().any(|known| known == anchor)).then(|| "there is no such heading".to_owned())
}

/// A path without `.` and `..`.
pub fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

/// The pages (`docs/...md`) that a line of a source names.
fn named_pages(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("docs/").filter_map(|(start, _)| {
        let rest = &line[start..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"/-_.".contains(c)).unwrap_or(rest.len());
        let page = rest[..end].trim_end_matches('.');
        page.ends_with(".md").then_some(page)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_without_a_target_are_broken() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/README.md");
        assert_eq!(broken(&page, "https://example.org/x.md#y"), None);
        assert_eq!(broken(&page, "reference/fs.md#what-is-durable-and-when"), None);
        assert_eq!(broken(&page, "../README.md"), None);
        assert!(broken(&page, "reference/none.md").is_some());
        assert!(broken(&page, "reference/fs.md#none").is_some());
        assert!(broken(&page, "#none").is_some());
    }

    #[test]
    fn pages_that_an_index_lacks_are_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!(unlisted(root, "docs/README.md").unwrap(), [""; 0]);
        assert!(unlisted(root, "docs/style.md").unwrap().len() > 10);
    }

    #[test]
    fn pages_that_sources_name_are_found() {
        let named: Vec<&str> = named_pages("// see docs/reference/fs.md, docs/x/y.md. docs/plan.schema.json").collect();
        assert_eq!(named, ["docs/reference/fs.md", "docs/x/y.md"]);
    }
}

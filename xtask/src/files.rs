//! File sizes, and what module roots may hold.

use std::path::{Path, PathBuf};

/// No source file is longer.
const MAX_LINES: usize = 500;

/// Every Rust source file that belongs to the project.
pub fn sources(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> =
        ["crates", "filesystems", "testkit", "xtask"].iter().map(|dir| root.join(dir)).collect();
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Every page of the project: Markdown in its root, in filesystems/ and below docs/.
pub fn pages(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = vec![root.join("filesystems/ARCHITECTURE.md")];
    let mut open = vec![root.to_owned(), root.join("docs")];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let path = entry?.path();
            if path.is_dir() {
                if dir != root {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A path below the root, as it is printed.
pub fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut complaints = Vec::new();
    for path in sources(root)? {
        let text = std::fs::read_to_string(&path)?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display();
        let lines = text.lines().count();
        if lines > MAX_LINES {
            complaints.push(format!("{shown} has {lines} lines; at most {MAX_LINES}"));
        }
        if !text.starts_with("//!") {
            complaints.push(format!("{shown} does not begin with a module doc (//!)"));
        }
        let is_library_root = path.ends_with("src/lib.rs");
        if is_library_root && text.lines().any(|line| line.starts_with("pub fn ") || line.starts_with("fn ")) {
            complaints.push(format!("{shown} holds code; a library's root holds docs and re-exports"));
        }
    }
    complaints.extend(without_licence(root)?);
    Ok(complaints)
}

/// The crates whose archives would have no licence. Cargo puts the file `LICENSE` of a crate's
/// directory into its archive, even if that file is a link.
fn without_licence(root: &Path) -> anyhow::Result<Vec<String>> {
    let licence = std::fs::read(root.join("LICENSE"))?;
    let mut found = Vec::new();
    for group in ["crates", "filesystems"] {
        for entry in std::fs::read_dir(root.join(group))? {
            let dir = entry?.path();
            let Ok(manifest) = std::fs::read_to_string(dir.join("Cargo.toml")) else { continue };
            let is_private = manifest.lines().any(|line| line == "publish = false");
            if !is_private && std::fs::read(dir.join("LICENSE")).ok().as_ref() != Some(&licence) {
                found.push(format!("{}: LICENSE is not a link to ../../LICENSE", shown(root, &dir)));
            }
        }
    }
    found.sort();
    Ok(found)
}

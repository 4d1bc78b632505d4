//! Tables of docs/results that are rendered from kept runs.
//!
//! A kept run is a directory of docs/results/kept/: the plan, and tables as tab-separated text. A
//! page has blocks that name a run, a table, rows and columns ([`block`]). `cargo xtask results`
//! writes their tables, and `cargo xtask tidy` reports a page that it would change.

mod block;
mod keep;
mod table;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};

use crate::files::{pages, shown};
use block::Block;
pub use keep::keep;
use table::Table;

/// The directory of the kept runs.
const KEPT: &str = "docs/results/kept";
const START: &str = "<!-- run:";
const END: &str = "<!-- end -->";

/// Kept tables; each is read once.
pub struct Kept {
    root: PathBuf,
    tables: BTreeMap<PathBuf, Table>,
}

impl Kept {
    fn new(root: &Path) -> Self {
        Self { root: root.join(KEPT), tables: BTreeMap::new() }
    }

    fn table(&mut self, run: &str, table: &str) -> anyhow::Result<&Table> {
        let path = self.root.join(run).join(format!("{table}.tsv"));
        if !self.tables.contains_key(&path) {
            let text = std::fs::read_to_string(&path).with_context(|| format!("no kept table {}", path.display()))?;
            let table = Table::parse(&text).with_context(|| path.display().to_string())?;
            self.tables.insert(path.clone(), table);
        }
        Ok(&self.tables[&path])
    }
}

/// Writes the tables of all pages; returns the pages that changed, and complaints about the others.
pub fn write(root: &Path) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let (stale, faults) = stale(root)?;
    for (path, text) in &stale {
        std::fs::write(path, text)?;
    }
    Ok((stale.iter().map(|(path, _)| shown(root, path)).collect(), faults))
}

/// Complains about pages with tables that differ from their kept runs, and about kept runs that no
/// page shows.
pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let (stale, mut complaints) = stale(root)?;
    let is_stale = |path: &Path| format!("{} is stale: run `cargo xtask results`", shown(root, path));
    complaints.extend(stale.iter().map(|(path, _)| is_stale(path)));
    let mut shown = Vec::new();
    for path in pages(root)? {
        let page = std::fs::read_to_string(&path)?;
        for line in page.lines().filter_map(|line| line.strip_prefix(START)) {
            shown.extend(line.trim_end_matches("-->").split_whitespace().map(str::to_owned));
        }
    }
    // Without the directory there are no kept runs, and each block has a fault.
    for entry in std::fs::read_dir(root.join(KEPT)).into_iter().flatten() {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !shown.contains(&name) {
            complaints.push(format!("no page shows the kept run {KEPT}/{name}"));
        }
    }
    Ok(complaints)
}

/// A page and its new text.
type Stale = (PathBuf, String);

/// The pages that are stale, and complaints about blocks that cannot be rendered.
fn stale(root: &Path) -> anyhow::Result<(Vec<Stale>, Vec<String>)> {
    let mut kept = Kept::new(root);
    let (mut stale, mut faults) = (Vec::new(), Vec::new());
    for path in pages(root)?.into_iter().filter(|path| path.starts_with(root.join("docs/results"))) {
        let page = std::fs::read_to_string(&path)?;
        match render(&page, &mut kept) {
            Ok(new) if new == page => {}
            Ok(new) => stale.push((path, new)),
            Err(error) => faults.push(format!("{}: {error:#}", shown(root, &path))),
        }
    }
    Ok((stale, faults))
}

/// The page with the tables of its blocks.
fn render(page: &str, kept: &mut Kept) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        text += &format!("{line}\n");
        if !line.starts_with(START) {
            continue;
        }
        let mut definition = vec![line.trim_start_matches("<!-- ")];
        while !definition.last().is_some_and(|line| line.ends_with("-->")) {
            let (_, line) = lines.next().with_context(|| format!("line {}: no end of the comment", number + 1))?;
            text += &format!("{line}\n");
            definition.push(line);
        }
        if let Some(last) = definition.last_mut() {
            *last = last.trim_end_matches("-->");
        }
        let block = Block::parse(&definition).and_then(|block| block.render(kept));
        text += &block.with_context(|| format!("the block of line {}", number + 1))?;
        let mut old = lines.by_ref().map(|(_, line)| line).skip_while(|line| *line != END && !line.starts_with(START));
        ensure!(old.next() == Some(END), "the block of line {} has no `{END}`", number + 1);
        text += &format!("{END}\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Kept {
        let cells = "arm\trole\tpulls\tvalid\tx\n\
            xfs\tfull\t0\ttrue\t2\n\
            xfs\tfull\t500\ttrue\t12345\n\
            xfs\tunaged\t500\ttrue\t2000\n\
            ext4\tfull\t500\ttrue\t3\n\
            ext4\tunaged\t500\tfalse\t0.5\n";
        let circumstances = "arm\tkey\tvalue\n\tcommand\tsenesce run p.toml\n\trun.day\t2026-11-28\n\
            \tsenesce.version\t0.1.0 (commit 1)\n\tkernel_release\t6.18\nxfs\tmkfs_version\tmkfs.xfs 6.1\n";
        let mut kept = Kept::new(Path::new("/"));
        for (name, text) in [("cells", cells), ("circumstances", circumstances)] {
            kept.tables
                .insert(Path::new("/").join(KEPT).join("r").join(format!("{name}.tsv")), Table::parse(text).unwrap());
        }
        kept
    }

    #[test]
    fn blocks_are_rendered_from_kept_tables() {
        let head = "before\n<!-- run: r\nrows: arm=ext4|xfs role=full pulls=last\nlabel: ext4 = Fourth\n| | arm |\n\
            | first -> last | x@pulls=first -> x | s\n| times | x / x@role=unaged\n-->\n";
        let page = format!("{head}old\n<!-- end -->\nafter\n<!-- run: r\ntable: circumstances\n-->\n<!-- end -->\n");
        let expected = format!(
            "{head}| | first -> last | times |\n|---|---|---|\n| Fourth | – -> 3.00 s | |\n| XFS | 2.00 s -> 12,300 s | 6.17 |\n\
             <!-- end -->\nafter\n<!-- run: r\ntable: circumstances\n-->\n\
             Kept run [r](kept/r/cells.tsv): `senesce run p.toml`, 2026-11-28, senesce 0.1.0 (commit 1), Linux 6.18, \
             mkfs.xfs 6.1. 4 of 5 cells valid.\n<!-- end -->\n"
        );
        let rendered = render(&page, &mut kept()).unwrap();
        assert_eq!(rendered, expected);
        assert_eq!(render(&rendered, &mut kept()).unwrap(), expected);
    }

    #[test]
    fn wrong_blocks_are_refused() {
        for (block, why) in [
            ("<!-- run: r\n| a | y |\n-->\n<!-- end -->\n", "no column \"y\""),
            ("<!-- run: q\n| a | x |\n-->\n<!-- end -->\n", "no kept table"),
            ("<!-- run: r\nrows: arm=zfs\n| a | x |\n-->\n<!-- end -->\n", "arm=zfs"),
            ("<!-- run: r\nrows: arm=xfs pulls=500 role=full valid=false\n| a | x |\n-->\n<!-- end -->\n", "no row"),
            ("<!-- run: r\n| a | x | km\n-->\n<!-- end -->\n", "no unit `km`"),
            ("<!-- run: r\n| a | x@size=1 |\n-->\n<!-- end -->\n", "`size` is no key"),
            ("<!-- run: r\nrow: x\n-->\n<!-- end -->\n", "no key `row`"),
            ("<!-- run: r\n| a | x |\n-->\n| a |\n", "has no `<!-- end -->`"),
            ("<!-- run: r\n| a | x |\n", "no end of the comment"),
        ] {
            let error = format!("{:#}", render(block, &mut kept()).unwrap_err());
            assert!(error.contains(why), "{block}: {error}");
        }
    }

    #[test]
    fn pages_have_the_tables_of_their_kept_runs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!(check(root).unwrap(), [""; 0]);
    }
}

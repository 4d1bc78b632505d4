//! Checks the links of the book that `make docs` builds, in its Markdown and in its HTML.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};

use crate::{
    files::{pages, shown},
    links::normal,
    prose::markdown::links,
};

/// Complains about each link of a page to a file that the book does not contain, and to Markdown
/// that is no page of the book. mdBook makes no HTML of such a file.
pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let makefile = fs::read_to_string(root.join("Makefile"))?;
    let sources = sources(&makefile).context("the target docs of Makefile copies nothing to target/book-pages")?;
    let summary = fs::read_to_string(root.join("docs/SUMMARY.md"))?;
    let is_page = pages_of(root, &makefile, &summary);
    let mut complaints = Vec::new();
    for path in pages(root)?.into_iter().filter(|path| is_page.contains(path)) {
        let page = fs::read_to_string(&path)?;
        for link in links(&page) {
            let file = link.target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains(':') {
                continue;
            }
            let to = normal(&path.parent().unwrap_or(root).join(file));
            let fault = match (is_source(root, &sources, &to), to.extension().is_some_and(|kind| kind == "md")) {
                (false, _) => "the book does not contain it (Makefile, docs)",
                (true, true) if !is_page.contains(&to) => "it is no page of the book (docs/SUMMARY.md)",
                _ => continue,
            };
            complaints.push(format!("{}:{}: {}: {fault}", shown(root, &path), link.line, link.target));
        }
    }
    Ok(complaints)
}

/// The names that the target `docs` copies into the book: `docs`, `*.md`, and files that it copies
/// one by one.
fn sources(makefile: &str) -> Option<Vec<String>> {
    let (_, target) = makefile.split_once("\ndocs: ")?;
    let mut found = Vec::new();
    for line in target.lines().skip(1).take_while(|line| line.starts_with('\t')) {
        if let Some(words) = line.trim().strip_prefix("cp ") {
            let mut words: Vec<&str> = words.split_whitespace().filter(|word| !word.starts_with('-')).collect();
            words.pop();
            found.extend(words.into_iter().map(str::to_owned));
        }
    }
    (!found.is_empty()).then_some(found)
}

fn is_source(root: &Path, sources: &[String], path: &Path) -> bool {
    sources.iter().any(|name| match name.strip_prefix("*.") {
        Some(kind) => path.parent() == Some(root) && path.extension().is_some_and(|own| own == kind),
        None => path.starts_with(root.join(name)),
    })
}

/// The pages of the book: those of docs/SUMMARY.md, and those that the target `docs` adds to it.
fn pages_of(root: &Path, makefile: &str, summary: &str) -> BTreeSet<PathBuf> {
    let of = |dir: &Path, text: &str| -> Vec<PathBuf> {
        links(text).into_iter().map(|link| normal(&dir.join(link.target))).collect()
    };
    let (_, target) = makefile.split_once("\ndocs: ").unwrap_or_default();
    let lines: Vec<&str> = target.lines().take_while(|line| !line.is_empty()).collect();
    // Each `printf` has its links in one text, with `\n` between them.
    let added = lines.join("\n\n").replace("\\n", "\n\n").replace('\t', "");
    of(&root.join("docs"), summary).into_iter().chain(of(root, &added)).collect()
}

/// Complains about each link and picture of the pages in `dir` that leads to no file, or to a name
/// that its page does not have. Links to other sites are not followed.
pub fn check_html(dir: &Path) -> anyhow::Result<Vec<String>> {
    let dir = &fs::canonicalize(dir).with_context(|| format!("cannot find {}", dir.display()))?;
    let mut files = Vec::new();
    let mut open = vec![dir.clone()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let is_html = |path: &&PathBuf| path.extension().is_some_and(|kind| kind == "html");
    let mut parsed: BTreeMap<&Path, Html> = BTreeMap::new();
    for path in files.iter().filter(is_html) {
        parsed.insert(path, Html::parse(&fs::read_to_string(path)?));
    }
    anyhow::ensure!(!parsed.is_empty(), "{} has no pages of HTML", dir.display());
    let mut complaints = Vec::new();
    for (path, html) in &parsed {
        // The page for a missing address links to all files from the root of a site.
        if path.ends_with("404.html") {
            continue;
        }
        for target in &html.targets {
            if let Some(fault) = fault(path, target, &parsed) {
                complaints.push(format!("{}: {target}: {fault}", shown(dir, path)));
            }
        }
    }
    complaints.dedup();
    println!("book-links: {} pages of HTML", parsed.len());
    Ok(complaints)
}

fn fault(page: &Path, target: &str, parsed: &BTreeMap<&Path, Html>) -> Option<&'static str> {
    let (file, name) = target.split_once('#').unwrap_or((target, ""));
    if file.contains(':') || file.starts_with("//") {
        return None;
    }
    let mut to = match file {
        "" => page.to_owned(),
        file => normal(&page.parent()?.join(decode(file))),
    };
    if !to.exists() {
        return Some("there is no such file");
    }
    let mut visited = BTreeSet::new();
    while let Some(next) = parsed.get(&*to).and_then(|html| html.redirect.as_ref()) {
        let onward = next.split_once('#').map_or(next.as_str(), |(file, _)| file);
        if onward.contains(':') || onward.starts_with("//") {
            return None;
        }
        let onward = normal(&to.parent()?.join(decode(onward)));
        if !visited.insert(std::mem::replace(&mut to, onward)) {
            return Some("its page redirects in a circle");
        }
    }
    let is_known = name.is_empty() || parsed.get(&*to).is_none_or(|html| html.names.contains(&decode(name)));
    (!is_known).then_some("its page has no such name")
}

/// The parts of a page that links need.
#[derive(Default)]
struct Html {
    /// Targets of links and pictures.
    targets: Vec<String>,
    /// Names that a link can lead to.
    names: BTreeSet<String>,
    /// The page to which this page redirects.
    redirect: Option<String>,
}

impl Html {
    fn parse(text: &str) -> Self {
        let mut html = Self::default();
        let mut emitter = DefaultEmitter::default();
        // Otherwise scripts would be read as tags.
        emitter.naively_switch_states(true);
        for Ok(token) in Tokenizer::new_with_emitter(text, emitter) {
            if let Token::StartTag(tag) = token {
                html.add(&tag);
            }
        }
        html
    }

    fn add(&mut self, tag: &StartTag<()>) {
        let value = |name: &str| {
            let value = tag.attributes.get(name.as_bytes())?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        self.names.extend(value("id"));
        match &**tag.name {
            b"a" => {
                self.names.extend(value("name"));
                self.targets.extend(value("href"));
            }
            b"link" => self.targets.extend(value("href")),
            b"img" | b"script" | b"iframe" => self.targets.extend(value("src")),
            b"meta" if value("http-equiv").is_some_and(|kind| kind.eq_ignore_ascii_case("refresh")) => {
                let content = value("content").unwrap_or_default();
                self.redirect = content.split_once("URL=").map(|(_, to)| to.trim().to_owned());
                self.targets.extend(self.redirect.clone());
            }
            _ => {}
        }
    }
}

/// A part of an address with its escapes (`%20`) resolved.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let escaped = more.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKEFILE: &str = "all: docs\n\ndocs: tool\n\trm -rf x\n\tcp -r docs plans *.md LICENSE target/book-pages\n\
        \tcp filesystems/ARCHITECTURE.md target/book-pages/filesystems\n\
        \t{ printf '[senesce](README.md)\\n'; \\\n\t\tprintf '- [A](ARCHITECTURE.md)\\n'; }\n\nnext: x\n\tcp a b\n";

    #[test]
    fn sources_are_those_of_the_makefile() {
        let root = Path::new("/root");
        let sources = sources(MAKEFILE).unwrap();
        assert_eq!(sources, ["docs", "plans", "*.md", "LICENSE", "filesystems/ARCHITECTURE.md"]);
        for (path, is) in [
            ("docs/a/b.md", true),
            ("plans", true),
            ("CHANGELOG.md", true),
            ("LICENSE", true),
            ("filesystems/ARCHITECTURE.md", true),
            ("filesystems/cli/a.md", false),
            ("crates/cli/src/main.rs", false),
            ("Makefile", false),
        ] {
            assert_eq!(is_source(root, &sources, &root.join(path)), is, "{path}");
        }
        let pages = pages_of(root, MAKEFILE, "# Summary\n\n- [B](how-to/b.md)\n");
        let names = ["ARCHITECTURE.md", "README.md", "docs/how-to/b.md"].map(|name| root.join(name));
        assert_eq!(pages.into_iter().collect::<Vec<_>>(), names);
    }

    #[test]
    fn the_makefile_names_the_book() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
        let summary = fs::read_to_string(root.join("docs/SUMMARY.md")).unwrap();
        assert!(sources(&makefile).unwrap().contains(&"CITATION.cff".to_owned()));
        let pages = pages_of(root, &makefile, &summary);
        for page in ["README.md", "ARCHITECTURE.md", "filesystems/ARCHITECTURE.md", "CHANGELOG.md", "docs/README.md"] {
            assert!(pages.contains(&root.join(page)), "{page}");
        }
    }

    #[test]
    fn broken_links_of_html_are_found() {
        let dir = std::env::temp_dir().join(format!("senesce-xtask-book-{}", std::process::id()));
        fs::create_dir_all(dir.join("docs")).unwrap();
        let page = |name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
        page("old.html", "<meta http-equiv=\"refresh\" content=\"0; URL=docs/a%20b.html\">");
        page("docs/a b.html", "<h2 id=\"über\">x</h2><a href=\"../index.html#top\">x</a>");
        page(
            "index.html",
            "<body id=top><a href='docs/a%20b.html#%C3%BCber'></a><a href=old.html#über></a><a href=\"#top\"></a>\
             <a href=https://example.org></a><!-- <a href=none.html></a> --><img src=none.svg>\
             <a href=docs/a%20b.html#none></a><a href='old.html#none'></a><a href=gone.md></a>",
        );
        page("round.html", "<meta http-equiv=\"refresh\" content=\"0; URL=trip.html\">");
        page("trip.html", "<meta http-equiv=\"refresh\" content=\"0; URL=round.html\">");
        page("moved.html", "<meta http-equiv=\"refresh\" content=\"0; URL=lost.html\">");
        page("away.html", "<meta http-equiv=\"refresh\" content=\"0; URL=https://example.org/a.html\">");
        let found = check_html(&dir);
        fs::remove_dir_all(&dir).unwrap();
        let expected = [
            "index.html: none.svg: there is no such file",
            "index.html: docs/a%20b.html#none: its page has no such name",
            "index.html: old.html#none: its page has no such name",
            "index.html: gone.md: there is no such file",
            "moved.html: lost.html: there is no such file",
            "round.html: trip.html: its page redirects in a circle",
            "trip.html: round.html: its page redirects in a circle",
        ];
        assert_eq!(found.unwrap(), expected);
    }
}

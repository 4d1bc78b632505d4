//! A small bundle, and bundles that an attacker makes of it.

use std::{collections::BTreeMap, fs::File, io::Write, path::Path, sync::OnceLock};

use senesce_bundle::{
    Bundle, Content, Contents, Error, Licence, Limits, Manifest, PlanEntry, Prepared, Research, TableEntry, read,
};
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

/// The contents of a small bundle.
pub fn contents() -> Contents {
    let file = |text: &str| Content::Bytes(text.as_bytes().to_vec());
    Contents {
        senesce_version: "0.1.0 (commit 1a2b)".to_owned(),
        plan: PlanEntry { name: "small".to_owned(), hash: "00".to_owned() },
        inputs: Vec::new(),
        tables: vec![TableEntry { name: "cells".to_owned(), rows: 1 }],
        research: Research {
            plan_name: "small".to_owned(),
            description: String::new(),
            begun_unix_seconds: Some(1_700_000_000),
            senesce_version: "0.1.0 (commit 1a2b)".to_owned(),
            inputs: Vec::new(),
            outputs: vec!["results/cells.parquet".to_owned()],
            licence: Licence::NotStated,
        },
        files: BTreeMap::from([
            ("plan.toml".to_owned(), file("name = \"small\"\n")),
            ("results/cells.parquet".to_owned(), file("PAR1")),
            ("figures/a.svg".to_owned(), file(&"<svg/>".repeat(100))),
            ("figures/empty.csv".to_owned(), file("")),
        ]),
    }
}

/// A bundle of which readers keep every file.
pub fn prepare(contents: Contents, limits: Limits) -> Result<Prepared, Error> {
    Prepared::new(contents, limits, |_| true, &|| Ok(()))
}

/// The bytes of a bundle.
pub fn bundle(contents: Contents) -> Vec<u8> {
    prepare(contents, Limits::default()).unwrap().write(Vec::new(), Path::new("x"), &|| Ok(())).unwrap()
}

/// The bytes of a bundle of [`contents`], made once.
pub fn good() -> &'static [u8] {
    static GOOD: OnceLock<Vec<u8>> = OnceLock::new();
    GOOD.get_or_init(|| bundle(contents()))
}

/// Reads a bundle from bytes, and keeps every file.
pub fn read_bytes(bytes: &[u8], limits: Limits) -> Result<Bundle, Error> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    read_file(&file, limits)
}

/// Reads a bundle from a file, and keeps every file.
pub fn read_file(file: &File, limits: Limits) -> Result<Bundle, Error> {
    use std::io::Seek;
    let mut file = file;
    file.rewind().unwrap();
    read(file, Path::new("run.senesce-bundle"), limits, |_| true)
}

/// An entry of an archive.
#[derive(Clone)]
pub struct Entry {
    /// Its header.
    pub header: Header,
    /// Its contents.
    pub content: Vec<u8>,
    /// What follows the contents up to the next block.
    pub filler: u8,
}

impl Entry {
    /// An entry as senesce writes it.
    pub fn new(path: &str, content: &[u8]) -> Self {
        let mut header = Header::new_ustar();
        // Not `set_path`, which refuses some of these names.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(315_532_800);
        header.set_entry_type(EntryType::Regular);
        header.set_cksum();
        Self { header, content: content.to_vec(), filler: 0 }
    }

    /// The entry with a changed header.
    pub fn with(mut self, change: impl FnOnce(&mut Header)) -> Self {
        change(&mut self.header);
        self.header.set_cksum();
        self
    }

    /// The entry as a link or a device.
    pub fn of_type(self, kind: EntryType) -> Self {
        self.with(|header| {
            header.set_entry_type(kind);
            header.set_link_name_literal("/etc/passwd").unwrap();
        })
    }

    /// Its name in the bundle.
    pub fn name(&self) -> String {
        let path = String::from_utf8_lossy(&self.header.path_bytes()).into_owned();
        path.strip_prefix("bundle/").unwrap_or(&path).to_owned()
    }
}

/// The entries of a bundle.
pub fn entries(bundle: &[u8]) -> Vec<Entry> {
    let tar = zstd::decode_all(&bundle[..bundle.len() - 40]).unwrap();
    let mut archive = tar::Archive::new(&tar[..]);
    let entry = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        Entry { header: entry.header().clone(), content, filler: 0 }
    };
    archive.entries().unwrap().map(entry).collect()
}

/// The bytes of an archive with these entries and this end.
pub fn archive(entries: &[Entry], end: &[u8]) -> Vec<u8> {
    let mut tar = Vec::new();
    for Entry { header, content, filler } in entries {
        tar.extend(header.as_bytes());
        tar.extend(content);
        tar.resize(tar.len().next_multiple_of(512), *filler);
    }
    tar.extend(end);
    tar
}

/// A file with a right seal, whatever it contains.
pub fn seal(mut content: Vec<u8>) -> Vec<u8> {
    let hash = Sha256::digest(&content);
    content.extend([0x5e, 0x2a, 0x4d, 0x18, 32, 0, 0, 0]);
    content.extend(&hash[..]);
    content
}

/// A sealed bundle with these entries.
pub fn forge(entries: &[Entry]) -> Vec<u8> {
    seal(zstd::encode_all(&archive(entries, &[0; 1024])[..], 1).unwrap())
}

/// The entries with a manifest and research metadata that fit them.
pub fn refit(entries: &mut Vec<Entry>, change: impl FnOnce(&mut Manifest)) {
    let files = entries.iter().filter(|entry| !["manifest.json", "ro-crate-metadata.json"].contains(&&*entry.name()));
    let files = files.map(|entry| (entry.name(), Content::Bytes(entry.content.clone()))).collect();
    let fitting = self::entries(&bundle(Contents { files, ..contents() }));
    let find = |name: &str| fitting.iter().find(|entry| entry.name() == name).unwrap();
    let mut manifest: Manifest = serde_json::from_slice(&find("manifest.json").content).unwrap();
    change(&mut manifest);
    let manifest = serde_json::to_vec(&manifest).unwrap();
    let research = find("ro-crate-metadata.json").content.clone();
    for (name, content) in [("manifest.json", manifest), ("ro-crate-metadata.json", research)] {
        entries.retain(|entry| entry.name() != name);
        entries.push(Entry::new(&format!("bundle/{name}"), &content));
    }
    entries.sort_by_key(Entry::name);
}

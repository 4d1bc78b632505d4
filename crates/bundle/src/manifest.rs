//! The manifest: the list of a bundle's files, and what they must contain.

use std::{collections::BTreeMap, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, MANIFEST_FILE, Result};

/// The format that this version writes and reads.
pub const BUNDLE_FORMAT: &str = "senesce-bundle/1";

/// The file `manifest.json` of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// The name of the format and its version.
    pub format: String,
    /// The version and commit of the program that made the bundle.
    pub senesce_version: String,
    /// The plan of the run.
    pub plan: PlanEntry,
    /// Input files of the plan that are in the bundle.
    pub inputs: Vec<Input>,
    /// The result tables, with their numbers of rows.
    pub tables: Vec<TableEntry>,
    /// Every other file of the bundle, sorted by path.
    pub files: Vec<FileEntry>,
}

/// The plan of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanEntry {
    /// The name of the plan.
    pub name: String,
    /// The BLAKE3 hash of its file in hex digits. The results of the run name it, too.
    pub hash: String,
}

/// An input file of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Input {
    /// The text in the plan that names the file.
    pub named: String,
    /// The path of the file in the bundle.
    pub path: String,
}

/// A result table of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableEntry {
    /// The name of the table.
    pub name: String,
    /// The number of its rows.
    pub rows: u64,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// The path in the bundle.
    pub path: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The SHA-256 of the contents in hex digits.
    pub sha256: String,
}

/// Size and checksum of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

impl Manifest {
    /// Parses the manifest of the bundle `path`.
    pub(crate) fn parse(path: &Path, text: &[u8]) -> Result<Self> {
        let damaged = |error| Error::damaged(path, format!("{MANIFEST_FILE}: {error}"));
        // Check the format first, because a later format may have other keys.
        #[derive(Deserialize)]
        struct Format {
            format: String,
        }
        let Format { format } = serde_json::from_slice(text).map_err(damaged)?;
        if format != BUNDLE_FORMAT {
            return Err(Error::Version { path: path.to_owned(), found: format, known: BUNDLE_FORMAT });
        }
        serde_json::from_slice(text).map_err(damaged)
    }

    pub(crate) fn render(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("a manifest is a plain structure with text keys");
        text.push(b'\n');
        text
    }

    /// Compares the list with the files that the archive has.
    pub(crate) fn check(&self, path: &Path, mut found: BTreeMap<String, Sum>) -> Result<()> {
        let damaged = |detail: String| Err(Error::damaged(path, detail));
        found.remove(MANIFEST_FILE);
        let mut last = None;
        for FileEntry { path: name, bytes, sha256 } in &self.files {
            if last >= Some(name) {
                return damaged(format!("the files in {MANIFEST_FILE} are not sorted, or {name} appears twice"));
            }
            last = Some(name);
            match found.remove(name) {
                None => return damaged(format!("{name} is missing")),
                Some(sum) if sum.bytes != *bytes => {
                    return damaged(format!("{name} has {} bytes, and {MANIFEST_FILE} states {bytes}", sum.bytes));
                }
                Some(sum) if sum.sha256 != *sha256 => {
                    return damaged(format!("{name} has another SHA-256 than {MANIFEST_FILE} states"));
                }
                Some(_) => {}
            }
        }
        match found.keys().next() {
            Some(name) => damaged(format!("{name} is not in the list of {MANIFEST_FILE}")),
            None => Ok(()),
        }
    }
}

//! Reads files of `inspect --json`. The files are untrusted input.

use std::{fs::File, io::Read, path::Path};

use anyhow::{Context, Result};
use senesce_core::{Printable, input::read_text};
use senesce_inspect::INSPECT_SCHEMA;
use serde::de::DeserializeOwned;

use crate::exit::usage;

/// The largest file that is read, bytes. An inspection without its map has some tens of KiB.
const LARGEST: usize = 64 << 20;
/// The number of bytes at the start of a file. If one of them is 0, the file is not text.
const HEAD: u64 = 4096;

/// The parts of an inspection that a verb reads.
pub(super) trait Inspected: DeserializeOwned {
    /// The name of the schema and its version.
    fn schema(&self) -> &str;
}

/// The inspections of a file, one or more, in their order. Messages name `verb`.
///
/// Errors: the file cannot be read, or is no inspection of this version.
pub(super) fn read_inspections<T: Inspected>(path: &Path, verb: &str) -> Result<Vec<T>> {
    let shown = Printable::new(path);
    let failed = || format!("cannot read {shown}");
    let mut file = File::open(path).with_context(failed)?;
    let mut head = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut head).with_context(failed)?;
    if head.contains(&0) {
        let message = format!("{shown} is no inspection: {verb} reads the output of `senesce inspect --json`");
        let hint = format!("write one with `senesce inspect {shown} --json --no-map > FILE.json`");
        return Err(usage(message, Some(&hint)));
    }
    let text = read_text(head.chain(file), LARGEST).with_context(failed)?;
    let refused = |problem: &str| {
        let hint = "write one with `senesce inspect PLACE --json --no-map > FILE`";
        usage(format!("{shown} is no inspection: {}", Printable::new(problem)), Some(hint))
    };
    let mut found: Vec<T> = Vec::new();
    for document in serde_json::Deserializer::from_str(&text).into_iter::<T>() {
        let document = document.map_err(|error| match error.is_data() {
            true => refused(&error.to_string()),
            false => refused(&format!("it is not JSON, or is cut ({error})")),
        })?;
        if document.schema() != INSPECT_SCHEMA {
            return Err(refused(&format!(
                "its schema is {:?}; this version reads {INSPECT_SCHEMA:?}",
                document.schema()
            )));
        }
        found.push(document);
    }
    if found.is_empty() { Err(refused("it is empty")) } else { Ok(found) }
}

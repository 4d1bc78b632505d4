//! Reads files of `inspect --json`. The files are untrusted input.

use std::{fs::File, io::Read, path::Path};

use anyhow::{Context, Result};
use senesce_core::{Printable, input::read_text};
use senesce_inspect::INSPECT_SCHEMA;
use serde::de::DeserializeOwned;

use super::shell::shell_word;
use crate::exit::usage;

/// The largest file that is read, bytes. An inspection without its map has some tens of KiB.
const LARGEST: usize = 64 << 20;
/// The number of bytes at the start of a file. If one of them is 0, the file is not text.
const HEAD: u64 = 4096;

/// The longest text of a file that is printed, characters.
const LONGEST_TEXT: usize = 100;

/// The start of a text of a file, with a mark if it is not the whole text.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

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
        let word = shell_word(path);
        let hint = format!("write one with `senesce inspect {} --json --no-map > FILE.json`", Printable::new(&word));
        return Err(usage(message, Some(&hint)));
    }
    let text = read_text(head.chain(file), LARGEST).with_context(failed)?;
    let refused = |problem: &str| {
        let hint = "write one with `senesce inspect PLACE --json --no-map > FILE`";
        usage(format!("{shown} is no inspection: {}", Printable::new(&shorten_problem(problem))), Some(hint))
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
                shorten(document.schema())
            )));
        }
        found.push(document);
    }
    if found.is_empty() { Err(refused("it is empty")) } else { Ok(found) }
}

/// The message of a parser can contain a long text of the file. Its end has line and column.
fn shorten_problem(problem: &str) -> String {
    let ends = (problem.char_indices().nth(LONGEST_TEXT), problem.char_indices().rev().nth(LONGEST_TEXT));
    match ends {
        (Some((head, _)), Some((tail, _))) if head < tail => format!("{}…{}", &problem[..head], &problem[tail..]),
        _ => problem.to_owned(),
    }
}

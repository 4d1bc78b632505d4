//! Descriptions that a user names: plans, suites, profiles, personalities, devices.

use std::{fs::File, io, path::Path};

use senesce_core::input::{MAX_TEXT_BYTES, read_text};

/// Reads a description. It may be a pipe.
///
/// Errors: it cannot be read, has more than 4 MiB, or is not UTF-8.
pub fn read_description(path: impl AsRef<Path>) -> io::Result<String> {
    read_text(File::open(path)?, MAX_TEXT_BYTES)
}

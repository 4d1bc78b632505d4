//! Bundles of runs: one file with a plan, its results, its figures and their checksums.
//!
//! A bundle is a zstd frame of a tar archive, and a checksum of that frame. [`Prepared`] writes
//! one. The same contents give the same bytes. [`read()`] verifies one. A bundle is untrusted
//! input: [`read()`] bounds all sizes, accepts only the tar headers that [`Prepared`] writes, and
//! writes nothing.

mod archive;
mod error;
mod manifest;
mod names;
mod read;
mod research;
mod seal;
mod write;

pub use error::{Error, Result};
pub use manifest::{BUNDLE_FORMAT, FileEntry, Input, Manifest, PlanEntry, TableEntry};
pub use names::check_name;
pub use read::{Bundle, Limits, read};
pub use research::{Licence, RESEARCH_FILE, Research};
pub use write::{Content, Contents, Prepared};

/// The file with the list of all other files of a bundle.
pub const MANIFEST_FILE: &str = "manifest.json";

//! One commit of a synthetic history.

use std::sync::Arc;

use super::Text;

/// The content of one version of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticFile {
    /// A number that no other version has. Versions are numbered from 1 in the order of their first
    /// appearance.
    pub blob: u64,
    /// Whether its mode is 100755 rather than 100644.
    pub executable: bool,
    /// The bytes.
    pub text: Text,
}

/// One change against the first parent. Paths are printable ASCII without spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the variants say what their fields are
pub enum SyntheticChange {
    /// A new file.
    Add { path: String, file: Arc<SyntheticFile> },
    /// A new version of an existing file.
    Modify { path: String, file: Arc<SyntheticFile> },
    /// A file is removed.
    Delete { path: String },
    /// A file moves to another path; its bytes stay.
    Rename { from: String, to: String },
}

/// One commit. No path occurs twice in its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticCommit {
    /// Position in the stream, from 0; parents come before children.
    pub number: u64,
    /// Numbers of the parents: none for the first commit, two for a merge.
    pub parents: Vec<u64>,
    /// Whether it is on the main line (the first parents of the tip).
    pub main_line: bool,
    /// The message, ending in a newline.
    pub message: String,
    /// The differences from the first parent.
    pub changes: Vec<SyntheticChange>,
}

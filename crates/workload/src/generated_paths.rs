//! Paths of generated trees.

use senesce_core::RelPath;

/// A path from text that is a valid path.
pub(crate) fn path(text: &str) -> RelPath {
    RelPath::try_from(text).expect("names of generated trees are made of plain components")
}

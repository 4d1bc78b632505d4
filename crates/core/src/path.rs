//! Paths inside a volume: relative byte strings that cannot leave it.

use std::{ffi::OsStr, fmt, os::unix::ffi::OsStrExt, path::Path, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Printable;

/// A path relative to the root of a volume.
///
/// In: any bytes but NUL; components separated by one `/`; no empty, `.` or `..` component; never
/// absolute. The empty path is the root itself. Names need not be UTF-8. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RelPath(Arc<[u8]>);

/// The reason why bytes are not a path inside a volume.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("path {path:?} {problem}")]
pub struct PathError {
    /// The bytes. Invalid UTF-8 becomes replacement characters.
    pub path: String,
    /// The fault.
    pub problem: &'static str,
}

impl RelPath {
    /// Checks bytes as a path, and refuses a path that could leave the volume.
    pub fn new(bytes: &[u8]) -> Result<Self, PathError> {
        let bad = |problem| PathError { path: String::from_utf8_lossy(bytes).into_owned(), problem };
        if bytes.is_empty() {
            return Ok(Self::root());
        }
        for component in bytes.split(|&b| b == b'/') {
            match component {
                b"" => return Err(bad("has an empty component (is it absolute?)")),
                b"." | b".." => return Err(bad("has a component \".\" or \"..\"")),
                _ if component.contains(&0) => return Err(bad("contains a NUL byte")),
                _ => {}
            }
        }
        Ok(Self(bytes.into()))
    }

    /// The root of the volume: the empty path.
    pub fn root() -> Self {
        Self::default()
    }

    /// The bytes of the path, without a leading or trailing slash.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as a [`Path`].
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// `self/tail`; either may be the root.
    pub fn join(&self, tail: &RelPath) -> RelPath {
        match (self.is_root(), tail.is_root()) {
            (true, _) => tail.clone(),
            (_, true) => self.clone(),
            _ => Self([&self.0, b"/".as_slice(), &tail.0].concat().into()),
        }
    }

    /// The directory that holds this path; `None` for the root.
    pub fn parent(&self) -> Option<RelPath> {
        if self.is_root() {
            return None;
        }
        Some(match self.0.iter().rposition(|&b| b == b'/') {
            Some(at) => Self(self.0[..at].into()),
            None => Self::root(),
        })
    }

    /// The last component; empty for the root.
    pub fn name(&self) -> &[u8] {
        match self.0.iter().rposition(|&b| b == b'/') {
            Some(at) => &self.0[at + 1..],
            None => &self.0,
        }
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_path())
    }
}

impl fmt::Display for RelPath {
    /// The path with hazards escaped, as [`Printable`] shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printable::new(self).fmt(f)
    }
}

impl TryFrom<&str> for RelPath {
    type Error = PathError;

    fn try_from(text: &str) -> Result<Self, PathError> {
        Self::new(text.as_bytes())
    }
}

impl Serialize for RelPath {
    /// A string, or a list of bytes if the path is not UTF-8.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => self.0.serialize(serializer), // a string cannot represent these bytes
        }
    }
}

impl<'de> Deserialize<'de> for RelPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            Bytes(Vec<u8>),
        }
        let path = match Form::deserialize(deserializer)? {
            Form::Text(text) => Self::new(text.as_bytes()),
            Form::Bytes(bytes) => Self::new(&bytes),
        };
        path.map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_could_leave_the_volume_are_refused() {
        for bad in [&b"/etc"[..], b"a//b", b"a/", b"..", b"a/../b", b"./a", b"a\0b"] {
            assert!(RelPath::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn join_parent_and_name_agree() {
        let dir = RelPath::try_from("copy-1/src").unwrap();
        let path = dir.join(&RelPath::new(b"\xff.c").unwrap());
        assert_eq!(path.parent().unwrap(), dir);
        assert_eq!(path.name(), b"\xff.c");
        assert_eq!(path.to_string(), "copy-1/src/\\xff.c");
        assert_eq!(RelPath::root().join(&dir), dir);
        assert_eq!(RelPath::try_from("a").unwrap().parent().unwrap(), RelPath::root());
    }
}

//! The few disk operations of the store, as a trait, so that tests can simulate a power cut.

use std::io::{self, Write as _};
use std::path::Path;

/// The file operations of a result store.
///
/// Durable are: the bytes of a file after `write_durably` returned; names (files made, renamed,
/// removed) after `sync_dir` on their directory returned. Appended bytes are never guaranteed to be
/// durable.
pub trait Disk: Send {
    /// Makes a directory and its parents; the names of new directories are durable on return.
    /// Succeeds if it exists.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Creates or replaces a file, and makes its bytes (not its name) durable.
    fn write_durably(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Renames a file, and replaces an existing file of the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Appends to a file, and creates it if needed; not durable.
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Names of the files (not directories) in a directory, sorted; none if the directory is
    /// missing.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Reads a whole file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// The real file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)?;
        // Every directory of the path may be new, so every parent that can be opened is synced.
        for parent in path.ancestors().skip(1) {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            if self.sync_dir(parent).is_err() {
                break;
            }
        }
        Ok(())
    }
    fn write_durably(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = std::fs::File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::File::open(path)?.sync_all()
    }
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // One write call, so that a killed process tears at most the end of a line.
        std::fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(bytes)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }
}

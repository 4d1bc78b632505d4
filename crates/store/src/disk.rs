//! The door to the disk: the few operations that results are kept with, so that a power cut can be simulated.

use std::io::{self, Write as _};
use std::path::Path;

/// The file operations of a result store.
///
/// What is durable: the bytes of a file once `write_durably` returned; names (files made, renamed, removed) once
/// `sync_dir` on their directory returned; appended bytes never for certain.
pub trait Disk: Send {
    /// Makes a directory and its parents; names of directories made are durable on return. Fine if it exists.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Creates or replaces a file, and makes its bytes (not its name) durable.
    fn write_durably(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Renames a file, replacing what has the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Appends to a file, creating it if need be; not durable.
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Names of the files (not directories) in a directory, sorted; none if the directory is missing.
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
        // Every directory on the way may have been made just now, so every parent that can be opened is synced.
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
        // One write call, so that a killed process tears a line at most at its end.
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

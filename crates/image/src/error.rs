//! What can go wrong with a container, and where in it.

use std::path::{Path, PathBuf};

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a container could not be written, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It does not begin as a container does.
    #[error("{} is no image container: it begins with {found:02x?}", path.display())]
    NotAContainer {
        /// The file.
        path: PathBuf,
        /// Its first bytes.
        found: Vec<u8>,
    },
    /// A version this program does not know.
    #[error("{} is an image container of version {found}; this senesce reads up to version {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// It ends early, or its end is missing.
    #[error("{} is cut: {what} should be at byte {at_byte}, the file has {file_bytes} bytes", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What is missing.
        what: &'static str,
        /// Where it should be.
        at_byte: u64,
        /// The length of the file.
        file_bytes: u64,
    },
    /// Bytes that are not what was written.
    #[error("{} is damaged: {what} at byte {at_byte}: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which part of the container.
        what: &'static str,
        /// Where in the file.
        at_byte: u64,
        /// What is wrong.
        problem: String,
    },
    /// A chunk that is not what was written.
    #[error(
        "{} is damaged: chunk {chunk} (bytes {volume_byte} and on of the volume) at byte {at_byte}: {problem}",
        path.display()
    )]
    DamagedChunk {
        /// The file.
        path: PathBuf,
        /// The chunk's number.
        chunk: u64,
        /// Where the chunk is in the volume.
        volume_byte: u64,
        /// Where its frame is in the file.
        at_byte: u64,
        /// What is wrong.
        problem: String,
    },
    /// Restoring would replace something.
    #[error("{} exists already", path.display())]
    Exists {
        /// What exists.
        path: PathBuf,
    },
    /// A device of another size than the volume.
    #[error("{} has {found} bytes; the volume has {wanted}", path.display())]
    TooSmall {
        /// The device.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// The volume's.
        wanted: u64,
    },
    /// The caller asked to stop.
    #[error("{} was not finished: stopped", path.display())]
    Stopped {
        /// What was being written or checked.
        path: PathBuf,
    },
    /// The source changed while it was read.
    #[error("{} changed while it was saved: chunk {chunk} could be read only to byte {read} of {wanted}", path.display())]
    SourceShrank {
        /// The source.
        path: PathBuf,
        /// The chunk.
        chunk: u64,
        /// Bytes of it that were there.
        read: usize,
        /// Bytes it should have.
        wanted: usize,
    },
}

impl Error {
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Io { operation, path: path.to_owned(), source }
    }
}

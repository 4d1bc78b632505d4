//! Errors of containers, with their positions.

use std::path::{Path, PathBuf};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a container could not be written, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// The path of the operation.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file does not start like a container.
    #[error("{} is no image container: it starts with {found:02x?}", path.display())]
    NotAContainer {
        /// The file.
        path: PathBuf,
        /// Its first bytes.
        found: Vec<u8>,
    },
    /// The container has a version that this program does not support.
    #[error("{} is an image container of version {found}; this senesce reads up to version {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest supported version.
        known: u32,
    },
    /// The container ends early, or its end is missing.
    #[error("{} is cut: {what} should be at byte {at_byte}, the file has {file_bytes} bytes", path.display())]
    Truncated {
        /// The missing part.
        path: PathBuf,
        /// Its expected position.
        what: &'static str,
        /// Where it should be.
        at_byte: u64,
        /// The length of the file.
        file_bytes: u64,
    },
    /// A part of the container differs from what was written.
    #[error("{} is damaged: {what} at byte {at_byte}: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The part of the container.
        what: &'static str,
        /// Its position in the file.
        at_byte: u64,
        /// The fault.
        problem: String,
    },
    /// A chunk differs from what was written.
    #[error(
        "{} is damaged at byte {at_byte}: chunk {chunk}, which holds the volume from byte {volume_byte} on: {problem}",
        path.display()
    )]
    DamagedChunk {
        /// The file.
        path: PathBuf,
        /// The number of the chunk.
        chunk: u64,
        /// The position of the chunk in the volume.
        volume_byte: u64,
        /// The position of its frame in the file.
        at_byte: u64,
        /// The fault.
        problem: String,
    },
    /// A save or restore would replace an existing file.
    #[error("{} exists already", path.display())]
    Exists {
        /// The existing file.
        path: PathBuf,
    },
    /// The device is smaller than the volume.
    #[error("{} has {found} bytes; the volume has {wanted}", path.display())]
    TooSmall {
        /// The device.
        path: PathBuf,
        /// Its size, bytes.
        found: u64,
        /// The size of the volume, bytes.
        wanted: u64,
    },
    /// The caller stopped the operation.
    #[error("{} was not finished: stopped", path.display())]
    Stopped {
        /// The file that was being written or checked.
        path: PathBuf,
    },
    /// The source shrank while it was read.
    #[error("{} changed while it was saved: chunk {chunk} could be read only to byte {read} of {wanted}", path.display())]
    SourceShrank {
        /// The source.
        path: PathBuf,
        /// The chunk.
        chunk: u64,
        /// Bytes of the chunk that could be read.
        read: usize,
        /// The length of the chunk.
        wanted: usize,
    },
}

impl Error {
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Io { operation, path: path.to_owned(), source }
    }
}

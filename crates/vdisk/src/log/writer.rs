//! Writes a request log.

use std::{
    fs::{File, OpenOptions},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use senesce_core::Nanos;

use super::{
    LogHeader,
    format::{self, MAX_TEXT_BYTES},
};
use crate::{Error, Result, Served};

/// A request log that is being written. Appended records are buffered: a kill -9 loses at most the
/// last 64 KiB.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    file: BufWriter<File>,
}

impl LogWriter {
    /// Starts a new log.
    ///
    /// Errors: the file exists already, or cannot be written.
    pub fn create(path: &Path, header: &LogHeader) -> Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(Error::std("create the request log", path))?;
        let mut log = Self { path: path.to_owned(), file: BufWriter::with_capacity(64 << 10, file) };
        let bytes = format::encode_header(header)
            .map_err(|error| Error::std("describe the request log", path)(error.into()))?;
        log.write(&bytes)?;
        log.flush()?;
        Ok(log)
    }

    /// Appends a request.
    pub fn append(&mut self, served: &Served) -> Result<()> {
        self.write(&format::encode_request(served))
    }

    /// Appends a mark; a name above 64 KiB is truncated.
    pub fn mark(&mut self, at: Nanos, name: &str) -> Result<()> {
        let end = name.floor_char_boundary(MAX_TEXT_BYTES);
        self.write(&format::encode_mark(at, &name[..end]))
    }

    /// Passes all appended bytes to the kernel.
    pub fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(Error::std("write the request log", &self.path))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(Error::std("write the request log", &self.path))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

//! Records the free space that a workload received before each step. A resumed run returns the same
//! values.
//!
//! The free space is the only input of an experiment that no seed determines. It is not in the
//! operation log, which is the same for every run, but in a separate file.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use senesce_core::Bytes;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Space as the file system reported it before one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceTold {
    /// Capacity, bytes.
    pub capacity: Bytes,
    /// Free space, bytes.
    pub free: Bytes,
}

/// The feedback file of an arm, open for appending.
#[derive(Debug)]
pub struct FeedbackFile {
    path: PathBuf,
    file: BufWriter<File>,
    length: u64,
}

impl FeedbackFile {
    /// Opens the file and cuts it to its first `length` bytes. Returns their entries.
    pub fn open(path: &Path, length: u64) -> Result<(Self, Vec<SpaceTold>), Error> {
        let io = |operation| Error::io(operation, path);
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).open(path).map_err(io("open"))?;
        file.set_len(length).map_err(io("cut"))?;
        let mut entries = Vec::new();
        for line in BufReader::new(&file).lines() {
            let line = line.map_err(io("read"))?;
            let entry = serde_json::from_str(&line).map_err(std::io::Error::other).map_err(io("read"))?;
            entries.push(entry);
        }
        file.seek(SeekFrom::Start(length)).map_err(io("seek in"))?;
        Ok((Self { path: path.to_owned(), file: BufWriter::new(file), length }, entries))
    }

    /// Appends the space reported before the next step.
    pub fn append(&mut self, told: SpaceTold) -> Result<(), Error> {
        let mut line =
            serde_json::to_vec(&told).map_err(std::io::Error::other).map_err(Error::io("write", &self.path))?;
        line.push(b'\n');
        self.length += line.len() as u64;
        self.file.write_all(&line).map_err(Error::io("write", &self.path))
    }

    /// Makes everything durable. Returns the length for the journal.
    pub fn sync(&mut self) -> Result<u64, Error> {
        self.file.flush().map_err(Error::io("write", &self.path))?;
        self.file.get_ref().sync_data().map_err(Error::io("write", &self.path))?;
        Ok(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_up_to_a_length_are_returned_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("feedback.ndjson");
        let told = |n| SpaceTold { capacity: Bytes(100), free: Bytes(n) };
        let (mut file, before) = FeedbackFile::open(&path, 0).unwrap();
        assert!(before.is_empty());
        file.append(told(1)).unwrap();
        file.append(told(2)).unwrap();
        let length = file.sync().unwrap();
        file.append(told(3)).unwrap();
        drop(file);
        let (mut file, before) = FeedbackFile::open(&path, length).unwrap();
        assert_eq!(before, [told(1), told(2)]);
        file.append(told(4)).unwrap();
        let length = file.sync().unwrap();
        assert_eq!(FeedbackFile::open(&path, length).unwrap().1, [told(1), told(2), told(4)]);
    }
}

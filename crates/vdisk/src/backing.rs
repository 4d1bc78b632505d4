//! The contents of the disk: a sparse file.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::Path,
};

use rustix::{
    fs::{FallocateFlags, FlockOperation},
    io::Errno,
};

use crate::{BackingSpec, Error, Result};

/// An open backing file.
#[derive(Debug)]
pub(crate) struct Backing {
    file: File,
}

impl Backing {
    /// Opens or creates the file, with the size of the disk.
    ///
    /// Errors: it cannot be created, or it exists with another size.
    pub(crate) fn open(spec: &BackingSpec, name: &str, size_bytes: u64) -> Result<Self> {
        let open = |path: &Path, new: bool| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(new).open(path)
        };
        let file = match spec {
            BackingSpec::Unlinked { dir } => {
                let path = dir.join(format!(".{name}.vdisk"));
                let file = open(&path, true).map_err(Error::std("create", &path))?;
                std::fs::remove_file(&path).map_err(Error::std("unlink", &path))?;
                set_size(file, &path, size_bytes)?
            }
            BackingSpec::File { path } => match open(path, false) {
                Ok(file) => {
                    let found = file.metadata().map_err(Error::std("look up", path))?.len();
                    if found != size_bytes {
                        return Err(Error::Config {
                            key: "size_bytes",
                            value: size_bytes.to_string(),
                            problem: "the backing file exists with another size",
                        });
                    }
                    file
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    set_size(open(path, true).map_err(Error::std("create", path))?, path, size_bytes)?
                }
                Err(error) => return Err(Error::std("open", path)(error)),
            },
        };
        // The lock only shows other commands of senesce that the file is in use, so a failure is
        // ignored.
        let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(Self { file })
    }

    /// Fills `buffer` from `offset`; bytes past the end are zeros.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut have = 0;
        while have < buffer.len() {
            match self.file.read_at(&mut buffer[have..], offset + have as u64) {
                Ok(0) => {
                    buffer[have..].fill(0);
                    break;
                }
                Ok(got) => have += got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(crate) fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    /// Punches a hole: the range reads as zeros and uses no space.
    pub(crate) fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        loop {
            match rustix::fs::fallocate(&self.file, flags, offset, length) {
                Err(Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }

    /// Allocated bytes of the file.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().map_or(0, |metadata| metadata.blocks() * 512)
    }
}

fn set_size(file: File, path: &Path, size_bytes: u64) -> Result<File> {
    file.set_len(size_bytes).map_err(Error::std("set the size of", path))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_read_as_zeros_and_files_reopen() {
        let dir = tempfile::tempdir().unwrap();
        let spec = BackingSpec::File { path: dir.path().join("disk") };
        let backing = Backing::open(&spec, "a", 1 << 20).unwrap();
        backing.write(&[7; 16_384], 4096).unwrap();
        backing.punch(8192, 4096).unwrap();
        drop(backing);
        let backing = Backing::open(&spec, "a", 1 << 20).unwrap();
        let mut got = vec![1; 20_480];
        backing.read(&mut got, 0).unwrap();
        let want: Vec<u8> = [0, 7, 0, 7, 7].iter().flat_map(|&byte| [byte; 4096]).collect();
        assert_eq!(got, want);
        backing.read(&mut got, (1 << 20) - 4096).unwrap();
        assert_eq!(got, [0; 20_480], "reads past the end are zeros");
        assert!(Backing::open(&spec, "a", 2 << 20).is_err(), "a disk never changes its size");
    }

    #[test]
    fn an_unlinked_file_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        let spec = BackingSpec::Unlinked { dir: dir.path().to_owned() };
        let backing = Backing::open(&spec, "a", 1 << 20).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(backing.allocated_bytes(), 0);
    }
}

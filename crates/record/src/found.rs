//! The tree that exists when a recording starts. The recorder logs it first, so that the log is
//! complete without it.

use std::{
    ffi::OsStr,
    fs::File,
    os::unix::{ffi::OsStrExt, fs::FileExt},
};

use rustix::{
    fs::{FileType, OFlags, SeekFrom, Stat},
    io::Errno,
};
use senesce_core::RelPath;
use senesce_oplog::{Content, Op};

use crate::{
    Error, Result,
    backing::{below, proc_path, reopen},
    recorder::Recorder,
    table::ROOT,
};

const LABEL: &str = "found";
const PIECE_BYTES: u64 = 1 << 20;

impl Recorder {
    /// Adds every name of the backing directory to the table, and logs the operations that would
    /// create the tree.
    ///
    /// Errors: a file cannot be read; another file system is mounted below.
    pub(crate) fn take_stock(&mut self) -> Result<()> {
        let mut directories = vec![(ROOT, RelPath::root())];
        while let Some((parent, directory)) = directories.pop() {
            let said = |path: &RelPath, errno: Errno| {
                Error::io("read the existing tree of the backing directory:", path.as_path())(errno.into())
            };
            let mut entries = self.backing.list(&directory).map_err(|errno| said(&directory, errno))?;
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            for (name, _, _) in entries {
                let name = OsStr::from_bytes(name.as_bytes());
                let path = below(&directory, name).map_err(|errno| said(&directory, errno))?;
                let found = self.take(parent, name, &path).map_err(|errno| said(&path, errno))?;
                if let Some(ino) = found {
                    directories.push((ino, path));
                }
            }
        }
        match self.trouble.take() {
            Some(trouble) => Err(trouble),
            None => Ok(()),
        }
    }

    /// Logs one name. Returns its number if it is a directory.
    fn take(&mut self, parent: u64, name: &OsStr, path: &RelPath) -> std::result::Result<Option<u64>, Errno> {
        let stat = self.backing.stat(path)?;
        let ino = self.backing.number(&stat)?;
        let existing = self.table.log_path(ino);
        self.table.add(parent, name, ino);
        let (path, mode) = (path.clone(), stat.st_mode & 0o7777);
        if let Some(existing) = existing {
            self.log_as(LABEL, Op::Link { existing, path });
            return Ok(None);
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                self.log_as(LABEL, Op::Mkdir { path: path.clone(), mode });
                self.take_attributes(&path)?;
                return Ok(Some(ino));
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(self.backing.root(), path.as_path(), Vec::new())?;
                self.log_as(LABEL, Op::Symlink { path, target: target.as_bytes().into() });
            }
            FileType::RegularFile => {
                let content = Content::Inline([].into());
                self.log_as(LABEL, Op::Create { path: path.clone(), mode: mode | 0o200, content });
                self.take_content(&path, &stat)?;
                self.take_attributes(&path)?;
                if mode & 0o200 == 0 {
                    self.log_as(LABEL, Op::Chmod { path, mode });
                }
            }
            _ => self.log_as(LABEL, Op::Mknod { path, mode: stat.st_mode, device: stat.st_rdev }),
        }
        Ok(None)
    }

    /// Logs the data of a file without its holes, and its length.
    fn take_content(&mut self, path: &RelPath, stat: &Stat) -> std::result::Result<(), Errno> {
        let len = stat.st_size as u64;
        let file: File = reopen(&self.backing.place(path)?, OFlags::RDONLY)?;
        let (mut at, mut written) = (0, 0);
        while at < len {
            let start = match rustix::fs::seek(&file, SeekFrom::Data(at)) {
                Ok(start) => start,
                Err(Errno::NXIO) => break,
                Err(errno) => return Err(errno),
            };
            let end = rustix::fs::seek(&file, SeekFrom::Hole(start))?.min(len);
            at = start;
            while at < end {
                let mut bytes = vec![0; (end - at).min(PIECE_BYTES) as usize];
                file.read_exact_at(&mut bytes, at).map_err(crate::backing::errno)?;
                let content = self.sink.content(&bytes);
                self.log_as(LABEL, Op::Write { path: path.clone(), offset: at, content });
                at += bytes.len() as u64;
            }
            written = end;
        }
        if written < len {
            self.log_as(LABEL, Op::Truncate { path: path.clone(), len });
        }
        Ok(())
    }

    fn take_attributes(&mut self, path: &RelPath) -> std::result::Result<(), Errno> {
        let place = self.backing.place(path)?;
        let place = proc_path(&place);
        let mut names = vec![0; 64 << 10];
        let length = match rustix::fs::listxattr(&*place, &mut names[..]) {
            Err(Errno::OPNOTSUPP) => return Ok(()),
            length => length?,
        };
        for name in names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
            let mut value = vec![0; 64 << 10];
            let length = rustix::fs::getxattr(&*place, name, &mut value[..])?;
            let value = value[..length].into();
            self.log_as(LABEL, Op::SetXattr { path: path.clone(), name: name.into(), value });
        }
        Ok(())
    }
}

//! State of the recorder of a mount, and the requests that change nothing.

use std::{
    collections::HashMap,
    ffi::{CString, OsStr},
    fs::{self, File},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
};

use fuser::FileAttr;
use rustix::{
    fs::{FileType, Mode, OFlags, SeekFrom, Stat},
    io::Errno,
};
use senesce_core::RelPath;
use senesce_oplog::Op;

use crate::{
    Error, Result,
    backing::{Backing, attributes, below, proc_path, reopen},
    sink::Sink,
    table::{ROOT, Table},
};

pub(crate) type Answer<T> = std::result::Result<T, Errno>;

/// The process that sent the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub pid: u32,
    pub uid: u32,
    pub gid: u32,
}

/// An open file or directory.
#[derive(Debug)]
pub(crate) enum Handle {
    File { file: File, ino: u64 },
    Directory { ino: u64, entries: Vec<(CString, u64, FileType)> },
}

/// The whole state, protected by one lock: the log has the order in which the lock is acquired.
pub(crate) struct Recorder {
    pub backing: Backing,
    pub table: Table,
    pub sink: Sink,
    pub handles: HashMap<u64, Handle>,
    next_handle: u64,
    /// Why nothing can be logged any more. All later changes fail.
    pub trouble: Option<Error>,
    /// Changes of names in the backing directory that did not pass through the mount.
    pub foreign: u64,
    pub own: (u32, u32),
}

impl Recorder {
    pub fn new(backing: Backing, sink: Sink) -> Self {
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self {
            backing,
            table: Table::new(),
            sink,
            handles: HashMap::new(),
            next_handle: 0,
            trouble: None,
            foreign: 0,
            own,
        }
    }

    /// Logs a change. The first error is kept, and makes every later change fail.
    pub fn log_as(&mut self, label: &str, op: Op) {
        if self.trouble.is_none()
            && let Err(trouble) = self.sink.log(label, op)
        {
            self.trouble = Some(trouble);
        }
    }

    /// Logs a change with the name of the program that requested it.
    pub fn log(&mut self, who: Who, op: Op) {
        let label = match who.pid {
            0 => "writeback".to_owned(),
            pid => fs::read(format!("/proc/{pid}/comm"))
                .map_or_else(|_| "?".to_owned(), |name| String::from_utf8_lossy(&name).trim_end().to_owned()),
        };
        self.log_as(&label, op);
    }

    /// Fails after an error of the log. Every change checks it first.
    pub fn may_change(&self) -> Answer<()> {
        if self.trouble.is_some() { Err(Errno::IO) } else { Ok(()) }
    }

    /// Returns the path of a directory in the backing directory.
    pub fn directory(&self, ino: u64) -> Answer<RelPath> {
        self.table.path(ino).ok_or(Errno::NOENT)
    }

    /// Returns the path of a name in the backing directory.
    pub fn at(&self, parent: u64, name: &OsStr) -> Answer<RelPath> {
        below(&self.directory(parent)?, name)
    }

    /// Returns a descriptor of a numbered file, even if the file is open and has no name.
    pub fn place(&self, ino: u64) -> Answer<OwnedFd> {
        if let Some(path) = self.table.path(ino) {
            return self.backing.place(&path);
        }
        let open = self.handles.values().find_map(|handle| match handle {
            Handle::File { file, ino: of } if *of == ino => Some(file),
            _ => None,
        });
        let file = open.ok_or(Errno::STALE)?;
        rustix::fs::open(proc_path(file), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    }

    pub fn stat(&self, ino: u64) -> Answer<Stat> {
        match self.table.path(ino) {
            Some(path) => self.backing.stat(&path),
            None => rustix::fs::fstat(self.place(ino)?),
        }
    }

    pub fn lookup(&mut self, parent: u64, name: &OsStr) -> Answer<(FileAttr, u64)> {
        let path = self.at(parent, name)?;
        let found = self.backing.stat(&path).and_then(|stat| Ok((self.backing.number(&stat)?, stat)));
        let known = self.table.find(parent, name);
        match found {
            Ok((ino, stat)) => {
                if known != Some(ino) {
                    // Another process changed the backing directory. The change is served, counted,
                    // and not logged.
                    self.foreign += 1;
                    self.table.remove(parent, name);
                    self.table.add(parent, name, ino);
                }
                Ok((attributes(ino, &stat), self.table.generation(ino)))
            }
            Err(errno) => {
                if known.is_some() && errno == Errno::NOENT {
                    self.foreign += 1;
                    self.table.remove(parent, name);
                }
                Err(errno)
            }
        }
    }

    pub fn getattr(&self, ino: u64) -> Answer<FileAttr> {
        Ok(attributes(ino, &self.stat(ino)?))
    }

    pub fn readlink(&self, ino: u64) -> Answer<Vec<u8>> {
        let path = self.table.path(ino).ok_or(Errno::NOENT)?;
        Ok(rustix::fs::readlinkat(self.backing.root(), path.as_path(), Vec::new())?.into_bytes())
    }

    pub fn keep(&mut self, handle: Handle) -> u64 {
        if let Handle::File { ino, .. } = &handle
            && let Some(node) = self.table.node_mut(*ino)
        {
            node.open += 1;
        }
        self.next_handle += 1;
        self.handles.insert(self.next_handle, handle);
        self.next_handle
    }

    pub fn open(&mut self, ino: u64, flags: i32) -> Answer<u64> {
        // The kernel computes offsets of appends, has its own cache, and has already handled the
        // other flags.
        let access = OFlags::from_bits_truncate(flags as u32) & OFlags::RWMODE;
        if access != OFlags::RDONLY {
            self.may_change()?;
        }
        let file = reopen(&self.place(ino)?, access)?;
        Ok(self.keep(Handle::File { file, ino }))
    }

    pub fn file(&self, handle: u64) -> Answer<&File> {
        match self.handles.get(&handle) {
            Some(Handle::File { file, .. }) => Ok(file),
            _ => Err(Errno::BADF),
        }
    }

    pub fn read(&self, handle: u64, offset: u64, size: u32) -> Answer<Vec<u8>> {
        let mut bytes = vec![0; size as usize];
        let mut read = 0;
        while read < bytes.len() {
            match rustix::io::pread(self.file(handle)?, &mut bytes[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(n) => read += n,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        bytes.truncate(read);
        Ok(bytes)
    }

    pub fn seek(&self, handle: u64, offset: i64, whence: i32) -> Answer<i64> {
        let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
        // linux/fs.h: SEEK_DATA 3, SEEK_HOLE 4. The kernel handles the others itself.
        let to = match whence {
            3 => SeekFrom::Data(offset),
            4 => SeekFrom::Hole(offset),
            _ => return Err(Errno::INVAL),
        };
        Ok(rustix::fs::seek(self.file(handle)?, to)? as i64)
    }

    pub fn opendir(&mut self, ino: u64) -> Answer<u64> {
        self.directory(ino)?;
        Ok(self.keep(Handle::Directory { ino, entries: Vec::new() }))
    }

    /// Returns the listing of an open directory. `anew` reads it again, which happens when a
    /// program reads from its start.
    pub fn listing(&mut self, handle: u64, anew: bool) -> Answer<Vec<(CString, u64, FileType)>> {
        let Some(Handle::Directory { ino, .. }) = self.handles.get(&handle) else { return Err(Errno::BADF) };
        let ino = *ino;
        if anew {
            let mut found =
                vec![(c".".to_owned(), ino, FileType::Directory), (c"..".to_owned(), ROOT, FileType::Directory)];
            // A directory that was removed while open is empty.
            if let Some(path) = self.table.path(ino) {
                found.extend(self.backing.list(&path)?);
            }
            if let Some(Handle::Directory { entries, .. }) = self.handles.get_mut(&handle) {
                *entries = found;
            }
        }
        match self.handles.get(&handle) {
            Some(Handle::Directory { entries, .. }) => Ok(entries.clone()),
            _ => Err(Errno::BADF),
        }
    }

    pub fn getxattr(&mut self, ino: u64, name: &OsStr, size: u32) -> Answer<(Vec<u8>, usize)> {
        // The kernel requests it before every write. Only a setxattr through this mount changes the
        // result.
        let is_capability = name == "security.capability";
        if is_capability && self.table.node(ino).is_some_and(|node| node.no_capabilities) {
            return Err(Errno::NODATA);
        }
        let place = self.place(ino)?;
        let mut value = vec![0; size as usize];
        let length = rustix::fs::getxattr(proc_path(&place), name.as_bytes(), &mut value[..]);
        if is_capability
            && matches!(length, Err(Errno::NODATA | Errno::OPNOTSUPP))
            && let Some(node) = self.table.node_mut(ino)
        {
            node.no_capabilities = true;
        }
        let length = length?;
        value.truncate(length);
        Ok((value, length))
    }

    pub fn listxattr(&self, ino: u64, size: u32) -> Answer<(Vec<u8>, usize)> {
        let place = self.place(ino)?;
        let mut names = vec![0; size as usize];
        let length = rustix::fs::listxattr(proc_path(&place), &mut names[..])?;
        names.truncate(length);
        Ok((names, length))
    }

    /// Logs the removal of files that are open without a name, and closes the log.
    pub fn finish(mut self) -> Result<senesce_oplog::LogSummary> {
        for path in self.table.hidden() {
            self.log_as("closed", Op::Unlink { path });
        }
        let lent: Vec<u64> = self.table.lent();
        for ino in lent {
            self.give_back(Who { pid: 0, uid: 0, gid: 0 }, ino);
        }
        match self.trouble {
            Some(trouble) => Err(trouble),
            None => Ok(self.sink.finish()?.expect("a recording has a log")),
        }
    }
}

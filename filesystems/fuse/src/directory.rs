//! Listings of directories, with and without attributes.
//!
//! The kernel's offsets are the engine's cookies plus two: `.` has the offset 1 and `..` the offset
//! 2.

use std::{ffi::OsStr, ops::ControlFlow, os::unix::ffi::OsStrExt};

use fuser::{Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use senesce_fsapi::{Attributes, FileKind, FileSystem, FsError, FsResult, Ino};

use crate::{
    adapter::{Adapter, FOR_EVER},
    convert::{errno, file_attr, file_type},
};

/// The entries that are requested from the engine at a time: some pages of the kernel.
const AT_ONCE: usize = 128;

struct Entry {
    name: Vec<u8>,
    ino: Ino,
    kind: FileKind,
    offset: u64,
}

/// The entries after an offset, at most [`AT_ONCE`]; none at the end.
fn collect_entries(fs: &dyn FileSystem, directory: Ino, offset: u64) -> FsResult<Vec<Entry>> {
    let mut entries = Vec::new();
    for (name, at) in [(b".".as_slice(), 1), (b"..", 2)] {
        if offset < at {
            // A removed directory has no parent, so `..` is itself, as in other file systems.
            let ino = fs.lookup(directory, name).map_or(directory, |found| found.ino);
            entries.push(Entry { name: name.to_vec(), ino, kind: FileKind::Directory, offset: at });
        }
    }
    fs.read_dir(directory, offset.saturating_sub(2), &mut |entry| {
        let (name, offset) = (entry.name.to_vec(), entry.cookie + 2);
        entries.push(Entry { name, ino: entry.ino, kind: entry.kind, offset });
        if entries.len() < AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(entries)
}

/// Passes the entries after an offset to `add` until it returns that the reply is full.
fn list(
    fs: &dyn FileSystem,
    directory: Ino,
    mut offset: u64,
    mut add: impl FnMut(&Entry) -> FsResult<bool>,
) -> FsResult<()> {
    loop {
        let entries = collect_entries(fs, directory, offset)?;
        let Some(last) = entries.last() else { return Ok(()) };
        offset = last.offset;
        for entry in &entries {
            if add(entry)? {
                return Ok(());
            }
        }
        if entries.len() < AT_ONCE {
            return Ok(());
        }
    }
}

impl Adapter {
    pub(crate) fn list_names(&self, directory: Ino, offset: u64, mut reply: ReplyDirectory) {
        let done = list(self.fs(), directory, offset, |entry| {
            let name = OsStr::from_bytes(&entry.name);
            Ok(reply.add(INodeNo(entry.ino.0), entry.offset, file_type(entry.kind), name))
        });
        match done {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub(crate) fn list_attributes(&self, directory: Ino, offset: u64, mut reply: ReplyDirectoryPlus) {
        let done = list(self.fs(), directory, offset, |entry| {
            // Listings do not count `.` and `..` as known to the kernel.
            let is_told = entry.offset > 2;
            if is_told && !self.hold_if_there(entry.ino)? {
                return Ok(false);
            }
            let found = self.fs().attributes(entry.ino)?;
            let is_full = add(&mut reply, entry, &found);
            if is_told && is_full {
                self.forget_once(entry.ino)?;
            }
            Ok(is_full)
        });
        match done {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }

    /// Holds an inode; returns `false` if it was removed since it was listed.
    fn hold_if_there(&self, ino: Ino) -> FsResult<bool> {
        match self.holds().hold(self.fs(), ino) {
            Ok(()) => Ok(true),
            Err(FsError::NotFound | FsError::Stale) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn add(reply: &mut ReplyDirectoryPlus, entry: &Entry, found: &Attributes) -> bool {
    let (name, generation) = (OsStr::from_bytes(&entry.name), Generation(found.generation));
    reply.add(INodeNo(entry.ino.0), entry.offset, name, &FOR_EVER, &file_attr(found), generation)
}

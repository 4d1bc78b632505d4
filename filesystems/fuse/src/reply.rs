//! Replies to the kernel, one function for each kind.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use fuser::{Errno, FileAttr, INodeNo, ReplyAttr, ReplyData, ReplyEmpty, ReplyWrite, ReplyXattr};
use senesce_fsapi::{Attributes, FileKind, FsError, FsResult, Ino};

use crate::{
    adapter::FOR_EVER,
    convert::{errno, file_attr},
};

pub(crate) fn ino(number: INodeNo) -> Ino {
    Ino(number.0)
}

pub(crate) fn empty(reply: ReplyEmpty, done: FsResult<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

pub(crate) fn written(reply: ReplyWrite, done: FsResult<u64>) {
    match done {
        Ok(bytes) => reply.written(bytes as u32),
        Err(error) => reply.error(errno(&error)),
    }
}

/// Replies with the first bytes of `bytes`.
pub(crate) fn data(reply: ReplyData, bytes: &[u8], done: FsResult<usize>) {
    match done {
        Ok(got) => reply.data(&bytes[..got]),
        Err(error) => reply.error(errno(&error)),
    }
}

pub(crate) fn attributes(reply: ReplyAttr, found: FsResult<Attributes>) {
    match found {
        Ok(found) => reply.attr(&FOR_EVER, &file_attr(&found)),
        Err(error) => reply.error(errno(&error)),
    }
}

/// Replies with bytes, if they fit `size`, or with their number if `size` is 0.
pub(crate) fn sized(reply: ReplyXattr, size: u32, found: FsResult<Vec<u8>>) {
    match found {
        Ok(bytes) if size == 0 => reply.size(bytes.len() as u32),
        Ok(bytes) if bytes.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(bytes) => reply.data(&bytes),
        Err(error) => reply.error(errno(&error)),
    }
}

/// Refuses ACLs, which would be stored but not enforced.
pub(crate) fn check_xattr(name: &OsStr) -> FsResult<&[u8]> {
    match name.as_bytes() {
        name if name.starts_with(b"system.") => Err(FsError::Unsupported),
        name => Ok(name),
    }
}

/// A reply with the inode 0 makes the kernel cache that a name does not exist.
pub(crate) fn not_there() -> FileAttr {
    let nothing = Attributes {
        ino: Ino(0),
        generation: 0,
        kind: FileKind::File,
        permissions: 0,
        links: 0,
        uid: 0,
        gid: 0,
        size: 0,
        allocated: 0,
        device: 0,
        accessed: Default::default(),
        modified: Default::default(),
        changed: Default::default(),
    };
    file_attr(&nothing)
}

//! The initial files of a script.

use std::{
    ffi::CString,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use senesce_core::RelPath;
use senesce_oplog::{Script, seeded_bytes};

use crate::ExecError;

/// Bytes that are generated from a seed in one piece.
const PIECE: usize = 1 << 20;

/// Makes the directories and the initial files of a script below `root`, in their order.
///
/// In: `root` is a directory in which none of them exists. `stop` ends it early. Nothing is synced.
/// Errors: no space for all, with the number of files that were made; a name exists already;
/// [`ExecError::Stopped`]. Cost: writes all files.
pub fn make_script_files(root: &Path, script: &Script, stop: &dyn Fn() -> bool) -> Result<(), ExecError> {
    let dir = open_root(root)?;
    let fail = |path: &RelPath| {
        let path = root.join(path.as_path());
        move |errno: Errno| ExecError::Host { operation: "make", path, source: errno.into() }
    };
    for path in &script.directories {
        rustix::fs::mkdirat(&dir, &*c_path(path), Mode::from_raw_mode(0o755)).map_err(fail(path))?;
    }
    let mut piece = vec![0; PIECE];
    let there = || script.files.iter().filter(|file| file.preallocated);
    for (number, file) in there().enumerate() {
        if stop() {
            return Err(ExecError::Stopped);
        }
        let written = (|| {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let fd = rustix::fs::openat(&dir, &*c_path(&file.path), flags, Mode::from_raw_mode(0o644))?;
            let mut at = 0;
            while at < file.bytes {
                let size = (file.bytes - at).min(PIECE as u64) as usize;
                seeded_bytes(number as u64, at, &mut piece[..size]);
                write_all(fd.as_fd(), &piece[..size])?;
                at += size as u64;
            }
            Ok(())
        })();
        match written {
            Err(Errno::NOSPC | Errno::DQUOT) => {
                let (made, files, bytes) = (number, there().count(), script.bytes());
                return Err(ExecError::ScriptTooLarge { root: root.to_owned(), made, files, bytes });
            }
            result => result.map_err(fail(&file.path))?,
        }
    }
    Ok(())
}

pub(super) fn open_root(root: &Path) -> Result<OwnedFd, ExecError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let operation = "open the directory";
    rustix::fs::open(root, flags, Mode::empty()).map_err(|errno| ExecError::Host {
        operation,
        path: root.to_owned(),
        source: errno.into(),
    })
}

pub(super) fn c_path(path: &RelPath) -> CString {
    CString::new(path.as_bytes()).expect("a RelPath holds no NUL")
}

/// Writes all bytes at the file's position.
pub(super) fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

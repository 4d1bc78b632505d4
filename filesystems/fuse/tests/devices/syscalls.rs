//! Operations of programs on files, with the error of each system call.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::{
        fd::{IntoRawFd, OwnedFd},
        unix::fs::FileExt,
    },
    path::Path,
};

use memmap2::{Mmap, MmapMut};

/// A way to write the contents of a file.
pub type Way = fn(&Path, &[u8]) -> io::Result<()>;

/// All ways. Except for "close", each ends with a call that promises durability.
pub const WAYS: [(&str, Way); 7] = [
    ("write", by_write),
    ("close", by_close),
    ("scattered", by_scattered_writes),
    ("msync", by_msync),
    ("mapping", by_mapping),
    ("rename", by_rename),
    ("over", by_write_over),
];

/// Closes a file and returns the error of close(2), which dropping a [`File`] hides.
pub fn close(file: File) -> io::Result<()> {
    // SAFETY: no other code owns the descriptor, and nothing uses it after this call.
    let result = unsafe { libc::close(OwnedFd::from(file).into_raw_fd()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub fn sync_directory(path: &Path) -> io::Result<()> {
    close_after(File::open(path)?, |directory| directory.sync_all())
}

/// Acts on a file and closes it in any case.
fn close_after(file: File, act: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut file = file;
    let done = act(&mut file);
    let closed = close(file);
    done.and(closed)
}

/// write(2), fsync(2), close(2).
pub fn by_write(path: &Path, data: &[u8]) -> io::Result<()> {
    close_after(File::create(path)?, |file| {
        file.write_all(data)?;
        file.sync_all()
    })
}

/// write(2), close(2).
fn by_close(path: &Path, data: &[u8]) -> io::Result<()> {
    close_after(File::create(path)?, |file| file.write_all(data))
}

/// Many small writes in descending order, then fsync(2).
fn by_scattered_writes(path: &Path, data: &[u8]) -> io::Result<()> {
    close_after(File::create(path)?, |file| {
        file.set_len(data.len() as u64)?;
        for (number, piece) in data.chunks(5000).enumerate().rev() {
            file.write_all_at(piece, number as u64 * 5000)?;
        }
        file.sync_all()
    })
}

/// Stores through a shared mapping, then only msync(2).
pub fn by_msync(path: &Path, data: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    close_after(file, |file| {
        file.set_len(data.len() as u64)?;
        // SAFETY: no other process opens the file while it is mapped.
        let mut mapping = unsafe { MmapMut::map_mut(&*file) }?;
        mapping.copy_from_slice(data);
        mapping.flush()
    })
}

/// Stores through a shared mapping that is removed before fsync(2).
fn by_mapping(path: &Path, data: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    close_after(file, |file| {
        file.set_len(data.len() as u64)?;
        // SAFETY: no other process opens the file while it is mapped.
        let mut mapping = unsafe { MmapMut::map_mut(&*file) }?;
        mapping.copy_from_slice(data);
        drop(mapping);
        file.sync_all()
    })
}

/// Writes to another name, fsync(2), rename(2), fsync(2) of the directory.
fn by_rename(path: &Path, data: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    by_write(&beside, data)?;
    std::fs::rename(&beside, path)?;
    sync_directory(path.parent().expect("it has a directory"))
}

/// Overwrites a part of a file in two unaligned pieces, fsync(2).
fn by_write_over(path: &Path, data: &[u8]) -> io::Result<()> {
    by_write(path, &vec![9; data.len()])?;
    close_after(OpenOptions::new().write(true).open(path)?, |file| {
        let (first, second) = data.split_at(data.len() / 2);
        file.write_all(first)?;
        file.write_all(second)?;
        file.sync_all()
    })
}

/// Stores through a mapping of an open file, then msync(2).
pub fn store(file: &File, offset: usize, data: &[u8]) -> io::Result<()> {
    // SAFETY: no other process opens the file while it is mapped.
    let mut mapping = unsafe { MmapMut::map_mut(file) }?;
    mapping[offset..offset + data.len()].copy_from_slice(data);
    mapping.flush()
}

/// Copies a file from a mapping into a pipe: an unreadable page is an error here, not a signal.
pub fn read_by_mapping(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    // SAFETY: no process changes the file while it is mapped.
    let mapping = unsafe { Mmap::map(&file) }?;
    let (mut reader, mut writer) = io::pipe()?;
    let mut read = Vec::new();
    // A pipe holds at least 64 KiB.
    for piece in mapping.chunks(16 << 10) {
        writer.write_all(piece)?;
        let mut back = vec![0; piece.len()];
        io::Read::read_exact(&mut reader, &mut back)?;
        read.extend(back);
    }
    Ok(read)
}

//! Image files of the host.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Advice, IFlags, Mode, OFlags},
    io::Errno,
};
use senesce_core::Bytes;

use super::{FileId, ioctl};
use crate::{Error, Result, check_interrupted, copy::next_data};

pub(super) fn open(path: &Path, flags: OFlags) -> Result<OwnedFd> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).map_err(Error::io("open", path))
}

pub(super) fn list(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::std("list", dir))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::std("list", dir))?;
        if entry.file_type().is_ok_and(|kind| !kind.is_dir()) {
            files.push(entry.path());
        }
    }
    Ok(files)
}

pub(super) fn create(path: &Path, size: Bytes) -> Result<FileId> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(Error::io("create", path))?;
    // On a Btrfs host, copy-on-write would fragment the image and falsify the measurement. Other
    // file systems do not have the flag, so a refusal is fine.
    if let Ok(old) = rustix::fs::ioctl_getflags(&fd) {
        let _ = rustix::fs::ioctl_setflags(&fd, old | IFlags::NOCOW);
    }
    let made = rustix::fs::ftruncate(&fd, size.0).and_then(|()| rustix::fs::fstat(&fd));
    match made {
        Ok(stat) => Ok(FileId { device: stat.st_dev, inode: stat.st_ino }),
        Err(errno) => {
            // The file is ours and useless. The caller receives the first error.
            let _ = std::fs::remove_file(path);
            Err(Error::io("set the size of", path)(errno))
        }
    }
}

/// The maximum of one call, so that signals are handled in time: a disk of 100 MB/s needs a third
/// of a second.
const COPY_BYTES: u64 = 32 << 20;

pub(super) fn copy_image(from: &Path, to: &Path) -> Result<&'static str> {
    let source = open(from, OFlags::RDONLY)?;
    let target = open(to, OFlags::RDWR)?;
    if rustix::fs::ioctl_ficlone(&target, &source).is_ok() {
        return Ok("clone");
    }
    let stat = rustix::fs::fstat(&source).map_err(Error::io("look up", from))?;
    let size = stat.st_size as u64;
    rustix::fs::ftruncate(&target, size).map_err(Error::io("set the size of", to))?;
    // In a guest, the file system of the host does not report holes.
    if (stat.st_blocks as u64) < size / 512 && next_data(&source, from, 0)? == Some((0, size)) {
        copy_without_zeros(&source, &target, from, to)?;
        return Ok("sparse copy");
    }
    let mut position = 0;
    while let Some((data, end)) = next_data(&source, from, position)? {
        copy_range(&source, &target, data, end, from, to)?;
        position = end;
    }
    Ok("sparse copy")
}

/// Copies a file whose holes are unknown. Pieces of zeros become holes.
fn copy_without_zeros(source: &OwnedFd, target: &OwnedFd, from: &Path, to: &Path) -> Result<()> {
    const PIECE: usize = 64 << 10;
    static ZEROS: [u8; PIECE] = [0; PIECE];
    let mut buffer = vec![0; 16 * PIECE];
    let mut position = 0;
    loop {
        check_interrupted("the copy of an image")?;
        let got = rustix::io::pread(source, &mut buffer, position).map_err(Error::io("read", from))?;
        if got == 0 {
            return Ok(());
        }
        for (number, piece) in buffer[..got].chunks(PIECE).enumerate() {
            let start = position + (number * PIECE) as u64;
            let mut put = if piece == &ZEROS[..piece.len()] { piece.len() } else { 0 };
            while put < piece.len() {
                put += rustix::io::pwrite(target, &piece[put..], start + put as u64).map_err(Error::io("write", to))?;
            }
        }
        position += got as u64;
    }
}

fn copy_range(source: &OwnedFd, target: &OwnedFd, start: u64, end: u64, from: &Path, to: &Path) -> Result<()> {
    let (mut read_at, mut write_at) = (start, start);
    while read_at < end {
        // Signals are handled between two calls.
        let length = (end - read_at).min(COPY_BYTES) as usize;
        check_interrupted("the copy of an image")?;
        match rustix::fs::copy_file_range(source, Some(&mut read_at), target, Some(&mut write_at), length) {
            Ok(0) => return Err(Error::io("copy all of", from)(Errno::IO)),
            Ok(_) => {}
            // These two file systems cannot copy between each other.
            Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {
                let mut buffer = vec![0; 1 << 20];
                while read_at < end {
                    check_interrupted("the copy of an image")?;
                    let length = buffer.len().min((end - read_at) as usize);
                    let got =
                        rustix::io::pread(source, &mut buffer[..length], read_at).map_err(Error::io("read", from))?;
                    if got == 0 {
                        return Err(Error::io("copy all of", from)(Errno::IO));
                    }
                    let mut put = 0;
                    while put < got {
                        put += rustix::io::pwrite(target, &buffer[put..got], read_at + put as u64)
                            .map_err(Error::io("write", to))?;
                    }
                    read_at += got as u64;
                }
            }
            Err(errno) => return Err(Error::io("copy into", to)(errno)),
        }
    }
    Ok(())
}

pub(super) fn sync(path: &Path) -> Result<()> {
    let fd = open(path, OFlags::RDONLY)?;
    rustix::fs::fsync(&fd).map_err(Error::io("sync", path))?;
    let parent =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(PathBuf::from("."), Path::to_owned);
    let fd = open(&parent, OFlags::RDONLY | OFlags::DIRECTORY)?;
    rustix::fs::fsync(&fd).map_err(Error::io("sync", parent))
}

pub(super) fn drop_page_cache(path: &Path) -> Result<Option<u64>> {
    let fd = open(path, OFlags::RDONLY)?;
    // Only clean pages can be dropped.
    rustix::fs::fdatasync(&fd).map_err(Error::io("sync", path))?;
    rustix::fs::fadvise(&fd, 0, None, Advice::DontNeed).map_err(Error::io("drop the cached pages of", path))?;
    count(path, &fd)
}

/// Pages of a file or device that are in the host's page cache. `None` if the kernel cannot count
/// them (before 6.5).
pub fn cached_pages(path: &Path) -> Result<Option<u64>> {
    count(path, &open(path, OFlags::RDONLY)?)
}

fn count(path: &Path, fd: &OwnedFd) -> Result<Option<u64>> {
    match ioctl::cached_pages(fd) {
        Ok(pages) => Ok(Some(pages)),
        // Kernels before 6.5, sandboxes that block the call, and file systems without a page cache.
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => Ok(None),
        Err(errno) => Err(Error::io("count the cached pages of", path)(errno)),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::unix::fs::MetadataExt};

    use super::*;

    #[test]
    fn zeros_become_holes_in_a_copy() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let length = (3 << 20) + 5;
        let mut bytes = vec![0; length];
        for at in [0, 70_000, (2 << 20) + 1, length - 1] {
            bytes[at] = 7;
        }
        std::fs::write(&from, &bytes).unwrap();
        let target = File::create(&to).unwrap();
        target.set_len(length as u64).unwrap();
        let open = |path: &Path, flags| open(path, flags).unwrap();
        copy_without_zeros(&open(&from, OFlags::RDONLY), &open(&to, OFlags::RDWR), &from, &to).unwrap();
        assert!(std::fs::read(&to).unwrap() == bytes);
        assert!(std::fs::metadata(&to).unwrap().blocks() < 1 << 10, "four pieces of 64 KiB are written");
    }
}

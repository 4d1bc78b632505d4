//! Makes the unaged twin: a copy of a tree in directory order, with all attributes, by plain reads
//! and writes.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{Read, Write},
    os::fd::AsFd,
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    thread,
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Gid, Mode, SeekFrom, Timespec, Timestamps, Uid, XattrFlags},
    io::Errno,
};

use senesce_core::Stop;
use signal_hook::consts::SIGTERM;

use crate::{
    Error, Pinned, Result, Settler, interrupted,
    read_ahead::{EndOnDrop, READERS, ReadAhead, warm},
};

/// The number of copied files and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Regular files, each inode once.
    pub files: u64,
    /// Directories, without the root.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Further names of copied inodes.
    pub hard_links: u64,
    /// Pipes, sockets and device nodes.
    pub special_files: u64,
    /// Bytes that were read from regular files. Holes do not count.
    pub bytes: u64,
}

/// Larger than any read-ahead, so that the twin is written in long runs.
const BUFFER_BYTES: usize = 1 << 20;

/// Copies the content of `from` into the existing directory `to`, in readdir order. A subdirectory
/// is copied when the walk reaches it, before the next entry.
///
/// Keeps mode, owner, times, extended attributes, symbolic links, hard links, and the holes of
/// files that occupy less than their length. The contents pass through memory: a clone or an
/// in-kernel copy could share or arrange blocks as no program's writes do. Skips `lost+found` at
/// the root, and the file `.nilfs` of a NILFS2. Syncs nothing. One thread writes. Other threads
/// read ahead of it, so that it seldom waits for the device of `from`.
///
/// Calls `stop` for every entry and for every MiB.
///
/// Errors: any system call; [`Error::Interrupted`] if `stop` returned true. The files copied so far
/// stay.
pub fn copy_tree(from: &Path, to: &Path, stop: Stop<'_>) -> Result<CopyReport> {
    copy_tree_settled(from, to, stop, None)
}

/// As [`copy_tree`]. With a settler of the file system of `to`, the layout of the copy follows from
/// the tree alone.
pub fn copy_tree_settled(from: &Path, to: &Path, stop: Stop<'_>, settler: Option<&mut Settler>) -> Result<CopyReport> {
    let ahead = ReadAhead::default();
    thread::scope(|scope| {
        scope.spawn(|| ahead.walk(from));
        for _ in 0..READERS {
            scope.spawn(|| ahead.serve(warm));
        }
        let _end = EndOnDrop(&ahead);
        let (report, linked, buffer) = (CopyReport::default(), HashMap::new(), vec![0; BUFFER_BYTES]);
        // The threads above use any processor.
        let _pinned =
            settler.as_ref().map(|_| Pinned::new()).transpose().map_err(Error::std("pin the copy of", from))?;
        let mut copier = Copier { report, linked, buffer, stop, ahead: &ahead, settler };
        copier.directory(from, to, true)?;
        if let Some(settler) = copier.settler {
            settler.settle().map_err(Error::std("settle", to))?;
        }
        Ok(copier.report)
    })
}

struct Copier<'a> {
    report: CopyReport,
    /// The copies of inodes with several names, by device and inode number.
    linked: HashMap<(u64, u64), PathBuf>,
    buffer: Vec<u8>,
    stop: Stop<'a>,
    /// Reads the next files into the page cache.
    ahead: &'a ReadAhead,
    settler: Option<&'a mut Settler>,
}

fn is_nilfs2(dir: &Path) -> bool {
    const MAGIC: u64 = 0x3434;
    rustix::fs::statfs(dir).is_ok_and(|found| found.f_type as u64 & 0xFFFF_FFFF == MAGIC)
}

impl Copier<'_> {
    fn check(&self) -> Result<()> {
        let signal = || interrupted().unwrap_or(SIGTERM);
        if (self.stop)() {
            Err(Error::Interrupted { operation: "the copy of a tree", signal: signal() })
        } else {
            Ok(())
        }
    }

    fn directory(&mut self, from: &Path, to: &Path, is_root: bool) -> Result<()> {
        for entry in fs::read_dir(from).map_err(Error::std("list", from))? {
            self.check()?;
            let name = entry.map_err(Error::std("list", from))?.file_name();
            if is_root && (name == "lost+found" || name == ".nilfs" && is_nilfs2(from)) {
                continue;
            }
            self.entry(&from.join(&name), &to.join(&name))?;
            if let Some(settler) = &mut self.settler {
                settler.count(false).map_err(Error::std("settle", to))?;
            }
        }
        // Set last, because new entries change the directory's times.
        let metadata = fs::symlink_metadata(from).map_err(Error::std("look up", from))?;
        copy_attributes(&metadata, from, to)
    }

    fn entry(&mut self, from: &Path, to: &Path) -> Result<()> {
        let metadata = fs::symlink_metadata(from).map_err(Error::std("look up", from))?;
        let kind = metadata.file_type();
        if kind.is_file() {
            self.ahead.reach_file();
        }
        if kind.is_dir() {
            fs::create_dir(to).map_err(Error::std("create the directory", to))?;
            self.report.directories += 1;
            return self.directory(from, to, false);
        }
        if metadata.nlink() > 1 {
            if let Some(first) = self.linked.get(&(metadata.dev(), metadata.ino())) {
                fs::hard_link(first, to).map_err(Error::std("link", to))?;
                self.report.hard_links += 1;
                return Ok(());
            }
            self.linked.insert((metadata.dev(), metadata.ino()), to.to_owned());
        }
        if kind.is_file() {
            self.contents(&metadata, from, to)?;
            self.report.files += 1;
        } else if kind.is_symlink() {
            let target = fs::read_link(from).map_err(Error::std("read the link", from))?;
            std::os::unix::fs::symlink(target, to).map_err(Error::std("create the link", to))?;
            self.report.symlinks += 1;
        } else {
            let node = match () {
                () if kind.is_fifo() => FileType::Fifo,
                () if kind.is_socket() => FileType::Socket,
                () if kind.is_char_device() => FileType::CharacterDevice,
                () => FileType::BlockDevice,
            };
            rustix::fs::mknodat(CWD, to, node, Mode::from_raw_mode(0o600), metadata.rdev())
                .map_err(Error::io("create the node", to))?;
            self.report.special_files += 1;
        }
        copy_attributes(&metadata, from, to)
    }

    fn contents(&mut self, metadata: &fs::Metadata, from: &Path, to: &Path) -> Result<()> {
        let mut source = File::open(from).map_err(Error::std("open", from))?;
        let mut target = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(to)
            .map_err(Error::std("create", to))?;
        // A preallocated part looks like a hole but occupies its length. The copy must occupy it
        // too.
        if metadata.blocks() * 512 >= metadata.len() {
            self.bytes(&mut source, &mut target, u64::MAX, (from, to))?;
            return self.write_back(&target, to);
        }
        let mut at = 0;
        while let Some((start, end)) = next_data(&source, from, at)? {
            for file in [&source, &target] {
                rustix::fs::seek(file, SeekFrom::Start(start)).map_err(Error::io("seek in", from))?;
            }
            self.bytes(&mut source, &mut target, end - start, (from, to))?;
            at = end;
        }
        target.set_len(metadata.len()).map_err(Error::std("set the length of", to))?;
        self.write_back(&target, to)
    }

    fn write_back(&self, file: &File, path: &Path) -> Result<()> {
        let Some(settler) = &self.settler else { return Ok(()) };
        settler.write_back(file).map_err(Error::std("write back", path))
    }

    /// Copies up to `len` bytes from the current offsets, or to the end of the file.
    fn bytes(&mut self, source: &mut File, target: &mut File, len: u64, (from, to): (&Path, &Path)) -> Result<()> {
        let mut source = source.take(len);
        loop {
            self.check()?;
            let got = match source.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(got) => got,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::std("read", from)(error)),
            };
            target.write_all(&self.buffer[..got]).map_err(Error::std("write", to))?;
            self.report.bytes += got as u64;
        }
    }
}

/// Sets the mode, owner, times and extended attributes of `to` to those of `from`. `metadata` is
/// the metadata of `from`.
///
/// The owner is set before the mode, because a change of owner may clear mode bits. Times are set
/// last.
///
/// Errors: any system call. Without root, a refused change of owner is skipped.
pub fn copy_attributes(metadata: &fs::Metadata, from: &Path, to: &Path) -> Result<()> {
    let (uid, gid) = (Uid::from_raw(metadata.uid()), Gid::from_raw(metadata.gid()));
    let chowned = rustix::fs::chownat(CWD, to, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW);
    match chowned {
        Ok(()) => {}
        // As `cp -a`: without root, the copy keeps the caller as owner.
        Err(Errno::PERM) if !rustix::process::geteuid().is_root() => {}
        Err(errno) => return Err(Error::io("set the owner of", to)(errno)),
    }
    copy_xattrs(from, to)?;
    if !metadata.file_type().is_symlink() {
        let mode = fs::Permissions::from_mode(metadata.mode() & 0o7777);
        fs::set_permissions(to, mode).map_err(Error::std("set the mode of", to))?;
    }
    let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps {
        last_access: time(metadata.atime(), metadata.atime_nsec()),
        last_modification: time(metadata.mtime(), metadata.mtime_nsec()),
    };
    rustix::fs::utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW).map_err(Error::io("set the times of", to))
}

/// Returns the start and the end of the next part of a file from `at` on that is no hole. `None`
/// after the last one.
pub(crate) fn next_data(file: impl AsFd, path: &Path, at: u64) -> Result<Option<(u64, u64)>> {
    let start = match rustix::fs::seek(&file, SeekFrom::Data(at)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(Error::io("find the data of", path)(errno)),
    };
    let end = rustix::fs::seek(&file, SeekFrom::Hole(start)).map_err(Error::io("find the holes of", path))?;
    Ok(Some((start, end)))
}

/// The maximum of Linux for the list of names, and for one value (`XATTR_LIST_MAX`,
/// `XATTR_SIZE_MAX`).
const XATTR_BYTES_MAX: usize = 65_536;

fn copy_xattrs(from: &Path, to: &Path) -> Result<()> {
    // Most files have none. A query with a length of zero copies nothing.
    match rustix::fs::llistxattr_query(from) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(()),
        Ok(_) => {}
        Err(errno) => return Err(Error::io("list the attributes of", from)(errno)),
    }
    let mut names = vec![0u8; XATTR_BYTES_MAX];
    let length = rustix::fs::llistxattr(from, &mut names[..]).map_err(Error::io("list the attributes of", from))?;
    for name in names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0u8; XATTR_BYTES_MAX];
        let length =
            rustix::fs::lgetxattr(from, name, &mut value[..]).map_err(Error::io("read an attribute of", from))?;
        match rustix::fs::lsetxattr(to, name, &value[..length], XattrFlags::empty()) {
            Ok(()) => {}
            // The target system decides about the labels of security modules.
            Err(Errno::OPNOTSUPP | Errno::PERM) if name.starts_with(b"security.") => {}
            Err(errno) => return Err(Error::io("set an attribute of", to)(errno)),
        }
    }
    Ok(())
}

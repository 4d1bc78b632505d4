//! Requests that change something. The recorder applies them to the backing directory, then logs
//! them.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use fuser::{FileAttr, TimeOrNow};
use rustix::{
    fs::{
        AtFlags, FallocateFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, UTIME_NOW,
        UTIME_OMIT, Uid, XattrFlags,
    },
    io::Errno,
};
use senesce_oplog::{Content, FileTime, Op, SpaceChange};

use crate::{
    backing::{attributes, c_path, proc_path, reopen},
    recorder::{Answer, Handle, Recorder, Who},
};

/// The attributes that a setattr request changes.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub accessed: Option<TimeOrNow>,
    pub modified: Option<TimeOrNow>,
    pub handle: Option<u64>,
}

fn no_content() -> Content {
    Content::Inline([].into())
}

impl Recorder {
    /// Sets owner and mode of a new file and adds its name to the table. Returns its number and
    /// attributes.
    fn adopt(&mut self, who: Who, parent: u64, name: &OsStr, mode: u32) -> Answer<(u64, Stat)> {
        let path = self.at(parent, name)?;
        let c = c_path(&path);
        let root = self.backing.root();
        let mut stat = self.backing.stat(&path)?;
        if (who.uid, who.gid) != self.own {
            let inherits = self.stat(parent)?.st_mode & 0o2000 != 0;
            let gid = (!inherits).then(|| Gid::from_raw(who.gid));
            rustix::fs::chownat(root, &*c, Some(Uid::from_raw(who.uid)), gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        // A directory inherits the set-group-ID bit. The other bits are as requested, independent
        // of this process's umask.
        let inherited = if kind == FileType::Directory { stat.st_mode & 0o2000 } else { 0 };
        let mode = mode & 0o7777 | inherited;
        if kind != FileType::Symlink && stat.st_mode & 0o7777 != mode {
            rustix::fs::chmodat(root, &*c, Mode::from_raw_mode(mode), AtFlags::empty())?;
        }
        stat = self.backing.stat(&path)?;
        let ino = self.backing.number(&stat)?;
        self.table.add(parent, name, ino);
        Ok((ino, stat))
    }

    fn entry(&self, ino: u64, stat: &Stat) -> (FileAttr, u64) {
        (attributes(ino, stat), self.table.generation(ino))
    }

    pub fn mkdir(&mut self, who: Who, parent: u64, name: &OsStr, mode: u32) -> Answer<(FileAttr, u64)> {
        self.may_change()?;
        let path = self.at(parent, name)?;
        rustix::fs::mkdirat(self.backing.root(), &*c_path(&path), Mode::from_raw_mode(mode & 0o7777))?;
        let (ino, stat) = self.adopt(who, parent, name, mode)?;
        self.log(who, Op::Mkdir { path, mode: stat.st_mode & 0o7777 });
        Ok(self.entry(ino, &stat))
    }

    pub fn mknod(&mut self, who: Who, parent: u64, name: &OsStr, mode: u32, device: u32) -> Answer<(FileAttr, u64)> {
        self.may_change()?;
        let path = self.at(parent, name)?;
        let bits = Mode::from_raw_mode(mode & 0o7777);
        let kind = FileType::from_raw_mode(mode);
        rustix::fs::mknodat(self.backing.root(), &*c_path(&path), kind, bits, device.into())?;
        let (ino, stat) = self.adopt(who, parent, name, mode)?;
        match kind {
            FileType::RegularFile => {
                self.log(who, Op::Create { path, mode: stat.st_mode & 0o7777, content: no_content() });
            }
            _ => self.log(who, Op::Mknod { path, mode: stat.st_mode, device: stat.st_rdev }),
        }
        Ok(self.entry(ino, &stat))
    }

    pub fn symlink(&mut self, who: Who, parent: u64, name: &OsStr, target: &Path) -> Answer<(FileAttr, u64)> {
        self.may_change()?;
        let path = self.at(parent, name)?;
        rustix::fs::symlinkat(target, self.backing.root(), &*c_path(&path))?;
        let (ino, stat) = self.adopt(who, parent, name, 0)?;
        self.log(who, Op::Symlink { path, target: target.as_os_str().as_bytes().into() });
        Ok(self.entry(ino, &stat))
    }

    pub fn link(&mut self, who: Who, ino: u64, parent: u64, name: &OsStr) -> Answer<(FileAttr, u64)> {
        self.may_change()?;
        match self.table.path(ino) {
            Some(existing) => {
                let path = self.at(parent, name)?;
                let root = self.backing.root();
                rustix::fs::linkat(root, &*c_path(&existing), root, &*c_path(&path), AtFlags::empty())?;
                self.table.add(parent, name, ino);
                self.log(who, Op::Link { existing, path });
            }
            None => self.name(who, ino, parent, name)?,
        }
        Ok(self.entry(ino, &self.stat(ino)?))
    }

    /// Creates and opens a file. Also returns its handle.
    pub fn create(
        &mut self,
        who: Who,
        parent: u64,
        name: &OsStr,
        mode: u32,
        flags: i32,
    ) -> Answer<(FileAttr, u64, u64)> {
        self.may_change()?;
        let path = self.at(parent, name)?;
        let asked = OFlags::from_bits_truncate(flags as u32);
        let how = asked & OFlags::RWMODE | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let bits = Mode::from_raw_mode(mode & 0o7777);
        let file = match rustix::fs::openat(self.backing.root(), &*c_path(&path), how, bits) {
            // The kernel did not know the file: another process made it in the backing directory.
            Err(Errno::EXIST) if !asked.contains(OFlags::EXCL) => {
                let (found, generation) = self.lookup(parent, name)?;
                let handle = self.open(found.ino.0, flags)?;
                return Ok((found, generation, handle));
            }
            file => file?,
        };
        let (ino, stat) = self.adopt(who, parent, name, mode)?;
        let mode = stat.st_mode & 0o7777;
        self.log(who, Op::Create { path, mode: mode | 0o200, content: no_content() });
        if mode & 0o200 == 0
            && let Some(node) = self.table.node_mut(ino)
        {
            node.lent_write = true;
        }
        let handle = self.keep(Handle::File { file: file.into(), ino });
        let (found, generation) = self.entry(ino, &stat);
        Ok((found, generation, handle))
    }

    /// Renames a file in the log to a hidden name if it is open and about to lose its last name.
    fn hide_if_open(&mut self, who: Who, ino: u64, path: &senesce_core::RelPath) -> bool {
        let last = self.table.node(ino).is_some_and(|node| node.open > 0 && node.names.len() == 1);
        if last {
            let to = self.table.hide(ino);
            self.log(who, Op::Rename { from: path.clone(), to });
        }
        last
    }

    pub fn unlink(&mut self, who: Who, parent: u64, name: &OsStr) -> Answer<()> {
        self.may_change()?;
        let path = self.at(parent, name)?;
        rustix::fs::unlinkat(self.backing.root(), &*c_path(&path), AtFlags::empty())?;
        let ino = self.table.find(parent, name);
        if !ino.is_some_and(|ino| self.hide_if_open(who, ino, &path)) {
            self.log(who, Op::Unlink { path });
        }
        self.table.remove(parent, name);
        Ok(())
    }

    pub fn rmdir(&mut self, who: Who, parent: u64, name: &OsStr) -> Answer<()> {
        self.may_change()?;
        let path = self.at(parent, name)?;
        rustix::fs::unlinkat(self.backing.root(), &*c_path(&path), AtFlags::REMOVEDIR)?;
        self.table.remove(parent, name);
        self.log(who, Op::Rmdir { path });
        Ok(())
    }

    pub fn rename(&mut self, who: Who, from: (u64, &OsStr), to: (u64, &OsStr), flags: u32) -> Answer<()> {
        self.may_change()?;
        let flags = RenameFlags::from_bits(flags).ok_or(Errno::INVAL)?;
        if flags.contains(RenameFlags::WHITEOUT) {
            return Err(Errno::INVAL);
        }
        let (source, target) = (self.at(from.0, from.1)?, self.at(to.0, to.1)?);
        let root = self.backing.root();
        rustix::fs::renameat_with(root, &*c_path(&source), root, &*c_path(&target), flags)?;
        if flags.contains(RenameFlags::EXCHANGE) {
            self.table.exchange(from, to);
            self.log(who, Op::Exchange { first: source, second: target });
            return Ok(());
        }
        let victim = self.table.find(to.0, to.1);
        // Two names of one file: POSIX requires no change, and a replay makes none.
        if victim.is_none() || victim != self.table.find(from.0, from.1) {
            if let Some(victim) = victim {
                self.hide_if_open(who, victim, &target);
            }
            self.table.rename(from, to);
        }
        self.log(who, Op::Rename { from: source, to: target });
        Ok(())
    }

    pub fn write(&mut self, who: Who, handle: u64, offset: u64, bytes: &[u8]) -> Answer<u32> {
        self.may_change()?;
        let Some(Handle::File { file, ino }) = self.handles.get(&handle) else { return Err(Errno::BADF) };
        let ino = *ino;
        let mut written = 0;
        while written < bytes.len() {
            match rustix::io::pwrite(file, &bytes[written..], offset + written as u64) {
                Ok(n) => written += n,
                Err(Errno::INTR) => {}
                // The reply reports the bytes that were written. The client retries the rest and
                // then gets the error.
                Err(_) if written > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        let path = self.table.log_path(ino).ok_or(Errno::STALE)?;
        let content = self.sink.content(&bytes[..written]);
        self.log(who, Op::Write { path, offset, content });
        Ok(written as u32)
    }

    pub fn fallocate(&mut self, who: Who, handle: u64, offset: u64, len: u64, mode: i32) -> Answer<()> {
        self.may_change()?;
        let Some(Handle::File { file, ino }) = self.handles.get(&handle) else { return Err(Errno::BADF) };
        let flags = FallocateFlags::from_bits_retain(mode as u32);
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let how = match flags {
            _ if flags.is_empty() => SpaceChange::Reserve,
            FallocateFlags::KEEP_SIZE => SpaceChange::ReserveKeepSize,
            FallocateFlags::ZERO_RANGE => SpaceChange::Zero,
            _ if flags == punch => SpaceChange::Punch,
            _ if flags == FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE => SpaceChange::ZeroKeepSize,
            _ => return Err(Errno::OPNOTSUPP),
        };
        rustix::fs::fallocate(file, flags, offset, len)?;
        let path = self.table.log_path(*ino).ok_or(Errno::STALE)?;
        self.log(who, Op::Fallocate { path, how, offset, len });
        Ok(())
    }

    pub fn setattr(&mut self, who: Who, ino: u64, wanted: &Wanted) -> Answer<FileAttr> {
        self.may_change()?;
        let place = self.place(ino)?;
        let link = proc_path(&place);
        let path = self.table.log_path(ino).ok_or(Errno::STALE)?;
        let before = rustix::fs::fstat(&place)?.st_mode & 0o7777;
        if let Some(len) = wanted.size {
            match wanted.handle.map(|handle| self.file(handle)) {
                Some(Ok(file)) if rustix::fs::ftruncate(file, len).is_ok() => {}
                _ => rustix::fs::ftruncate(reopen(&place, OFlags::WRONLY)?, len)?,
            }
            self.log(who, Op::Truncate { path: path.clone(), len });
        }
        if wanted.uid.is_some() || wanted.gid.is_some() {
            let (uid, gid) = (wanted.uid.map(Uid::from_raw), wanted.gid.map(Gid::from_raw));
            rustix::fs::chownat(&place, c"", uid, gid, AtFlags::EMPTY_PATH)?;
            self.log(who, Op::Chown { path: path.clone(), uid: wanted.uid, gid: wanted.gid });
        }
        if let Some(mode) = wanted.mode {
            rustix::fs::chmod(&*link, Mode::from_raw_mode(mode & 0o7777))?;
        }
        let after = rustix::fs::fstat(&place)?.st_mode & 0o7777;
        if wanted.mode.is_some() || after != before {
            self.log_mode(who, ino, after);
        }
        if wanted.accessed.is_some() || wanted.modified.is_some() {
            let times =
                Timestamps { last_access: timespec(wanted.accessed), last_modification: timespec(wanted.modified) };
            rustix::fs::utimensat(&place, c"", &times, AtFlags::EMPTY_PATH)?;
            let stat = rustix::fs::fstat(&place)?;
            let time = |unix_seconds: i64, nanoseconds: u64| FileTime { unix_seconds, nanoseconds: nanoseconds as u32 };
            let accessed = wanted.accessed.map(|_| time(stat.st_atime, stat.st_atime_nsec));
            let modified = wanted.modified.map(|_| time(stat.st_mtime, stat.st_mtime_nsec));
            self.log(who, Op::SetTimes { path, accessed, modified });
        }
        Ok(attributes(ino, &rustix::fs::fstat(&place)?))
    }

    /// Logs a mode. A program with an open file may write it although the mode forbids that. A
    /// replay reopens the file for each write, so the owner may write in the log until the file is
    /// closed.
    fn log_mode(&mut self, who: Who, ino: u64, mode: u32) {
        let Some(path) = self.table.log_path(ino) else { return };
        let Some(node) = self.table.node_mut(ino) else { return };
        node.lent_write = node.open > 0 && mode & 0o200 == 0;
        let mode = if node.lent_write { mode | 0o200 } else { mode };
        self.log(who, Op::Chmod { path, mode });
    }

    /// Logs the actual mode of a file.
    pub fn give_back(&mut self, who: Who, ino: u64) {
        let Some(node) = self.table.node_mut(ino) else { return };
        node.lent_write = false;
        if let (Some(path), Ok(stat)) = (self.table.log_path(ino), self.stat(ino)) {
            self.log(who, Op::Chmod { path, mode: stat.st_mode & 0o7777 });
        }
    }

    pub fn release(&mut self, who: Who, handle: u64) {
        let Some(Handle::File { file, ino }) = self.handles.remove(&handle) else { return };
        let Some(node) = self.table.node_mut(ino) else { return };
        node.open -= 1;
        if node.open > 0 {
            return;
        }
        let (hidden, lent) = (node.hidden, node.lent_write);
        if hidden.is_some() {
            if let Some(path) = self.table.log_path(ino) {
                self.log(who, Op::Unlink { path });
            }
        } else if lent {
            self.give_back(who, ino);
        }
        self.table.forget_if_gone(ino);
        drop(file);
    }

    pub fn fsync(&mut self, who: Who, ino: u64, handle: Option<u64>, data_only: bool) -> Answer<()> {
        match handle {
            Some(handle) if data_only => rustix::fs::fdatasync(self.file(handle)?)?,
            Some(handle) => rustix::fs::fsync(self.file(handle)?)?,
            None => rustix::fs::fsync(reopen(&self.place(ino)?, OFlags::RDONLY)?)?,
        }
        if self.trouble.is_none()
            && let Some(path) = self.table.log_path(ino)
        {
            self.log(who, Op::Fsync { path });
        }
        Ok(())
    }

    pub fn setxattr(&mut self, who: Who, ino: u64, name: &OsStr, value: &[u8], flags: i32) -> Answer<()> {
        self.may_change()?;
        let place = self.place(ino)?;
        let flags = XattrFlags::from_bits_truncate(flags as u32);
        rustix::fs::setxattr(proc_path(&place), name.as_bytes(), value, flags)?;
        if let Some(node) = self.table.node_mut(ino) {
            node.no_capabilities = false;
        }
        let path = self.table.log_path(ino).ok_or(Errno::STALE)?;
        self.log(who, Op::SetXattr { path, name: name.as_bytes().into(), value: value.into() });
        Ok(())
    }

    pub fn removexattr(&mut self, who: Who, ino: u64, name: &OsStr) -> Answer<()> {
        self.may_change()?;
        let place = self.place(ino)?;
        rustix::fs::removexattr(proc_path(&place), name.as_bytes())?;
        let path = self.table.log_path(ino).ok_or(Errno::STALE)?;
        self.log(who, Op::RemoveXattr { path, name: name.as_bytes().into() });
        Ok(())
    }
}

fn timespec(time: Option<TimeOrNow>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(TimeOrNow::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(TimeOrNow::SpecificTime(time)) => match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => Timespec { tv_sec: after.as_secs() as i64, tv_nsec: after.subsec_nanos().into() },
            Err(before) => {
                let before = before.duration();
                let borrowed = i64::from(before.subsec_nanos() > 0);
                let nanoseconds = (1_000_000_000 - i64::from(before.subsec_nanos())) % 1_000_000_000;
                Timespec { tv_sec: -(before.as_secs() as i64) - borrowed, tv_nsec: nanoseconds }
            }
        },
    }
}

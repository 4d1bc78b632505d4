//! Effects of system calls on the `World` of a trace.

use senesce_oplog::{Op, SpaceChange};

use super::{
    Import,
    line::{Call, unquote},
    world::{Entry, number, octal},
};
use crate::Result;

impl Import {
    /// Applies a successful call.
    pub(super) fn call(&mut self, pid: u32, call: &Call, result: i64) -> Result<()> {
        let a = |index: usize| call.arguments.get(index).map_or("", String::as_str);
        let len = result.unsigned_abs();
        let unsigned = |text: &str| number(text).and_then(|number| u64::try_from(number).ok());
        match call.name.as_str() {
            "execve" => {
                let program = unquote(a(0)).unwrap_or_default();
                let name = program.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
                self.programs.insert(pid, String::from_utf8_lossy(name).into_owned());
            }
            "clone" | "clone3" | "fork" | "vfork" => {
                let shares = call.arguments.iter().any(|argument| argument.contains("CLONE_FILES"));
                if let Ok(child) = u32::try_from(result) {
                    self.world.fork(pid, child, shares);
                    if let Some(program) = self.programs.get(&pid).cloned() {
                        self.programs.entry(child).or_insert(program);
                    }
                }
            }
            "chdir" => {
                if let Some(path) = self.world.path(pid, None, a(0)) {
                    self.world.process(pid).cwd = path;
                }
            }
            "fchdir" => {
                if let (Some(path), _) = self.of_descriptor(pid, a(0)) {
                    self.world.process(pid).cwd = path;
                }
            }
            "umask" => {
                if let Some(umask) = octal(a(0)) {
                    self.world.process(pid).umask = umask;
                }
            }
            "open" => {
                let path = self.world.path(pid, None, a(0));
                self.open(pid, path, a(1), a(2), result)?;
            }
            "openat" => {
                let path = self.world.path(pid, Some(a(0)), a(1));
                self.open(pid, path, a(2), a(3), result)?;
            }
            "creat" => {
                let path = self.world.path(pid, None, a(0));
                self.open(pid, path, "O_WRONLY|O_CREAT|O_TRUNC", a(1), result)?;
            }
            "close" => self.world.close(pid, a(0)),
            "dup" | "dup2" | "dup3" => self.world.duplicate(pid, a(0), result),
            "fcntl" if a(1).starts_with("F_DUPFD") => self.world.duplicate(pid, a(0), result),
            "pipe" | "pipe2" | "socket" | "socketpair" | "accept" | "accept4" | "epoll_create1" | "eventfd2" => {}
            "write" | "writev" => self.write(pid, a(0), None, len)?,
            "pwrite64" | "pwritev" => self.write(pid, a(0), unsigned(a(3)), len)?,
            "sendfile" | "sendfile64" => self.write(pid, a(0), None, len)?,
            "copy_file_range" | "splice" if a(3) == "NULL" => self.write(pid, a(2), None, len)?,
            "read" | "readv" => {
                if let Some(open) = self.world.open_of(pid, a(0)) {
                    open.offset = open.offset.saturating_add(len);
                }
            }
            "lseek" => {
                if let Some(open) = self.world.open_of(pid, a(0)) {
                    open.offset = len;
                }
            }
            "ftruncate" | "ftruncate64" => {
                if let ((_, Some(file)), Some(len)) = (self.of_descriptor(pid, a(0)), unsigned(a(1))) {
                    self.truncate(file, len)?;
                }
            }
            "truncate" | "truncate64" => {
                if let (Some(path), Some(len)) = (self.world.path(pid, None, a(0)), unsigned(a(1)))
                    && let Some(Entry::File(file)) = self.assume(&path, false)?
                {
                    self.truncate(file, len)?;
                }
            }
            "fallocate" => self.fallocate(pid, a(0), a(1), unsigned(a(2)), unsigned(a(3)))?,
            "rename" => {
                let (from, to) = (self.world.path(pid, None, a(0)), self.world.path(pid, None, a(1)));
                self.rename(from, to, false)?;
            }
            "renameat" | "renameat2" => {
                let (from, to) = (self.world.path(pid, Some(a(0)), a(1)), self.world.path(pid, Some(a(2)), a(3)));
                self.rename(from, to, a(4).contains("RENAME_EXCHANGE"))?;
            }
            "unlink" | "rmdir" => {
                if let Some(path) = self.world.path(pid, None, a(0)) {
                    self.remove(&path, call.name == "rmdir")?;
                }
            }
            "unlinkat" => {
                if let Some(path) = self.world.path(pid, Some(a(0)), a(1)) {
                    self.remove(&path, a(2).contains("AT_REMOVEDIR"))?;
                }
            }
            "link" => {
                let (from, to) = (self.world.path(pid, None, a(0)), self.world.path(pid, None, a(1)));
                self.link(from, to)?;
            }
            "linkat" => {
                let (from, to) = (self.world.path(pid, Some(a(0)), a(1)), self.world.path(pid, Some(a(2)), a(3)));
                self.link(from, to)?;
            }
            "symlink" => {
                let path = self.world.path(pid, None, a(1));
                self.symlink(a(0), path)?;
            }
            "symlinkat" => {
                let path = self.world.path(pid, Some(a(1)), a(2));
                self.symlink(a(0), path)?;
            }
            "mkdir" => {
                let path = self.world.path(pid, None, a(0));
                self.mkdir(pid, path, a(1))?;
            }
            "mkdirat" => {
                let path = self.world.path(pid, Some(a(0)), a(1));
                self.mkdir(pid, path, a(2))?;
            }
            "chmod" => {
                let path = self.world.path(pid, None, a(0));
                self.chmod(path, a(1))?;
            }
            "fchmodat" | "fchmodat2" => {
                let path = self.world.path(pid, Some(a(0)), a(1));
                self.chmod(path, a(2))?;
            }
            "fchmod" => {
                let (path, _) = self.of_descriptor(pid, a(0));
                self.chmod(path, a(1))?;
            }
            "fsync" | "fdatasync" => {
                if let (_, Some(file)) = self.of_descriptor(pid, a(0))
                    && let Some(path) = self.named(file)
                {
                    self.log(Op::Fsync { path })?;
                }
            }
            "mmap" | "mmap2" if a(2).contains("PROT_WRITE") && a(3).contains("MAP_SHARED") => {
                let (_, file) = self.of_descriptor(pid, a(4));
                self.counts.maps += u64::from(file.is_some());
            }
            _ => {}
        }
        Ok(())
    }

    fn fallocate(&mut self, pid: u32, fd: &str, mode: &str, offset: Option<u64>, len: Option<u64>) -> Result<()> {
        let ((_, Some(file)), Some(offset), Some(len)) = (self.of_descriptor(pid, fd), offset, len) else {
            return Ok(());
        };
        let keeps = mode.contains("KEEP_SIZE");
        let how = match () {
            () if mode.contains("PUNCH_HOLE") => SpaceChange::Punch,
            () if mode.contains("ZERO_RANGE") && keeps => SpaceChange::ZeroKeepSize,
            () if mode.contains("ZERO_RANGE") => SpaceChange::Zero,
            () if mode == "0" => SpaceChange::Reserve,
            () if keeps => SpaceChange::ReserveKeepSize,
            () => return Ok(()),
        };
        if how.grows() {
            self.world.files[file].len = self.world.files[file].len.max(offset.saturating_add(len));
        }
        match self.named(file) {
            Some(path) => self.log(Op::Fallocate { path, how, offset, len }),
            None => Ok(()),
        }
    }
}

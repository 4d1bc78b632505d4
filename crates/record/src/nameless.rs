//! Files created without a name (O_TMPFILE). In the log they have a hidden name, as files that lost
//! their last name do.

use std::ffi::OsStr;

use fuser::FileAttr;
use rustix::{
    fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid},
    io::Errno,
};
use senesce_oplog::{Content, Op};

use crate::{
    backing::{attributes, c_path, proc_path},
    recorder::{Answer, Handle, Recorder, Who},
};

impl Recorder {
    /// Creates and opens a file without a name in a directory. Also returns its handle.
    pub fn create_nameless(&mut self, who: Who, parent: u64, mode: u32, flags: i32) -> Answer<(FileAttr, u64, u64)> {
        self.may_change()?;
        let directory = self.directory(parent)?;
        // The kernel enforces O_EXCL, which forbids a later name; the backing file always permits
        // one.
        let how = OFlags::from_bits_truncate(flags as u32) & OFlags::RWMODE | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mode = mode & 0o7777;
        let file = rustix::fs::openat(self.backing.root(), &*c_path(&directory), how, Mode::from_raw_mode(mode))?;
        if (who.uid, who.gid) != self.own {
            let inherits = self.stat(parent)?.st_mode & 0o2000 != 0;
            let gid = (!inherits).then(|| Gid::from_raw(who.gid));
            rustix::fs::fchown(&file, Some(Uid::from_raw(who.uid)), gid)?;
        }
        // As requested, independent of this process's umask.
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        let stat = rustix::fs::fstat(&file)?;
        let ino = self.backing.number(&stat)?;
        let hidden = self.table.add_nameless(ino);
        // File systems place a file near its directory, so a replay creates it there. It then moves
        // the file to the root, because the directory may be removed.
        let born = directory.join(&hidden);
        self.log(who, Op::Create { path: born.clone(), mode: mode | 0o200, content: Content::Inline([].into()) });
        if born != hidden {
            self.log(who, Op::Rename { from: born, to: hidden });
        }
        if let Some(node) = self.table.node_mut(ino) {
            node.lent_write = mode & 0o200 == 0;
        }
        let handle = self.keep(Handle::File { file: file.into(), ino });
        Ok((attributes(ino, &stat), self.table.generation(ino), handle))
    }

    /// Gives a file without a name its first name.
    pub fn name(&mut self, who: Who, ino: u64, parent: u64, name: &OsStr) -> Answer<()> {
        let path = self.at(parent, name)?;
        let from = self.table.log_path(ino).ok_or(Errno::NOENT)?;
        let place = self.place(ino)?;
        rustix::fs::linkat(CWD, proc_path(&place), self.backing.root(), &*c_path(&path), AtFlags::SYMLINK_FOLLOW)?;
        self.table.add(parent, name, ino);
        if let Some(node) = self.table.node_mut(ino) {
            node.hidden = None;
        }
        self.log(who, Op::Rename { from, to: path });
        Ok(())
    }
}

//! Decides which repositories may be read, and opens their files.
//!
//! A repository is untrusted input. Each of its files is opened without waiting (a FIFO must not
//! block), checked through the open descriptor, and read from that descriptor.
//! [`crate::SpoolRepository`] is the only caller.

use std::{
    cell::Cell,
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, fstat, openat},
    io::Errno,
};

use crate::Error;

/// The users whose repositories are read.
///
/// A repository of any other user is refused, as in git, because the writer of a repository
/// controls what its reader does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedOwners {
    uids: Vec<u32>,
    anyone: bool,
}

impl TrustedOwners {
    /// Trusts root and the effective user. If that is root, also trusts `sudo`, the user who ran
    /// sudo (`SUDO_UID`).
    pub fn new(effective: u32, sudo: Option<u32>) -> Self {
        let mut uids = vec![0, effective];
        uids.extend(sudo.filter(|_| effective == 0));
        Self { uids, anyone: false }
    }

    /// Trusts every user (`--trust-repo`). Git still never runs on the repository itself.
    pub fn trusting_anyone(self) -> Self {
        Self { anyone: true, ..self }
    }

    fn trusts(&self, uid: u32) -> bool {
        self.anyone || self.uids.contains(&uid)
    }

    fn is_ordinary(&self, uid: u32) -> bool {
        self.uids.contains(&uid)
    }
}

/// Opens files and directories of one repository.
pub(crate) struct Reader<'a> {
    /// The repository as the user named it, for messages.
    path: &'a Path,
    owners: &'a TrustedOwners,
    /// The first owner that only `--trust-repo` allows. From then on, directories that the
    /// repository points to must belong to the same user, and links in it are not followed: root
    /// could read files that this user cannot.
    stranger: Cell<Option<u32>>,
}

impl<'a> Reader<'a> {
    /// A reader of the repository at `path`.
    pub fn new(path: &'a Path, owners: &'a TrustedOwners) -> Self {
        Self { path, owners, stranger: Cell::new(None) }
    }

    /// Opens a directory by its path, which the repository may have chosen, and checks its owner.
    pub fn dir(&self, path: &Path) -> Result<OwnedFd, Error> {
        let fd = openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let fd = fd.map_err(|source| Error::io("open", path)(source.into()))?;
        self.check_owner(&fd, path)?;
        Ok(fd)
    }

    /// Opens the directory `name` in `dir`; `None` if it does not exist.
    ///
    /// The owner of a real directory is not checked: several users write to a shared repository,
    /// and objects are checked when they are read. A link is followed like any path, unless an
    /// untrusted user owns the repository.
    pub fn subdir(&self, dir: impl AsFd, name: &str, shown: &Path) -> Result<Option<OwnedFd>, Error> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match openat(dir, name, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) if self.stranger.get().is_some() => Err(self.irregular(shown)),
            Err(Errno::NOTDIR | Errno::LOOP) => self.dir(shown).map(Some),
            Err(source) => Err(Error::io("open", shown)(source.into())),
        }
    }

    /// Opens the regular file `name` in `dir`; `None` if it does not exist. Symbolic links are
    /// refused.
    pub fn file(&self, dir: impl AsFd, name: &str, shown: &Path) -> Result<Option<File>, Error> {
        let flags = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = match openat(dir, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(self.irregular(shown)),
            Err(source) => return Err(Error::io("open", shown)(source.into())),
        };
        let is_file = FileType::from_raw_mode(self.stat(&fd, shown)?.st_mode) == FileType::RegularFile;
        if is_file { Ok(Some(fd.into())) } else { Err(self.irregular(shown)) }
    }

    /// Reads the small file `name` in `dir`; `None` if it does not exist. Errors: more than `most`
    /// bytes.
    pub fn text(&self, dir: impl AsFd, name: &str, shown: &Path, most: u64) -> Result<Option<Vec<u8>>, Error> {
        let Some(file) = self.file(dir, name, shown)? else { return Ok(None) };
        let mut text = Vec::new();
        file.take(most + 1).read_to_end(&mut text).map_err(Error::io("read", shown))?;
        if text.len() as u64 > most {
            let problem = io::Error::other(format!("it has more than {most} bytes"));
            return Err(Error::io("read", shown)(problem));
        }
        Ok(Some(text))
    }

    /// The names in a directory, sorted. Names that are not UTF-8 are left out.
    pub fn names(&self, dir: impl AsFd, shown: &Path) -> Result<Vec<String>, Error> {
        let list = || -> rustix::io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in rustix::fs::Dir::read_from(dir)? {
                names.extend(entry?.file_name().to_str().ok().map(str::to_owned));
            }
            names.retain(|name| name != "." && name != "..");
            names.sort_unstable();
            Ok(names)
        };
        list().map_err(|source| Error::io("list", shown)(source.into()))
    }

    /// Refuses a file of a user who is not trusted. If only `--trust-repo` allows the repository,
    /// the owner of a file is not checked, because several users may share the repository.
    pub fn check_file_owner(&self, file: &File, place: &Path) -> Result<(), Error> {
        if self.stranger.get().is_some() { Ok(()) } else { self.check_owner(file, place) }
    }

    /// Refuses a directory or file of a user who is not trusted.
    pub fn check_owner(&self, fd: impl AsFd, place: &Path) -> Result<(), Error> {
        let owner = self.stat(fd, place)?.st_uid;
        let paths = || (self.path.to_owned(), place.to_owned());
        match self.stranger.get() {
            Some(stranger) if stranger != owner => {
                let (path, place) = paths();
                Err(Error::Elsewhere { path, place, owner, stranger })
            }
            None if !self.owners.trusts(owner) => {
                let (path, place) = paths();
                Err(Error::ForeignOwner { path, place, owner })
            }
            _ => {
                self.stranger.set(self.stranger.get().or((!self.owners.is_ordinary(owner)).then_some(owner)));
                Ok(())
            }
        }
    }

    fn stat(&self, fd: impl AsFd, path: &Path) -> Result<rustix::fs::Stat, Error> {
        fstat(fd).map_err(|source| Error::io("stat", path)(source.into()))
    }

    fn irregular(&self, place: &Path) -> Error {
        Error::Irregular { path: self.path.to_owned(), place: place.to_owned() }
    }
}

/// The directory that a link file of git names (`gitdir: X` in `.git`, or `commondir`), relative to
/// `base`.
pub(crate) fn resolve(base: &Path, target: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let end = target.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |at| at + 1);
    base.join(std::ffi::OsStr::from_bytes(&target[..end]))
}

//! A directory that no other user can change. Its files are opened through its descriptor.
//!
//! The registry decides which files root writes, and which directories `clean` visits. If another
//! user could prepare a registry below `/var/tmp`, that user would decide it. So every component of
//! the path is checked before it is used.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use crate::{
    Error, Result,
    guest_owners::{is_own, is_system},
};

/// The kernel's limit for one path (path_resolution(7)).
const MOST_LINKS: u32 = 40;
const WRITABLE_BY_OTHERS: u32 = 0o022;
const WRITABLE_BY_ALL: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// An open directory of this user, which no other user can write, move or replace.
#[derive(Debug)]
pub(super) struct PrivateDir {
    fd: OwnedFd,
    path: PathBuf,
}

impl PrivateDir {
    /// Opens the directory. `None` if a component of the path does not exist.
    ///
    /// Errors: another user could change a component of the path ([`Error::UnsafeDirectory`]).
    pub fn open(path: &Path) -> Result<Option<Self>> {
        let fd = walk(path, false, Rule::Private)?;
        Ok(fd.map(|fd| Self { fd, path: path.to_owned() }))
    }

    /// Opens the directory. Creates the components that do not exist, for this user alone.
    pub fn create(path: &Path) -> Result<Self> {
        let fd =
            walk(path, true, Rule::Private)?.ok_or_else(|| Error::io("create the directory", path)(Errno::NOENT))?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// The names in the directory, sorted.
    pub fn names(&self) -> Result<Vec<OsString>> {
        let listed = Dir::read_from(&self.fd).and_then(|entries| {
            let name = |entry: rustix::fs::DirEntry| OsString::from_vec(entry.file_name().to_bytes().to_vec());
            entries.map(|entry| entry.map(name)).collect::<rustix::io::Result<Vec<_>>>()
        });
        let mut names = listed.map_err(Error::io("list", &self.path))?;
        names.retain(|name| name != "." && name != "..");
        names.sort();
        Ok(names)
    }

    /// Reads a regular file of this user, up to `most_bytes`.
    ///
    /// Errors: the file is a link or no regular file, belongs to another user, or is longer.
    pub fn read(&self, name: &OsStr, most_bytes: usize) -> Result<Vec<u8>> {
        let path = self.path.join(name);
        let file = open_regular(self.fd.as_fd(), name, OFlags::RDONLY, &path)?;
        senesce_core::input::read_bytes(file, most_bytes).map_err(Error::std("read", &path))
    }

    /// Writes a file under a temporary name, syncs it, and renames it.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let partial = format!("{name}.partial");
        let write = || -> io::Result<()> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let open = || rustix::fs::openat(&self.fd, &partial, flags, Mode::RUSR | Mode::WUSR);
            let mut file = match open() {
                // A killed process left it. Only this user can have made it.
                Err(Errno::EXIST) => {
                    rustix::fs::unlinkat(&self.fd, &partial, AtFlags::empty())?;
                    File::from(open()?)
                }
                opened => File::from(opened?),
            };
            file.write_all(bytes)?;
            file.sync_all()?;
            rustix::fs::renameat(&self.fd, &partial, &self.fd, name)?;
            Ok(rustix::fs::fsync(&self.fd)?)
        };
        write().map_err(Error::std("write", self.path.join(name)))
    }

    /// Creates a directory for this user alone. `false` if the name is taken.
    pub fn create_dir(&self, name: &str) -> Result<bool> {
        match rustix::fs::mkdirat(&self.fd, name, Mode::RWXU) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(Error::io("create the directory", self.path.join(name))(errno)),
        }
    }

    /// Removes a file. A missing file is no error.
    pub fn remove(&self, name: &str) -> Result<()> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(Error::io("remove", self.path.join(name))(errno)),
        }
    }
}

/// Opens a regular file of this user in the directory `dir`. Never follows a link and never waits
/// for a FIFO.
///
/// `path` is its path for errors.
pub(super) fn open_regular(dir: BorrowedFd<'_>, name: &OsStr, flags: OFlags, path: &Path) -> Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR).map_err(Error::io("open", path))?;
    let stat = rustix::fs::fstat(&file).map_err(Error::io("look up", path))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        let why = "it is no regular file";
        return Err(Error::NotPossible { operation: "read", path: path.to_owned(), why });
    }
    if !is_own(stat.st_uid) || stat.st_mode & WRITABLE_BY_OTHERS != 0 {
        return Err(Error::ForeignJournal { path: path.to_owned(), uid: stat.st_uid });
    }
    Ok(file.into())
}

/// Checks a directory that the user named for the files of a run.
///
/// Outside shared directories every owner is trusted: root may write below a user's home, because
/// the caller named it.
///
/// Errors: the path goes through a directory that all users share, such as /tmp, and another user
/// made, or could replace, a component of it.
pub fn check_place(dir: &Path) -> Result<()> {
    match walk(dir, false, Rule::Named)? {
        Some(_) => Ok(()),
        None => Err(Error::io("open", dir)(Errno::NOENT)),
    }
}

/// The requirements on a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// No other user can change any component, and the last one belongs to this user.
    Private,
    /// The requirements of [`check_place`].
    Named,
}

/// Opens a directory component by component, and checks each one. Creates missing ones if
/// `is_created`.
fn walk(path: &Path, is_created: bool, rule: Rule) -> Result<Option<OwnedFd>> {
    let wrong = |at: &Path, problem: String| Error::UnsafeDirectory {
        path: path.to_owned(),
        component: at.to_owned(),
        problem,
    };
    let absolute = std::path::absolute(path).map_err(Error::std("look up", path))?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open_root = || rustix::fs::openat(CWD, "/", flags, Mode::empty()).map_err(Error::io("open", "/"));
    let mut at = PathBuf::from("/");
    let mut fd = open_root()?;
    let mut left: VecDeque<OsString> = components(&absolute).collect();
    let mut links = 0;
    // Whether every user can create names in the open directory.
    let mut is_shared = false;
    check(&fd, rule, false, &mut is_shared).map_err(|problem| wrong(&at, problem))?;
    while let Some(name) = left.pop_front() {
        let here = at.join(&name);
        let opened = match rustix::fs::openat(&fd, &name, flags, Mode::empty()) {
            Err(Errno::NOENT) if !is_created => return Ok(None),
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&fd, &name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(Error::io("create the directory", &here)(errno)),
                }
                rustix::fs::openat(&fd, &name, flags, Mode::empty())
            }
            opened => opened,
        };
        let opened = opened.map_err(Error::io("open", &here))?;
        let stat = rustix::fs::fstat(&opened).map_err(Error::io("look up", &here))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            check(&opened, rule, left.is_empty(), &mut is_shared).map_err(|problem| wrong(&here, problem))?;
            (fd, at) = (opened, here);
            continue;
        }
        // The directory that holds the link was checked, so the link's owner made it.
        links += 1;
        let is_free = rule == Rule::Named && !is_shared;
        if !is_trusted(&stat) && !is_free || links > MOST_LINKS {
            return Err(wrong(&here, format!("is a symbolic link of user {}", stat.st_uid)));
        }
        let target = rustix::fs::readlinkat(&opened, "", Vec::new()).map_err(Error::io("read the link", &here))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            (fd, at) = (open_root()?, PathBuf::from("/"));
        }
        components(&target).rev().for_each(|name| left.push_front(name));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(&fd, ".", flags, Mode::empty()).map(Some).map_err(Error::io("open", path))
}

/// The names to open one after the other, including `..`.
fn components(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(_) | Component::ParentDir => Some(component.as_os_str().to_owned()),
        _ => None,
    })
}

fn is_trusted(stat: &Stat) -> bool {
    is_system(stat.st_uid) || is_own(stat.st_uid)
}

/// Checks one directory of the path. On entry, `is_shared` is whether all users share its parent.
/// On return, it is whether all users share the directory.
fn check(dir: &OwnedFd, rule: Rule, is_last: bool, is_shared: &mut bool) -> std::result::Result<(), String> {
    let stat = rustix::fs::fstat(dir).map_err(|errno| format!("cannot be looked up: {errno}"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err("is no directory".to_owned());
    }
    let (owner, mode) = (stat.st_uid, stat.st_mode & 0o7777);
    // In a sticky directory of root, such as /var/tmp, users can move and remove only their own
    // files.
    let is_sticky = mode & STICKY != 0 && is_system(owner);
    let (is_foreign, is_open) = match rule {
        Rule::Private => {
            (!is_trusted(&stat) || is_last && !is_own(owner), mode & WRITABLE_BY_OTHERS != 0 && (is_last || !is_sticky))
        }
        Rule::Named => (*is_shared && !is_trusted(&stat), mode & WRITABLE_BY_ALL != 0 && !is_sticky),
    };
    *is_shared = mode & WRITABLE_BY_ALL != 0;
    match (is_foreign, is_open) {
        (true, _) => Err(format!("belongs to user {owner}")),
        (_, true) => Err(format!("can be written by other users (mode {mode:04o})")),
        _ => Ok(()),
    }
}

/// The bytes of a path, for a file that holds it.
pub(super) fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    };

    use super::*;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn problem(path: &Path) -> String {
        match PrivateDir::create(path) {
            Err(Error::UnsafeDirectory { component, problem, .. }) => format!("{} {problem}", component.display()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn missing_components_are_created_for_this_user_alone() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b/c");
        assert!(PrivateDir::open(&path).unwrap().is_none());
        let dir = PrivateDir::create(&path).unwrap();
        for created in [&path, path.parent().unwrap()] {
            assert_eq!(fs::metadata(created).unwrap().mode() & 0o7777, 0o700);
        }
        dir.replace("x", b"first").unwrap();
        fs::write(path.join("x.partial"), "left by a kill").unwrap();
        dir.replace("x", b"second").unwrap();
        assert_eq!(dir.names().unwrap(), ["x"]);
        assert_eq!(dir.read(OsStr::new("x"), 6).unwrap(), b"second");
        assert!(dir.read(OsStr::new("x"), 5).is_err());
        assert!(dir.create_dir("y").unwrap() && !dir.create_dir("y").unwrap());
        dir.remove("x").unwrap();
        dir.remove("x").unwrap();
        assert_eq!(dir.names().unwrap(), ["y"]);
    }

    #[test]
    fn a_component_that_others_can_write_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        for mode in [0o770, 0o707, 0o777] {
            chmod(temp.path(), mode);
            for path in [temp.path().to_owned(), temp.path().join("below")] {
                assert!(problem(&path).contains("can be written by other users"), "{mode:o}");
            }
        }
        chmod(temp.path(), 0o700);
        PrivateDir::create(temp.path()).unwrap();
        // A registry is never a shared directory itself, not even a sticky one.
        assert!(problem(Path::new("/tmp")).starts_with("/tmp "));
    }

    #[test]
    fn the_target_of_an_own_link_is_checked() {
        let temp = tempfile::tempdir().unwrap();
        let (open, link) = (temp.path().join("open"), temp.path().join("link"));
        fs::create_dir(&open).unwrap();
        symlink("open", &link).unwrap();
        PrivateDir::create(&link.join("below")).unwrap();
        assert!(open.join("below").is_dir());
        chmod(&open, 0o777);
        assert_eq!(problem(&link), format!("{} can be written by other users (mode 0777)", open.display()));
        let circle = temp.path().join("circle");
        symlink("circle", &circle).unwrap();
        assert!(problem(&circle).contains("symbolic link"));
    }

    #[test]
    fn links_and_pipes_are_not_read() {
        let temp = tempfile::tempdir().unwrap();
        let dir = PrivateDir::create(temp.path()).unwrap();
        fs::write(temp.path().join("file"), "x").unwrap();
        symlink("file", temp.path().join("link")).unwrap();
        rustix::fs::mknodat(CWD, temp.path().join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for name in ["link", "pipe"] {
            assert!(dir.read(OsStr::new(name), 10).is_err(), "{name}");
        }
        chmod(&temp.path().join("file"), 0o666);
        assert!(matches!(dir.read(OsStr::new("file"), 10), Err(Error::ForeignJournal { .. })));
    }

    #[test]
    fn a_registry_that_another_user_prepared_is_refused() {
        if !senesce_testkit::root_or_skip("giving files to another user") {
            return;
        }
        const NOBODY: u32 = 65_534;
        let temp = tempfile::tempdir().unwrap();
        let theirs = temp.path().join("senesce");
        fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(NOBODY), None).unwrap();
        assert!(problem(&theirs).ends_with("belongs to user 65534"));
        assert!(problem(&theirs.join("runs")).ends_with("belongs to user 65534"));
        // A link in a directory like /var/tmp.
        let (shared, target) = (temp.path().join("shared"), temp.path().join("target"));
        fs::create_dir(&shared).unwrap();
        fs::create_dir(&target).unwrap();
        chmod(&shared, 0o1777);
        let link = shared.join("senesce");
        symlink(&target, &link).unwrap();
        PrivateDir::create(&link).unwrap();
        std::os::unix::fs::lchown(&link, Some(NOBODY), None).unwrap();
        assert!(problem(&link).ends_with("is a symbolic link of user 65534"));
    }

    #[test]
    fn prepared_places_in_shared_directories_are_refused() {
        if !senesce_testkit::root_or_skip("giving files to another user") {
            return;
        }
        const NOBODY: u32 = 65_534;
        let temp = tempfile::tempdir().unwrap();
        let (shared, home) = (temp.path().join("shared"), temp.path().join("home"));
        for dir in [&shared, &home] {
            fs::create_dir_all(dir.join("runs/1")).unwrap();
        }
        chmod(&shared, 0o1777);
        let problem = |path: &Path| check_place(path).unwrap_err().to_string();
        std::os::unix::fs::chown(&home, Some(NOBODY), None).unwrap();
        std::os::unix::fs::chown(home.join("runs"), Some(NOBODY), None).unwrap();
        for good in [&home, &home.join("runs/1"), &shared, &shared.join("runs/1"), Path::new("/tmp")] {
            check_place(good).unwrap();
        }
        std::os::unix::fs::chown(shared.join("runs"), Some(NOBODY), None).unwrap();
        assert!(problem(&shared.join("runs/1")).ends_with("shared/runs belongs to user 65534"));
        symlink(&home, shared.join("link")).unwrap();
        check_place(&shared.join("link")).unwrap();
        std::os::unix::fs::lchown(shared.join("link"), Some(NOBODY), None).unwrap();
        assert!(problem(&shared.join("link")).ends_with("link is a symbolic link of user 65534"));
        chmod(&shared, 0o777);
        assert!(problem(&shared).contains("can be written by other users"));
        check_place(&temp.path().join("missing")).unwrap_err();
    }
}

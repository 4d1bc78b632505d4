//! Finds the parts of a repository that another program wrote, and copies its objects and
//! references.
//!
//! This module only reads bytes. Neither git nor gix opens the repository, so its configuration has
//! no effect.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use crate::{
    Error,
    trusted_repositories::{Reader, TrustedOwners, resolve},
};

/// Limits of the files that are read into memory, bytes.
const CONFIG_BYTES: u64 = 1 << 20;
const LINK_BYTES: u64 = 4 << 10;
const PACKED_REFS_BYTES: u64 = 256 << 20;
/// The depth of alternates of alternates, as in git.
const ALTERNATES_DEPTH: usize = 5;
/// The largest depth of directories of references.
const REFS_DEPTH: usize = 64;
/// Bytes that are copied between two checks for a signal.
const COPY_BYTES: u64 = 64 << 20;

/// Returns whether to continue. Called at least once for every [`COPY_BYTES`].
pub(crate) type KeepGoing<'a> = &'a dyn Fn() -> bool;

/// The parts of a repository.
pub(crate) struct Foreign<'a> {
    path: &'a Path,
    reader: Reader<'a>,
    git_dir: PathBuf,
    common_dir: PathBuf,
    /// Its object directory, then those of its alternates.
    objects: Vec<(PathBuf, OwnedFd)>,
    keep_going: KeepGoing<'a>,
}

impl<'a> Foreign<'a> {
    /// Finds the repository at `path`, bare or not, and checks its owners.
    ///
    /// Errors: no repository, another owner, a partial or shallow clone, another object format than
    /// SHA-1.
    pub fn open(path: &'a Path, owners: &'a TrustedOwners, keep_going: KeepGoing<'a>) -> Result<Self, Error> {
        if !path.exists() {
            return Err(Error::Missing { path: path.to_owned() });
        }
        let not = |problem: &str| Error::NotARepository { path: path.to_owned(), source: problem.into() };
        if !path.is_dir() {
            return Err(not("it is not a directory"));
        }
        let reader = Reader::new(path, owners);
        let git_dir = find_git_dir(path, &reader)?;
        let git = reader.dir(&git_dir)?;
        let common_dir = match reader.text(&git, "commondir", &git_dir.join("commondir"), LINK_BYTES)? {
            Some(target) => resolve(&git_dir, &target),
            None => git_dir.clone(),
        };
        let common = reader.dir(&common_dir)?;
        if reader.text(&git, "HEAD", &git_dir.join("HEAD"), LINK_BYTES)?.is_none() {
            return Err(not("it has no HEAD"));
        }
        let shown = common_dir.join("objects");
        if !shown.is_dir() {
            return Err(not("it has no directory of objects"));
        }
        let objects = reader.dir(&shown)?;
        if let Some(config) = reader.file(&common, "config", &common_dir.join("config"))? {
            reader.check_file_owner(&config, &common_dir.join("config"))?;
        }
        let config = reader.text(&common, "config", &common_dir.join("config"), CONFIG_BYTES)?.unwrap_or_default();
        check_config(path, &config)?;
        if reader.file(&common, "shallow", &common_dir.join("shallow"))?.is_some_and(|file| !is_empty(&file)) {
            return Err(Error::Shallow { path: path.to_owned() });
        }
        let mut found = Self { path, reader, git_dir, common_dir, objects: Vec::new(), keep_going };
        found.add_objects(shown, objects, &mut HashSet::new(), 0)?;
        Ok(found)
    }

    fn add_objects(
        &mut self,
        dir: PathBuf,
        fd: OwnedFd,
        known: &mut HashSet<PathBuf>,
        depth: usize,
    ) -> Result<(), Error> {
        if !known.insert(fs::canonicalize(&dir).map_err(Error::io("look up", &dir))?) {
            return Ok(());
        }
        let info = self.reader.subdir(&fd, "info", &dir.join("info"))?;
        let shown = dir.join("info/alternates");
        let list = match &info {
            Some(info) => self.reader.text(info, "alternates", &shown, CONFIG_BYTES)?.unwrap_or_default(),
            None => Vec::new(),
        };
        let base = dir.clone();
        self.objects.push((dir, fd));
        for line in list.split(|&byte| byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#') {
            if line[0] == b'"' || depth == ALTERNATES_DEPTH {
                let problem = std::io::Error::other("it has a quoted path, or alternates of more than 5 repositories");
                return Err(Error::io("follow", &shown)(problem));
            }
            let alternate = resolve(&base, line);
            let fd = self.reader.dir(&alternate)?;
            self.add_objects(alternate, fd, known, depth + 1)?;
        }
        Ok(())
    }

    /// Copies all packs and loose objects into the directory `dest`.
    ///
    /// Cost: one copy of the objects, or none if the file system shares the blocks of copies.
    pub fn copy_objects(&self, dest: &Path) -> Result<(), Error> {
        for (dir, objects) in &self.objects {
            for name in self.reader.names(objects, dir)? {
                let shown = dir.join(&name);
                let is_fan_out = name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
                if name != "pack" && !is_fan_out {
                    continue;
                }
                let Some(fd) = self.reader.subdir(objects, &name, &shown)? else { continue };
                let to = dest.join(&name);
                fs::create_dir_all(&to).map_err(Error::io("create", &to))?;
                if name == "pack" { self.copy_packs(&fd, &shown, &to)? } else { self.copy_loose(&fd, &shown, &to)? }
            }
        }
        Ok(())
    }

    fn copy_packs(&self, dir: &OwnedFd, shown: &Path, to: &Path) -> Result<(), Error> {
        let names = self.reader.names(dir, shown)?;
        if let Some(promisor) = names.iter().find(|name| name.ends_with(".promisor")) {
            let sign = format!("it has {}", shown.join(promisor).display());
            return Err(Error::Partial { path: self.path.to_owned(), sign });
        }
        for name in names.iter().filter(|name| name.ends_with(".idx")) {
            let pack_name = format!("{}.pack", name.strip_suffix(".idx").unwrap_or(name));
            // Like git, ignores an index without a pack.
            let Some(pack) = self.reader.file(dir, &pack_name, &shown.join(&pack_name))? else { continue };
            let Some(idx) = self.reader.file(dir, name, &shown.join(name))? else { continue };
            if to.join(name).exists() {
                continue; // an alternate has the same pack
            }
            let damaged = |problem| Error::DamagedPack { pack: shown.join(&pack_name), problem };
            check_pack(&pack, &idx).map_err(Error::io("read", shown.join(&pack_name)))?.map_err(damaged)?;
            self.copy(pack, &shown.join(&pack_name), &to.join(&pack_name))?;
            self.copy(idx, &shown.join(name), &to.join(name))?;
        }
        Ok(())
    }

    fn copy_loose(&self, dir: &OwnedFd, shown: &Path, to: &Path) -> Result<(), Error> {
        for name in self.reader.names(dir, shown)? {
            if name.len() != 38 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) || to.join(&name).exists() {
                continue;
            }
            if let Some(file) = self.reader.file(dir, &name, &shown.join(&name))? {
                self.copy(file, &shown.join(&name), &to.join(&name))?;
            }
        }
        Ok(())
    }

    fn copy(&self, mut from: File, shown: &Path, to: &Path) -> Result<(), Error> {
        // Git writes no holes. A sparse file would fill the spool directory.
        let length = from.metadata().map_err(Error::io("read", shown))?.len();
        if rustix::fs::seek(&from, rustix::fs::SeekFrom::Hole(0)).is_ok_and(|hole| hole < length) {
            let problem = format!("it has a hole, so not all of its {length} bytes are stored; clone the repository");
            let problem = std::io::Error::other(problem);
            return Err(Error::io("copy", shown)(problem));
        }
        from.seek(SeekFrom::Start(0)).map_err(Error::io("read", shown))?;
        let mut file = File::create_new(to).map_err(Error::io("create", to))?;
        if rustix::fs::ioctl_ficlone(&file, &from).is_ok() {
            return Ok(()); // the file system shares the blocks, so the copy needs no space
        }
        check_space(&file, shown, length, to)?;
        loop {
            if !(self.keep_going)() {
                return Err(Error::Stopped);
            }
            let copied = std::io::copy(&mut (&mut from).take(COPY_BYTES), &mut file);
            if copied.map_err(Error::io("copy to the spool directory", shown))? == 0 {
                return Ok(());
            }
        }
    }

    /// Its references as text: `HEAD`, symbolic references by name, and a `packed-refs` file with
    /// all others.
    pub fn names(&self) -> Result<Names, Error> {
        let git = self.reader.dir(&self.git_dir)?;
        let common = self.reader.dir(&self.common_dir)?;
        let mut names = Names::default();
        let head = self.reader.text(&git, "HEAD", &self.git_dir.join("HEAD"), LINK_BYTES)?.unwrap_or_default();
        names.head = String::from_utf8_lossy(&head).into_owned();
        let shown = self.common_dir.join("packed-refs");
        let packed = self.reader.text(&common, "packed-refs", &shown, PACKED_REFS_BYTES)?.unwrap_or_default();
        for line in String::from_utf8_lossy(&packed).lines() {
            if let Some((oid, name)) = line.split_once(' ') {
                names.add(name, oid);
            }
        }
        let refs = self.common_dir.join("refs");
        if let Some(fd) = self.reader.subdir(&common, "refs", &refs)? {
            self.add_loose_refs(&fd, "refs", &refs, &mut names, 0)?;
        }
        Ok(names)
    }

    fn add_loose_refs(
        &self,
        dir: &OwnedFd,
        prefix: &str,
        shown: &Path,
        names: &mut Names,
        depth: usize,
    ) -> Result<(), Error> {
        for name in self.reader.names(dir, shown)? {
            let (full, shown) = (format!("{prefix}/{name}"), shown.join(&name));
            let is_dir = rustix::fs::statat(dir, &*name, rustix::fs::AtFlags::empty())
                .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir());
            if is_dir {
                if let Some(fd) = self.reader.subdir(dir, &name, &shown)?
                    && depth < REFS_DEPTH
                {
                    self.add_loose_refs(&fd, &full, &shown, names, depth + 1)?;
                }
            } else if let Some(text) = self.reader.text(dir, &name, &shown, LINK_BYTES)? {
                names.add(&full, String::from_utf8_lossy(&text).trim());
            }
        }
        Ok(())
    }
}

/// The references of a repository.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The text of `HEAD`.
    pub head: String,
    refs: BTreeMap<String, String>,
}

impl Names {
    /// Adds a reference. Ignores replacements, and names or targets that git does not allow.
    fn add(&mut self, name: &str, target: &str) {
        let is_plain = |text: &str| text.bytes().all(|byte| byte > b' ' && byte != 0x7f) && !text.contains("..");
        let names_object = target.parse::<senesce_workload::git::Oid>().is_ok();
        let names_ref = target.strip_prefix("ref: ").is_some_and(|to| to.starts_with("refs/") && is_plain(to));
        // This program ignores replacements of objects.
        let is_used = name.starts_with("refs/") && is_plain(name) && !name.starts_with("refs/replace/");
        if is_used && (names_object || names_ref) {
            self.refs.insert(name.to_owned(), target.to_owned());
        }
    }

    /// The text of a `packed-refs` file. A symbolic reference is listed with the object that it
    /// leads to.
    pub fn packed_refs(&self) -> String {
        let mut text = String::new();
        for (name, target) in &self.refs {
            let mut target = target;
            // Git follows five links.
            for _ in 0..5 {
                let Some(next) = target.strip_prefix("ref: ").and_then(|to| self.refs.get(to)) else { break };
                target = next;
            }
            if !target.starts_with("ref: ") {
                text.push_str(&format!("{target} {name}\n"));
            }
        }
        text
    }
}

fn find_git_dir(path: &Path, reader: &Reader) -> Result<PathBuf, Error> {
    let dot_git = path.join(".git");
    let top = reader.dir(path)?;
    if dot_git.is_dir() {
        return Ok(dot_git);
    }
    let Some(text) = reader.text(&top, ".git", &dot_git, LINK_BYTES)? else { return Ok(path.to_owned()) };
    match text.strip_prefix(b"gitdir: ") {
        Some(target) => Ok(resolve(path, target)),
        None => Err(Error::NotARepository { path: path.to_owned(), source: "its .git names no directory".into() }),
    }
}

/// Refuses formats that this program cannot read, and partial clones.
pub(crate) fn check_config(path: &Path, text: &[u8]) -> Result<(), Error> {
    let broken = |source: Box<dyn std::error::Error + Send + Sync>| {
        let path = path.to_owned();
        Error::NotARepository { path, source }
    };
    let text = std::str::from_utf8(text).map_err(|error| broken(error.into()))?;
    let config = gix::config::File::try_from(text).map_err(|error| broken(error.to_string().into()))?;
    let format = |format: &str| Error::ObjectFormat { path: path.to_owned(), format: format.to_owned() };
    if let Some(found) = config.string("extensions.objectFormat").filter(|found| !found.eq_ignore_ascii_case(b"sha1")) {
        return Err(format(&found.to_string()));
    }
    if let Some(found) = config.string("extensions.refStorage").filter(|found| !found.eq_ignore_ascii_case(b"files")) {
        return Err(Error::RefStorage { path: path.to_owned(), format: found.to_string() });
    }
    let partial = |sign: &str| Error::Partial { path: path.to_owned(), sign: format!("its configuration has {sign}") };
    if config.string("extensions.partialClone").is_some() {
        return Err(partial("extensions.partialClone"));
    }
    for section in config.sections_by_name("remote").into_iter().flatten() {
        for key in ["promisor", "partialCloneFilter"] {
            if section.value(key).is_some() {
                return Err(partial(&format!("remote.{key}")));
            }
        }
    }
    Ok(())
}

/// Refuses to start a copy that would fill the spool directory.
fn check_space(spool: &File, from: &Path, needed: u64, to: &Path) -> Result<(), Error> {
    let space = rustix::fs::fstatvfs(spool).map_err(|errno| Error::io("read the free space of", to)(errno.into()))?;
    let available = space.f_bavail.saturating_mul(space.f_frsize);
    if needed > available {
        let dir = to.parent().unwrap_or(to).to_owned();
        return Err(Error::SpoolFull { from: from.to_owned(), needed, dir, available });
    }
    Ok(())
}

fn is_empty(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.len() == 0)
}

/// Checks the two ends of a pack: its header, and its checksum against that in the index. Returns
/// the problem.
///
/// Cost: two reads. The objects are checked when they are read.
fn check_pack(mut pack: &File, mut idx: &File) -> std::io::Result<Result<(), String>> {
    let (pack_len, idx_len) = (pack.metadata()?.len(), idx.metadata()?.len());
    if pack_len < 32 || idx_len < 40 {
        return Ok(Err(format!("it is truncated: it has {pack_len} bytes, its index {idx_len}")));
    }
    let mut head = [0; 4];
    pack.read_exact(&mut head)?;
    if &head != b"PACK" {
        return Ok(Err("it does not begin with PACK".to_owned()));
    }
    let (mut found, mut wanted) = ([0; 20], [0; 20]);
    pack.seek(SeekFrom::End(-20))?;
    pack.read_exact(&mut found)?;
    idx.seek(SeekFrom::End(-40))?;
    idx.read_exact(&mut wanted)?;
    if found != wanted {
        return Ok(Err(format!(
            "its last 20 of {pack_len} bytes are not the checksum {} in its index: it is truncated or was replaced",
            senesce_workload::git::Oid(wanted)
        )));
    }
    Ok(Ok(()))
}

//! Repositories that this program wrote. It runs git on no others.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Error,
    command::Git,
    foreign_repository::{Foreign, check_config},
    trusted_repositories::TrustedOwners,
};

/// The whole configuration of a spool repository.
///
/// `hooksPath` and `fsmonitor` name no program. The git binary may fetch any commit of a copy
/// (`allowAnySHA1InWant`).
const CONFIG: &str = "\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tuseReplaceRefs = false
\thooksPath = /dev/null
\tfsmonitor = false
[uploadpack]
\tallowAnySHA1InWant = true
[gc]
\tauto = 0
[maintenance]
\tauto = false
";

/// A bare repository in a spool directory, with a configuration of this program.
///
/// Git runs programs that a repository's configuration names. It also fetches the missing objects
/// of a partial clone from the remote in that configuration. So git never runs on a repository that
/// the user named. Its objects and references are first copied to a repository of this type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolRepository {
    git_dir: PathBuf,
    origin: PathBuf,
}

impl SpoolRepository {
    /// Copies objects and references of the repository at `source`, bare or not, to `dest`, which
    /// must not exist.
    ///
    /// In: the owners whose repositories are read; `keep_going` returns false to stop the copy.
    /// Errors: no repository, another owner, a partial or shallow clone, a damaged pack, another
    /// hash than SHA-1. Cost: one copy of the objects; none if the file system shares the blocks of
    /// copies.
    pub fn copy(
        source: &Path,
        dest: &Path,
        owners: &TrustedOwners,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let foreign = Foreign::open(source, owners, keep_going)?;
        let write = |name: &str, text: &str| {
            let path = dest.join(name);
            fs::write(&path, text).map_err(Error::io("write", &path))
        };
        for name in ["", "objects", "objects/pack", "objects/info", "refs"] {
            let dir = dest.join(name);
            fs::create_dir(&dir).map_err(Error::io("create", &dir))?;
        }
        write("config", CONFIG)?;
        let names = foreign.names()?;
        write("HEAD", &names.head)?;
        write("packed-refs", &names.packed_refs())?;
        foreign.copy_objects(&dest.join("objects"))?;
        Ok(Self { git_dir: absolute(dest)?, origin: source.to_owned() })
    }

    /// Clones a URL to `dest`, bare, with all its history. `dest` must not exist.
    ///
    /// Errors: a transport that runs programs or reads local files (`ext::`, `file://`); any error
    /// of git.
    pub fn clone_url(url: &str, dest: &Path) -> Result<Self, Error> {
        let options = ["--bare", "--quiet", "--no-tags", "--template=", "--"].map(std::ffi::OsStr::new);
        let arguments = options.into_iter().chain([url.as_ref(), dest.as_os_str()]);
        Git::new("clone", dest).allow_protocols("https:http:ssh:git").args(arguments).run()?;
        Self::adopt(dest, Path::new(url))
    }

    /// Adopts a bare repository that this program made. `origin` is its name in messages.
    ///
    /// Replaces the configuration, so that nothing in it depends on the version of git or on a
    /// remote.
    pub fn adopt(git_dir: &Path, origin: &Path) -> Result<Self, Error> {
        for name in ["commondir", "config.worktree", "objects/info/alternates"] {
            // A run directory may come from an untrusted user: these files would lead git to
            // another configuration, or to other objects.
            if fs::symlink_metadata(git_dir.join(name)).is_ok() {
                return Err(Error::Irregular { path: origin.to_owned(), place: git_dir.join(name) });
            }
        }
        let path = git_dir.join("config");
        let config = fs::read(&path).map_err(Error::io("read", &path))?;
        check_config(origin, &config)?;
        if config != CONFIG.as_bytes() {
            fs::write(&path, CONFIG).map_err(Error::io("write", &path))?;
        }
        Ok(Self { git_dir: absolute(git_dir)?, origin: origin.to_owned() })
    }

    /// The directory of the repository.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Its origin, a path or a URL, for messages.
    pub(crate) fn origin(&self) -> &Path {
        &self.origin
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(Error::io("find", path))
}

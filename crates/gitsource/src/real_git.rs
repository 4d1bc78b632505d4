//! Pulls with the real git binary.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use senesce_workload::git::{ATTRIBUTES, BRANCH, PlannerOptions, compute_config};

use crate::{Error, History, command::Git};

/// A checked-out repository on a volume that the git binary moves from commit to commit. Each pull
/// is one `git fetch` of the commit and one `git reset --hard`.
///
/// Configuration, attributes and the clone in one pack are those of the native replay. So the two
/// differ only in the process that issues the system calls. The source is the spool repository of
/// the history.
pub struct RealGit {
    history: History,
    dir: PathBuf,
}

impl RealGit {
    /// Makes the repository at `dest`, which must not exist. Checks out commit number
    /// `options.start`, with everything that the commits up to it reach.
    pub fn init(dest: &Path, history: &History, options: &PlannerOptions) -> Result<Self, Error> {
        let real = Self { history: history.clone(), dir: dest.to_owned() };
        let io = |operation, path: &Path| {
            let path = path.to_owned();
            move |source| Error::Io { operation, path, source }
        };
        fs::create_dir(dest).map_err(io("create", dest))?;
        let branch = format!("--initial-branch={BRANCH}");
        Git::new("init", dest).inside().args(["--quiet", "--template=", &branch]).run()?;
        let info = dest.join(".git/info");
        fs::create_dir_all(&info).map_err(io("create", &info))?;
        fs::write(info.join("attributes"), ATTRIBUTES).map_err(io("write", &info))?;
        fs::write(info.join("exclude"), "").map_err(io("write", &info))?;
        let config = compute_config(if options.gc { options.gc_auto } else { 0 }, options.gc_auto_pack_limit);
        fs::write(dest.join(".git/config"), config).map_err(io("write", &info))?;
        let wants: String = history.inner.heads(options.start)?.iter().map(|oid| format!("{oid}\n")).collect();
        real.fetch("fetch.unpackLimit=1").args(real.fetch_args(&[], &["--stdin"])).run_with(&wants)?;
        real.reset(&history.inner.oid(options.start)?.to_string())?;
        Ok(real)
    }

    /// Continues with the repository that an earlier [`init`](Self::init) made at `dest`.
    pub fn reopen(dest: &Path, history: &History) -> Self {
        Self { history: history.clone(), dir: dest.to_owned() }
    }

    /// Moves from commit number `number - 1` to commit number `number`.
    ///
    /// Errors: those of git; [`Error::is_no_space`] detects a full volume.
    pub fn pull(&mut self, number: usize) -> Result<(), Error> {
        let commit = self.history.inner.oid(number)?.to_string();
        let haves = self.history.inner.haves(number)?;
        let tips: Vec<String> = haves.iter().map(|oid| format!("--negotiation-tip={oid}")).collect();
        self.fetch("fetch.unpackLimit=100").args(self.fetch_args(&tips, &[&commit])).run()?;
        self.reset("FETCH_HEAD")
    }

    fn fetch(&self, limit: &str) -> Git {
        Git::new("fetch", &self.dir).allow_protocols("file").inside().config(limit)
    }

    /// Arguments of the form `--quiet … SOURCE what`. The configuration of the spool repository
    /// allows any commit.
    fn fetch_args(&self, tips: &[String], what: &[&str]) -> Vec<OsString> {
        let mut args: Vec<OsString> = ["--quiet", "--no-tags", "--no-recurse-submodules"].map(Into::into).into();
        args.extend(tips.iter().map(Into::into));
        let (options, refs): (Vec<&str>, Vec<&str>) = what.iter().partition(|word| word.starts_with("--"));
        args.extend(options.iter().map(Into::into));
        args.push(self.history.git_dir().as_os_str().to_owned());
        args.extend(refs.iter().map(|word| OsStr::new(word).to_owned()));
        args
    }

    fn reset(&self, to: &str) -> Result<(), Error> {
        Git::new("reset", &self.dir).inside().args(["--quiet", "--hard", to, "--"]).run()?;
        Ok(())
    }
}

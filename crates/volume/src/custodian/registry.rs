//! Where the runs of this machine are, so that cleaning needs no arguments.

use std::{
    fs,
    io::Write,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use super::{CleanAction, Outcome, clean};
use crate::{Error, Result, host::Host};

/// A directory with one small file per run, which holds the path of the run's directory.
#[derive(Clone, Debug)]
pub struct Registry {
    dir: PathBuf,
}

/// What cleaning did for one run.
#[derive(Debug)]
pub struct RunCleaned {
    /// The run's directory.
    pub dir: PathBuf,
    /// What was done, or why nothing was (for example: the run still lives).
    pub result: Result<Vec<CleanAction>>,
}

impl Registry {
    /// The registry in `dir`, such as `/var/tmp/senesce/runs`; made when first written to.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// Adds a run. Call it before the run's custodian is opened. Adding one twice does nothing.
    pub fn add(&self, run_dir: &Path) -> Result<()> {
        let run_dir = fs::canonicalize(run_dir).map_err(Error::std("look up", run_dir))?;
        fs::create_dir_all(&self.dir).map_err(Error::std("create the directory", &self.dir))?;
        let path = self.file(&run_dir);
        let partial = path.with_extension("partial");
        let write = || -> std::io::Result<()> {
            let mut file = fs::File::create(&partial)?;
            file.write_all(run_dir.as_os_str().as_bytes())?;
            file.sync_all()?;
            fs::rename(&partial, &path)?;
            fs::File::open(&self.dir)?.sync_all()
        };
        write().map_err(Error::std("write", &path))
    }

    /// Removes a run that has ended in order.
    pub fn remove(&self, run_dir: &Path) -> Result<()> {
        let run_dir = fs::canonicalize(run_dir).map_err(Error::std("look up", run_dir))?;
        self.forget(&run_dir)
    }

    fn forget(&self, canonical: &Path) -> Result<()> {
        let path = self.file(canonical);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::std("remove", &path)(error)),
            _ => Ok(()),
        }
    }

    /// The directories of all runs, sorted.
    pub fn runs(&self) -> Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::std("list", &self.dir)(error)),
        };
        let mut runs = Vec::new();
        for entry in entries {
            let path = entry.map_err(Error::std("list", &self.dir))?.path();
            if path.extension().is_some_and(|extension| extension == "run") {
                let bytes = fs::read(&path).map_err(Error::std("read", &path))?;
                runs.push(std::ffi::OsString::from_vec(bytes).into());
            }
        }
        runs.sort();
        Ok(runs)
    }

    /// Cleans every run that no longer lives, and forgets those of which nothing is left.
    pub fn clean_all(&self, host: &dyn Host) -> Result<Vec<RunCleaned>> {
        let mut all = Vec::new();
        for dir in self.runs()? {
            let result = clean(host, &dir);
            let done = |actions: &Vec<CleanAction>| {
                !actions.iter().any(|action| matches!(action.outcome, Outcome::Failed { .. }))
            };
            if result.as_ref().is_ok_and(done) {
                self.forget(&dir)?;
            }
            all.push(RunCleaned { dir, result });
        }
        Ok(all)
    }

    /// One name per directory: the path itself, with what a name cannot hold escaped, or a hash if it is long.
    fn file(&self, run_dir: &Path) -> PathBuf {
        let mut name = String::new();
        for &byte in run_dir.as_os_str().as_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
                _ => name.push_str(&format!("%{byte:02x}")),
            }
        }
        if name.len() > 200 {
            // Stable, and a collision would only merge two runs' entries.
            let hash = hash(name.as_bytes());
            name = format!("{}%{hash:016x}", &name[name.len() - 160..]);
        }
        self.dir.join(format!("{name}.run"))
    }
}

/// FNV-1a: for names, the same on every machine and for ever.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_again_whatever_their_paths() {
        let temp = tempfile::tempdir().unwrap();
        let registry = Registry::new(&temp.path().join("state/runs"));
        assert!(registry.runs().unwrap().is_empty());
        let mut dirs = Vec::new();
        for name in ["a b", "a%20b", "ä", &"long".repeat(60)] {
            let dir = temp.path().join(name);
            fs::create_dir(&dir).unwrap();
            registry.add(&dir).unwrap();
            registry.add(&dir).unwrap();
            dirs.push(fs::canonicalize(dir).unwrap());
        }
        dirs.sort();
        assert_eq!(registry.runs().unwrap(), dirs);
        registry.remove(&dirs[0]).unwrap();
        assert_eq!(registry.runs().unwrap(), dirs[1..]);
    }
}

//! Lists the runs of this machine, so that cleaning needs no arguments.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    CleanAction, CleanMode, Custodian, JOURNAL_FILE_NAME, clean,
    custodian::{remove_home, token_of},
    private_dir::{PrivateDir, bytes_of},
};
use crate::{
    Error, Result,
    host::{Host, ProcessId},
};

/// A directory with one small file per run. The file holds the path of the run's directory. Work
/// without a directory has a *home* here.
///
/// Only this user can change the directory: each use of it checks the whole path.
#[derive(Clone, Debug)]
pub struct Registry {
    dir: PathBuf,
}

/// The extension of a home's name.
const HOME: &str = "home";
/// The extension of the name of a run's file.
const RUN: &str = "run";
/// The longest path that the kernel accepts.
const MOST_PATH_BYTES: usize = 4096;

/// What cleaning did for one run.
#[derive(Debug)]
pub struct RunCleaned {
    /// The run's directory.
    pub dir: PathBuf,
    /// The actions, or why there were none (for example: the run is alive).
    pub result: Result<Vec<CleanAction>>,
}

impl Registry {
    /// Uses the registry in `dir`, such as `/var/lib/senesce/runs`. The first write creates the
    /// directory.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The registry's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Adds a run. Call it before the run's custodian is opened. A second call changes nothing.
    ///
    /// Errors: another user could change the registry; it cannot be written.
    pub fn add(&self, run_dir: &Path) -> Result<()> {
        let run_dir = fs::canonicalize(run_dir).map_err(Error::std("look up", run_dir))?;
        PrivateDir::create(&self.dir)?.replace(&name_of(&run_dir), bytes_of(&run_dir))
    }

    /// Opens a custodian for work without a directory. Its journal has a directory here while
    /// something is held.
    ///
    /// Errors: another user could change the registry; it cannot be written.
    pub fn open_home(&self, host: Arc<dyn Host>) -> Result<Custodian> {
        let token = token_of(&host.this_process()?);
        let registry = PrivateDir::create(&self.dir)?;
        for number in 0u32.. {
            let name = format!("{token}.{number}.{HOME}");
            if !registry.create_dir(&name)? {
                continue;
            }
            let dir = self.dir.join(name);
            match Custodian::open_as(host.clone(), &dir, true) {
                // A concurrent `clean` removed it as the empty home of a killed process.
                Err(_) if !dir.exists() => {}
                opened => return opened,
            }
        }
        unreachable!("some number is free")
    }

    /// Removes a run that ended in order.
    pub fn remove(&self, run_dir: &Path) -> Result<()> {
        let run_dir = fs::canonicalize(run_dir).map_err(Error::std("look up", run_dir))?;
        self.forget(&run_dir)
    }

    /// Removes the entry of a run, by its path in [`runs`](Self::runs). Its directory may be gone.
    pub fn forget(&self, canonical: &Path) -> Result<()> {
        match PrivateDir::open(&self.dir)? {
            Some(registry) => registry.remove(&name_of(canonical)),
            None => Ok(()),
        }
    }

    /// The directories of all runs, sorted.
    pub fn runs(&self) -> Result<Vec<PathBuf>> {
        let Some(registry) = PrivateDir::open(&self.dir)? else { return Ok(Vec::new()) };
        let mut runs = Vec::new();
        for name in registry.names()? {
            match Path::new(&name).extension().and_then(OsStr::to_str) {
                Some(HOME) => runs.push(self.dir.join(name)),
                Some(RUN) => runs.push(OsString::from_vec(registry.read(&name, MOST_PATH_BYTES)?).into()),
                _ => {}
            }
        }
        runs.sort();
        Ok(runs)
    }

    /// Cleans every run whose process is dead. Removes the entries of runs of which nothing is
    /// left.
    pub fn clean_all(&self, host: &dyn Host, mode: CleanMode) -> Result<Vec<RunCleaned>> {
        let mut all = Vec::new();
        for dir in self.runs()? {
            let result = clean(host, &dir, mode);
            let done = |actions: &Vec<CleanAction>| !actions.iter().any(CleanAction::is_failure);
            if mode == CleanMode::Act && result.as_ref().is_ok_and(done) {
                if dir.extension().is_some_and(|extension| extension == HOME) {
                    // The process may have been killed before it made a journal. If the home has
                    // content or is gone, this fails, which is no error.
                    let _ = fs::remove_dir(&dir);
                    if is_begun(&dir) && !is_maker_alive(host, &dir)? {
                        remove_home(&dir);
                    }
                } else {
                    self.forget(&dir)?;
                }
            }
            all.push(RunCleaned { dir, result });
        }
        Ok(all)
    }
}

/// One file name per directory: the escaped path, or a hash if the path is long.
fn name_of(run_dir: &Path) -> String {
    let mut name = String::new();
    for &byte in bytes_of(run_dir) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    if name.len() > 200 {
        // The hash is stable. A collision would only merge the entries of two runs.
        let hash = hash(name.as_bytes());
        name = format!("{}%{hash:016x}", &name[name.len() - 160..]);
    }
    format!("{name}.{RUN}")
}

/// Whether a home's journal has no complete line yet, so that nothing was acquired.
fn is_begun(home: &Path) -> bool {
    let journal = PrivateDir::open(home).ok().flatten().map(|home| home.read(OsStr::new(JOURNAL_FILE_NAME), 1 << 16));
    journal.is_some_and(|journal| journal.is_ok_and(|journal| !journal.contains(&b'\n')))
}

/// Whether the process in a home's name may be alive: it may be about to write its first line. A
/// name that senesce did not make counts as alive.
fn is_maker_alive(host: &dyn Host, home: &Path) -> Result<bool> {
    let name = home.file_name().unwrap_or_default().to_string_lossy();
    let Some((token, _)) = name.split_once('.') else { return Ok(true) };
    let mut parts = token.split('-').map(|part| u64::from_str_radix(part, 16));
    let (Some(Ok(pid)), Some(Ok(start_ticks))) = (parts.next(), parts.next()) else { return Ok(true) };
    let Ok(pid) = u32::try_from(pid) else { return Ok(true) };
    // Only a process of this boot can be alive.
    let process = ProcessId { pid, start_ticks, ..host.this_process()? };
    Ok(token_of(&process) == token && host.is_alive(&process))
}

/// FNV-1a. Names on disk depend on it, so it must never change.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::{Resource, host::fake::FakeHost};

    #[test]
    fn runs_are_found_by_any_path() {
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

    #[test]
    fn a_predictable_link_is_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let (runs, run, precious) = (temp.path().join("runs"), temp.path().join("run"), temp.path().join("precious"));
        fs::create_dir(&run).unwrap();
        fs::write(&precious, "precious").unwrap();
        let registry = Registry::new(&runs);
        registry.add(&run).unwrap();
        let name = fs::read_dir(&runs).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap();
        // The names that a writer may use for an incomplete file.
        for partial in [format!("{name}.partial"), name.replace(".run", ".partial")] {
            std::os::unix::fs::symlink(&precious, runs.join(partial)).unwrap();
        }
        registry.add(&run).unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        fs::remove_file(runs.join(&name)).unwrap();
        std::os::unix::fs::symlink(&precious, runs.join(&name)).unwrap();
        assert!(registry.runs().is_err(), "a link is no entry");
    }

    #[test]
    fn a_registry_of_another_user_is_refused() {
        if !senesce_testkit::root_or_skip("giving files to another user") {
            return;
        }
        let temp = tempfile::tempdir().unwrap();
        let runs = temp.path().join("runs");
        fs::create_dir(&runs).unwrap();
        std::os::unix::fs::chown(&runs, Some(65_534), None).unwrap();
        let registry = Registry::new(&runs);
        let host = Arc::new(FakeHost::default());
        for refused in [
            registry.add(temp.path()).unwrap_err(),
            registry.open_home(host.clone()).unwrap_err(),
            registry.runs().unwrap_err(),
            registry.remove(temp.path()).unwrap_err(),
            registry.clean_all(&*host, CleanMode::Act).unwrap_err(),
        ] {
            assert!(matches!(refused, Error::UnsafeDirectory { .. }) && refused.is_environment(), "{refused}");
        }
        assert!(fs::read_dir(&runs).unwrap().next().is_none());
    }

    #[test]
    fn homes_go_at_exit_and_by_cleaning() {
        let temp = tempfile::tempdir().unwrap();
        let registry = Registry::new(&temp.path().join("runs"));
        fs::create_dir(temp.path().join("trees")).unwrap();
        let host = Arc::new(FakeHost::default());
        for is_killed in [false, true] {
            let custodian = registry.open_home(host.clone()).unwrap();
            let (_, tree) = custodian.acquire_tree(&temp.path().join("trees"), "work").unwrap();
            let dir = temp.path().to_owned();
            let ours = dir.join(format!(".table.{}-new", custodian.token()));
            custodian.acquire(Resource::Files { dir }, |_| Ok(())).unwrap();
            host.create_file(&ours, senesce_core::Bytes(1)).unwrap();
            assert_eq!(registry.runs().unwrap(), [custodian.dir()]);
            let opened_beside = registry.open_home(host.clone()).unwrap();
            assert_ne!(opened_beside.dir(), custodian.dir());
            drop(opened_beside);
            if is_killed {
                std::mem::forget(custodian);
                assert!(matches!(
                    registry.clean_all(&*host, CleanMode::Act).unwrap()[0].result,
                    Err(Error::OwnerAlive { .. })
                ));
                host.owner_lives.store(false, Ordering::SeqCst);
                fs::create_dir(temp.path().join("runs/1-1-b.0.home")).unwrap();
                let mut cleaned = registry.clean_all(&*host, CleanMode::Act).unwrap();
                cleaned.retain(|cleaned| !cleaned.result.as_ref().unwrap().is_empty());
                let actions = cleaned.remove(0).result.unwrap();
                let reported: Vec<String> = actions.iter().map(ToString::to_string).collect();
                let (files, tree) = (temp.path().display(), tree.display());
                let want = [format!("temporary files in {files}: removed"), format!("directory tree {tree}: removed")];
                assert_eq!(reported, want);
            } else {
                drop(custodian);
            }
            assert!(host.is_clean() && registry.runs().unwrap().is_empty());
        }
    }

    #[test]
    fn an_unwritten_home_goes_after_its_maker() {
        let temp = tempfile::tempdir().unwrap();
        let registry = Registry::new(temp.path());
        let host = FakeHost::default();
        let token = token_of(&host.this_process().unwrap());
        let (ours, other_boot, foreign) = (format!("{token}.0.home"), "1-1-b.0.home", "other.home");
        let homes = || {
            let names = registry.runs().unwrap().into_iter().map(|dir| dir.file_name().unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        let make = |name: &str, journal: &str| {
            fs::create_dir_all(temp.path().join(name)).unwrap();
            fs::write(temp.path().join(name).join(JOURNAL_FILE_NAME), journal).unwrap();
        };
        for journal in ["", "{\"event\":\"own"] {
            [&ours, other_boot, foreign].iter().for_each(|name| make(name, journal));
            host.owner_lives.store(true, Ordering::SeqCst);
            registry.clean_all(&host, CleanMode::Act).unwrap();
            let mut left = [&*ours, foreign];
            left.sort_unstable();
            assert_eq!(homes(), left, "it may be about to write");
            host.owner_lives.store(false, Ordering::SeqCst);
            registry.clean_all(&host, CleanMode::Act).unwrap();
            assert_eq!(homes(), [foreign]);
        }
    }
}

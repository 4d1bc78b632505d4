//! Where the runs of this machine are, so that cleaning needs no arguments.

use std::{
    fs,
    io::Write,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    CleanAction, Custodian, JOURNAL_FILE_NAME, clean,
    keeper::{remove_home, token_of},
};
use crate::{
    Error, Result,
    host::{Host, ProcessId},
};

/// A directory with one small file per run, which holds the path of the run's directory, and with the homes of what has no
/// directory of its own.
#[derive(Clone, Debug)]
pub struct Registry {
    dir: PathBuf,
}

/// How the names of homes end.
const HOME: &str = "home";

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

    /// A custodian for what is no run: its journal has a directory here for as long as something is held.
    ///
    /// Errors: the registry's directory cannot be written.
    pub fn open_home(&self, host: Arc<dyn Host>) -> Result<Custodian> {
        let token = token_of(&host.this_process()?);
        for number in 0u32.. {
            let dir = self.dir.join(format!("{token}.{number}.{HOME}"));
            fs::create_dir_all(&self.dir).map_err(Error::std("create the directory", &self.dir))?;
            match fs::create_dir(&dir) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(Error::std("create the directory", &dir)(error)),
            }
            match Custodian::open_as(host.clone(), &dir, true) {
                // Somebody who cleans took it for an empty one that a kill left.
                Err(_) if !dir.exists() => {}
                opened => return opened,
            }
        }
        unreachable!("some number is free")
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
            if path.extension().is_some_and(|extension| extension == HOME) {
                runs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "run") {
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
            let done = |actions: &Vec<CleanAction>| !actions.iter().any(CleanAction::is_failure);
            if result.as_ref().is_ok_and(done) {
                if dir.extension().is_some_and(|extension| extension == HOME) {
                    // Killed before there was a journal in it. That it is not empty, or gone, is as good.
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

/// Whether a home's journal has no whole line yet, so that nothing was acquired.
fn is_begun(home: &Path) -> bool {
    fs::read(home.join(JOURNAL_FILE_NAME)).is_ok_and(|journal| !journal.contains(&b'\n'))
}

/// Whether the process in a home's name may live: it may be about to write its first line. Of a name that is none of ours it
/// counts as alive.
fn is_maker_alive(host: &dyn Host, home: &Path) -> Result<bool> {
    let name = home.file_name().unwrap_or_default().to_string_lossy();
    let Some((token, _)) = name.split_once('.') else { return Ok(true) };
    let mut parts = token.split('-').map(|part| u64::from_str_radix(part, 16));
    let (Some(Ok(pid)), Some(Ok(start_ticks))) = (parts.next(), parts.next()) else { return Ok(true) };
    let Ok(pid) = u32::try_from(pid) else { return Ok(true) };
    // Only a process of this boot can live.
    let process = ProcessId { pid, start_ticks, ..host.this_process()? };
    Ok(token_of(&process) == token && host.is_alive(&process))
}

/// FNV-1a: for names, the same on every machine and for ever.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::{Resource, host::fake::FakeHost};

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

    #[test]
    fn a_home_goes_with_what_it_lists_at_its_end_and_after_a_kill() {
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
                assert!(matches!(registry.clean_all(&*host).unwrap()[0].result, Err(Error::OwnerAlive { .. })));
                host.owner_lives.store(false, Ordering::SeqCst);
                fs::create_dir(temp.path().join("runs/1-1-b.0.home")).unwrap();
                let mut cleaned = registry.clean_all(&*host).unwrap();
                cleaned.retain(|cleaned| !cleaned.result.as_ref().unwrap().is_empty());
                let actions = cleaned.remove(0).result.unwrap();
                let told: Vec<String> = actions.iter().map(ToString::to_string).collect();
                let (files, tree) = (temp.path().display(), tree.display());
                let want = [format!("temporary files in {files}: removed"), format!("directory tree {tree}: removed")];
                assert_eq!(told, want);
            } else {
                drop(custodian);
            }
            assert!(host.is_clean() && registry.runs().unwrap().is_empty());
        }
    }

    #[test]
    fn a_home_without_a_whole_line_goes_when_its_maker_is_dead() {
        let temp = tempfile::tempdir().unwrap();
        let registry = Registry::new(temp.path());
        let host = FakeHost::default();
        let token = token_of(&host.this_process().unwrap());
        let (ours, other_boot, foreign) = (format!("{token}.0.home"), "1-1-b.0.home", "somebody.home");
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
            registry.clean_all(&host).unwrap();
            let mut left = [&*ours, foreign];
            left.sort_unstable();
            assert_eq!(homes(), left, "it may be about to write");
            host.owner_lives.store(false, Ordering::SeqCst);
            registry.clean_all(&host).unwrap();
            assert_eq!(homes(), [foreign]);
        }
    }
}

//! A private instance of the kernel's tracing. It is removed when its value is dropped.

use std::{
    fs,
    io::{self, Read},
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::Error;

/// The mount points of tracefs, in the order of the search.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The prefix of our instance names. The process id, its start time and a counter follow.
const PREFIX: &str = "senesce-";

/// An instance directory. Drop stops its tracing and removes it.
#[derive(Debug)]
pub(super) struct Instance {
    path: PathBuf,
    _tracefs: Tracefs,
}

impl Instance {
    /// Makes an instance for this process.
    pub(super) fn new() -> Result<Self, Error> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let started = start_time(process).unwrap_or(0);
        let tracefs = Tracefs::open()?;
        let path = tracefs.root.join("instances").join(format!("{PREFIX}{process}-{started}-{number}"));
        fs::create_dir(&path).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => Error::NoTraceRights { path: path.clone(), source },
            _ => Error::system("make the trace instance", &path, source),
        })?;
        Ok(Self { path, _tracefs: tracefs })
    }

    /// The path of a file of the instance.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a setting.
    pub(super) fn set(&self, name: &str, value: &str) -> Result<(), Error> {
        let path = self.file(name);
        fs::write(&path, value).map_err(|source| Error::system("set", path, source))
    }

    /// Reads a file of the instance.
    pub(super) fn get(&self, name: &str) -> Result<String, Error> {
        let path = self.file(name);
        let read = || -> io::Result<String> {
            // The buffer is large enough for the whole file: `header_page` answers only the first
            // read, and `read_to_string` starts with a small buffer.
            let mut file = fs::File::open(&path)?;
            let mut bytes = vec![0; 64 << 10];
            let mut filled = 0;
            while filled < bytes.len() {
                match file.read(&mut bytes[filled..]) {
                    Ok(0) => break,
                    Ok(length) => filled += length,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(String::from_utf8_lossy(&bytes[..filled]).into_owned())
        };
        read().map_err(|source| Error::system("read", &path, source))
    }

    /// The numbers of the processors that have a buffer.
    pub(super) fn cpus(&self) -> Result<Vec<u32>, Error> {
        let path = self.file("per_cpu");
        let list = || -> io::Result<Vec<u32>> {
            let mut cpus = Vec::new();
            for entry in fs::read_dir(&path)? {
                let name = entry?.file_name();
                cpus.extend(
                    name.to_str().and_then(|name| name.strip_prefix("cpu")).and_then(|n| n.parse::<u32>().ok()),
                );
            }
            cpus.sort_unstable();
            Ok(cpus)
        };
        list().map_err(|source| Error::system("list", &path, source))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Best effort: a leftover instance is found by its name, see `clean_stale_trace_instances`.
        let _ = fs::write(self.file("tracing_on"), "0");
        let _ = fs::remove_dir(&self.path);
    }
}

/// The kernel's tracing as files.
#[derive(Debug)]
struct Tracefs {
    root: PathBuf,
    /// Keeps our own mount alive if `root` is in it.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Opens the mounted tracefs. If none is mounted (containers, small systems), it creates a
    /// detached mount, which exists as long as the value.
    fn open() -> Result<Self, Error> {
        match find_tracefs_among(TRACEFS.iter().map(Path::new)) {
            Ok(root) => Ok(Self { root, _mount: None }),
            Err(none @ Error::NoTrace { .. }) => {
                let mount = mount_nowhere().map_err(|source| match source.kind() {
                    io::ErrorKind::PermissionDenied => Error::NoTraceRights { path: TRACEFS[0].into(), source },
                    _ => none,
                })?;
                let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
                Ok(Self { root, _mount: Some(mount) })
            }
            Err(closed) => Err(closed),
        }
    }
}

/// Errors: no right to mount, a kernel before 5.2 or without tracing.
fn mount_nowhere() -> io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}

fn find_tracefs_among<'a>(places: impl Iterator<Item = &'a Path>) -> Result<PathBuf, Error> {
    let mut closed = None;
    for path in places {
        match fs::metadata(path.join("instances")) {
            Ok(found) if found.is_dir() => return Ok(path.to_owned()),
            Err(source) if source.kind() == io::ErrorKind::PermissionDenied => {
                closed.get_or_insert(Error::NoTraceRights { path: path.to_owned(), source });
            }
            _ => {}
        }
    }
    Err(closed.unwrap_or_else(|| Error::NoTrace {
        path: TRACEFS[0].into(),
        problem: "it is not mounted there, and this kernel cannot mount it".to_owned(),
    }))
}

/// The start time of a process, in the kernel's ticks since boot. With it a reused process id is
/// recognised.
fn start_time(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain any bytes; the start time is the 20th field after it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Checks whether this process may trace: it makes a private instance of the kernel's tracing, and
/// removes it.
///
/// Errors: no tracefs, or no right to make instances in it. Cost: some tens of milliseconds.
pub fn check_block_tracing() -> Result<(), Error> {
    let instance = Instance::new()?;
    instance.get("events/block/block_rq_issue/format").map(drop)
}

/// The result of [`clean_stale_trace_instances`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaleInstances {
    /// Removed instances of dead processes.
    pub removed: Vec<PathBuf>,
    /// Instances that could not be removed, with the system's error. A busy one is still being
    /// read.
    pub kept: Vec<(PathBuf, String)>,
}

/// Removes the trace instances that killed processes of this program left.
///
/// An instance is stale if its name is one of ours and the process in its name does not run any
/// more. The kernel refuses to remove an instance that a process still reads, so that a call from
/// within a container is safe too. Without tracefs nothing is removed. Errors: the instances cannot
/// be listed.
pub fn clean_stale_trace_instances() -> Result<StaleInstances, Error> {
    let mut done = StaleInstances::default();
    let Ok(tracefs) = Tracefs::open() else { return Ok(done) };
    let directory = tracefs.root.join("instances");
    let list = fs::read_dir(&directory).map_err(|source| Error::system("list", &directory, source))?;
    for entry in list {
        let entry = entry.map_err(|source| Error::system("list", &directory, source))?;
        let name = entry.file_name();
        if !name.to_str().is_some_and(|name| is_stale(name, start_time)) {
            continue;
        }
        let path = entry.path();
        let _ = fs::write(path.join("tracing_on"), "0");
        match fs::remove_dir(&path) {
            Ok(()) => done.removed.push(path),
            Err(error) => done.kept.push((path, error.to_string())),
        }
    }
    Ok(done)
}

/// Whether this is the name of one of our instances whose process is dead.
fn is_stale(name: &str, start_time: impl Fn(u32) -> Option<u64>) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else { return false };
    let numbers: Option<Vec<u64>> = rest.split('-').map(|part| part.parse().ok()).collect();
    let Some(&[process, started, _]) = numbers.as_deref() else { return false };
    let Ok(process) = u32::try_from(process) else { return false };
    start_time(process) != Some(started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instances_of_our_dead_processes_are_stale() {
        let start = |process| (process == 17).then_some(500);
        assert!(!is_stale("senesce-17-500-0", start), "it runs");
        assert!(is_stale("senesce-17-499-0", start), "another process has its number now");
        assert!(is_stale("senesce-18-500-3", start));
        for name in ["foo", "senesce-", "senesce-18", "senesce-18-500", "senesce-a-b-c", "senesce-18-500-0-1"] {
            assert!(!is_stale(name, start), "{name}");
        }
    }

    #[test]
    fn an_unreadable_tracefs_differs_from_none() {
        let directory = tempfile::tempdir().unwrap();
        let [nothing, there] = ["nothing", "there"].map(|name| directory.path().join(name));
        fs::create_dir_all(there.join("instances")).unwrap();
        let find = |places: &[&Path]| find_tracefs_among(places.iter().copied());
        assert!(matches!(find(&[&nothing]), Err(Error::NoTrace { .. })));
        assert_eq!(find(&[&nothing, &there]).unwrap(), there);
    }

    #[test]
    fn the_start_time_of_this_process_is_known() {
        assert!(start_time(std::process::id()).is_some());
        assert_eq!(start_time(u32::MAX), None);
    }
}

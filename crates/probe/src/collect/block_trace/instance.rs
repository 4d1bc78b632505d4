//! A private instance of the kernel's tracing, removed whatever happens.

use std::{
    fs,
    io::{self, Read},
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::Error;

/// Where tracefs is mounted, in the order in which it is looked for.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// How the names of our instances begin; then come process, its start time and a counter.
const PREFIX: &str = "senesce-";

/// An instance directory; dropping it switches its tracing off and removes it.
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

    /// A file of the instance.
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
            // With room for all of it: `header_page` answers the first read only, and `read_to_string` begins small.
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
        // Best effort: an instance that stays is found by its name, see `clean_stale_trace_instances`.
        let _ = fs::write(self.file("tracing_on"), "0");
        let _ = fs::remove_dir(&self.path);
    }
}

/// The kernel's tracing as files.
#[derive(Debug)]
struct Tracefs {
    root: PathBuf,
    /// Keeps a mount of our own alive, which `root` leads through.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Where it is mounted; where it is not, as in containers and small systems, a mount of our own that is attached
    /// nowhere and goes with this.
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

/// Errors: no right to mount, a kernel before 5.2 or one without tracing.
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
        problem: "it is not mounted there, and this kernel mounts none".to_owned(),
    }))
}

/// When a process started, in the kernel's ticks since boot; tells a process from a later one of the same number.
fn start_time(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may hold anything; the start time is the 20th field behind it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Whether this process may trace at all: makes a private instance of the kernel's tracing, and removes it.
///
/// Errors: no tracefs, or no right to make instances in it. Cost: some tens of milliseconds.
pub fn check_block_tracing() -> Result<(), Error> {
    let instance = Instance::new()?;
    instance.get("events/block/block_rq_issue/format").map(drop)
}

/// What [`clean_stale_trace_instances`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaleInstances {
    /// Instances of dead processes that were removed.
    pub removed: Vec<PathBuf>,
    /// Those that could not be removed, with the system's answer. One that is busy is being read by someone.
    pub kept: Vec<(PathBuf, String)>,
}

/// Removes the trace instances that killed processes of this program left behind.
///
/// An instance is taken for stale if its name is one of ours and the process it names does not run any more. One that
/// any process still reads is refused by the kernel and stays, so that this is safe from within a container, too.
/// Out: nothing removed if there is no tracefs. Errors: the instances cannot be listed.
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

/// Whether this is the name of an instance of ours whose process is gone.
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
    fn only_instances_of_dead_processes_of_ours_are_stale() {
        let start = |process| (process == 17).then_some(500);
        assert!(!is_stale("senesce-17-500-0", start), "it runs");
        assert!(is_stale("senesce-17-499-0", start), "another process has its number now");
        assert!(is_stale("senesce-18-500-3", start));
        for name in ["foo", "senesce-", "senesce-18", "senesce-18-500", "senesce-a-b-c", "senesce-18-500-0-1"] {
            assert!(!is_stale(name, start), "{name}");
        }
    }

    #[test]
    fn a_place_that_is_closed_is_not_one_where_nothing_is() {
        let directory = tempfile::tempdir().unwrap();
        let [nothing, there] = ["nothing", "there"].map(|name| directory.path().join(name));
        fs::create_dir_all(there.join("instances")).unwrap();
        let find = |places: &[&Path]| find_tracefs_among(places.iter().copied());
        assert!(matches!(find(&[&nothing]), Err(Error::NoTrace { .. })));
        assert_eq!(find(&[&nothing, &there]).unwrap(), there);
    }

    #[test]
    fn this_process_has_started() {
        assert!(start_time(std::process::id()).is_some());
        assert_eq!(start_time(u32::MAX), None);
    }
}

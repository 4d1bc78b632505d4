//! A running recording: the mount, the thread that serves it, and its end.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use fuser::{Config, MountOption, Session, SessionACL};
use rustix::process::{Resource, Rlimit};
use senesce_core::{Clock, Seed, lists_source};
use senesce_oplog::LogSummary;

use crate::{Error, Result, backing::Backing, fuse::RecordFs, recorder::Recorder, relay, sink::Sink};

/// Options of a recording.
pub struct RecordOptions {
    /// The directory to which requests are passed on.
    pub backing: PathBuf,
    /// The mount point that programs use: an empty directory outside the backing directory.
    pub mount: PathBuf,
    /// The log to create.
    pub log: PathBuf,
    /// The source of the mount in the list of mounts, which identifies the mount.
    pub source: String,
    /// Whether written data is logged; otherwise only its length.
    pub keep_contents: bool,
    /// Whether names and contents are replaced.
    pub anonymize: bool,
    /// Seed of contents and aliases.
    pub seed: Seed,
    /// The clock for the times of steps.
    pub clock: Arc<dyn Clock>,
}

/// A running recording through a mount.
pub struct Recording {
    backing: PathBuf,
    recorder: Arc<Mutex<Option<Recorder>>>,
    thread: JoinHandle<std::io::Result<()>>,
    is_aborted: Arc<AtomicBool>,
    /// Steps of the log that create the tree that existed at the start.
    stock_steps: u64,
}

/// The result of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Totals of the log.
    pub summary: LogSummary,
    /// Changes of names in the backing directory itself, which the log does not contain.
    pub foreign_changes: u64,
    /// Operations after the steps that create the tree that existed at the start.
    pub changes: u64,
}

/// Problems of a running recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The backing directory is not at its path any more.
    Vanished,
    /// The log cannot be written.
    Log,
    /// Another process unmounted the mount, so it is no longer served.
    Unmounted,
    /// The kernel's connection was aborted while it was mounted.
    Aborted,
}

impl Recording {
    /// Logs the existing tree, mounts, and serves until the mount is gone.
    ///
    /// Errors: directories inside one another; a mount point that is not empty; a log that exists
    /// or would be inside the recorded directories; another file system below the backing
    /// directory; no FUSE. Cost: reads the whole backing directory.
    pub fn start(options: RecordOptions) -> Result<Self> {
        let (backing, mount) = check_places(&options)?;
        raise_limit();
        let mut recorder = take_stock(&options, &backing, Some(&options.log))?;
        recorder.sink.flush()?;
        let stock_steps = recorder.sink.steps();
        recorder.sink.start_clock();
        let recorder = Arc::new(Mutex::new(Some(recorder)));
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName(options.source.clone()), MountOption::DefaultPermissions];
        if rustix::process::geteuid().is_root() {
            config.mount_options.extend([MountOption::Suid, MountOption::Dev]);
            config.acl = SessionACL::All;
        }
        let served = Arc::clone(&recorder);
        let session = Session::new(RecordFs(Arc::clone(&recorder)), &mount, &config)
            .map_err(Error::io("mount the recorder on", &mount))?;
        let is_aborted = Arc::new(AtomicBool::new(false));
        let aborted = Arc::clone(&is_aborted);
        // If the list of mounts cannot be read, an abort is assumed: a false alarm costs less than
        // a hidden abort.
        let is_mounted =
            move || std::fs::read("/proc/self/mountinfo").map_or(true, |table| lists_source(&table, &options.source));
        let note_end = move || aborted.store(is_mounted(), Ordering::SeqCst);
        let thread = thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || relay::run(session, RecordFs(served), &config, note_end));
        let thread = thread.map_err(Error::io("start the thread that serves", &mount))?;
        Ok(Self { backing, recorder, thread, is_aborted, stock_steps })
    }

    /// Checks what [`start`](Self::start) checks, and mounts and writes nothing. Returns the
    /// operations that the log would start with: those that make the existing tree.
    ///
    /// Errors and cost: those of `start`; whether the log can be created is not checked.
    pub fn check(options: &RecordOptions) -> Result<u64> {
        let (backing, _) = check_places(options)?;
        let device = Path::new("/dev/fuse");
        let opened = std::fs::File::options().read(true).write(true).open(device);
        opened.map_err(Error::io("open the device of FUSE,", device))?;
        Ok(take_stock(options, &backing, None)?.sink.steps())
    }

    /// Returns the first problem found, if any. Callers poll it.
    pub fn trouble(&self) -> Option<Trouble> {
        let recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        match &*recorder {
            Some(recorder) if recorder.trouble.is_some() => Some(Trouble::Log),
            Some(recorder) if !recorder.backing.is_there() => Some(Trouble::Vanished),
            _ if self.thread.is_finished() && self.is_aborted.load(Ordering::SeqCst) => Some(Trouble::Aborted),
            _ if self.thread.is_finished() => Some(Trouble::Unmounted),
            _ => None,
        }
    }

    /// Writes the logged changes to the file, so that a kill loses only later ones.
    pub fn flush(&self) {
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recorder) = &mut *recorder
            && let Err(trouble) = recorder.sink.flush()
        {
            recorder.trouble.get_or_insert(trouble);
        }
    }

    /// Finishes the log. Call it when the mount is gone; later requests fail.
    ///
    /// Errors: the backing directory vanished (the log is finished all the same); the log cannot be
    /// written.
    pub fn finish(self) -> Result<Recorded> {
        let recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner).take();
        let recorder = recorder.expect("only finish() takes it, and takes the recording too");
        let (there, foreign_changes) = (recorder.backing.is_there(), recorder.foreign);
        let changes = recorder.sink.steps() - self.stock_steps;
        let summary = recorder.finish()?;
        // The thread ends with the mount. A lazily detached mount may still have users, for which
        // this does not wait.
        if self.thread.is_finished() {
            let _ = self.thread.join();
        }
        if !there {
            return Err(Error::Vanished { path: self.backing });
        }
        Ok(Recorded { summary, foreign_changes, changes })
    }
}

/// Returns the backing directory and the mount point, which fit together.
fn check_places(options: &RecordOptions) -> Result<(PathBuf, PathBuf)> {
    let backing = canonical(&options.backing)?;
    let mount = canonical(&options.mount)?;
    let parent = options.log.parent().filter(|parent| !parent.as_os_str().is_empty());
    let log_dir = canonical(parent.unwrap_or(Path::new(".")))?;
    let refuse = |path: &Path, problem: &str| Err(Error::Place { path: path.to_owned(), problem: problem.into() });
    if mount.starts_with(&backing) || backing.starts_with(&mount) {
        return refuse(&mount, "and the directory to record contain each other");
    }
    if log_dir.starts_with(&backing) || log_dir.starts_with(&mount) {
        return refuse(&options.log, "would be inside the recorded directories; put the log elsewhere");
    }
    let mut listing = std::fs::read_dir(&mount).map_err(Error::io("list the mount point", &mount))?;
    if listing.next().is_some() {
        return refuse(&mount, "is not empty; give an empty directory to mount on");
    }
    Ok((backing, mount))
}

/// Logs the existing tree; without a log the tree is only read.
fn take_stock(options: &RecordOptions, backing: &Path, log: Option<&Path>) -> Result<Recorder> {
    let workload = serde_json::json!({
        "name": "recorded",
        "contents": if options.keep_contents { "kept" } else { "lengths" },
        "anonymized": options.anonymize,
    });
    let clock = Some(Arc::clone(&options.clock));
    let sink = Sink::create(log, workload, options.seed, clock, options.keep_contents, options.anonymize)?;
    let mut recorder = Recorder::new(Backing::open(backing)?, sink);
    recorder.take_stock()?;
    Ok(recorder)
}

fn canonical(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).map_err(Error::io("look up", path))
}

/// Every open file of every program is also an open file of this process.
fn raise_limit() {
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    // On failure the old limit stays.
    let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

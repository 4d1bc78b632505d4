//! A recording under way: the mount, the thread that serves it, and its end.

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

/// What to record, and how.
pub struct RecordOptions {
    /// The directory that everything is passed on to.
    pub backing: PathBuf,
    /// Where programs see it: an empty directory elsewhere.
    pub mount: PathBuf,
    /// The log to make.
    pub log: PathBuf,
    /// What the list of mounts calls it; the mount is found by it again.
    pub source: String,
    /// What is written goes into the log, not only its length.
    pub keep_contents: bool,
    /// Names and contents are replaced.
    pub anonymize: bool,
    /// Of contents and aliases.
    pub seed: Seed,
    /// Steps carry times of this clock.
    pub clock: Arc<dyn Clock>,
}

/// A mount that records.
pub struct Recording {
    backing: PathBuf,
    recorder: Arc<Mutex<Option<Recorder>>>,
    thread: JoinHandle<std::io::Result<()>>,
    is_aborted: Arc<AtomicBool>,
}

/// How a recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// What the log holds.
    pub summary: LogSummary,
    /// Names that came or went in the backing directory itself, of which the log does not know.
    pub foreign_changes: u64,
}

/// What is wrong with a recording under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The backing directory is gone.
    Vanished,
    /// The log cannot be written.
    Log,
    /// Another process unmounted the mount, so it is no longer served.
    Unmounted,
    /// The kernel's connection was aborted while it was mounted.
    Aborted,
}

impl Recording {
    /// Logs the tree that is already there, mounts, and serves until the mount is gone.
    ///
    /// Errors: directories inside one another, a mount point that is not empty, a log that exists or would lie in what
    /// is recorded, no FUSE. Cost: reads all there is in the backing directory.
    pub fn start(options: RecordOptions) -> Result<Self> {
        let backing = canonical(&options.backing)?;
        let mount = canonical(&options.mount)?;
        let parent = options.log.parent().filter(|parent| !parent.as_os_str().is_empty());
        let log_dir = canonical(parent.unwrap_or(Path::new(".")))?;
        let refuse = |path: &Path, problem: &str| Err(Error::Place { path: path.to_owned(), problem: problem.into() });
        if mount.starts_with(&backing) || backing.starts_with(&mount) {
            return refuse(&mount, "and the backing directory lie inside one another");
        }
        if log_dir.starts_with(&backing) || log_dir.starts_with(&mount) {
            return refuse(&options.log, "would lie in what is recorded; put the log elsewhere");
        }
        let mut listing = std::fs::read_dir(&mount).map_err(Error::io("list the mount point", &mount))?;
        if listing.next().is_some() {
            return refuse(&mount, "is not empty; give an empty directory to mount on");
        }
        raise_limit();
        let workload = serde_json::json!({
            "name": "recorded",
            "contents": if options.keep_contents { "kept" } else { "lengths" },
            "anonymized": options.anonymize,
        });
        let sink = Sink::create(
            &options.log,
            workload,
            options.seed,
            Some(options.clock),
            options.keep_contents,
            options.anonymize,
        )?;
        let mut recorder = Recorder::new(Backing::open(&backing)?, sink);
        recorder.take_stock()?;
        recorder.sink.flush()?;
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
        // A list of mounts that cannot be read counts as an abort: a false alarm costs less than a hidden abort.
        let is_mounted =
            move || std::fs::read("/proc/self/mountinfo").map_or(true, |table| lists_source(&table, &options.source));
        let note_end = move || aborted.store(is_mounted(), Ordering::SeqCst);
        let thread = thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || relay::run(session, RecordFs(served), &config, note_end));
        let thread = thread.map_err(Error::io("start the thread that serves", &mount))?;
        Ok(Self { backing, recorder, thread, is_aborted })
    }

    /// What went wrong, if something did; to be asked now and then.
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

    /// Hands what was logged so far to the system, so that a kill loses no more than what came after.
    pub fn flush(&self) {
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recorder) = &mut *recorder
            && let Err(trouble) = recorder.sink.flush()
        {
            recorder.trouble.get_or_insert(trouble);
        }
    }

    /// Ends the log; to be called when the mount is gone. From then on a request that still comes is refused.
    ///
    /// Errors: the backing directory vanished (the log is finished all the same), or the log cannot be written.
    pub fn finish(self) -> Result<Recorded> {
        let recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner).take();
        let recorder = recorder.expect("only finish() takes it, and takes the recording too");
        let (there, foreign_changes) = (recorder.backing.is_there(), recorder.foreign);
        let summary = recorder.finish()?;
        // It ends with its mount; a lazily detached one may have users left, who are not waited for.
        if self.thread.is_finished() {
            let _ = self.thread.join();
        }
        if !there {
            return Err(Error::Vanished { path: self.backing });
        }
        Ok(Recorded { summary, foreign_changes })
    }
}

fn canonical(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).map_err(Error::io("look up", path))
}

/// Every open file of every program is one of ours too.
fn raise_limit() {
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    // Refused: as many files as before can be open.
    let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

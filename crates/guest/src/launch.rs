//! The launcher: starts a guest, passes its output, watches over it.
//!
//! An adapter: it starts processes.

use std::{
    fs,
    io::Read,
    net::Shutdown,
    os::{
        fd::OwnedFd,
        unix::{
            fs::{DirBuilderExt, symlink},
            net::UnixStream,
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use senesce_core::{Bytes, Clock};

use crate::{
    Error, GuestConfig, GuestKernel, Result, check_memory, console::Console, frame::Frame, guard, progress::Progress,
};

/// How long the launcher waits for a guest.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the start of the kernel to that of the command.
    pub boot: Duration,
    /// Between two signs of life: a frame of init, or work of the guest's processes. Without a
    /// frame a guest lives for at most ten times this.
    pub silence: Duration,
    /// From the start of the kernel to the end of the command; none for a run of any length.
    pub total: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        // The kernel boots in 2 s on an idle machine; a loaded one may need twenty times that.
        Self { boot: Duration::from_secs(90), silence: Duration::from_secs(120), total: None }
    }
}

/// A guest that is to be started.
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: &'a GuestKernel,
    /// The memory of the guest.
    pub memory: Bytes,
    /// What the guest executes. The private directory must be writable in it.
    pub config: GuestConfig,
    /// This program.
    pub program: PathBuf,
    /// A directory of this user alone, without links in its path, that is removed afterwards.
    pub private_dir: &'a Path,
    /// How long the guest may take.
    pub limits: Limits,
    /// Measures the limits.
    pub clock: &'a dyn Clock,
    /// The signal that requests an early end, if there was one.
    pub interrupted: fn() -> Option<i32>,
    /// Writes output of the guest. If the output has no reader, the function drops the bytes, and
    /// the command continues.
    pub output: fn(Output, Vec<u8>),
}

/// A stream of the guest's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The results.
    Stdout,
    /// The notes and errors.
    Stderr,
}

/// How a guest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestEnd {
    /// The exit code of the command: 128 plus the signal if a signal ended it.
    pub code: u8,
    /// From the start of the kernel to that of the command.
    pub boot: Duration,
}

/// The hidden verbs that this program offers to itself.
const GUARD_VERB: &str = "guest-guard";
const INIT_VERB: &str = "guest-init";
/// A guest that works may be silent for this multiple of the limit.
const WORKING: u32 = 10;
/// The number of frames that wait for the launcher, at most. Others stay in the line, and the guest
/// waits.
const FRAMES: usize = 64;
/// Between two checks for signals.
const POLL: Duration = Duration::from_millis(100);
/// How long a guest may take to power off.
const POWER_OFF: Duration = Duration::from_secs(30);

/// Starts a guest, and passes its output to stdout and stderr until its command exits. A first
/// signal is passed to the command. Leaves no process.
///
/// Errors: not enough memory; the kernel does not start, panics, is killed, or gives no sign of
/// life.
pub fn run_guest(launch: Launch<'_>) -> Result<GuestEnd> {
    let command = prepare(&launch)?;
    // If the guard is killed, the processes of the guest become children of the launcher.
    let me = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(me)).map_err(Error::errno("guard", &launch.program))?;
    let guest = Guest::start(&launch.program, &command)?;
    guest.supervise(&launch)
}

/// Writes the configuration, and returns the command line of the kernel.
fn prepare(launch: &Launch<'_>) -> Result<Vec<String>> {
    let dir = launch.private_dir;
    let text = |path: &Path| {
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\,".contains(&byte);
        match path.to_str() {
            Some(text) if text.bytes().all(plain) => Ok(text.to_owned()),
            _ => {
                let why = "blanks, quotes, commas and backslashes cannot be passed to the guest's kernel";
                Err(Error::Path { path: path.to_owned(), why })
            }
        }
    };
    let memory_dir = check_memory(launch.memory, dir)?;
    let (program, uml) = (dir.join("program"), dir.join("uml"));
    let config_path = dir.join("guest.json");
    let bytes = serde_json::to_vec(&launch.config).map_err(|error| Error::io("write", &config_path)(error.into()))?;
    fs::write(&config_path, bytes).map_err(Error::io("write", &config_path))?;
    // The program's own path may hold blanks.
    symlink(&launch.program, &program).map_err(Error::io("create", &program))?;
    fs::DirBuilder::new().mode(0o700).create(&uml).map_err(Error::io("create", &uml))?;
    Ok(vec![
        format!("TMPDIR={}", memory_dir.display()),
        launch.kernel.program.display().to_string(),
        format!("mem={}K", launch.memory.0 / Bytes::KIB),
        format!("uml_dir={}", text(&uml)?),
        "root=/dev/root".to_owned(),
        "rootfstype=hostfs".to_owned(),
        "rootflags=/".to_owned(),
        "ro".to_owned(),
        "con=null".to_owned(),
        "con0=null,fd:2".to_owned(),
        "ssl=null".to_owned(),
        format!("ssl0=fd:{line},fd:{line}", line = guard::LINE),
        // UML adds it after "--" otherwise, where it is an argument of init.
        "console=tty0".to_owned(),
        "quiet".to_owned(),
        "random.trust_cpu=on".to_owned(),
        format!("init={}", text(&program)?),
        "--".to_owned(),
        INIT_VERB.to_owned(),
        text(&config_path)?,
    ])
}

/// What the threads of the launcher report.
enum Event {
    Frame(Frame),
    /// The line has ended, with the damage if that was the cause.
    LineEnd(Option<String>),
}

/// A running guest. Dropped, the guard kills it.
struct Guest {
    guard: Child,
    /// The launcher's life, and the guard's report.
    control: UnixStream,
    line: UnixStream,
    console: Console,
    console_reader: thread::JoinHandle<()>,
    events: Receiver<Event>,
    /// Children that this process had before. They are not the guest's.
    earlier: Vec<Pid>,
}

impl Guest {
    fn start(program: &Path, command: &[String]) -> Result<Self> {
        let earlier = children();
        let pair = || UnixStream::pair().map_err(Error::io("create a socket for", program));
        let (control, guards_control) = pair()?;
        let (line, guests_line) = pair()?;
        let (memory_dir, command) = command.split_first().expect("prepare() begins with it");
        let mut guard = Command::new(program)
            .arg(GUARD_VERB)
            .arg("--")
            .args(command)
            // UML looks for the directory of its memory here, and for its own in HOME.
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/")
            .env("TMPDIR", memory_dir.trim_start_matches("TMPDIR="))
            .stdin(Stdio::from(OwnedFd::from(guards_control)))
            .stdout(Stdio::from(OwnedFd::from(guests_line)))
            .stderr(Stdio::piped())
            // A key of the terminal interrupts the launcher, which passes it on.
            .process_group(0)
            .spawn()
            .map_err(Error::io("start", program))?;
        let (console, stderr) = (Console::default(), guard.stderr.take().expect("it is piped"));
        let follower = console.clone();
        let console_reader = thread::spawn(move || follower.follow(stderr));
        let (sender, events) = mpsc::sync_channel(FRAMES);
        let reader = line.try_clone().map_err(Error::io("read the line of", program))?;
        thread::spawn(move || {
            let end = loop {
                match Frame::read(&reader) {
                    Ok(Some(frame)) => {
                        if sender.send(Event::Frame(frame)).is_err() {
                            return;
                        }
                    }
                    Ok(None) => break None,
                    // The kernel died in the middle of a frame; its status says how.
                    Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => break None,
                    Err(error) => break Some(error.to_string()),
                }
            };
            let _ = sender.send(Event::LineEnd(end));
        });
        Ok(Self { guard, control, line, console, console_reader, events, earlier })
    }

    fn supervise(mut self, launch: &Launch<'_>) -> Result<GuestEnd> {
        let Launch { limits, interrupted, clock, output, .. } = launch;
        let since = |then: senesce_core::Nanos| Duration::from_nanos(clock.now().0.saturating_sub(then.0));
        let started = clock.now();
        let (mut last, mut boot, mut passed) = (started, None, None);
        let mut watch = Watch::new(limits.silence);
        let died = |how: String, console: String| match how.strip_prefix(guard::NO_PTRACE) {
            Some(reason) => Error::NoPtrace { reason: reason.to_owned() },
            None => Error::Died { how, console },
        };
        loop {
            let event = self.events.recv_timeout(POLL);
            if let Some(signal) = interrupted().filter(|_| passed.is_none() && boot.is_some()) {
                passed = Some(signal);
                // If the line is gone, the loop ends with the reason.
                let _ = Frame::Signal(signal as u8).write(&self.line);
            }
            if let Some(total) = limits.total.filter(|&total| since(started) > total) {
                let (_, console) = self.end(Duration::ZERO);
                return Err(Error::Overdue { seconds: total.as_secs(), console });
            }
            let frame = match event {
                Ok(Event::Frame(frame)) => frame,
                Ok(Event::LineEnd(damage)) => {
                    let (how, console) = self.end(Duration::ZERO);
                    return Err(died(damage.unwrap_or(how), console));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let (how, console) = self.end(Duration::ZERO);
                    return Err(died(how, console));
                }
                Err(RecvTimeoutError::Timeout) if matches!(self.guard.try_wait(), Ok(Some(_))) => {
                    let (how, console) = self.end(Duration::ZERO);
                    return Err(died(how, console));
                }
                Err(RecvTimeoutError::Timeout) if boot.is_none() && since(started) > limits.boot => {
                    let (_, console) = self.end(Duration::ZERO);
                    return Err(Error::NotBooted { seconds: limits.boot.as_secs(), console });
                }
                Err(RecvTimeoutError::Timeout)
                    if boot.is_some() && watch.is_hung(since(last), || Progress::of(Pid::from_child(&self.guard))) =>
                {
                    let seconds = since(last).as_secs();
                    let (_, console) = self.end(Duration::ZERO);
                    return Err(Error::Hung { seconds, console });
                }
                Err(RecvTimeoutError::Timeout) => continue,
            };
            last = clock.now();
            watch = Watch::new(limits.silence);
            match frame {
                Frame::Ready(_) => boot = Some(since(started)),
                Frame::Stdout(bytes) => output(Output::Stdout, bytes),
                Frame::Stderr(bytes) => output(Output::Stderr, bytes),
                Frame::Exit(code) => {
                    self.end(POWER_OFF);
                    return Ok(GuestEnd { code, boot: boot.unwrap_or_default() });
                }
                Frame::Failed(problem) => {
                    let (_, console) = self.end(POWER_OFF);
                    return Err(Error::Init { problem, console });
                }
                Frame::Heartbeat | Frame::Signal(_) => {}
            }
        }
    }

    /// Waits up to `patience` until the guest has powered off, then has it killed. Out: how the
    /// kernel ended, and the end of its console.
    fn end(mut self, patience: Duration) -> (String, String) {
        // The reader of the line must not wait for this thread.
        drop(self.events);
        let mut report = String::new();
        let timeout = patience.max(Duration::from_millis(1));
        let _ = self.control.set_read_timeout(Some(timeout));
        // The guard closes its end when no process of the guest is left.
        if self.control.read_to_string(&mut report).is_err() {
            let _ = self.control.shutdown(Shutdown::Write);
            let _ = self.control.set_read_timeout(Some(POWER_OFF));
            let _ = self.control.read_to_string(&mut report);
        }
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        kill_orphans(&self.earlier);
        let _ = self.console_reader.join();
        let how = if report.is_empty() { "was killed with its guard".to_owned() } else { report };
        (how, self.console.tail())
    }
}

/// Decides whether a silent guest hangs.
struct Watch {
    limit: Duration,
    /// The last progress that was read, and how long the guest had been silent then.
    seen: Option<(Duration, Progress)>,
}

impl Watch {
    fn new(limit: Duration) -> Self {
        Self { limit, seen: None }
    }

    /// `silent` is the time since the last frame. `look` reads the progress of the guest.
    fn is_hung(&mut self, silent: Duration, look: impl FnOnce() -> Progress) -> bool {
        match self.seen {
            // Reading the progress costs, and most silences are short.
            None if silent <= self.limit / 2 => false,
            None => {
                self.seen = Some((silent, look()));
                false
            }
            Some((at, _)) if silent - at <= self.limit / 2 => false,
            Some((at, before)) => {
                let now = look();
                self.seen = Some((silent, now));
                !now.is_life(&before, silent - at) || silent > self.limit * WORKING
            }
        }
    }
}

/// The children of this process, zombies included.
fn children() -> Vec<Pid> {
    let me = rustix::process::getpid();
    let is_child = |pid: &Pid| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parent == Some(me.as_raw_nonzero().get())
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(is_child).collect()
}

/// Kills the processes that a killed guard left to this process, and reaps them. `earlier` are the
/// children that it had before the guest.
fn kill_orphans(earlier: &[Pid]) {
    let deadline = POWER_OFF.as_millis() / POLL.as_millis();
    for _ in 0..deadline {
        let orphans: Vec<Pid> = children().into_iter().filter(|pid| !earlier.contains(pid)).collect();
        if orphans.is_empty() {
            return;
        }
        for pid in orphans {
            // It may be a zombie already, or gone.
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_guest_without_work_hangs() {
        let seconds = Duration::from_secs;
        let mut watch = Watch::new(seconds(120));
        let idle = Progress::default;
        assert!(!watch.is_hung(seconds(60), || panic!("too early to read")));
        assert!(!watch.is_hung(seconds(61), idle));
        assert!(!watch.is_hung(seconds(121), || panic!("too early to read")));
        assert!(watch.is_hung(seconds(122), idle));
    }

    #[test]
    fn a_silent_guest_that_waits_for_a_disk_lives_longer() {
        let mut watch = Watch::new(Duration::from_secs(120));
        let hung: Vec<u64> =
            (1..2000).filter(|&at| watch.is_hung(Duration::from_secs(at), Progress::waiting)).take(1).collect();
        assert!((1201..=1262).contains(&hung[0]), "{hung:?}");
    }
}

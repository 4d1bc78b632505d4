//! A child process that is waited for and does not outlive its time: it and all that it started.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use senesce_core::Clock;

use crate::{Error, Result, check_interrupted, interrupted};

/// How long a child may take to end after a signal requested it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the wait checks for signals.
const CHECK_EVERY: Duration = Duration::from_millis(50);
/// The end of an output that is read for its last lines, bytes.
const TAIL_BYTES: u64 = 64 << 10;

/// A child that ended, and the files with its output.
pub struct Supervised {
    /// How it ended.
    pub status: ExitStatus,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// Runs a command and waits for it. A signal to this process ends the command.
///
/// Its output goes to the files `stdout` and `stderr` in `scratch`, so a program that it leaves cannot hold the caller up.
/// At its end the rest of its process group is killed, because it would keep a volume mounted.
///
/// Errors: it cannot be started; [`Error::Interrupted`]. A failure of the command is in the result.
pub fn run_supervised(command: &mut Command, scratch: &Path, clock: &dyn Clock) -> Result<Supervised> {
    let (out_path, err_path) = (scratch.join("stdout"), scratch.join("stderr"));
    let create = |path: &Path| File::create(path).map_err(Error::std("create", path));
    command.stdin(Stdio::null()).stdout(create(&out_path)?).stderr(create(&err_path)?).process_group(0);
    let program = PathBuf::from(command.get_program());
    let mut child = command.spawn().map_err(Error::std("run", &program))?;
    let group = Pid::from_child(&child);
    let ended = wait(group, clock);
    // It is not waited for yet, so the number is still its own.
    let _ = kill_process_group(group, Signal::KILL);
    let status = child.wait().map_err(Error::std("wait for", &program))?;
    check_interrupted("a command")?;
    ended.map_err(Error::io("wait for", &program))?;
    Ok(Supervised { status, stdout: out_path, stderr: err_path })
}

impl Supervised {
    /// The whole standard output.
    pub fn stdout(&self) -> Result<String> {
        let bytes = fs::read(&self.stdout).map_err(Error::std("read", &self.stdout))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The last lines of standard error, at most this many; empty if there are none or they cannot be read.
    pub fn last_errors(&self, lines: usize) -> Vec<String> {
        last_lines(&self.stderr, lines)
    }

    /// The same of standard output.
    pub fn last_output(&self, lines: usize) -> Vec<String> {
        last_lines(&self.stdout, lines)
    }
}

fn last_lines(path: &Path, lines: usize) -> Vec<String> {
    let mut tail = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        file.take(TAIL_BYTES).read_to_end(&mut tail)
    });
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&tail);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].iter().map(|line| (*line).to_owned()).collect()
}

/// Waits until the leader of the group ended, and leaves it to be reaped. A signal to this process ends the group.
fn wait(group: Pid, clock: &dyn Clock) -> rustix::io::Result<()> {
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let result = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(group), options));
            let _ = sender.send(result.map(|_| ()));
        });
        let mut requested_at = None;
        loop {
            match receiver.recv_timeout(CHECK_EVERY) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Disconnected) => return Err(rustix::io::Errno::CHILD),
                Err(RecvTimeoutError::Timeout) if interrupted().is_none() => {}
                Err(RecvTimeoutError::Timeout) => {
                    let now = clock.now();
                    let since = now.since(*requested_at.get_or_insert(now));
                    let is_over = u128::from(since.0) > PATIENCE.as_nanos();
                    let _ = kill_process_group(group, if is_over { Signal::KILL } else { Signal::TERM });
                }
            }
        }
    })
}

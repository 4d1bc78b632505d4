//! Runs a child process with a limited life: a signal stops it and every process of its group.

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

/// The maximum time between a request to stop and a kill.
const PATIENCE: Duration = Duration::from_secs(5);
/// The interval of the checks for signals.
const CHECK_EVERY: Duration = Duration::from_millis(50);
/// Bytes at the end of an output that are read for its last lines.
const TAIL_BYTES: u64 = 64 << 10;

/// A child that exited, and the files with its output.
pub struct Supervised {
    /// Its exit status.
    pub status: ExitStatus,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// Runs a command and waits for it. A signal to this process stops the command.
///
/// Its output goes to the files `stdout` and `stderr` in `scratch`, so a program that it leaves
/// cannot block the caller. When it exits, the rest of its process group is killed, because it
/// would keep a volume mounted.
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
    // The leader is not reaped yet, so its number still identifies its group.
    let _ = kill_process_group(group, Signal::KILL);
    let status = child.wait().map_err(Error::std("wait for", &program))?;
    check_interrupted("a command")?;
    ended.map_err(Error::io("wait for", &program))?;
    Ok(Supervised { status, stdout: out_path, stderr: err_path })
}

impl Supervised {
    /// Reads the whole standard output.
    pub fn stdout(&self) -> Result<String> {
        let bytes = fs::read(&self.stdout).map_err(Error::std("read", &self.stdout))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The last `lines` lines of standard error, or fewer. Empty if there are none or they cannot
    /// be read.
    pub fn last_errors(&self, lines: usize) -> Vec<String> {
        last_lines(&self.stderr, lines)
    }

    /// As [`last_errors`](Self::last_errors), of standard output.
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

/// Waits until the leader of the group exits, and does not reap it. A signal to this process stops
/// the group.
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

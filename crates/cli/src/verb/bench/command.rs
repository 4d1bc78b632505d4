//! The command that is measured: run in a volume, waited for, ended with all it started.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        process::CommandExt,
    },
    path::Path,
    process::{Command, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use senesce_core::Clock;
use senesce_volume::{check_interrupted, interrupted};

use crate::{clock::SystemClock, exit::failed};

/// Lines of a failing command's stderr that are told.
const TOLD_LINES: usize = 10;
/// How long a command may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// A run that succeeded.
pub struct Ran {
    pub seconds: f64,
    pub stdout: String,
}

/// Runs `command` in `root`, with every `{}` replaced by it; `finish` belongs to the time that is measured.
///
/// Its output goes to files in `scratch`: a program it leaves behind can hold up nothing. What still runs of its process
/// group at its end is killed, since it would keep the volume mounted.
///
/// Errors: it cannot be started; it fails, with the last lines of its stderr; a signal.
pub fn collect_run(
    command: &[OsString],
    root: &Path,
    scratch: &Path,
    finish: impl FnOnce() -> Result<()>,
) -> Result<Ran> {
    let [program, arguments @ ..] = command else { return Err(failed("there is no command")) };
    let (out_path, err_path) = (scratch.join("stdout"), scratch.join("stderr"));
    let create = |path: &Path| File::create(path).with_context(|| format!("cannot create {}", path.display()));
    let (out, err) = (create(&out_path)?, create(&err_path)?);
    let clock = SystemClock::start();
    let mut child = Command::new(fill_in(program, root))
        .args(arguments.iter().map(|argument| fill_in(argument, root)))
        .current_dir(root)
        .env("SENESCE_VOLUME", root)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {}", program.to_string_lossy()))?;
    let group = Pid::from_child(&child);
    let ended = wait(group, &clock);
    // It is not waited for yet, so the number is still its own.
    let _ = kill_process_group(group, Signal::KILL);
    let status = child.wait().context("cannot wait for the command")?;
    check_interrupted("a command")?;
    ended?;
    if !status.success() {
        let said = String::from_utf8_lossy(&fs::read(&err_path).unwrap_or_default()).into_owned();
        let lines: Vec<&str> = said.lines().collect();
        let last: Vec<String> =
            lines[lines.len().saturating_sub(TOLD_LINES)..].iter().map(|line| format!("\n    {line}")).collect();
        let said = if last.is_empty() {
            "; it said nothing on stderr".to_owned()
        } else {
            format!("; its stderr ends with:{}", last.concat())
        };
        return Err(failed(format!("the command ended with {status}{said}")));
    }
    finish()?;
    let seconds = clock.now().as_secs_f64();
    let stdout = fs::read(&out_path).with_context(|| format!("cannot read {}", out_path.display()))?;
    Ok(Ran { seconds, stdout: String::from_utf8_lossy(&stdout).into_owned() })
}

/// Waits until the leader of the group ended, and leaves it to be reaped; a signal to us ends it.
fn wait(group: Pid, clock: &SystemClock) -> Result<()> {
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let result = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(group), options));
            let _ = sender.send(result.map(|_| ()));
        });
        let mut asked_at = None;
        loop {
            match receiver.recv_timeout(Duration::from_millis(50)) {
                Ok(result) => return result.context("cannot wait for the command"),
                Err(RecvTimeoutError::Disconnected) => return Err(failed("the command cannot be waited for")),
                Err(RecvTimeoutError::Timeout) if interrupted().is_none() => {}
                Err(RecvTimeoutError::Timeout) => {
                    let now = clock.now().as_secs_f64();
                    let since = *asked_at.get_or_insert(now);
                    let signal = if now - since > PATIENCE.as_secs_f64() { Signal::KILL } else { Signal::TERM };
                    let _ = kill_process_group(group, signal);
                }
            }
        }
    })
}

/// The argument with the volume's path for every `{}`.
fn fill_in(argument: &OsStr, root: &Path) -> OsString {
    let mut rest = argument.as_bytes();
    let mut filled = Vec::new();
    while let Some(at) = rest.windows(2).position(|two| two == b"{}") {
        filled.extend(&rest[..at]);
        filled.extend(root.as_os_str().as_bytes());
        rest = &rest[at + 2..];
    }
    filled.extend(rest);
    OsString::from_vec(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_filled_in_wherever_it_is_asked_for() {
        let fill = |text: &str| fill_in(OsStr::new(text), Path::new("/m")).into_string().unwrap();
        assert_eq!(fill("--dir={}/x:{}"), "--dir=/m/x:/m");
        assert_eq!(fill("{ }"), "{ }");
        assert_eq!(fill("{{}"), "{/m");
    }

    #[test]
    fn a_failing_command_is_told_with_its_status_and_last_words() {
        let dir = tempfile::tempdir().unwrap();
        let run = |script: &str| {
            let command: Vec<OsString> = ["sh", "-c", script].map(OsString::from).to_vec();
            collect_run(&command, dir.path(), dir.path(), || Ok(()))
        };
        let error = run("for n in $(seq 20); do echo line $n >&2; done; exit 3").err().unwrap().to_string();
        assert!(
            error.contains("exit status: 3") && error.contains("line 20") && error.contains("line 11\n"),
            "{error}"
        );
        assert!(!error.contains("line 10\n"), "{error}");
        let ran = run("pwd; echo $SENESCE_VOLUME; sleep 1000 & ").unwrap();
        let place = dir.path().to_string_lossy();
        assert_eq!(ran.stdout, format!("{place}\n{place}\n"));
        assert!(ran.seconds > 0.0);
    }
}

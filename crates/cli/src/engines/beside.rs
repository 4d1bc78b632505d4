//! The engines in `senesce-fs`, a program beside this one.

use std::{
    env,
    io::Read,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use clap::ArgMatches;
use senesce_exec::EngineTarget;
use senesce_experiment::ErrorKind;
use senesce_inspect::Told;
use serde_json::Value;

use super::{Engines, HANDED_OVER, VERSION};
use crate::{
    GardeningArg,
    exit::{Failure, failed},
};

const PROGRAM: &str = "senesce-fs";
/// The time between two checks for a signal during a survey.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest survey that is read, bytes: several million files.
const MOST_BYTES: u64 = 4 << 30;

/// The engines are in `senesce-fs`, which runs as a child process or in place of this one.
pub struct Beside;

/// Finds the program: in the directory of this one, else in `PATH`.
fn find() -> Result<PathBuf> {
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    let listed = env::var_os("PATH").unwrap_or_default();
    // A relative directory would find a program that another user put into the working directory.
    let is_root = rustix::process::geteuid().is_root();
    let is_safe = |dir: &PathBuf| dir.is_absolute() && (!is_root || only_root_writes(dir));
    let listed: Vec<PathBuf> = env::split_paths(&listed).filter(is_safe).collect();
    let found = beside.into_iter().chain(listed).map(|dir| dir.join(PROGRAM)).find(|path| is_program(path));
    found.ok_or_else(|| {
        Failure {
            kind: ErrorKind::Environment,
            message: "the program senesce-fs, which has the file systems of this project, is neither beside senesce \
                      nor in PATH"
                .to_owned(),
            hint: Some("install senesce-fs, or build it by `cargo build -p senesce-fs`".to_owned()),
        }
        .into()
    })
}

/// Whether only root can put a program into a directory. `su` keeps the `PATH` of the user.
fn only_root_writes(dir: &Path) -> bool {
    dir.metadata().is_ok_and(|found| found.uid() == 0 && found.permissions().mode() & 0o022 == 0)
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns a command that starts the program. The program refuses another version than its own.
fn command() -> Result<Command> {
    let mut command = Command::new(find()?);
    command.args([HANDED_OVER, VERSION]);
    Ok(command)
}

impl Engines for Beside {
    fn hand_over(&self) -> Result<()> {
        let mut command = command()?;
        let program = command.get_program().to_owned();
        // The process stays, with its stdio and its signals, so that callers notice nothing.
        let error = command.args(env::args_os().skip(1)).exec();
        Err(error).with_context(|| format!("cannot execute {}", program.display()))
    }

    fn check(&self) -> Result<()> {
        find().map(drop)
    }

    fn is_alike(&self) -> bool {
        let Ok(mut command) = command() else { return false };
        // Another version exits with an error before it reads its arguments.
        command.arg("--version").env_remove("COMPLETE");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    fn run_verb(&self, _verb: &str, _arguments: &ArgMatches, _quiet: bool) -> Result<()> {
        self.hand_over()
    }

    fn survey(&self, place: &Path, volume: Option<&str>, goes_on: &dyn Fn() -> bool) -> Result<Told> {
        let mut command = command()?;
        command.args(["fs", "survey", "--json"]).args(volume.map(|name| format!("--volume={name}")));
        command.arg("--").arg(place).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().with_context(|| format!("cannot execute {}", command.get_program().display()))?;
        let text = wait(child, goes_on)?;
        serde_json::from_slice(&text).with_context(|| format!("cannot read the survey of {}", place.display()))
    }

    fn draw_tree(&self, _place: &Path, _figures: Option<&Path>, _picture: Option<&Path>) -> Result<Value> {
        Err(never())
    }

    fn drive(
        &self,
        _place: &str,
        _gardening: Option<GardeningArg>,
        _act: &mut dyn FnMut(&EngineTarget) -> Result<()>,
    ) -> Result<Option<Value>> {
        Err(never())
    }
}

/// The error of a verb that needs an engine and was not handed over first.
fn never() -> anyhow::Error {
    failed("senesce-fs is needed for this command and was not started")
}

/// Waits for a child, and returns its output. Kills it if `goes_on` returns false.
///
/// Errors: the child failed (with its message), or was killed.
fn wait(mut child: Child, goes_on: &dyn Fn() -> bool) -> Result<Vec<u8>> {
    let (mut output, mut words) = (child.stdout.take(), child.stderr.take());
    let (sender, done) = channel();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.as_mut().map_or(Ok(0), |output| output.take(MOST_BYTES + 1).read_to_end(&mut text));
        // The receiver is gone after a signal: the text is not needed.
        let _ = sender.send(read.map(|_| text));
    });
    let listener = thread::spawn(move || {
        let mut text = String::new();
        // A message that cannot be read is left out.
        let _ = words.as_mut().map(|words| words.read_to_string(&mut text));
        text
    });
    let text = loop {
        match done.recv_timeout(PAUSE) {
            Ok(text) => break Some(text),
            Err(RecvTimeoutError::Timeout) if goes_on() => {}
            Err(_) => break None,
        }
    };
    if text.is_none() {
        let _ = child.kill();
    }
    let ended = child.wait().context("cannot wait for senesce-fs")?;
    let _ = reader.join();
    let words = listener.join().unwrap_or_default();
    match text {
        None => Err(failed("the survey by senesce-fs was stopped by a signal")),
        Some(Ok(text)) if text.len() as u64 > MOST_BYTES => {
            Err(failed("the survey of senesce-fs has over 4 GiB, which is too large to inspect"))
        }
        Some(_) if !ended.success() => Err(failed(chain(&words))),
        Some(text) => text.context("cannot read the survey of senesce-fs"),
    }
}

/// Joins the chain of causes that `senesce-fs` prints into one line.
fn chain(message: &str) -> String {
    let message = message.trim();
    let lines = message.strip_prefix("senesce: ").unwrap_or(message).lines().map(str::trim);
    let causes: Vec<&str> = lines
        .filter(|line| !line.starts_with("hint: "))
        .map(|line| line.strip_prefix("because: ").unwrap_or(line))
        .collect();
    causes.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_its_chain_of_causes() {
        let message = "senesce: cannot look into x\n  because: block 7 is damaged\n  hint: check it\n";
        assert_eq!(chain(message), "cannot look into x: block 7 is damaged");
        assert_eq!(chain(""), "");
    }
}

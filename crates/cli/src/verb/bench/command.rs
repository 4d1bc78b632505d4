//! The command that is measured: run in a volume, waited for, ended with all it started.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::Path,
    process::Command,
};

use anyhow::Result;
use senesce_core::Clock;
use senesce_volume::run_supervised;

use crate::{clock::SystemClock, exit::failed};

/// Lines of a failing command's stderr that are in the error.
const SHOWN_LINES: usize = 10;

/// A run that succeeded.
pub struct Ran {
    pub seconds: f64,
    pub stdout: String,
}

/// Runs `command` in `root`, with every `{}` replaced by it; `finish` belongs to the time that is
/// measured.
///
/// Its output goes to files in `scratch`, see [`run_supervised`].
///
/// Errors: it cannot be started; it fails, with the last lines of its stderr; a signal.
pub fn collect_run(
    command: &[OsString],
    root: &Path,
    scratch: &Path,
    finish: impl FnOnce() -> Result<()>,
) -> Result<Ran> {
    let [program, arguments @ ..] = command else { return Err(failed("there is no command")) };
    let clock = SystemClock::start();
    let mut child = Command::new(fill_in(program, root));
    child.args(arguments.iter().map(|argument| fill_in(argument, root))).current_dir(root).env("SENESCE_VOLUME", root);
    let ended = run_supervised(&mut child, scratch, &clock)?;
    if !ended.status.success() {
        let last: Vec<String> = ended.last_errors(SHOWN_LINES).iter().map(|line| format!("\n    {line}")).collect();
        let output = match last.is_empty() {
            true => "; its stderr is empty".to_owned(),
            false => format!("; its stderr ends with:{}", last.concat()),
        };
        return Err(failed(format!("the command ended with {}{output}", ended.status)));
    }
    finish()?;
    let seconds = clock.now().as_secs_f64();
    Ok(Ran { seconds, stdout: ended.stdout()? })
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

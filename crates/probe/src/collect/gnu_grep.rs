//! The grep test with GNU grep, for comparison with the papers.

use std::{
    ffi::OsStr,
    io::Read,
    os::unix::{ffi::OsStrExt, process::ExitStatusExt},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use senesce_core::{Clock, Stop};

use super::{
    grep::{GrepFigures, collect_sizes, compute_wall},
    rusage::wait_with_times,
    walk::ItemError,
};
use crate::Error;

/// The largest part of grep's messages that is read, bytes.
const MESSAGES_BYTES: u64 = 64 * 1024;

/// Runs `grep -r --binary-files=text PATTERN` on `root` in the C locale: the grep test of the
/// papers.
///
/// In: a pattern of letters and digits, as [`super::compute_pattern`] makes it; other characters
/// have a meaning for grep. Out: wall time of the process and its own CPU time. Files, directories,
/// sizes and allocated bytes come from a later walk, outside the measured time. Files that grep
/// could not read are in `errors`.
///
/// Errors: no grep, a pattern with other characters, the pattern was found, grep was killed, the
/// clock went backwards, [`Error::Stopped`]. When `stop` returns true, grep is killed.
pub fn collect_gnu_grep(root: &Path, pattern: &[u8], clock: &dyn Clock, stop: Stop<'_>) -> Result<GrepFigures, Error> {
    if pattern.is_empty() || !pattern.iter().all(u8::is_ascii_alphanumeric) {
        let pattern = String::from_utf8_lossy(pattern).into_owned();
        return Err(Error::BadPattern {
            pattern,
            problem: "must be letters and digits: grep interprets other characters",
        });
    }
    let before = clock.now();
    let mut child = Command::new("grep")
        .args(["-r", "--binary-files=text", "-e"])
        .arg(OsStr::from_bytes(pattern))
        .arg("--")
        .arg(root)
        .env("LC_ALL", "C")
        .env_remove("GREP_OPTIONS")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| Error::system("run grep on", root, source))?;
    let messages = read_messages(&mut child, stop);
    let (status, cpu) =
        wait_with_times(child.id()).map_err(|source| Error::system("wait for grep on", root, source))?;
    let after = clock.now();
    if stop() {
        return Err(Error::Stopped { measure: "GNU grep" });
    }
    let status = ExitStatus::from_raw(status);
    let messages = String::from_utf8_lossy(&messages);
    let code = status.code();
    if code == Some(0) {
        return Err(Error::PatternFound { path: root.to_owned() });
    }
    if !matches!(code, Some(1 | 2)) || (code == Some(2) && messages.is_empty()) {
        let message = messages.lines().next().unwrap_or("no message").to_owned();
        return Err(Error::Tool { tool: "grep", path: root.to_owned(), status: status.to_string(), message });
    }
    let mut figures = collect_sizes(root, compute_wall("GNU grep", before, after)?, cpu, stop)?;
    for message in messages.lines() {
        figures.errors_count += 1;
        if figures.errors.len() < GrepFigures::ERRORS_KEPT {
            let path = root.to_owned();
            figures.errors.push(ItemError {
                operation: "run grep on".into(),
                path,
                message: message.to_owned(),
                errno: None,
            });
        }
    }
    Ok(figures)
}

/// Reads the child's messages until it closes them, and kills it when `stop` returns true.
fn read_messages(child: &mut Child, stop: Stop<'_>) -> Vec<u8> {
    /// The interval at which `stop` is called. The end of the messages is noticed at once.
    const ASK_EVERY: Duration = Duration::from_millis(50);
    let Some(mut stderr) = child.stderr.take() else { return Vec::new() };
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut messages = Vec::new();
            // The rest is drained, so that grep never blocks. Errors are ignored: they only lose
            // text of messages, and the receiver may be gone.
            let _ = stderr.by_ref().take(MESSAGES_BYTES).read_to_end(&mut messages);
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            let _ = sender.send(messages);
        });
        loop {
            match receiver.recv_timeout(ASK_EVERY) {
                Ok(messages) => return messages,
                Err(RecvTimeoutError::Disconnected) => return Vec::new(),
                Err(RecvTimeoutError::Timeout) if stop() => {
                    // Fails only if grep exited by itself.
                    let _ = child.kill();
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    })
}

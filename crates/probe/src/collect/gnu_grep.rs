//! The grep test done by GNU grep, for parity with the papers.

use std::{
    ffi::OsStr,
    io::Read,
    os::unix::{ffi::OsStrExt, process::ExitStatusExt},
    path::Path,
    process::{Command, ExitStatus, Stdio},
};

use senesce_core::Clock;

use super::{
    grep::{GrepFigures, collect_sizes, compute_wall},
    rusage::wait_with_times,
    walk::ItemError,
};
use crate::Error;

/// How much of grep's complaints is read at most, bytes.
const MESSAGES_BYTES: u64 = 64 * 1024;

/// Runs `grep -r --binary-files=text PATTERN` on `root` in the C locale: the papers' own grep test.
///
/// In: a pattern of letters and digits, as [`super::compute_pattern`] makes it (others would mean something to grep).
/// Out: wall time from start to end of the process, its own CPU time; files, directories, sizes and allocated bytes
/// from a walk after it, outside the measured time. Files grep could not read are in `errors`.
/// Errors: no grep, a pattern with other characters, the pattern was found, grep was killed, the clock went backwards.
pub fn collect_gnu_grep(root: &Path, pattern: &[u8], clock: &dyn Clock) -> Result<GrepFigures, Error> {
    if pattern.is_empty() || !pattern.iter().all(u8::is_ascii_alphanumeric) {
        let pattern = String::from_utf8_lossy(pattern).into_owned();
        return Err(Error::BadPattern { pattern, problem: "must be letters and digits to mean itself to grep" });
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
    let mut messages = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        // What goes beyond is drained, so that grep never waits for us; unreadable messages lose nothing but text.
        let _ = stderr.by_ref().take(MESSAGES_BYTES).read_to_end(&mut messages);
        let _ = std::io::copy(&mut stderr, &mut std::io::sink());
    }
    let (status, cpu) =
        wait_with_times(child.id()).map_err(|source| Error::system("wait for grep on", root, source))?;
    let after = clock.now();
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
    let mut figures = collect_sizes(root, compute_wall("GNU grep", before, after)?, cpu)?;
    for message in messages.lines() {
        figures.errors_count += 1;
        if figures.errors.len() < GrepFigures::ERRORS_KEPT {
            let path = root.to_owned();
            figures.errors.push(ItemError { operation: "run grep on", path, message: message.to_owned(), errno: None });
        }
    }
    Ok(figures)
}

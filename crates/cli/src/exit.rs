//! Errors become one message and one exit code, here and nowhere else.

mod bisection;
mod plan_hint;

use std::{
    ffi::OsString,
    io::IsTerminal,
    panic::{AssertUnwindSafe, catch_unwind, set_hook},
    path::PathBuf,
    process::ExitCode,
};

use clap::error::{ContextKind, ContextValue};
use senesce_core::{Printable, is_caught_panic, is_hazard, panic_text};
use senesce_experiment::{ErrorKind, interruption, plan::is_foreign};

pub use self::bisection::{bisect, refuse_bisection};
use plan_hint::hint_for_plan;

use crate::{
    engines::engines,
    fit::fit_message,
    out::{self, Unwritable},
    verb::show::resume_command,
};

// The rule is in `args::EXIT_CODES`.

/// The work failed, or found a fault.
pub const FAILED: u8 = 1;
/// The command line or the plan is wrong, or names something that does not exist.
pub const USAGE: u8 = 2;
/// Rights, kernel features, tools or space are missing.
pub const ENVIRONMENT: u8 = 3;
/// A fault of senesce.
pub const INTERNAL: u8 = 4;
/// A gate fails: `gate` found a regression, `--fail-if` of `compare` or `inspect` found a figure
/// beyond its limit, or a figure of `rerun` differs.
pub const DIFFERENT: u8 = 5;
/// A gate is undecided: the figures do not decide.
pub const UNDECIDED: u8 = 6;
/// A mount ends in order, and a drive of its garden failed, is missing, or is not filled yet.
pub const DEGRADED: u8 = 7;

/// An error of this crate, with its kind.
#[derive(Debug)]
pub struct Failure {
    /// The kind, which decides the exit code.
    pub kind: ErrorKind,
    /// What failed, on what.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// A usage error.
pub fn usage(message: impl Into<String>, hint: Option<&str>) -> anyhow::Error {
    Failure { kind: ErrorKind::Usage, message: message.into(), hint: hint.map(str::to_owned) }.into()
}

/// Something was tried and failed.
pub fn failed(message: impl Into<String>) -> anyhow::Error {
    Failure { kind: ErrorKind::Failed, message: message.into(), hint: None }.into()
}

/// Work that failed, and what to do about it.
pub fn failed_with(message: impl Into<String>, hint: Option<&str>) -> anyhow::Error {
    Failure { kind: ErrorKind::Failed, message: message.into(), hint: hint.map(str::to_owned) }.into()
}

/// The error of a gate that fails.
pub fn different(message: impl Into<String>) -> anyhow::Error {
    Gate { message: message.into(), code: DIFFERENT }.into()
}

/// The error of a gate that is undecided.
pub fn undecided(message: impl Into<String>) -> anyhow::Error {
    Gate { message: message.into(), code: UNDECIDED }.into()
}

/// The error of a mount that ends while a drive is missing, not filled yet, or does not answer.
pub fn degraded(message: impl Into<String>) -> anyhow::Error {
    Gate { message: message.into(), code: DEGRADED }.into()
}

/// The chain of causes and the hint, as they are printed.
pub fn text_of(error: &anyhow::Error) -> String {
    message(error, classify(error).1.as_deref()).trim_start_matches("senesce: ").to_owned()
}

/// An interruption after which `senesce run --resume` continues in this directory; the context of
/// an error.
#[derive(Debug)]
pub struct Resumable(pub PathBuf);

impl std::fmt::Display for Resumable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the run in {} was interrupted", self.0.display())
    }
}

/// An outcome with an exit code of its own, such as a gate that does not pass.
#[derive(Debug)]
struct Gate {
    message: String,
    code: u8,
}

impl std::fmt::Display for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Gate {}

/// The exit code of a command that ran in a guest, which has printed its own errors.
#[derive(Debug)]
struct Passed(u8);

impl std::fmt::Display for Passed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the command in the guest exited with code {}", self.0)
    }
}

impl std::error::Error for Passed {}

/// The exit code of a command that ran in a guest. `None`: the error is of this program.
pub fn passed_code(error: &anyhow::Error) -> Option<u8> {
    error.downcast_ref().map(|Passed(code)| *code)
}

/// Whether a signal ended the work, also work in a guest.
pub fn is_interruption(error: &anyhow::Error) -> bool {
    const OF_SIGNALS: [u8; 2] = [128 + 2, 128 + 15];
    passed_code(error).is_some_and(|code| OF_SIGNALS.contains(&code))
        || error.chain().any(|cause| interruption(cause).is_some())
}

/// Ends this program as the command in a guest ended.
pub fn passed(code: u8) -> anyhow::Result<()> {
    if code == 0 { Ok(()) } else { Err(Passed(code).into()) }
}

/// Does `work`; its error or panic becomes a message and the documented code. Guards run on a panic
/// too.
pub fn run(work: impl FnOnce() -> anyhow::Result<()>) -> ExitCode {
    set_hook(Box::new(|panic| {
        if is_caught_panic() {
            return;
        }
        let place = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
        eprintln!("senesce: internal error{place}: {}", panic_text(panic.payload()));
        eprintln!("  hint: this is a fault of senesce; please report it with the command that led here");
    }));
    let work = || {
        let ended = work();
        out::flush();
        ended
    };
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => report(&error),
        Err(payload) => match payload.downcast::<Unwritable>() {
            // `senesce show | head` closes our stdout: not an error.
            Ok(unwritable) if unwritable.0.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Ok(unwritable) => {
                eprintln!("senesce: cannot write the results to stdout\n  because: {}", unwritable.0);
                ExitCode::from(ENVIRONMENT)
            }
            Err(_) => ExitCode::from(INTERNAL),
        },
    }
}

/// Answers a signal after which the end takes long.
pub fn note_slow_end() {
    eprintln!("senesce: the command stops when its writes, unmounts and child processes are finished");
    eprintln!(
        "  hint: a second signal shortens this; a third one exits at once, and `senesce clean` then removes mounts and files"
    );
}

fn inspection_kind(error: &senesce_inspect::Error) -> ErrorKind {
    use senesce_inspect::Error as Inspect;
    match error {
        Inspect::NoFileSystem { .. }
        | Inspect::HoldsOther { .. }
        | Inspect::NotSupported { .. }
        | Inspect::NotOffline { .. } => ErrorKind::Usage,
        Inspect::NotRoot { .. }
        | Inspect::NotMountable { .. }
        | Inspect::MountHidden { .. }
        | Inspect::MountElsewhere { .. }
        | Inspect::HoldsPartitions { .. }
        | Inspect::Closed { .. }
        | Inspect::TwinMounted { .. } => ErrorKind::Environment,
        Inspect::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => ErrorKind::Environment,
        Inspect::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => ErrorKind::Usage,
        Inspect::Probe(error) => probe_kind(error),
        Inspect::Volume(error) => senesce_experiment::classify(error).map_or(ErrorKind::Failed, |(kind, _)| kind),
        _ => ErrorKind::Failed,
    }
}

fn bundle_kind(error: &senesce_bundle::Error) -> (ErrorKind, Option<String>) {
    use senesce_bundle::Error as Bundle;
    let (kind, hint) = match error {
        Bundle::NotABundle { .. } => (ErrorKind::Usage, Some("name a file of `senesce bundle`")),
        Bundle::Version { .. } => (ErrorKind::Usage, Some("use a newer senesce")),
        Bundle::Damaged { .. } => (ErrorKind::Failed, Some("get it again from its source")),
        Bundle::TooLarge { .. } => {
            (ErrorKind::Usage, Some("use --no-logs, leave --inputs out, and publish logs and inputs beside the bundle"))
        }
        Bundle::Io { .. } | Bundle::Content { .. } => (ErrorKind::Failed, None),
    };
    (kind, hint.map(str::to_owned))
}

/// What the machine or the user's rights lack is their matter.
fn probe_kind(error: &senesce_probe::Error) -> ErrorKind {
    use senesce_probe::Error as Probe;
    match error {
        Probe::BadFormat { format: "text of blkparse", .. } => ErrorKind::Usage,
        Probe::NoTrace { .. } | Probe::NoTraceRights { .. } | Probe::NotSupported { .. } => ErrorKind::Environment,
        Probe::System { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => ErrorKind::Environment,
        _ => ErrorKind::Failed,
    }
}

/// The hint for an ext4 that cannot be read.
const CHECK_EXT4: &str = "`e2fsck -fn DEVICE` reports all damage and changes nothing; make a copy before a repair";

/// In errors about devices in use: another process has the mount.
const OTHER_NAMESPACE: &str = "in the mount namespace of process";
/// The hint for a loop device that senesce made itself.
const COPIED_MOUNT: &str = "if you did not name this device, repeat the command: another process copied the mounts";

fn report(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(report_code(error))
}

/// Prints the chain of causes and the hint. Returns the documented code.
fn report_code(error: &anyhow::Error) -> u8 {
    if let Some(Passed(code)) = error.downcast_ref() {
        return *code;
    }
    if let Some(gate) = error.downcast_ref::<Gate>() {
        eprintln!("{}", fit_message(&format!("senesce: {}", indented(&gate.to_string()))));
        return gate.code;
    }
    if let Some(interrupted) = error.chain().find_map(interruption) {
        eprintln!("senesce: {}", indented(&interrupted.to_string()));
        if let Some(Resumable(dir)) = error.downcast_ref() {
            eprintln!("  hint: continue with `{}`", resume_command(dir));
        }
        return 128 + interrupted.signal as u8;
    }
    let (kind, hint) = classify(error);
    let is_copied = error.chain().any(|cause| cause.to_string().contains(OTHER_NAMESPACE));
    let hint = hint.map(|hint| if is_copied { format!("{COPIED_MOUNT}; {hint}") } else { hint });
    eprintln!("{}", fit_message(&message(error, hint.as_deref())));
    match kind {
        ErrorKind::Failed => FAILED,
        ErrorKind::Usage => USAGE,
        ErrorKind::Environment => ENVIRONMENT,
        ErrorKind::Internal => INTERNAL,
    }
}

/// The kind of an error and what to do about it.
///
/// The first cause with a kind decides. If it says only that the work failed, the error of the
/// system decides: a name that does not exist is a matter of usage, missing rights and space are
/// not.
pub fn classify(error: &anyhow::Error) -> (ErrorKind, Option<String>) {
    let (kind, hint) = classify_cause(error);
    if kind != ErrorKind::Failed && hint.is_some() {
        return (kind, hint);
    }
    let system = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind);
    let Some((system_kind, advice)) = system.and_then(system_kind) else { return (kind, hint) };
    // A name in an operation log is not a name of the command line.
    let is_of_log = error.chain().any(|cause| {
        cause.is::<senesce_exec::ExecError>()
            || matches!(cause.downcast_ref(), Some(senesce_experiment::Error::Exec(_)))
    });
    if is_of_log && system_kind == ErrorKind::Usage {
        return (kind, hint);
    }
    let kind = if kind == ErrorKind::Failed { system_kind } else { kind };
    (kind, hint.or_else(|| Some(advice.to_owned())))
}

/// The kind of an error of the system, and what to do about it.
fn system_kind(kind: std::io::ErrorKind) -> Option<(ErrorKind, &'static str)> {
    use std::io::ErrorKind as Io;
    Some(match kind {
        Io::NotFound => (ErrorKind::Usage, "check the name; a directory in it may be missing, too"),
        Io::NotADirectory => (ErrorKind::Usage, "name a directory"),
        Io::IsADirectory => (ErrorKind::Usage, "name a file"),
        Io::AlreadyExists => (ErrorKind::Usage, "give another name; senesce does not replace it"),
        Io::InvalidFilename => (ErrorKind::Usage, "give a shorter name"),
        Io::PermissionDenied if rustix::process::geteuid().is_root() => (
            ErrorKind::Environment,
            "this process is root already: a container, a sandbox or a security module refuses it",
        ),
        Io::PermissionDenied => (ErrorKind::Environment, "run as root, or as a user who has access"),
        Io::StorageFull | Io::QuotaExceeded => (ErrorKind::Environment, "free some space, or name another place"),
        Io::ReadOnlyFilesystem => (ErrorKind::Environment, "make it writable, or name another place"),
        _ => return None,
    })
}

/// The kind of an error and what to do about it: of the first cause that has a kind.
fn classify_cause(error: &anyhow::Error) -> (ErrorKind, Option<String>) {
    for cause in error.chain() {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return (failure.kind, failure.hint.clone());
        }
        if let Some(failure) = cause.downcast_ref::<senesce_bundle::Error>() {
            return bundle_kind(failure);
        }
        if let Some(failure) = cause.downcast_ref::<senesce_guest::Error>() {
            let kind = if failure.is_environment() { ErrorKind::Environment } else { ErrorKind::Failed };
            return (kind, failure.hint());
        }
        if let Some((found, advice)) = engines().kind(cause) {
            return (found, advice.map(str::to_owned));
        }
        if let Some(failure) = cause.downcast_ref::<senesce_inspect::Error>() {
            let of_damage =
                || error.chain().any(|cause| cause.is::<senesce_ext4::Error>()).then(|| CHECK_EXT4.to_owned());
            return (inspection_kind(failure), failure.hint().or_else(of_damage));
        }
        if let Some(failure @ (senesce_defrag::Error::NotSupported { .. } | senesce_defrag::Error::List { .. })) =
            cause.downcast_ref()
        {
            return (ErrorKind::Usage, failure.hint().map(str::to_owned));
        }
        if let Some(senesce_record::Error::Place { .. }) = cause.downcast_ref() {
            let hint = "--on is the directory to record; --mount is an empty directory outside of it";
            return (ErrorKind::Usage, Some(hint.to_owned()));
        }
        if let Some(failure) = cause.downcast_ref::<senesce_probe::Error>() {
            return (probe_kind(failure), failure.hint());
        }
        if let Some((found, advice)) = senesce_experiment::classify(cause) {
            return (found, advice.or_else(|| hint_for_plan(error)));
        }
    }
    (ErrorKind::Failed, None)
}

/// The chain of causes and the hint as text for a terminal.
fn message(error: &anyhow::Error, hint: Option<&str>) -> String {
    let mut said = error.to_string();
    let mut message = format!("senesce: {}", indented(&said));
    for cause in error.chain().skip(1) {
        let text = cause.to_string();
        // Many errors repeat their cause in their own text: print it once.
        if !said.contains(&text) {
            message.push_str(&format!("\n  because: {}", indented(&text)));
            said.push_str(&text);
        }
    }
    if let Some(hint) = hint.filter(|hint| !said.contains(hint)) {
        message.push_str(&format!("\n  hint: {}", indented(hint)));
    }
    message
}

/// A text of an error with hazards escaped and with every line after the first indented.
///
/// A newline may come from a file name or from another program. The indentation keeps such a line
/// from looking like a message of its own.
fn indented(text: &str) -> String {
    Printable::lines(text.trim_end()).to_string().replace('\n', "\n    ")
}

/// Prints an error of the command line as clap does, and returns its exit code.
///
/// Clap repeats the arguments unchanged. A shell may have expanded them to file names of other
/// users (`senesce inspect *`). So a message is escaped, and loses its colours, if an argument has
/// hazards.
pub fn refuse(error: &clap::Error) -> ExitCode {
    let hazardous = |argument: OsString| argument.to_string_lossy().chars().any(is_hazard);
    if error.use_stderr() {
        let text = error.render();
        let foreign = foreign_file_system(error);
        let explain = |text: String| match foreign {
            Some(name) => refuse_foreign(&explain_values(text), name),
            None => explain_values(text),
        };
        let is_plain = !std::io::stderr().is_terminal() || std::env::var_os("NO_COLOR").is_some();
        let text = if is_plain || std::env::args_os().any(hazardous) {
            Printable::lines(&explain(text.to_string())).to_string()
        } else {
            explain(text.ansi().to_string())
        };
        // In one piece, without the filter of notes: it would escape the colours of clap.
        out::note_bytes(text.into_bytes());
    } else if let Err(error) = error.print()
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        return ExitCode::from(ENVIRONMENT);
    }
    ExitCode::from(error.exit_code() as u8)
}

/// The file system that is a wrong value of an option, if senesce cannot make it.
fn foreign_file_system(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) if is_foreign(value) => Some(value),
        _ => None,
    }
}

/// Replaces the tip of clap, which names another file system with a similar name.
fn refuse_foreign(text: &str, name: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut lines: Vec<String> =
        lines.into_iter().filter(|line| !line.contains("similar value exists")).map(str::to_owned).collect();
    let at = lines.iter().position(String::is_empty).unwrap_or(lines.len());
    lines.insert(at, format!("  tip: senesce does not support {name} yet"));
    lines.dedup();
    lines.join("\n") + "\n"
}

/// Replaces texts of the standard library and of clap that do not say what to write.
fn explain_values(text: String) -> String {
    text.replace("invalid digit found in string", "write a whole number")
        .replace("number would be zero for non-zero type", "write a number from 1")
        .replace("number too large to fit in target type", "the number is too large")
        .replace("cannot parse integer from empty string", "write a whole number")
        .replace("invalid float literal", "write a number")
        .replace("is not in 1..18446744073709551615", "is too small: write a number from 1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_cannot_imitate_other_messages() {
        let error = failed("cannot read /tmp/a\u{1b}[2J\nsenesce: done\u{202e}")
            .context("line one\rsenesce: done")
            .context("outer\n");
        let expected = "senesce: outer\n  because: line one\\rsenesce: done\n  because: cannot read \
                        /tmp/a\\x1b[2J\n    senesce: done\\u{202e}\n  hint: use\\x07 --force";
        assert_eq!(message(&error, Some("use\u{7} --force")), expected);
    }

    #[test]
    fn every_end_has_its_documented_code() {
        let code = |work: fn() -> anyhow::Result<()>| format!("{:?}", run(work));
        let exit = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(code(|| Ok(())), exit(0));
        assert_eq!(code(|| Err(failed("no"))), exit(FAILED));
        assert_eq!(code(|| Err(usage("no", None))), exit(USAGE));
        assert_eq!(code(|| Err(different("more"))), exit(DIFFERENT));
        assert_eq!(code(|| Err(undecided("noise"))), exit(UNDECIDED));
        assert_eq!(code(|| Err(degraded("a drive"))), exit(DEGRADED));
        assert_eq!(code(|| panic!("ours")), exit(INTERNAL));
        let unwritable = |kind: std::io::ErrorKind| std::panic::resume_unwind(Box::new(Unwritable(kind.into())));
        assert_eq!(format!("{:?}", run(|| unwritable(std::io::ErrorKind::BrokenPipe))), exit(0));
        assert_eq!(format!("{:?}", run(|| unwritable(std::io::ErrorKind::StorageFull))), exit(ENVIRONMENT));
        // A pipe to another program that breaks is not our stdout.
        assert_eq!(code(|| Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into())), exit(FAILED));
    }
}

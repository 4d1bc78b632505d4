//! The guard: starts a guest kernel, and kills all of its processes once the kernel or the launcher
//! is gone.
//!
//! UML has a process for each address space of the guest, and others for its devices. If the kernel
//! itself is killed, the kernel of the host lets them continue: a guest program that computes would
//! compute for ever. They stay in the process group of the kernel, and they become children of the
//! guard, which reaps them.

use std::{
    io::{Read, Write},
    os::{
        fd::{AsFd, AsRawFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{Command, ExitStatus, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::{
    io::Errno,
    process::{
        Pid, Resource, Rlimit, Signal, WaitOptions, kill_process_group, set_child_subreaper,
        set_parent_process_death_signal, setrlimit, wait,
    },
};

/// The argument that the guard replaces by the descriptor of the serial line.
pub(crate) const LINE: &str = "@LINE@";

/// What the guard reports at the end: how the kernel exited.
pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (_, Some(0)) => "powered off".to_owned(),
        (_, code) => format!("exited with code {}", code.unwrap_or(-1)),
    }
}

/// Starts the kernel `command`, and guards it. Stdin is a socket of the launcher: its end is the
/// launcher's. Stdout is the guest's serial line, stderr its console.
///
/// Call it before any thread is started. Returns once no process of the guest is left. Out: the
/// exit code.
pub fn guard_stdio(command: &[String]) -> u8 {
    let report = match guard(command) {
        Ok(status) => describe(status),
        Err(error) => format!("could not be started ({error})"),
    };
    // Without a launcher there is no reader.
    let _ = send(&report);
    0
}

fn send(text: &str) -> std::io::Result<()> {
    let stdin = std::io::stdin();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let written = rustix::io::write(stdin.as_fd(), rest)?;
        rest = &rest[written..];
    }
    Ok(())
}

fn guard(command: &[String]) -> std::io::Result<ExitStatus> {
    let [program, arguments @ ..] = command else {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "there is no command"));
    };
    set_child_subreaper(Some(rustix::process::getpid()))?;
    // A panicking kernel aborts: its memory is no file for the user's directory.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    // Without close-on-exec: the kernel inherits it under this number.
    let line = rustix::io::dup(std::io::stdout())?;
    let number = line.as_raw_fd().to_string();
    let console = || std::io::stderr().as_fd().try_clone_to_owned().map(Stdio::from);
    let me = rustix::process::getpid();
    let mut command = Command::new(Path::new(program));
    command
        .args(arguments.iter().map(|argument| argument.replace(LINE, &number)))
        .stdin(Stdio::null())
        .stdout(console()?)
        .stderr(console()?)
        .process_group(0)
        .current_dir("/");
    // SAFETY: the closure only makes system calls, which is allowed between fork and exec.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The guard may be gone already; then the signal never comes.
            if rustix::process::getppid() != Some(me) {
                return Err(std::io::Error::from(Errno::SRCH));
            }
            Ok(())
        });
    }
    let mut kernel = command.spawn()?;
    drop(line);
    let group = Pid::from_child(&kernel);
    let is_over = Mutex::new(false);
    let is_ended = AtomicBool::new(false);
    let end_group = |is_last: bool| {
        let mut is_over = is_over.lock().unwrap_or_else(PoisonError::into_inner);
        // Once all are reaped, another process can have the number.
        if !*is_over {
            let _ = kill_process_group(group, Signal::KILL);
        }
        *is_over |= is_last;
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Nothing is sent this way: the read ends when the launcher does.
            let mut byte = [0];
            let _ = std::io::stdin().read(&mut byte);
            if !is_ended.load(Ordering::Relaxed) {
                end_group(false);
            }
        });
        let status = kernel.wait();
        end_group(false);
        while !matches!(wait(WaitOptions::empty()), Err(Errno::CHILD)) {
            end_group(false);
        }
        end_group(true);
        is_ended.store(true, Ordering::Relaxed);
        let status = status?;
        let _ = send(&describe(status));
        let _ = std::io::stderr().flush();
        // The reader may still wait for the launcher.
        std::process::exit(0)
    })
}

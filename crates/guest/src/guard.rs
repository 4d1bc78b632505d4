//! The guard: starts a guest kernel, and kills all of its processes once the kernel or the launcher
//! is gone.
//!
//! UML has a process for each address space of the guest, and others for its devices. If the kernel
//! itself is killed, the kernel of the host lets them continue: a guest program that computes would
//! compute for ever. So the guard forks a *keeper*, the init of a PID namespace, which starts the
//! kernel. The keeper dies with the guard, and all processes of the namespace die with the keeper,
//! whichever of them are killed at once.
//!
//! If the host allows no such namespace, the guard is the keeper. Then the processes of the guest
//! stay in the process group of the kernel, and they become children of the guard, which kills and
//! reaps them. If launcher, guard and kernel are killed at once, they continue.

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

use crate::{
    namespace::{Side, fork_init},
    xstate::Preload,
};

/// The argument that the guard replaces by the descriptor of the serial line.
pub(crate) const LINE: &str = "@LINE@";

/// The start of the guard's report if the host forbids to trace processes. The reason follows.
pub(crate) const NO_PTRACE: &str = "cannot trace processes: ";

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
    match fork_init() {
        Ok(Side::Outside(keeper)) => watch(keeper),
        Ok(Side::Init) | Err(_) => keep(command),
    }
    0
}

/// Waits for the keeper, and reports if it was killed.
fn watch(keeper: Pid) {
    loop {
        match rustix::process::waitpid(Some(keeper), WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                if let Some(signal) = status.terminating_signal() {
                    let _ = send(&format!("was killed by signal {signal} together with its guard"));
                }
                return;
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn keep(command: &[String]) {
    let report = match check_ptrace().map_err(|error| format!("{NO_PTRACE}{error}")) {
        Ok(()) => match run_kernel(command) {
            Ok(status) => describe(status),
            Err(error) => format!("could not be started ({error})"),
        },
        Err(report) => report,
    };
    // Without a launcher there is no reader.
    let _ = send(&report);
}

/// Traces a child for a moment, as the kernel of the guest does with all of its processes.
///
/// Errors: the host forbids it.
fn check_ptrace() -> std::io::Result<()> {
    // SAFETY: the process has one thread, and the child only makes system calls.
    let child = unsafe { libc::fork() };
    match child {
        -1 => return Err(std::io::Error::last_os_error()),
        0 => {
            // SAFETY: the arguments are not used by this request.
            let traced = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
            let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(Errno::PERM.raw_os_error());
            // SAFETY: neither call returns to code that the parent also runs.
            unsafe {
                if traced == 0 {
                    libc::raise(libc::SIGSTOP);
                    libc::_exit(0);
                }
                libc::_exit(error);
            }
        }
        _ => {}
    }
    let mut status = 0;
    // SAFETY: the status is writable, and the child is this process's own.
    unsafe {
        libc::waitpid(child, &mut status, libc::WUNTRACED);
        if libc::WIFSTOPPED(status) {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, &mut status, 0);
            return Ok(());
        }
    }
    Err(std::io::Error::from_raw_os_error(libc::WEXITSTATUS(status)))
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

fn run_kernel(command: &[String]) -> std::io::Result<ExitStatus> {
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
    // The object must exist until the kernel has started.
    let preload = Preload::for_this_processor()?;
    if let Some(preload) = &preload {
        command.env("LD_PRELOAD", preload.path());
    }
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
    drop((line, preload));
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

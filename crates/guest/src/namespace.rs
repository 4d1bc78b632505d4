//! A PID namespace for the processes of a guest.
//!
//! When the init of a PID namespace exits or is killed, the kernel of the host kills all other
//! processes of the namespace. A process that is no root needs a user namespace of its own for it.
//! There the caller is user 0, and all other users of the host are one unknown user.

use std::{
    fs,
    io::{self, Read, Write},
    os::{raw::c_long, unix::net::UnixStream},
};

use rustix::process::{Pid, Signal, set_parent_process_death_signal};

/// The two sides of a fork.
pub(crate) enum Side {
    /// This process is the init of the namespace. It is killed when the other side exits.
    Init,
    /// The process that forked, with its child.
    Outside(Pid),
}

/// Forks the init of a PID namespace. Call it before any thread is started.
///
/// Errors: the host allows this process no such namespace.
pub(crate) fn fork_init() -> io::Result<Side> {
    match fork_with(libc::CLONE_NEWPID) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fork_with(libc::CLONE_NEWPID | libc::CLONE_NEWUSER)
        }
        forked => forked,
    }
}

fn fork_with(flags: libc::c_int) -> io::Result<Side> {
    let (mut gate, mut guards_gate) = UnixStream::pair()?;
    // SAFETY: without CLONE_VM and a stack this is fork, and the process has one thread.
    let number = unsafe { libc::syscall(libc::SYS_clone, c_long::from(flags | libc::SIGCHLD), 0, 0, 0, 0) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    let Some(child) = Pid::from_raw(number as i32) else {
        drop(guards_gate);
        let is_guarded = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
        // If the parent exited before the call above, there is no byte.
        if !is_guarded || gate.read_exact(&mut [0]).is_err() {
            std::process::exit(1);
        }
        if flags & libc::CLONE_NEWUSER != 0 {
            drop_capabilities();
        }
        return Ok(Side::Init);
    };
    drop(gate);
    let opened = match flags & libc::CLONE_NEWUSER {
        0 => Ok(()),
        _ => map_caller(child),
    };
    match opened.and_then(|()| guards_gate.write_all(&[1])) {
        Ok(()) => Ok(Side::Outside(child)),
        Err(error) => {
            // It exits without its byte.
            drop(guards_gate);
            let _ = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty());
            Err(error)
        }
    }
}

/// Makes the caller user 0 of the child's namespace. All other users stay unknown there.
fn map_caller(child: Pid) -> io::Result<()> {
    let write = |name: &str, text: String| fs::write(format!("/proc/{}/{name}", child.as_raw_nonzero()), text);
    // The kernel accepts the groups of an unprivileged process only after this.
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("0 {} 1", rustix::process::geteuid().as_raw()))?;
    write("gid_map", format!("0 {} 1", rustix::process::getegid().as_raw()))
}

/// Programs that this process executes have no right in the user namespace except to trace, so
/// that they reach no more of the host's kernel than the caller does.
fn drop_capabilities() {
    const CAP_SYS_PTRACE: libc::c_ulong = 19;
    for capability in (0..64).filter(|&capability| capability != CAP_SYS_PTRACE) {
        // SAFETY: the call has only numbers. It fails for capabilities that this kernel does not
        // have.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
}

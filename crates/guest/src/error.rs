//! What can go wrong with a guest, in words a user can act on.

use std::{io, path::PathBuf};

use senesce_core::Bytes;

/// Why a guest could not be started, or ended before its command did.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There is no guest kernel.
    #[error("user-mode Linux is not installed: there is no {}", searched.join(" or "))]
    NoKernel {
        /// The paths that were tried.
        searched: Vec<String>,
    },
    /// The kernel is there, and its modules are not.
    #[error("the modules of {} are missing: there is no {}", kernel.display(), dir.display())]
    NoModules {
        /// The kernel.
        kernel: PathBuf,
        /// Where they should be.
        dir: PathBuf,
    },
    /// A path cannot be passed to the guest's kernel.
    #[error("a guest cannot use {}: {why}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// Why not.
        why: &'static str,
    },
    /// The requested memory is outside the limits.
    #[error("a guest cannot have {asked} of memory: {why}")]
    Memory {
        /// The requested size.
        asked: Bytes,
        /// The limit, in words.
        why: String,
    },
    /// The host forbids to trace processes, which the guest's kernel needs.
    #[error("a guest cannot start: this process may not trace its children (ptrace): {reason}")]
    NoPtrace {
        /// The system's answer.
        reason: String,
    },
    /// The kernel did not start the command in time.
    #[error("the guest did not start within {seconds} s{console}")]
    NotBooted {
        /// The limit.
        seconds: u64,
        /// The last lines of its console.
        console: String,
    },
    /// The guest sends nothing any more, and its processes do nothing.
    #[error("the guest has not answered for {seconds} s and was killed{console}")]
    Hung {
        /// The limit.
        seconds: u64,
        /// The last lines of its console.
        console: String,
    },
    /// The command runs for too long.
    #[error("the guest has run for more than {seconds} s and was killed{console}")]
    Overdue {
        /// The limit.
        seconds: u64,
        /// The last lines of its console.
        console: String,
    },
    /// The kernel stopped before the command exited.
    #[error("the guest kernel {how} before the command ended{console}")]
    Died {
        /// How it ended, in words.
        how: String,
        /// The last lines of its console.
        console: String,
    },
    /// The guest's init could not prepare the machine.
    #[error("the guest could not start the command: {problem}{console}")]
    Init {
        /// What failed.
        problem: String,
        /// The last lines of its console.
        console: String,
    },
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// What the user can do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Error::NoKernel { .. } | Error::NoModules { .. } => format!("apt-get install {}", crate::PACKAGE),
            Error::Memory { .. } => "name another size with --guest-memory".to_owned(),
            Error::Path { .. } => "set TMPDIR to a directory with a plain name".to_owned(),
            Error::NoPtrace { .. } => "allow ptrace: in a container --cap-add=SYS_PTRACE or another seccomp profile, \
                 on the host sysctl kernel.yama.ptrace_scope=1"
                .to_owned(),
            Error::NotBooted { .. } => "the machine may be too busy: try again when it is idle".to_owned(),
            Error::Died { console, .. } if console.contains("Out of memory") || console.contains("No free memory") => {
                "the guest needs more memory: --guest-memory 2GiB".to_owned()
            }
            _ => return None,
        })
    }

    /// Whether the machine, not the run, is at fault.
    pub fn is_environment(&self) -> bool {
        matches!(
            self,
            Error::NoKernel { .. }
                | Error::NoModules { .. }
                | Error::NoPtrace { .. }
                | Error::NotBooted { .. }
                | Error::Memory { .. }
        )
    }

    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { operation, path, source }
    }

    pub(crate) fn errno(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(rustix::io::Errno) -> Error {
        let path = path.into();
        move |errno| Error::Io { operation, path, source: errno.into() }
    }
}

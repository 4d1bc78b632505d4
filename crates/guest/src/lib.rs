//! Guest kernels: a place where the whole program runs, without root on the host.
//!
//! User-mode Linux (UML) is a Linux kernel that runs as a process of the calling user. Its root
//! file system is the host's, read-only (hostfs); the run directory and a temporary directory are
//! writable. Its init is this program, which prepares the machine and executes one command. So
//! every workload and measurement works in a guest, with the kernel, and the rights of root, that
//! the guest has.
//!
//! Five processes take part. [`run_guest`] is the launcher. It starts the *guard*
//! ([`guard_stdio`]) and its *keeper*, which starts the kernel and kills all of its processes once
//! the kernel or the launcher is gone. [`init`] is process 1 of the guest. Launcher and init
//! exchange [frames](frame::Frame) over a serial line.
//!
//! It knows nothing of volumes and plans, and decides nothing about them.

mod config;
mod console;
mod error;
mod frame;
mod guard;
mod init;
mod kernel;
mod launch;
mod memory;
mod modules;
mod namespace;
mod progress;
mod xstate;

pub use config::{GuestConfig, Writable};
pub use error::{Error, Result};
pub use guard::guard_stdio;
pub use init::init;
pub use kernel::{GuestKernel, PACKAGE, find_kernel};
pub use launch::{GuestEnd, Launch, Limits, Output, run_guest};
pub use memory::{DEFAULT_MEMORY, LEAST_MEMORY, check_memory};
pub use modules::Modules;

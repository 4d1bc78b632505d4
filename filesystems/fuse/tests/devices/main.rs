//! Both engines, mounted through the kernel, on devices that fail or lose power.

mod errors;
mod power;
mod program;
mod promises;
mod rig;
mod syscalls;

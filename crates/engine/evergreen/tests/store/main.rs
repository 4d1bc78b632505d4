//! The tree on a device, from outside.

mod ahead;
mod crash;
mod faults;
mod holes;
mod rig;
mod runs;
mod soak;
mod space;
mod sweep;
mod threads;
mod waiting;

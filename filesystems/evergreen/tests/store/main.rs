//! The tree on a device, as its users see it.

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

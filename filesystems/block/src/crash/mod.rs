//! Loss of power: all possible states of several devices.

mod enumerate;
mod recording;

pub use enumerate::{Crash, CrashPlan};
pub use recording::{RecordedDevice, Recording};

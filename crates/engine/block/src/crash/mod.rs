//! Loss of power: every state in which it may leave several devices.

mod enumerate;
mod recording;

pub use enumerate::{Crash, CrashPlan};
pub use recording::{RecordedDevice, Recording};

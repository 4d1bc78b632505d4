//! Loss of power: all possible states of several devices.

mod possible_states;
mod recording;

pub use possible_states::{Crash, CrashPlan};
pub use recording::{RecordedDevice, Recording};

//! Devices with injected faults, and the language of the faults.

mod device;
mod rules;

pub use device::FaultDevice;
pub use rules::{Effect, Fault, ParseFaultError, When};

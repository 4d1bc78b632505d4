//! Devices with injected faults, and the language of the faults.

mod device;
mod language;

pub use device::FaultDevice;
pub use language::{Effect, Fault, ParseFaultError, When};

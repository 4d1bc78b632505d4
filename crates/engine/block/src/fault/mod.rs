//! Devices that fail, and the small language of their faults.

mod device;
mod language;

pub use device::FaultDevice;
pub use language::{Effect, Fault, ParseFaultError, When};

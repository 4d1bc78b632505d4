//! What every modelled device can do.

use senesce_core::{BlockRequest, Nanos};

/// A modelled device: serves requests in the order they are given and keeps its own time.
pub trait DeviceModel: Send {
    /// Serves `request`, which arrives at `arrival` (on the model's clock, never earlier than the request before); gives
    /// the time at which it is done.
    fn serve(&mut self, request: &BlockRequest, arrival: Nanos) -> Nanos;

    /// The name, for axes and records: `model: HDD 7.2K`.
    fn name(&self) -> &str;
}

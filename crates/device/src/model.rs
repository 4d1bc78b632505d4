//! What every modelled device can do, and how it accounts for its time.

use std::ops::{AddAssign, Sub};

use senesce_core::{BlockRequest, Nanos};
use serde::{Deserialize, Serialize};

/// A modelled device: serves requests in the order they are given and keeps its own time.
pub trait DeviceModel: Send {
    /// Serves `request`, which arrives at `arrival` (on the model's clock, never earlier than the request before; an
    /// earlier time is taken as the time of the request before); gives the time at which it is done.
    ///
    /// A request beyond the end of the device does not fail: it is served as if it lay in the last sectors, and counted
    /// in [`Totals::beyond_end`].
    fn serve(&mut self, request: &BlockRequest, arrival: Nanos) -> Nanos;

    /// The name, for axes and records: `model: HDD 7.2K`.
    fn name(&self) -> &str;

    /// When the last request arrived or was done, whichever is later: the earliest time at which a replay that follows
    /// begins. A model that does not say begins at zero.
    fn now(&self) -> Nanos {
        Nanos(0)
    }

    /// Forgets what it keeps in its own memory of data read and of data already written, as after a power cycle; takes no
    /// time. Data still to be written stays: flush first. A model without such a memory has nothing to do.
    fn forget_buffered(&mut self) {}

    /// Drops the sectors `start..end` from the device's own buffer. Takes no time.
    ///
    /// Sectors that it reads ahead after the last request stay. A caller uses this to model a layout in which two files
    /// share sectors: reading one must not bring the other into the buffer.
    fn forget_sectors(&mut self, _start: u64, _end: u64) {}

    /// Where the time of all requests so far went. A model that keeps no account gives zeros.
    fn totals(&self) -> Totals {
        Totals::default()
    }
}

/// Where the time of served requests went, by cause.
///
/// The parts of one request follow each other without gap: their sum is the time from its arrival to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceTimes {
    /// Waiting until the device was done with earlier requests.
    pub queue: Nanos,
    /// The command itself: electronics, protocol.
    pub overhead: Nanos,
    /// Moving the arm (HDD).
    pub seek: Nanos,
    /// Waiting for the sector to come around (HDD).
    pub rotation: Nanos,
    /// Moving data: under the head with its switches of track, or over the link.
    pub transfer: Nanos,
    /// Waiting for cached writes to reach the medium: for room, on a flush, or because a read needs them.
    pub write_back: Nanos,
    /// Reading and programming flash (SSD).
    pub flash: Nanos,
    /// Waiting for garbage collection (SSD).
    pub collection: Nanos,
}

impl ServiceTimes {
    /// The parts with their names, in a fixed order, for reports.
    pub fn parts(&self) -> [(&'static str, Nanos); 8] {
        [
            ("queue", self.queue),
            ("overhead", self.overhead),
            ("seek", self.seek),
            ("rotation", self.rotation),
            ("transfer", self.transfer),
            ("write back", self.write_back),
            ("flash", self.flash),
            ("collection", self.collection),
        ]
    }

    /// The sum of all parts.
    pub fn sum(&self) -> Nanos {
        Nanos(self.parts().iter().map(|(_, part)| part.0).sum())
    }

    fn combine(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        let with = |a: Nanos, b: Nanos| Nanos(with(a.0, b.0));
        Self {
            queue: with(self.queue, other.queue),
            overhead: with(self.overhead, other.overhead),
            seek: with(self.seek, other.seek),
            rotation: with(self.rotation, other.rotation),
            transfer: with(self.transfer, other.transfer),
            write_back: with(self.write_back, other.write_back),
            flash: with(self.flash, other.flash),
            collection: with(self.collection, other.collection),
        }
    }
}

impl AddAssign for ServiceTimes {
    fn add_assign(&mut self, other: Self) {
        *self = self.combine(other, u64::saturating_add);
    }
}

impl Sub for ServiceTimes {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.combine(other, u64::saturating_sub)
    }
}

/// Everything a model has counted since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Requests served, discards and flushes among them.
    pub requests: u64,
    /// Their time by cause.
    pub times: ServiceTimes,
    /// Reads served from the device's own buffer alone, without waiting for the medium.
    pub buffer_hits: u64,
    /// Requests that reach beyond the end of the device.
    pub beyond_end: u64,
    /// Pages programmed because the host wrote them (SSD).
    pub host_pages: u64,
    /// Pages programmed in all: with those that garbage collection moved (SSD).
    pub programmed_pages: u64,
    /// Blocks erased (SSD).
    pub erased_blocks: u64,
}

impl Totals {
    /// Write amplification: pages programmed in all / pages programmed for the host; none before the first write.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.host_pages > 0).then(|| self.programmed_pages as f64 / self.host_pages as f64)
    }

    /// What was counted since `earlier`, an account of the same model.
    pub fn since(&self, earlier: &Totals) -> Totals {
        Totals {
            requests: self.requests - earlier.requests,
            times: self.times - earlier.times,
            buffer_hits: self.buffer_hits - earlier.buffer_hits,
            beyond_end: self.beyond_end - earlier.beyond_end,
            host_pages: self.host_pages - earlier.host_pages,
            programmed_pages: self.programmed_pages - earlier.programmed_pages,
            erased_blocks: self.erased_blocks - earlier.erased_blocks,
        }
    }
}

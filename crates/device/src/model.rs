//! The interface of modelled devices, and the accounts of their time.

use std::ops::{AddAssign, Sub};

use schemars::JsonSchema;
use senesce_core::{BlockRequest, Nanos};
use serde::{Deserialize, Serialize};

/// A modelled device. It serves requests in the given order and has a clock of its own.
pub trait DeviceModel: Send {
    /// Serves `request` and returns the time of its end. `arrival` is a time on the model's clock;
    /// a time before the previous arrival counts as the previous arrival.
    ///
    /// A request after the end of the device does not fail: it is served as if it were in the last
    /// sectors, and counted in [`Totals::beyond_end`].
    fn serve(&mut self, request: &BlockRequest, arrival: Nanos) -> Nanos;

    /// The name for axes and records, such as `model: HDD 7.2K`.
    fn name(&self) -> &str;

    /// The time when the last request arrived or was done, whichever is later. A following replay
    /// starts at this time. The default is zero.
    fn now(&self) -> Nanos {
        Nanos(0)
    }

    /// Forgets the data in the device's memory that was read, or already written, as after a power
    /// cycle. Takes no time. Data that is still to be written stays: flush first. A model without
    /// such a memory does nothing.
    fn drop_device_cache(&mut self) {}

    /// Returns an idle device to its state at time zero, with its clock at zero. The counts of
    /// [`Self::totals`] continue.
    ///
    /// Returns false and changes nothing if data is still to be written, or if the cost of later
    /// requests does not depend on the time.
    fn restart_clock(&mut self) -> bool {
        false
    }

    /// Drops the sectors `start..end` from the device's own buffer. Takes no time.
    ///
    /// Sectors that it reads ahead after the last request stay. A caller uses this to model a
    /// layout in which two files share sectors: reading one must not bring the other into the
    /// buffer.
    fn forget_sectors(&mut self, _start: u64, _end: u64) {}

    /// The time of all requests so far, by cause. The default is zeros.
    fn totals(&self) -> Totals {
        Totals::default()
    }
}

/// The time of served requests, by cause.
///
/// The parts of one request follow each other without a gap: their sum is the time from its arrival
/// to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceTimes {
    /// Wait until earlier requests were done.
    pub queue: Nanos,
    /// The command itself: electronics, protocol.
    pub overhead: Nanos,
    /// Movement of the arm (HDD).
    pub seek: Nanos,
    /// Wait until the sector is under the head (HDD).
    pub rotation: Nanos,
    /// Transfer of data: under the head with its switches of track, or over the link.
    pub transfer: Nanos,
    /// Wait until cached writes are on the medium: for space, on a flush, or because a read needs
    /// them.
    pub write_back: Nanos,
    /// Reads and programs of flash (SSD).
    pub flash: Nanos,
    /// Wait for garbage collection (SSD).
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

/// The counts of a model since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Served requests, with discards and flushes.
    pub requests: u64,
    /// Their time by cause.
    pub times: ServiceTimes,
    /// Reads that were served from the device's own buffer only.
    pub buffer_hits: u64,
    /// Requests that extend beyond the end of the device.
    pub beyond_end: u64,
    /// Pages programmed because of writes of the host (SSD).
    pub host_pages: u64,
    /// All programmed pages, with those that garbage collection moved (SSD).
    pub programmed_pages: u64,
    /// Erased blocks (SSD).
    pub erased_blocks: u64,
}

impl Totals {
    /// Write amplification: all programmed pages / pages programmed for the host. `None` before the
    /// first write.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.host_pages > 0).then(|| self.programmed_pages as f64 / self.host_pages as f64)
    }

    /// The counts since `earlier`, which is an account of the same model.
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

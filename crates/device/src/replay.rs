//! The cost of a sequence of requests on a modelled device.
//!
//! The issuer is a closed loop, like a reader that waits for its data: it has at most `depth`
//! requests in progress and issues the next one when one of them is done. So the recorded times of
//! the requests, which belong to the recorded device, do not matter, unless the caller requests
//! them.

use std::{cmp::Reverse, collections::BinaryHeap, num::NonZeroU32};

use schemars::JsonSchema;
use senesce_core::{BlockOp, BlockRequest, Nanos};
use serde::{Deserialize, Serialize};

use crate::{DeviceModel, Totals};

/// The time at which the issuer passes a request to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueuePolicy {
    /// As fast as possible: as soon as fewer than `depth` requests are in progress.
    BackToBack {
        /// Requests in progress at a time.
        depth: NonZeroU32,
    },
    /// Like `BackToBack`, with a pause of the issuer after each completed request.
    Think {
        /// Requests in progress at a time.
        depth: NonZeroU32,
        /// Time from the end of a request to the next one.
        think: Nanos,
    },
    /// At the recorded times, relative to the first request; later if `depth` requests are still in
    /// progress.
    Recorded {
        /// Requests in progress at a time.
        depth: NonZeroU32,
    },
}

impl Default for QueuePolicy {
    /// One request at a time, as fast as possible.
    fn default() -> Self {
        QueuePolicy::BackToBack { depth: NonZeroU32::MIN }
    }
}

impl QueuePolicy {
    fn depth(self) -> usize {
        let (QueuePolicy::BackToBack { depth } | QueuePolicy::Think { depth, .. } | QueuePolicy::Recorded { depth }) =
            self;
        depth.get() as usize
    }
}

/// The modelled cost of a sequence of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCost {
    /// The name of the model, such as `model: HDD 7.2K`.
    pub device: String,
    /// Time from the arrival of the first request to the end of the last one.
    pub seconds: f64,
    /// The number of requests of all kinds.
    pub requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes discarded.
    pub discarded_bytes: u64,
    /// Wait for earlier requests. With one request at a time it is zero, and the parts below add up
    /// to `seconds` without the pauses of the issuer. With more, requests overlap and the parts add
    /// up to more.
    pub queue_seconds: f64,
    /// Commands: electronics, protocol.
    pub overhead_seconds: f64,
    /// Movement of the arm (HDD).
    pub seek_seconds: f64,
    /// Wait for sectors to be under the head (HDD).
    pub rotation_seconds: f64,
    /// Transfer of data.
    pub transfer_seconds: f64,
    /// Wait until cached writes are on the medium.
    pub write_back_seconds: f64,
    /// Reads and programs of flash (SSD).
    pub flash_seconds: f64,
    /// Wait for garbage collection (SSD).
    pub collection_seconds: f64,
    /// The other counts of the device during these requests.
    pub totals: Totals,
}

/// The cost of `requests` in this order on `model`.
///
/// In: a model that has not served requests yet. If it has, its state (arm, buffers, flash) counts,
/// and time starts at its last use. Cost: about a microsecond per request for a disk; about 50 ns
/// per page for an SSD.
pub fn compute_cost<'a>(
    model: &mut dyn DeviceModel,
    requests: impl IntoIterator<Item = &'a BlockRequest>,
    policy: QueuePolicy,
) -> DeviceCost {
    let mut replay = Replay::new(model, policy);
    for request in requests {
        replay.give(request);
    }
    replay.finish()
}

/// Computes the cost of requests that come one by one.
pub struct Replay<'m> {
    model: &'m mut dyn DeviceModel,
    policy: QueuePolicy,
    before: Totals,
    /// The device's clock at the first request.
    start: Nanos,
    first_issued: Option<Nanos>,
    /// The ends of the requests in progress.
    open: BinaryHeap<Reverse<u64>>,
    last_arrival: Nanos,
    end: Nanos,
    bytes: [u64; 3],
    requests: u64,
}

impl<'m> Replay<'m> {
    /// A replay without requests so far.
    pub fn new(model: &'m mut dyn DeviceModel, policy: QueuePolicy) -> Self {
        let before = model.totals();
        let start = model.now();
        Self {
            model,
            policy,
            before,
            start,
            first_issued: None,
            open: BinaryHeap::new(),
            last_arrival: start,
            end: start,
            bytes: [0; 3],
            requests: 0,
        }
    }

    /// Issues the next request. Returns the time of its end, on the model's clock.
    pub fn give(&mut self, request: &BlockRequest) -> Nanos {
        let mut arrival = self.last_arrival;
        if self.open.len() >= self.policy.depth()
            && let Some(Reverse(done)) = self.open.pop()
        {
            let think = if let QueuePolicy::Think { think, .. } = self.policy { think.0 } else { 0 };
            arrival = arrival.max(Nanos(done + think));
        }
        let first = *self.first_issued.get_or_insert(request.issued);
        if let QueuePolicy::Recorded { .. } = self.policy {
            arrival = arrival.max(Nanos(self.start.0 + request.issued.since(first).0));
        }
        let done = self.model.serve(request, arrival);
        self.last_arrival = arrival;
        self.open.push(Reverse(done.0));
        self.end = self.end.max(done);
        self.requests += 1;
        match request.op {
            BlockOp::Read => self.bytes[0] += request.bytes(),
            BlockOp::Write => self.bytes[1] += request.bytes(),
            BlockOp::Discard => self.bytes[2] += request.bytes(),
            BlockOp::Flush => {}
        }
        done
    }

    /// The cost of all requests.
    pub fn finish(self) -> DeviceCost {
        let totals = self.model.totals().since(&self.before);
        let times = totals.times;
        let [read_bytes, written_bytes, discarded_bytes] = self.bytes;
        DeviceCost {
            device: self.model.name().to_owned(),
            seconds: self.end.since(self.start).as_secs_f64(),
            requests: self.requests,
            read_bytes,
            written_bytes,
            discarded_bytes,
            queue_seconds: times.queue.as_secs_f64(),
            overhead_seconds: times.overhead.as_secs_f64(),
            seek_seconds: times.seek.as_secs_f64(),
            rotation_seconds: times.rotation.as_secs_f64(),
            transfer_seconds: times.transfer.as_secs_f64(),
            write_back_seconds: times.write_back.as_secs_f64(),
            flash_seconds: times.flash.as_secs_f64(),
            collection_seconds: times.collection.as_secs_f64(),
            totals,
        }
    }
}

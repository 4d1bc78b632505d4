//! What a sequence of requests costs on a modelled device.
//!
//! The issuer is a closed loop, as a reader who waits for its data is: it has at most `depth` requests on their way and
//! gives the next when one of them is done. So the recorded times of the requests, which belong to the device they were
//! recorded on, do not matter, unless they are asked for.

use std::{cmp::Reverse, collections::BinaryHeap, num::NonZeroU32};

use senesce_core::{BlockOp, BlockRequest, Nanos};
use serde::{Deserialize, Serialize};

use crate::{DeviceModel, Totals};

/// When the issuer gives a request to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueuePolicy {
    /// As fast as possible: as soon as fewer than `depth` requests are on their way.
    BackToBack {
        /// Requests on their way at a time.
        depth: NonZeroU32,
    },
    /// The same, but the issuer thinks for a while after each request that is done.
    Think {
        /// Requests on their way at a time.
        depth: NonZeroU32,
        /// Time from the end of a request to the next one.
        think: Nanos,
    },
    /// At the recorded times, counted from the first request; later when `depth` requests are still on their way.
    Recorded {
        /// Requests on their way at a time.
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

/// What a sequence of requests cost, of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceCost {
    /// The model's name: `model: HDD 7.2K`.
    pub device: String,
    /// From the first request's arrival to the end of the last to be done.
    pub seconds: f64,
    /// Requests, all kinds together.
    pub requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes discarded.
    pub discarded_bytes: u64,
    /// Waiting for earlier requests. With one request at a time it is zero, and the parts below add up to `seconds`
    /// less the time the issuer thinks; with more, requests overlap and the parts add up to more.
    pub queue_seconds: f64,
    /// Commands: electronics, protocol.
    pub overhead_seconds: f64,
    /// The arm's ways (HDD).
    pub seek_seconds: f64,
    /// Waiting for sectors to come around (HDD).
    pub rotation_seconds: f64,
    /// Moving data.
    pub transfer_seconds: f64,
    /// Waiting for cached writes to reach the medium.
    pub write_back_seconds: f64,
    /// Reading and programming flash (SSD).
    pub flash_seconds: f64,
    /// Waiting for garbage collection (SSD).
    pub collection_seconds: f64,
    /// The device's other counts during these requests.
    pub totals: Totals,
}

/// The cost of `requests`, in this order, on `model`.
///
/// In: a model that has not served requests yet, or whose state before (arm, buffers, flash) is meant: time then counts
/// from when it was last used. Cost: about a
/// microsecond per request of a disk; for an SSD some 50 ns per page.
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

/// The same for requests that come one by one.
pub struct Replay<'m> {
    model: &'m mut dyn DeviceModel,
    policy: QueuePolicy,
    before: Totals,
    /// The device's clock at the first request.
    start: Nanos,
    first_issued: Option<Nanos>,
    /// Ends of the requests on their way.
    open: BinaryHeap<Reverse<u64>>,
    last_arrival: Nanos,
    end: Nanos,
    bytes: [u64; 3],
    requests: u64,
}

impl<'m> Replay<'m> {
    /// A replay that has not begun.
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

    /// Gives the next request; answers with the time at which it is done, on the model's clock.
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

    /// What it cost.
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

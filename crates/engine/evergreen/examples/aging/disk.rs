//! What requests cost on a disk.

use std::fmt;

use senesce_core::{BlockOp, BlockRequest, SECTOR_BYTES};
use senesce_evergreen::Figures;

/// Bytes a second under the head.
const RATE: f64 = 192e6;
/// What is not just ahead waits for half a turn of 7,200 a minute.
const HALF_TURN: f64 = 60.0 / 7200.0 / 2.0;
const COMMAND: f64 = 0.0002;
/// So much ahead the disk reads by itself.
const AHEAD: u64 = 2 << 20;
/// A seek over so many bytes is as long as one over the whole of a third of such a disk.
const STROKE: f64 = 167e9;

/// What reading came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    bytes: u64,
    requests: u64,
    read: u64,
    adjacent: u64,
    ahead: u64,
    ahead_bytes: u64,
    seeks: u64,
    seconds: f64,
    leaves: (u64, u64),
    inner: (u64, u64),
}

impl Cost {
    /// Of the reads of a trace, for so many bytes of files.
    pub fn of(requests: &[BlockRequest], bytes: u64, [before, after]: [&Figures; 2]) -> Self {
        let mut cost = Cost {
            bytes,
            leaves: (after.leaf_reads - before.leaf_reads, after.leaf_read_bytes - before.leaf_read_bytes),
            inner: (after.inner_reads - before.inner_reads, after.inner_read_bytes - before.inner_read_bytes),
            ..Cost::default()
        };
        // What is read behind each other is in the disk's buffer, of which reading on wants the last block once more.
        let (mut head, mut run) = (0, 0);
        for request in requests.iter().filter(|request| request.op == BlockOp::Read) {
            let (at, len) = (request.sector * SECTOR_BYTES, u64::from(request.sectors) * SECTOR_BYTES);
            cost.requests += 1;
            cost.read += len;
            cost.seconds += COMMAND + len as f64 / RATE;
            if (run..=head).contains(&at) {
                cost.adjacent += 1;
            } else if at > head && at - head <= AHEAD {
                cost.ahead += 1;
                cost.ahead_bytes += at - head;
                cost.seconds += (at - head) as f64 / RATE;
            } else {
                cost.seeks += 1;
                cost.seconds += 0.0006 + 0.0076 * (at.abs_diff(head) as f64 / STROKE).sqrt() + HALF_TURN;
                run = at;
            }
            head = at + len;
        }
        cost
    }

    /// Requests of the device.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Times that what was read was not just ahead.
    pub fn seeks_per_mib(&self) -> f64 {
        self.seeks as f64 / (self.bytes as f64 / (1 << 20) as f64)
    }

    /// Bytes that were read for each of the files.
    pub fn read_times(&self) -> f64 {
        self.read as f64 / self.bytes as f64
    }

    /// As the grep test tells it.
    pub fn seconds_per_gib(&self) -> f64 {
        self.seconds / (self.bytes as f64 / (1 << 30) as f64)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.1} s/GiB; read {:.2} times the bytes in {} requests: {} adjacent, {} just ahead (over {} MiB), {} seeks ({:.2} per MiB); \
             {} of leaves ({} MiB), {} of inner nodes ({} MiB)",
            self.seconds_per_gib(),
            self.read_times(),
            self.requests,
            self.adjacent,
            self.ahead,
            self.ahead_bytes >> 20,
            self.seeks,
            self.seeks_per_mib(),
            self.leaves.0,
            self.leaves.1 >> 20,
            self.inner.0,
            self.inner.1 >> 20,
        )
    }
}

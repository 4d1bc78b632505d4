//! The cost of requests on a modelled disk.

use std::fmt;

use senesce_core::{BlockOp, BlockRequest, SECTOR_BYTES};
use senesce_evergreen::Figures;

/// The transfer rate, in bytes a second.
const RATE: f64 = 192e6;
/// A read that does not continue the last one waits for half a turn, at 7,200 turns a minute.
const HALF_TURN: f64 = 60.0 / 7200.0 / 2.0;
const COMMAND: f64 = 0.0002;
/// The read-ahead of the disk, in bytes.
const AHEAD: u64 = 2 << 20;
/// The distance in bytes of a seek that takes as long as one over a third of such a disk.
const STROKE: f64 = 167e9;

/// The cost of reading.
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
    /// The cost of the reads of a trace, for `bytes` bytes of files.
    pub fn of(requests: &[BlockRequest], bytes: u64, [before, after]: [&Figures; 2]) -> Self {
        let mut cost = Cost {
            bytes,
            leaves: (after.leaf_reads - before.leaf_reads, after.leaf_read_bytes - before.leaf_read_bytes),
            inner: (after.inner_reads - before.inner_reads, after.inner_read_bytes - before.inner_read_bytes),
            ..Cost::default()
        };
        // Adjacent reads are in the disk's buffer; a continued read requests the last block again.
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

    /// The requests to the device.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The seeks for each MiB: reads that do not continue the last one.
    pub fn seeks_per_mib(&self) -> f64 {
        self.seeks as f64 / (self.bytes as f64 / (1 << 20) as f64)
    }

    /// The bytes read for each byte of files.
    pub fn read_times(&self) -> f64 {
        self.read as f64 / self.bytes as f64
    }

    /// The seconds for each GiB, as in the grep test.
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

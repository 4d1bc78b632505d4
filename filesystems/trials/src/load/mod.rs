//! Loads: the sequence of reads and writes of clients.

mod oltp;
mod samplers;
mod walk;

use std::ops::Range;

use senesce_core::{Nanos, Rng, Seed};
use serde::{Deserialize, Serialize};

pub use oltp::{Oltp, UNIT_RATE};
pub use samplers::{exponential, mixed_size};

/// Whether a stream accesses blocks in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The next position does not depend on the last one.
    Random,
    /// The next position follows the last one.
    Sequential,
}

/// One operation of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The time of its arrival, in virtual time.
    pub at: Nanos,
    /// Whether it is a read; else it is a write.
    pub is_read: bool,
    /// Whether its stream is sequential.
    pub way: Way,
    /// The blocks; at least one.
    pub blocks: Range<u64>,
}

/// The parameters of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadKind {
    /// Single blocks are written, all with the same probability.
    Random,
    /// Eight streams like those of a database, in units of 50 operations a second.
    Oltp {
        /// The number of units.
        units: u64,
    },
    /// The random ones of the eight streams. A flash pool keeps these on its SSDs, and leaves
    /// sequential streams to its disks.
    OltpAtRandom {
        /// The number of units.
        units: u64,
    },
    /// Runs are written in order, each from a random position, as in updates of a secondary volume.
    Runs {
        /// Blocks of the longest run. Lengths are uniform from an eighth of it on.
        longest: u64,
    },
    /// Sequential readers and sequential writers in turn. Each starts at its own position and wraps
    /// around at the end of the file.
    Streams {
        /// The number of readers.
        readers: u64,
        /// The number of writers.
        writers: u64,
        /// Blocks of each operation.
        blocks: u64,
    },
}

/// A load, deterministic by its seed.
#[derive(Clone, Debug)]
pub enum Load {
    /// See [`LoadKind::Random`].
    Random(Rng, u64),
    /// See [`LoadKind::Oltp`].
    Oltp(Box<Oltp>),
    /// See [`LoadKind::Runs`].
    Runs(Runs),
    /// See [`LoadKind::Streams`].
    Streams(Streams),
}

/// The most blocks of one write of a run.
const RUN_WRITE: u64 = 64;

/// The state of [`LoadKind::Runs`].
#[derive(Clone, Debug)]
pub struct Runs {
    rng: Rng,
    blocks: u64,
    longest: u64,
    left: Range<u64>,
}

/// The state of [`LoadKind::Streams`].
#[derive(Clone, Debug)]
pub struct Streams {
    readers: u64,
    clients: u64,
    each: u64,
    /// The number of operations so far.
    done: u64,
    blocks: u64,
}

impl Load {
    /// Makes a load over the blocks `0..blocks`. Panics if there are too few.
    pub fn new(kind: LoadKind, blocks: u64, seed: Seed) -> Self {
        match kind {
            LoadKind::Random => Self::Random(Rng::for_purpose(seed, "random"), blocks),
            LoadKind::Oltp { units } => Self::Oltp(Box::new(Oltp::new(blocks, units, seed))),
            LoadKind::OltpAtRandom { units } => Self::Oltp(Box::new(Oltp::at_random(blocks, units, seed))),
            LoadKind::Runs { longest } => {
                let rng = Rng::for_purpose(seed, "runs");
                Self::Runs(Runs { rng, blocks, longest: longest.clamp(1, blocks), left: 0..0 })
            }
            LoadKind::Streams { readers, writers, blocks: each } => {
                Self::Streams(Streams { readers, clients: readers + writers, each, done: 0, blocks })
            }
        }
    }

    /// The next operation. Only OLTP loads have times; the others are always at time 0.
    pub fn next_request(&mut self) -> Request {
        match self {
            Self::Random(rng, blocks) => {
                let block = rng.below(*blocks);
                Request { at: Nanos(0), is_read: false, way: Way::Random, blocks: block..block + 1 }
            }
            Self::Oltp(oltp) => oltp.next_request(),
            Self::Runs(runs) => runs.next_request(),
            Self::Streams(streams) => streams.next_request(),
        }
    }
}

impl Runs {
    fn next_request(&mut self) -> Request {
        if self.left.is_empty() {
            let count = self.rng.between((self.longest / 8).max(1), self.longest);
            let start = self.rng.below(self.blocks - count + 1);
            self.left = start..start + count;
        }
        let start = self.left.start;
        self.left.start = self.left.end.min(start + RUN_WRITE);
        Request { at: Nanos(0), is_read: false, way: Way::Sequential, blocks: start..self.left.start }
    }
}

impl Streams {
    fn next_request(&mut self) -> Request {
        // Readers and writers alternate as evenly as their numbers allow, so that any part of the
        // sequence has the same proportion.
        let (client, round) = (self.done % self.clients, self.done / self.clients);
        self.done += 1;
        let is_read = (client + 1) * self.readers / self.clients > client * self.readers / self.clients;
        let span = self.blocks / self.clients;
        // A client continues into the part in which the next client started.
        let start = (span * client + round * self.each) % self.blocks;
        let blocks = start..self.blocks.min(start + self.each);
        Request { at: Nanos(0), is_read, way: Way::Sequential, blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oltp_at_random_has_no_request_in_order() {
        let ways = |kind| {
            let mut load = Load::new(kind, 10_000, Seed(1));
            let requests: Vec<Request> = (0..2000).map(|_| load.next_request()).collect();
            let writes = requests.iter().filter(|request| !request.is_read).count();
            (requests.iter().filter(|request| request.way == Way::Sequential).count(), writes)
        };
        assert!(ways(LoadKind::Oltp { units: 1 }).0 > 600);
        let (in_order, writes) = ways(LoadKind::OltpAtRandom { units: 1 });
        assert_eq!(in_order, 0);
        // 32.5 of 61.4 operations.
        assert!((1000..1120).contains(&writes), "{writes}");
    }

    #[test]
    fn streams_are_sequential_and_mixed_in_proportion() {
        let kind = LoadKind::Streams { readers: 2, writers: 4, blocks: 16 };
        let mut load = Load::new(kind, 6000, Seed(1));
        let requests: Vec<Request> = (0..6 * 400).map(|_| load.next_request()).collect();
        assert_eq!(requests.iter().filter(|request| request.is_read).count(), 2 * 400);
        for client in 0..6 {
            let own: Vec<&Request> = requests.iter().skip(client).step_by(6).collect();
            assert_eq!(own[0].blocks.start, client as u64 * 1000);
            assert!(own.iter().all(|request| request.is_read == own[0].is_read && request.way == Way::Sequential));
            for pair in own.windows(2) {
                let next = if pair[0].blocks.end == 6000 {
                    pair[1].blocks.start < 16
                } else {
                    pair[1].blocks.start == pair[0].blocks.end
                };
                assert!(next, "{pair:?}");
            }
        }
    }
}

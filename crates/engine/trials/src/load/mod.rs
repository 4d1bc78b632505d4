//! Loads: who reads and writes which blocks next.

mod oltp;
mod samplers;
mod walk;

use std::ops::Range;

use senesce_core::{Nanos, Rng, Seed};
use serde::{Deserialize, Serialize};

pub use oltp::{Oltp, UNIT_RATE};
pub use samplers::{exponential, mixed_size};

/// Whether a stream goes through blocks in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Where it goes next does not follow from where it was.
    Random,
    /// Behind where it was.
    Sequential,
}

/// One operation of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it comes, in virtual time.
    pub at: Nanos,
    /// It reads; else it writes.
    pub is_read: bool,
    /// Whether its stream is in order.
    pub way: Way,
    /// The blocks; one at least.
    pub blocks: Range<u64>,
}

/// What is known of a load before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadKind {
    /// Single blocks are written, each as likely as the others.
    Random,
    /// Eight streams as data bases make them, in units of 50 operations a second.
    Oltp {
        /// Units.
        units: u64,
    },
    /// The random ones of the eight streams. A flash pool keeps these on its SSDs, and leaves sequential streams to its disks.
    OltpAtRandom {
        /// Units.
        units: u64,
    },
    /// Runs are written in order, each beginning anywhere: what keeps a second copy of a volume up to date.
    Runs {
        /// Blocks of the longest run. They are as likely to be of any length from an eighth of that on.
        longest: u64,
    },
    /// Clients that read in order and clients that write in order, in turn, each from a place of its own and around the file.
    Streams {
        /// Those that read.
        readers: u64,
        /// Those that write.
        writers: u64,
        /// Blocks of each operation.
        blocks: u64,
    },
}

/// A load. Deterministic by its seed.
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

/// Blocks that a write of a run has at most.
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
    /// Operations so far.
    done: u64,
    blocks: u64,
}

impl Load {
    /// A load over blocks from 0 on. Panics if they are too few for it.
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

    /// The next operation. Loads other than OLTP know no time.
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
        // Readers and writers mixed as evenly as their numbers allow: what goes by is in proportion at any time.
        let (client, round) = (self.done % self.clients, self.done / self.clients);
        self.done += 1;
        let is_read = (client + 1) * self.readers / self.clients > client * self.readers / self.clients;
        let span = self.blocks / self.clients;
        // A client goes on into the part where the next one began.
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
    fn streams_go_on_where_they_were_and_mix_as_they_are_told() {
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

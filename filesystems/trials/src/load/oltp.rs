//! A load like that of databases: eight Poisson streams over three parts of the blocks. It is
//! modelled on SPC-1; its figures are not results of SPC-1.
//!
//! The parts have 45, 45 and 10 % of the blocks. A unit of load is 50 operations a second. Streams
//! access blocks at random, walk in a small range, or access blocks in order.

use std::ops::Range;

use senesce_core::{Nanos, Rng, Seed};

use super::{
    Request, Way,
    samplers::{exponential, mixed_size},
    walk::{Ground, Walker},
};

/// Operations a second of a unit of load.
pub const UNIT_RATE: u64 = 50;

/// The positions of a stream in its part, in hundredths of the part.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Uniform,
    /// A walk within these hundredths.
    Walk(u64, u64),
    /// Runs of `run` hundredths. Each starts at a random position in `first..below`.
    Sequential {
        first: u64,
        below: u64,
        run: u64,
    },
}

/// A row of the table of streams.
struct Stream {
    part: usize,
    /// The share of the operations, in thousandths.
    share: u64,
    read_percent: u64,
    pattern: Pattern,
}

const fn stream(part: usize, share: u64, read_percent: u64, pattern: Pattern) -> Stream {
    Stream { part, share, read_percent, pattern }
}

const READS: Pattern = Pattern::Sequential { first: 20, below: 60, run: 10 };

const STREAMS: [Stream; 8] = [
    stream(0, 35, 50, Pattern::Uniform),
    stream(0, 281, 50, Pattern::Walk(15, 20)),
    stream(0, 70, 100, READS),
    stream(0, 210, 50, Pattern::Walk(70, 75)),
    stream(1, 18, 30, Pattern::Uniform),
    stream(1, 70, 30, Pattern::Walk(47, 52)),
    stream(1, 35, 100, READS),
    stream(2, 281, 0, Pattern::Sequential { first: 0, below: 70, run: 30 }),
];

/// The parts, in hundredths of all blocks.
const PARTS: [Range<u64>; 3] = [0..45, 45..90, 90..100];

/// The state of a stream of one unit.
#[derive(Clone, Debug)]
enum Place {
    Nothing,
    Walk(Walker),
    /// The rest of the run.
    Sequential(Range<u64>),
}

/// The load of some units over some blocks, deterministic by its seed.
#[derive(Clone, Debug)]
pub struct Oltp {
    rng: Rng,
    parts: [Range<u64>; 3],
    /// Only for streams that walk.
    grounds: Vec<Option<Ground>>,
    /// By stream and unit.
    places: Vec<Vec<Place>>,
    /// The share of each stream, in thousandths of all operations.
    shares: [u64; 8],
    now: Nanos,
    /// The mean time between operations, ns.
    gap: u64,
}

impl Oltp {
    /// The least number of blocks for which every part of the table has blocks.
    pub const LEAST_BLOCKS: u64 = 2_000;

    /// Makes a load of `units` units over the blocks `0..blocks`. Panics without units, or with
    /// fewer blocks than [`LEAST_BLOCKS`](Self::LEAST_BLOCKS).
    pub fn new(blocks: u64, units: u64, seed: Seed) -> Self {
        assert!(units > 0 && blocks >= Self::LEAST_BLOCKS, "{units} units of OLTP over {blocks} blocks");
        let parts = PARTS.map(|part| blocks * part.start / 100..blocks * part.end / 100);
        let ground = |stream: &Stream| match stream.pattern {
            Pattern::Walk(from, to) => Some(Ground::new(within(&parts[stream.part], from, to))),
            _ => None,
        };
        let place = |stream: &Stream| match stream.pattern {
            Pattern::Uniform => Place::Nothing,
            Pattern::Walk(..) => Place::Walk(Walker::default()),
            Pattern::Sequential { .. } => Place::Sequential(0..0),
        };
        Self {
            rng: Rng::for_purpose(seed, "oltp"),
            grounds: STREAMS.iter().map(ground).collect(),
            places: STREAMS.iter().map(|stream| vec![place(stream); units as usize]).collect(),
            shares: STREAMS.each_ref().map(|stream| stream.share),
            now: Nanos(0),
            gap: 1_000_000_000 / (UNIT_RATE * units),
            parts,
        }
    }

    /// Makes the same load without the sequential streams: the part that a flash pool keeps on its
    /// SSDs.
    pub fn at_random(blocks: u64, units: u64, seed: Seed) -> Self {
        let share =
            |stream: &Stream| if matches!(stream.pattern, Pattern::Sequential { .. }) { 0 } else { stream.share };
        Self { shares: STREAMS.each_ref().map(share), ..Self::new(blocks, units, seed) }
    }

    /// The next operation. Eight Poisson streams are equal to one with the sum of their rates, in
    /// which each arrival belongs to a stream with the probability of its share.
    pub fn next_request(&mut self) -> Request {
        self.now = Nanos(self.now.0 + exponential(&mut self.rng, self.gap));
        let number = self.rng.weighted(&self.shares);
        let unit = self.rng.below(self.places[number].len() as u64) as usize;
        let stream = &STREAMS[number];
        let is_read = self.rng.chance(stream.read_percent, 100);
        let part = self.parts[stream.part].clone();
        let place = &mut self.places[number][unit];
        let (way, blocks) = match (stream.pattern, place, &mut self.grounds[number]) {
            (_, Place::Walk(walker), Some(ground)) => {
                let block =
                    if is_read { ground.read(walker, &mut self.rng) } else { ground.write(walker, &mut self.rng) };
                (Way::Random, block..block + 1)
            }
            (Pattern::Sequential { first, below, run }, Place::Sequential(left), _) => {
                let count = mixed_size(&mut self.rng);
                if left.is_empty() {
                    let starts = within(&part, first, below);
                    let start = starts.start + self.rng.below(starts.end - starts.start);
                    *left = start..(start + (part.end - part.start) * run / 100).min(part.end);
                }
                let start = left.start;
                left.start = left.end.min(start + count);
                (Way::Sequential, start..left.start)
            }
            _ => {
                let block = part.start + self.rng.below(part.end - part.start);
                (Way::Random, block..block + 1)
            }
        };
        Request { at: self.now, is_read, way, blocks }
    }
}

/// The range `from..to` of a part, in hundredths.
fn within(part: &Range<u64>, from: u64, to: u64) -> Range<u64> {
    let len = part.end - part.start;
    part.start + len * from / 100..part.start + len * to / 100
}

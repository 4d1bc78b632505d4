//! Eight streams over three files: a load similar to SPC-1.

use senesce_core::Rng;

use super::{request::Request, walk::Walk};

/// Weights of 1, 2, 4, 8 and 16 blocks.
const MIXED: [u64; 5] = [10, 6, 5, 2, 2];

/// Of each stream: its share of all requests, in thousandths; its file; its share of reads,
/// percent.
const STREAMS: [(u64, usize, u64); 8] =
    [(35, 0, 50), (281, 0, 50), (70, 0, 100), (210, 0, 50), (18, 1, 30), (70, 1, 30), (35, 1, 100), (281, 2, 0)];

/// The access pattern of a stream.
#[derive(Clone, Debug)]
enum Pattern {
    Uniform,
    Walk(Walk),
    Sequential(Sequential),
}

/// Sequential runs, each over another part of a file.
#[derive(Clone, Debug)]
struct Sequential {
    /// The range in which runs start, blocks.
    starts: std::ops::Range<u64>,
    /// The length of a run, blocks.
    run: u64,
    position: u64,
    end: u64,
}

impl Sequential {
    fn next(&mut self, rng: &mut Rng) -> (u64, u64) {
        if self.position >= self.end {
            self.position = self.starts.start + rng.below(self.starts.end - self.starts.start);
            self.end = self.position + self.run;
        }
        let blocks = (1 << rng.weighted(&MIXED)).min(self.end - self.position);
        let block = self.position;
        self.position += blocks;
        (block, blocks)
    }
}

/// All streams.
#[derive(Clone, Debug)]
pub(super) struct Oltp {
    files: [u64; 3],
    patterns: Vec<Pattern>,
    /// The stream of the last request; for tests.
    pub last_stream: usize,
}

impl Oltp {
    /// Streams over three files. `files` has their lengths in blocks.
    pub fn new(files: [u64; 3]) -> Self {
        let part = |file: usize, percent: u64| files[file] * percent / 100;
        let walk = |file, from| Pattern::Walk(Walk::new(part(file, from), part(file, from + 5) - part(file, from)));
        let sequential = |file, from, to, run| {
            let starts = part(file, from)..part(file, to).max(part(file, from) + 1);
            Pattern::Sequential(Sequential { starts, run: part(file, run).max(1), position: 0, end: 0 })
        };
        let patterns = vec![
            Pattern::Uniform,
            walk(0, 15),
            sequential(0, 20, 60, 10),
            walk(0, 70),
            Pattern::Uniform,
            walk(1, 47),
            sequential(1, 20, 60, 10),
            sequential(2, 0, 70, 30),
        ];
        Self { files, patterns, last_stream: 0 }
    }

    pub fn next(&mut self, rng: &mut Rng) -> Request {
        let stream = rng.weighted(&STREAMS.map(|(share, ..)| share));
        self.last_stream = stream;
        let (_, file, read_percent) = STREAMS[stream];
        let reads = rng.chance(read_percent, 100);
        let (block, blocks) = match &mut self.patterns[stream] {
            Pattern::Uniform => (rng.below(self.files[file]), 1),
            Pattern::Walk(walk) => (walk.next(reads, rng), 1),
            Pattern::Sequential(sequential) => sequential.next(rng),
        };
        Request { file, block, blocks, reads }
    }
}

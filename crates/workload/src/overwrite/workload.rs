//! The workload: it makes the files, then issues rounds of requests.

use senesce_core::Rng;
use senesce_oplog::{Content, Op, Outcome, Step};

use super::{
    oltp::Oltp,
    options::{OverwriteOptions, Pattern},
    request::{BLOCK_BYTES, Random, Request, Streams},
};
use crate::{Feedback, Workload, WorkloadError, generated_paths::path, retry::Retry};

/// The generator of requests.
enum Requests {
    Oltp(Box<Oltp>),
    Random(Random),
    Streams(Streams),
}

/// Overwrites as a source of steps: `make file N` (not counted), then `round R` (counted).
pub struct Overwrite {
    options: OverwriteOptions,
    choice: Rng,
    content: Rng,
    /// Blocks of each file; empty before the first step.
    files: Vec<u64>,
    made: usize,
    requests: Option<Requests>,
    round: u64,
    retry: Retry,
}

impl Overwrite {
    /// Errors: a parameter out of its range.
    pub fn new(options: OverwriteOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let rng = |purpose: &str| Rng::for_purpose(options.seed, &format!("overwrite {purpose}"));
        Ok(Self {
            options,
            choice: rng("choice"),
            content: rng("content"),
            files: Vec::new(),
            made: 0,
            requests: None,
            round: 1,
            retry: Retry::default(),
        })
    }

    fn begin(&mut self, feedback: &Feedback) -> Result<(), WorkloadError> {
        let files = self.options.plan_files(feedback)?;
        self.requests = Some(match self.options.pattern {
            Pattern::Oltp => Requests::Oltp(Box::new(Oltp::new([files[0], files[1], files[2]]))),
            Pattern::Random { request_bytes, read_percent, .. } => {
                let blocks = request_bytes / BLOCK_BYTES;
                Requests::Random(Random { places: files[0] / blocks, files: files.len(), blocks, read_percent })
            }
            Pattern::Streams { request_bytes, streams, read_percent } => Requests::Streams(Streams {
                file_blocks: files[0],
                blocks: request_bytes / BLOCK_BYTES,
                positions: vec![0; files.len()],
                readers: (streams * read_percent / 100) as usize,
                turn: 0,
            }),
        });
        self.files = files;
        Ok(())
    }

    fn make_file(&mut self) -> (String, Vec<Op>) {
        let mut ops = Vec::new();
        if self.made == 0 {
            ops.push(Op::Mkdir { path: path(""), mode: 0o755 });
        }
        let content = Content::Seeded { seed: self.content.next_u64(), len: self.files[self.made] * BLOCK_BYTES };
        ops.push(Op::Create { path: path(&name(self.made)), mode: 0o644, content });
        ops.push(Op::SyncFs);
        self.made += 1;
        (format!("make file {}", self.made), ops)
    }

    fn request(&mut self) -> Option<Request> {
        Some(match self.requests.as_mut()? {
            Requests::Oltp(oltp) => oltp.next(&mut self.choice),
            Requests::Random(random) => random.next(&mut self.choice),
            Requests::Streams(streams) => streams.next(),
        })
    }

    fn round(&mut self) -> (String, Vec<Op>) {
        let mut ops = Vec::new();
        for _ in 0..self.options.operations {
            let Some(request) = self.request() else { break };
            let (path, offset) = (path(&name(request.file)), request.block * BLOCK_BYTES);
            let len = request.blocks * BLOCK_BYTES;
            ops.push(match request.reads {
                true => Op::Read { path, offset, len },
                false => Op::Write { path, offset, content: Content::Seeded { seed: self.content.next_u64(), len } },
            });
        }
        ops.push(Op::SyncFs);
        self.round += 1;
        (format!("round {}", self.round - 1), ops)
    }
}

fn name(file: usize) -> String {
    format!("data-{}", file + 1)
}

impl Workload for Overwrite {
    fn next_step(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        if let Some(step) = self.retry.settle(feedback)? {
            return Ok(Some(step));
        }
        if self.requests.is_none() {
            self.begin(feedback)?;
        }
        let counted = self.made == self.files.len();
        if counted && self.round > self.options.rounds {
            return Ok(None);
        }
        let (label, ops) = if counted { self.round() } else { self.make_file() };
        let step = Step { label, counted, root: path("files"), ops: ops.into() };
        Ok(Some(self.retry.give(step)))
    }

    fn copies(&self) -> u64 {
        1
    }

    fn is_whole(&self, last: &Outcome) -> bool {
        self.retry.is_whole(last)
    }
}

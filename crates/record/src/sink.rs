//! Destination of changes: one step of the log each, with time, and with contents and names as the
//! options request.

use std::{path::Path, sync::Arc};

use senesce_core::{Clock, Nanos, RelPath, Seed};
use senesce_oplog::{Content, DoneStep, LogHeader, LogSummary, LogWriter, Op, Outcome, Step, seeded_bytes};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::{Result, alias::Aliases};

/// Prefix of hidden names, which are never aliased.
pub(crate) const HIDDEN: &[u8] = b".senesce-open-";

/// Writes changes to the log.
pub(crate) struct Sink {
    /// `None`: changes are only counted.
    writer: Option<LogWriter>,
    steps: u64,
    clock: Option<Arc<dyn Clock>>,
    /// Start of the recording. Changes logged before it have time 0.
    start: Option<Nanos>,
    keep_contents: bool,
    aliases: Option<Aliases>,
    next_content: u64,
    buffer: Vec<u8>,
}

impl Sink {
    /// Creates the log; without a path it only counts. With a `clock`, steps carry the time since
    /// [`start_clock`](Self::start_clock).
    pub fn create(
        log: Option<&Path>,
        workload: Value,
        seed: Seed,
        clock: Option<Arc<dyn Clock>>,
        keep_contents: bool,
        anonymize: bool,
    ) -> Result<Self> {
        // Aliases are random, so the seed in the log reveals no name.
        let header = LogHeader::recorded(workload, seed);
        let writer = log.map(|log| LogWriter::create(log, &header)).transpose()?;
        let aliases = anonymize.then(|| Aliases::new(seed));
        let next_content = seed.derive("recorded contents").0;
        Ok(Self { writer, steps: 0, clock, start: None, keep_contents, aliases, next_content, buffer: Vec::new() })
    }

    /// Logs one change of the program `label`.
    pub fn log(&mut self, label: &str, op: Op) -> Result<()> {
        let since = |start: Nanos, now: Nanos| Nanos(now.0.saturating_sub(start.0));
        let began = self.clock.as_ref().map(|clock| self.start.map_or(Nanos(0), |start| since(start, clock.now())));
        self.log_at(label, began, op)
    }

    /// Starts the clock of the steps.
    pub fn start_clock(&mut self) {
        self.start = self.clock.as_ref().map(|clock| clock.now());
    }

    /// As [`log`](Self::log), with a given time.
    pub fn log_at(&mut self, label: &str, began: Option<Nanos>, op: Op) -> Result<()> {
        let Some(op) = self.anonymous(op) else { return Ok(()) };
        let number = self.steps;
        self.steps += 1;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let contents = match op.content() {
            Some(Content::Inline(bytes)) => vec![(bytes.len() as u64, xxh3_64(bytes))],
            Some(Content::Seeded { seed, len }) => {
                self.buffer.resize(*len as usize, 0);
                seeded_bytes(*seed, 0, &mut self.buffer);
                vec![(*len, xxh3_64(&self.buffer))]
            }
            Some(Content::Derived(_)) => unreachable!("the recorder makes none"),
            None => Vec::new(),
        };
        let label = if self.aliases.is_some() { "recorded" } else { label };
        let step = Step { label: label.to_owned(), counted: true, root: RelPath::root(), ops: Arc::from([op]) };
        writer.append(&DoneStep { number, step, outcome: Outcome::Done, contents, began })?;
        Ok(())
    }

    /// Returns the content for written bytes: the bytes, or generated ones of the same length.
    pub fn content(&mut self, bytes: &[u8]) -> Content {
        if self.keep_contents { Content::Inline(bytes.into()) } else { self.grown(bytes.len() as u64) }
    }

    /// Returns generated content for a known length.
    pub fn grown(&mut self, len: u64) -> Content {
        if len == 0 {
            return Content::Inline([].into());
        }
        self.next_content = self.next_content.wrapping_add(1);
        Content::Seeded { seed: self.next_content, len }
    }

    /// Flushes the log, so that a kill of this process loses little.
    pub fn flush(&mut self) -> Result<()> {
        Ok(self.writer.as_mut().map_or(Ok(()), LogWriter::flush)?)
    }

    /// Changes so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Finishes the log; `None` if there is none.
    pub fn finish(self) -> Result<Option<LogSummary>> {
        Ok(self.writer.map(LogWriter::finish).transpose()?)
    }

    /// Replaces names and values. `None` if the operation cannot be logged without revealing what
    /// must be hidden.
    fn anonymous(&mut self, mut op: Op) -> Option<Op> {
        let Some(aliases) = &mut self.aliases else { return Some(op) };
        let mut rename = |path: &mut RelPath| {
            if !path.as_bytes().starts_with(HIDDEN) {
                *path = aliases.path(path);
            }
        };
        match &mut op {
            Op::Rename { from, to } => {
                rename(from);
                rename(to);
            }
            Op::Exchange { first, second } => {
                rename(first);
                rename(second);
            }
            Op::Link { existing, path } => {
                rename(existing);
                rename(path);
            }
            Op::Symlink { path, target } => {
                rename(path);
                *target = aliases.bytes(target).into();
            }
            Op::SetXattr { path, name, value } => {
                rename(path);
                *name = user_attribute(aliases, name)?;
                self.next_content = self.next_content.wrapping_add(1);
                let mut grown = vec![0; value.len()];
                seeded_bytes(self.next_content, 0, &mut grown);
                *value = grown.into();
            }
            Op::RemoveXattr { path, name } => {
                rename(path);
                *name = user_attribute(aliases, name)?;
            }
            // The numbers would reveal the owner.
            Op::Chown { .. } => return None,
            Op::Mkdir { path, .. }
            | Op::Rmdir { path }
            | Op::Create { path, .. }
            | Op::Write { path, .. }
            | Op::Truncate { path, .. }
            | Op::Unlink { path }
            | Op::Chmod { path, .. }
            | Op::RemoveTree { path }
            | Op::Fsync { path }
            | Op::Allocate { path, .. }
            | Op::SetModified { path, .. }
            | Op::Read { path, .. }
            | Op::Fallocate { path, .. }
            | Op::SetTimes { path, .. }
            | Op::Mknod { path, .. } => rename(path),
            Op::SyncFs => {}
        }
        Some(op)
    }
}

/// Replaces the name of a user attribute. Names and values of other attributes have fixed meanings.
fn user_attribute(aliases: &mut Aliases, name: &[u8]) -> Option<Arc<[u8]>> {
    let name = name.strip_prefix(b"user.")?;
    Some([b"user.", &aliases.name(name)[..]].concat().into())
}

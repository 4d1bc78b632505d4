//! The log: one or two copies of two halves, on which operations are durable before a consistency
//! point includes them.
//!
//! One half receives records. When a consistency point starts, the other half takes over. The first
//! one is free again when the point is durable. Records wait in memory until a commit writes all of
//! them with one flush. While the point is written, the other half records which stripes are being
//! written, and the XOR of their unwritten blocks.

mod devices;
mod halves;
mod lost_checkpoint;
mod mirror;
mod open;
mod restore;
mod stripe_intents;

use std::sync::Arc;

use senesce_block::BlockDevice;

use crate::{
    error::Result,
    format::{
        BLOCK,
        label::{Aggregate, LogLabel},
        log_lap::{Durable, Lap, Stamps},
        log_record::{Commit, RecordKind, record_bytes, sealed_bytes},
        operation::Body,
        superblock::Superblock,
    },
};
pub(crate) use devices::{Copies, Place, find_aggregate, is_log, label_offsets};
pub use devices::{LogDevices, LogPlaces};
pub(crate) use halves::{HalfCopies, Silent, read_any_halves, read_copies};
pub use mirror::{LogCopyReport, LogFailure};
pub(crate) use mirror::{Mirror, unbelieved, why_unbelieved};
pub use open::{Accepted, LOST_LOG, LogLoss};
pub(crate) use open::{Found, first_operation, high_record, lost_record, two_halves};
pub(crate) use restore::{Repair, find_blocks};
use stripe_intents::Intents;
pub(crate) use stripe_intents::{Kept, Unfinished};

/// The smallest unit of a commit, in bytes: a torn write never damages another unit.
const UNIT: usize = 512;

/// The log, and the position of the next commit.
pub(crate) struct Log {
    mirror: Arc<Mirror>,
    uuid: [u8; 16],
    stamps: Stamps,
    /// The last durable consistency point.
    point: u64,
    half_bytes: u64,
    unit: usize,
    half: u64,
    /// The end of the last commit in the half, in bytes.
    position: u64,
    chain: u32,
    next: u64,
    waiting: Commit,
    /// The first waiting record.
    first_waiting: u64,
    /// Whether operations are dropped from the log. Then only the next consistency point makes them
    /// and later ones durable.
    leaves_out: bool,
    /// Whether a change without a record was made since the last consistency point.
    has_other_changes: bool,
    /// The record of kind 5 that the half in use may start with.
    durable: Option<Durable>,
    intents: Intents,
}

/// Encoded records for the devices.
pub(crate) struct Batch {
    offset: u64,
    pub bytes: Vec<u8>,
    /// The last record of the batch.
    pub last: u64,
}

impl Log {
    /// Makes an empty log. If not `zeroed`, clears the devices first, so that no record of an
    /// earlier aggregate with the same UUID fits.
    pub fn format(devices: &LogDevices, aggregate: &Aggregate, zeroed: bool) -> Result<()> {
        for (copy, (device, _)) in (0..).zip(devices.places(&aggregate.log)?) {
            if !zeroed {
                zero(&device, aggregate.log.copy_bytes())?;
            }
            write_labels(&device, &LogLabel { aggregate: aggregate.clone(), copy, generation: 0 })?;
        }
        Ok(())
    }

    fn new(copies: &Copies, mirror: Arc<Mirror>, sb: &Superblock, unit: usize) -> Self {
        let mut log = Self {
            unit,
            half_bytes: copies.shape.half_bytes,
            half: 0,
            position: 0,
            chain: 0,
            next: sb.applied.saturating_add(1),
            waiting: Commit::new(unit, Vec::new()),
            first_waiting: sb.applied.saturating_add(1),
            leaves_out: false,
            has_other_changes: false,
            durable: None,
            intents: Intents::default(),
            mirror,
            uuid: sb.uuid,
            stamps: copies.stamps,
            point: sb.point,
        };
        log.chain = log.lap(false).seed();
        log
    }

    fn lap(&self, intents: bool) -> Lap {
        Lap { uuid: self.uuid, point: self.point, intents, stamps: self.stamps }
    }

    /// The longest record body that fits twice into an empty half.
    pub fn max_body(&self) -> usize {
        (self.half_bytes / 2) as usize - UNIT
    }

    pub fn has_room(&self, body: usize) -> bool {
        if self.leaves_out {
            return true;
        }
        let records = self.waiting.len() + record_bytes(body);
        self.position + sealed_bytes(records, self.unit) as u64 <= self.half_bytes
    }

    /// The fill level of the half in use, 0 to 1.
    pub fn fill(&self) -> f64 {
        (self.position + self.waiting.len() as u64) as f64 / self.half_bytes as f64
    }

    /// Appends an operation to the waiting records, unless operations are dropped, and returns its
    /// number. The caller checks [`has_room`](Self::has_room).
    pub fn append(&mut self, body: &Body<'_>) -> u64 {
        debug_assert!(self.has_room(body.len()), "the caller checks the space first");
        let sequence = self.next;
        if self.leaves_out {
            self.next += 1;
            return sequence;
        }
        if self.waiting.len() == 0 {
            self.first_waiting = sequence;
        }
        self.chain = self.waiting.push(RecordKind::Operation, sequence, self.chain, &[body.head[..].into(), body.data]);
        self.next += 1;
        sequence
    }

    /// Drops waiting records and those until the next consistency point, which makes their
    /// operations durable.
    pub fn leave_out(&mut self) {
        self.waiting.clear();
        self.leaves_out = true;
    }

    /// Whether operations are dropped, so that only a consistency point makes them durable.
    pub fn leaves_out(&self) -> bool {
        self.leaves_out
    }

    /// The last record.
    pub fn last(&self) -> u64 {
        self.next - 1
    }

    /// Returns all waiting records as a batch. `memory` is a buffer of an earlier batch, for the
    /// next records.
    pub fn take_batch(&mut self, memory: Vec<u8>) -> Option<Batch> {
        if self.waiting.len() == 0 {
            return None;
        }
        let records = std::mem::replace(&mut self.waiting, Commit::new(self.unit, memory));
        let bytes = records.seal(&self.lap(false), self.first_waiting, self.last());
        let offset = self.half_start(self.half) + self.position;
        self.position += bytes.len() as u64;
        Some(Batch { offset, bytes, last: self.last() })
    }

    /// Bytes of waiting records.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// The copies of the log.
    pub fn mirror(&self) -> &Arc<Mirror> {
        &self.mirror
    }

    /// Swaps the halves when the consistency point `point` is durable. It includes all records up
    /// to `applied`, so waiting ones are dropped. Later operations arrived meanwhile; they have no
    /// records and stay dropped.
    pub fn swap(&mut self, point: u64, applied: u64) {
        self.half = 1 - self.half;
        self.point = point;
        self.position = 0;
        self.chain = self.lap(false).seed();
        self.waiting.clear();
        self.leaves_out = self.last() > applied;
        self.durable = Some(Durable { point, is_logged: !std::mem::take(&mut self.has_other_changes) });
    }

    /// Notes that the next consistency point includes more than operations.
    pub fn note_other_changes(&mut self) {
        self.has_other_changes = true;
    }

    /// Returns a batch which records that the last consistency point is durable, unless a later
    /// record proves it. Without the record, opening could not detect that its superblock was lost.
    pub fn take_durable(&mut self) -> Option<Batch> {
        let durable = self.durable.take()?;
        if self.position > 0 || self.waiting.len() > 0 || self.leaves_out {
            return None;
        }
        self.first_waiting = self.last();
        let body = durable.encode();
        self.chain = self.waiting.push(RecordKind::Durable, self.last(), self.chain, &[body[..].into()]);
        self.take_batch(Vec::new())
    }

    /// Whether a record after the last consistency point proves that the point existed. The record
    /// is durable when no commit is in progress.
    pub fn tells_point(&self) -> bool {
        self.position > 0
    }

    fn half_start(&self, half: u64) -> u64 {
        BLOCK as u64 + half * self.half_bytes
    }
}

fn write_labels(device: &Arc<dyn BlockDevice>, label: &LogLabel) -> Result<()> {
    for offset in label_offsets(&label.aggregate.log) {
        device.write_at(offset, &label.encode()[..])?;
        device.flush()?; // one of the labels is whole at any time
    }
    Ok(())
}

fn zero(device: &Arc<dyn BlockDevice>, end: u64) -> Result<()> {
    let zeros = vec![0; 64 * BLOCK];
    for offset in (0..end).step_by(zeros.len()) {
        device.write_at(offset, &zeros[..(end - offset).min(zeros.len() as u64) as usize])?;
    }
    Ok(())
}

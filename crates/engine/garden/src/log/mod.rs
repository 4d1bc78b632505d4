//! The log: a device with two halves on which operations are durable before a consistency point includes them.
//!
//! One half takes the records; when a consistency point begins, the other one takes over, and the full one may be used
//! again when the point is durable. Records wait in memory until a commit writes all that wait and flushes once. While the
//! point is written, the half that is to take over says which stripes are being written, and what of them stays.

mod devices;
mod halves;
mod intent;
mod lost;
mod mirror;
mod open;
mod restore;

use std::sync::Arc;

use senesce_block::BlockDevice;

use crate::{
    error::Result,
    format::{
        BLOCK,
        label::{Aggregate, LogLabel},
        lap::{Durable, Lap, Stamps},
        operation::Body,
        record::{Commit, RecordKind, record_bytes, sealed_bytes},
        superblock::Superblock,
    },
};
pub(crate) use devices::{Copies, Place, find_aggregate, is_log, label_offsets};
pub use devices::{LogDevices, LogPlaces};
pub(crate) use halves::{HalfCopies, Silent, read_any_halves, read_copies};
use intent::Intents;
pub(crate) use intent::{Kept, Unfinished};
pub use mirror::{LogCopyReport, LogFailure};
pub(crate) use mirror::{Mirror, unbelieved, why_unbelieved};
pub use open::{Accepted, LOST_LOG, LogLoss};
pub(crate) use open::{Found, first_operation, high_record, lost_record, two_halves};
pub(crate) use restore::{Repair, find_blocks};

/// The least unit of a commit: no power loss takes back what lies in another one.
const UNIT: usize = 512;

/// The log, and the end of what was written.
pub(crate) struct Log {
    mirror: Arc<Mirror>,
    uuid: [u8; 16],
    stamps: Stamps,
    /// The last consistency point that is durable.
    point: u64,
    half_bytes: u64,
    unit: usize,
    half: u64,
    /// Behind the last record that was handed to a commit, within the half.
    position: u64,
    chain: u32,
    next: u64,
    waiting: Commit,
    /// The first record that waits.
    first_waiting: u64,
    /// Operations were left out: only the next consistency point makes them durable, and those that come behind them.
    leaves_out: bool,
    /// Something was changed since the last consistency point that is no operation.
    has_other_changes: bool,
    /// What the half in use may begin with.
    durable: Option<Durable>,
    intents: Intents,
}

/// Records on their way to the device.
pub(crate) struct Batch {
    offset: u64,
    pub bytes: Vec<u8>,
    /// The last record in it.
    pub last: u64,
}

impl Log {
    /// Makes an empty log. `zeroed`: it holds zeros already; what an earlier aggregate of the same identity left must not fit.
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

    /// The longest record body that always fits an empty half, with room for more.
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

    /// How full the half in use is, 0 to 1.
    pub fn fill(&self) -> f64 {
        (self.position + self.waiting.len() as u64) as f64 / self.half_bytes as f64
    }

    /// Adds an operation to those that wait, unless operations are left out, and gives its number. There must be room.
    pub fn append(&mut self, body: &Body<'_>) -> u64 {
        debug_assert!(self.has_room(body.len()), "the caller asks for room first");
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

    /// Forgets what waits, and all that comes before the next consistency point, which alone makes it durable.
    pub fn leave_out(&mut self) {
        self.waiting.clear();
        self.leaves_out = true;
    }

    /// Whether operations are left out, so that nothing but a consistency point makes them durable.
    pub fn leaves_out(&self) -> bool {
        self.leaves_out
    }

    /// The last record that was appended.
    pub fn last(&self) -> u64 {
        self.next - 1
    }

    /// Takes all records that wait. `memory`, which another one had, is for those that come next.
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

    /// Bytes of records that wait for a commit.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// The copies, which take commits.
    pub fn mirror(&self) -> &Arc<Mirror> {
        &self.mirror
    }

    /// The other half takes over; what waits is part of the consistency point `point`, which has just become durable and includes
    /// the records up to `applied`. Those behind it, which came meanwhile, were left out and stay so.
    pub fn swap(&mut self, point: u64, applied: u64) {
        self.half = 1 - self.half;
        self.point = point;
        self.position = 0;
        self.chain = self.lap(false).seed();
        self.waiting.clear();
        self.leaves_out = self.last() > applied;
        self.durable = Some(Durable { point, is_logged: !std::mem::take(&mut self.has_other_changes) });
    }

    /// The next consistency point has more than operations.
    pub fn note_other_changes(&mut self) {
        self.has_other_changes = true;
    }

    /// A commit which says that the consistency point before is durable, if nothing behind it does so yet: should its superblock
    /// be damaged, it is known that there was one.
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

    /// Whether something lies behind the last consistency point, so that whoever reads it knows that there was one. It is durable
    /// when nobody commits.
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
        device.flush()?; // one of them is whole at any time
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

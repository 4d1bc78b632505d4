//! The log: a device with two halves on which operations are durable before a consistency point includes them.
//!
//! One half takes the records; when a consistency point begins, the other one takes over, and the full one may be used
//! again when the point is durable. Records wait in memory until a commit writes all that wait and flushes once. While the
//! point is written, the half that is to take over says which stripes are being written, and what of them stays.

mod halves;
mod intent;
mod lost;

use std::sync::Arc;

use senesce_block::BlockDevice;

use crate::{
    error::{Error, Result},
    format::{
        BLOCK, Damage,
        half::Half,
        label::LogLabel,
        lap::{Durable, Lap},
        operation::Body,
        record::{Commit, NO_RECORD, RecordKind, record_bytes, sealed_bytes},
    },
};
pub(crate) use halves::{read_any_halves, read_label};
use halves::{read_halves, unit_of};
use intent::Intents;
pub(crate) use intent::{Kept, Unfinished};

/// The least unit of a commit: no power loss takes back what lies in another one.
const UNIT: usize = 512;
/// The least size of a half: the largest operation fits it twice.
pub(crate) const MIN_HALF_BYTES: u64 = 192 << 10;

/// The log, and the end of what was written.
pub(crate) struct Log {
    device: Arc<dyn BlockDevice>,
    uuid: [u8; 16],
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

/// What a log held when it was opened.
pub(crate) struct Found {
    /// Operations behind the last consistency point, in order.
    pub operations: Vec<(u64, Vec<u8>)>,
    /// What a consistency point that did not end was writing.
    pub unfinished: Unfinished,
    /// A commit was begun since the last consistency point, whether it ended or not.
    pub begun: bool,
    /// A later consistency point was durable, of which no superblock can be read.
    pub later_point: Option<u64>,
    /// The same, if there was more in it than these operations, or behind it.
    pub lost_point: Option<u64>,
}

impl Log {
    /// Makes an empty log. `zeroed`: it holds zeros already; what an earlier aggregate of the same identity left must not fit.
    /// Errors: the device is too small.
    pub fn format(device: &Arc<dyn BlockDevice>, uuid: [u8; 16], zeroed: bool) -> Result<()> {
        let half_bytes = (device.size().0.saturating_sub(BLOCK as u64) / 2) & !(BLOCK as u64 - 1);
        if half_bytes < MIN_HALF_BYTES {
            return Err(Error::WrongDevice {
                device: device.name().to_owned(),
                what: format!("a log of {} bytes; {} at least", device.size().0, 2 * MIN_HALF_BYTES + BLOCK as u64),
            });
        }
        let zeros = vec![0; 64 * BLOCK];
        let end = if zeroed { 0 } else { BLOCK as u64 + 2 * half_bytes };
        for offset in (0..end).step_by(zeros.len()) {
            device.write_at(offset, &zeros[..(end - offset).min(zeros.len() as u64) as usize])?;
        }
        device.write_at(0, &LogLabel { uuid, half_bytes }.encode()[..])?;
        device.flush()?;
        Ok(())
    }

    /// Opens a log and reads what lies behind the record `applied`, the last that the consistency point `point` includes.
    ///
    /// Errors: `Damaged` with the number of a record that was acknowledged and cannot be read, unless a
    /// [later point](Found::lost_point) has gone with it.
    pub fn open(device: Arc<dyn BlockDevice>, uuid: [u8; 16], point: u64, applied: u64) -> Result<(Self, Found)> {
        let label = read_label(&device)?;
        if label.uuid != uuid {
            let what = "the log of another aggregate".to_owned();
            return Err(Error::WrongDevice { device: device.name().to_owned(), what });
        }
        let halves = read_halves(&device, &label, point)?;
        let live = halves.live(applied);
        let damaged = |damage| Error::damaged(device.name().to_owned(), damage);
        if !live[0].is_empty() && !live[1].is_empty() {
            return Err(damaged(two_halves()));
        }
        let marked = halves.operations.iter().position(|half| half.only_durable().is_some());
        let in_use = marked.or_else(|| live.iter().position(|live| !live.is_empty()));
        let half = in_use.unwrap_or_else(|| halves.find_idle(applied, unit_of(&device)));
        let mut operations: Vec<_> =
            live.into_iter().flatten().map(|record| (record.sequence, record.body.clone())).collect();
        let later_point = halves.later_point();
        let lost_point = halves.find_lost_point(applied);
        if let Some((first, _)) = operations.first()
            && *first != applied + 1
        {
            if lost_point.is_none() {
                return Err(damaged(first_operation(*first, applied)));
            }
            operations.clear();
        }
        if let Some(record) = halves.find_damaged(applied).filter(|_| lost_point.is_none()) {
            return Err(damaged(lost_record(record)));
        }
        let begun = later_point.is_some() || marked.is_none() && halves.operations.iter().any(Half::is_begun);
        // Where nothing tells of the point yet, it may be told; what made it is not known any more.
        let durable = (!begun && marked.is_none()).then_some(Durable { point, is_logged: false });
        let found = Found { operations, unfinished: halves.unfinished(), begun, later_point, lost_point };
        let last = found.operations.last().map_or(applied, |(sequence, _)| *sequence);
        if last >= NO_RECORD {
            return Err(damaged(high_record(last)));
        }
        let next = last + 1;
        let unit = unit_of(&device);
        let mut log = Self {
            unit,
            half_bytes: label.half_bytes,
            half: half as u64,
            // What was begun ends with a consistency point before anything is appended: nothing is written behind it.
            position: match (begun, marked) {
                (true, _) => label.half_bytes,
                (false, Some(_)) => unit as u64,
                (false, None) => 0,
            },
            chain: 0,
            next,
            waiting: Commit::new(unit, Vec::new()),
            first_waiting: next,
            leaves_out: false,
            has_other_changes: false,
            durable,
            intents: Intents::default(),
            device,
            uuid,
            point,
        };
        log.chain = marked.map_or(log.lap(false).seed(), |marked| halves.operations[marked].chain);
        Ok((log, found))
    }

    fn lap(&self, intents: bool) -> Lap {
        Lap { uuid: self.uuid, point: self.point, intents }
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

    /// Writes records and makes them durable.
    pub fn commit(device: &dyn BlockDevice, batch: &Batch) -> Result<()> {
        device.write_at(batch.offset, &batch.bytes)?;
        Ok(device.flush()?)
    }

    pub fn device(&self) -> Arc<dyn BlockDevice> {
        self.device.clone()
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

/// What is wrong with a record that was acknowledged and cannot be read.
pub(crate) fn lost_record(record: u64) -> Damage {
    Damage::new(
        "log",
        "record",
        format!("damaged ({record})"),
        "whole: its commit, or a later one, was written to the end",
    )
}

/// What is wrong where both halves hold operations behind one consistency point.
pub(crate) fn two_halves() -> Damage {
    Damage::new("log", "halves with operations", 2, 1)
}

/// What is wrong if others were in front of the first operation. `applied`: the last one before, which is less.
pub(crate) fn first_operation(first: u64, applied: u64) -> Damage {
    Damage::new("log", "first operation", first, applied + 1)
}

/// What is wrong with a number of a record that nothing counts to.
pub(crate) fn high_record(last: u64) -> Damage {
    Damage::new("log", "last record", last, format!("less than {NO_RECORD}"))
}

//! The log: a device with two halves on which operations are durable before a consistency point includes them.
//!
//! One half takes the records; when a consistency point begins, the other one takes over, and the full one may be used
//! again when the point is durable. Records wait in memory until a commit writes all that wait and flushes once. While the
//! point is written, the half that is to take over says which stripes are being written, and what of them stays.

mod intent;

use std::sync::Arc;

use senesce_block::BlockDevice;

use crate::{
    error::{Error, Result},
    format::{
        BLOCK, Damage,
        label::LogLabel,
        record::{self, Record, RecordKind, chain_start, record_bytes},
        zero_block,
    },
};
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
    half_bytes: u64,
    unit: usize,
    half: u64,
    /// Behind the last record that was handed to a commit, within the half.
    position: u64,
    chain: u32,
    next: u64,
    waiting: Vec<u8>,
    intents: Intents,
}

/// Records on their way to the device.
pub(crate) struct Batch {
    offset: u64,
    bytes: Vec<u8>,
    /// The last record in it.
    pub last: u64,
}

/// What a log held when it was opened.
pub(crate) struct Found {
    /// Operations behind the last consistency point, in order.
    pub operations: Vec<(u64, Vec<u8>)>,
    /// What a consistency point that did not end was writing.
    pub unfinished: Unfinished,
}

impl Log {
    /// Makes an empty log. Errors: the device is too small.
    pub fn format(device: &Arc<dyn BlockDevice>, uuid: [u8; 16]) -> Result<()> {
        let half_bytes = (device.size().0.saturating_sub(BLOCK as u64) / 2) & !(BLOCK as u64 - 1);
        if half_bytes < MIN_HALF_BYTES {
            return Err(Error::WrongDevice {
                device: device.name().to_owned(),
                what: format!("a log of {} bytes; {} at least", device.size().0, 2 * MIN_HALF_BYTES + BLOCK as u64),
            });
        }
        for half in 0..2 {
            device.write_at(BLOCK as u64 + half * half_bytes, &zero_block()[..])?;
        }
        device.write_at(0, &LogLabel { uuid, half_bytes }.encode()[..])?;
        device.flush()?;
        Ok(())
    }

    /// Opens a log and reads what lies behind the record `applied`.
    pub fn open(device: Arc<dyn BlockDevice>, uuid: [u8; 16], cp: u64, applied: u64) -> Result<(Self, Found)> {
        let label = read_label(&device)?;
        if label.uuid != uuid {
            let what = "the log of another aggregate".to_owned();
            return Err(Error::WrongDevice { device: device.name().to_owned(), what });
        }
        let unit = UNIT.max(device.alignment() as usize);
        let halves = read_halves(&device, &label)?;
        let live = |half: &Vec<Record>| half.iter().any(|record| is_live(record, applied));
        if live(&halves[0]) && live(&halves[1]) {
            let damage = Damage::new("log", "halves with operations", 2, 1);
            return Err(Error::damaged(device.name().to_owned(), damage));
        }
        let half = u64::from(live(&halves[1]));
        let mut found = Found { operations: Vec::new(), unfinished: Unfinished::default() };
        for record in halves.into_iter().flatten() {
            if is_live(&record, applied) {
                found.operations.push((record.sequence, record.body));
            } else {
                found.unfinished.add(&record, cp);
            }
        }
        if let Some((first, _)) = found.operations.first()
            && *first != applied + 1
        {
            let damage = Damage::new("log", "first operation", first, applied + 1);
            return Err(Error::damaged(device.name().to_owned(), damage));
        }
        let next = found.operations.last().map_or(applied, |(sequence, _)| *sequence) + 1;
        let log = Self {
            unit,
            half_bytes: label.half_bytes,
            half,
            // With operations to be done again, opening ends with a consistency point before anything is appended.
            position: if found.operations.is_empty() { 0 } else { label.half_bytes },
            chain: chain_start(&uuid),
            next,
            waiting: Vec::new(),
            intents: Intents::default(),
            device,
            uuid,
        };
        Ok((log, found))
    }

    /// The longest record body that always fits an empty half, with room for more.
    pub fn max_body(&self) -> usize {
        (self.half_bytes / 2) as usize - UNIT
    }

    pub fn has_room(&self, body: usize) -> bool {
        self.position + (self.waiting.len() + record_bytes(body) + self.unit) as u64 <= self.half_bytes
    }

    /// Adds an operation to those that wait, and gives its number. There must be room.
    pub fn append(&mut self, body: &[u8]) -> u64 {
        debug_assert!(self.has_room(body.len()), "the caller asks for room first");
        let sequence = self.next;
        self.chain = record::push(&mut self.waiting, RecordKind::Operation, sequence, self.chain, body);
        self.next += 1;
        sequence
    }

    /// The last record that was appended.
    pub fn last(&self) -> u64 {
        self.next - 1
    }

    /// Takes all records that wait.
    pub fn take_batch(&mut self) -> Option<Batch> {
        if self.waiting.is_empty() {
            return None;
        }
        let mut bytes = std::mem::take(&mut self.waiting);
        bytes.resize(bytes.len().next_multiple_of(self.unit), 0);
        let offset = self.half_start(self.half) + self.position;
        self.position += bytes.len() as u64;
        Some(Batch { offset, bytes, last: self.last() })
    }

    /// Writes records and makes them durable.
    pub fn commit(device: &dyn BlockDevice, batch: &Batch) -> Result<()> {
        device.write_at(batch.offset, &batch.bytes)?;
        Ok(device.flush()?)
    }

    pub fn device(&self) -> Arc<dyn BlockDevice> {
        self.device.clone()
    }

    /// The other half takes over; what waits is part of the consistency point that has just become durable.
    pub fn swap(&mut self) {
        self.half = 1 - self.half;
        self.position = 0;
        self.chain = chain_start(&self.uuid);
        self.waiting.clear();
    }

    fn half_start(&self, half: u64) -> u64 {
        BLOCK as u64 + half * self.half_bytes
    }
}

fn is_live(record: &Record, applied: u64) -> bool {
    record.kind == RecordKind::Operation && record.sequence > applied
}

/// The label of a log device.
pub(crate) fn read_label(device: &Arc<dyn BlockDevice>) -> Result<LogLabel> {
    let mut block = zero_block();
    device.read_at(0, &mut block[..])?;
    let label = LogLabel::decode(&block).map_err(|damage| Error::damaged(device.name().to_owned(), damage))?;
    if BLOCK as u64 + 2 * label.half_bytes > device.size().0 {
        let what = format!("two halves of {} bytes; the device has {}", label.half_bytes, device.size().0);
        return Err(Error::WrongDevice { device: device.name().to_owned(), what });
    }
    Ok(label)
}

/// All records of both halves, as far as their chains go.
pub(crate) fn read_halves(device: &Arc<dyn BlockDevice>, label: &LogLabel) -> Result<[Vec<Record>; 2]> {
    let unit = UNIT.max(device.alignment() as usize);
    let mut halves = [Vec::new(), Vec::new()];
    for (half, records) in (0..).zip(&mut halves) {
        let mut bytes = vec![0; label.half_bytes as usize];
        device.read_at(BLOCK as u64 + half * label.half_bytes, &mut bytes)?;
        *records = record::read_half(&bytes, &label.uuid, unit);
    }
    Ok(halves)
}

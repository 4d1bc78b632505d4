//! Both halves of the log as they are found: what of them is wanted, and in which one there is room.

use std::sync::Arc;

use senesce_block::BlockDevice;

use super::{MIN_HALF_BYTES, UNIT, intent::Unfinished, lost::Later};
use crate::{
    error::{Error, Result},
    format::{
        BLOCK, Damage,
        half::Half,
        label::LogLabel,
        lap::Lap,
        record::{Record, RecordKind},
        zero_block,
    },
};

/// What both halves hold since a consistency point.
pub(super) struct Halves {
    pub operations: [Half; 2],
    pub intents: [Half; 2],
    pub later: Option<Later>,
    bytes: [Vec<u8>; 2],
}

impl Halves {
    /// Operations behind the record `applied`, half by half.
    pub fn live(&self, applied: u64) -> [Vec<&Record>; 2] {
        self.operations.each_ref().map(|half| half.records.iter().filter(|record| is_live(record, applied)).collect())
    }

    /// The first record that was acknowledged and cannot be read. `applied`: the last one that the superblock includes.
    pub fn find_damaged(&self, applied: u64) -> Option<u64> {
        let last = self.operations.iter().flat_map(|half| &half.records).map(|record| record.sequence).max();
        let wanted = last.unwrap_or(0).max(applied).checked_add(1)?;
        self.operations.iter().any(|half| half.was_written(wanted)).then_some(wanted)
    }

    /// The half that may be written where both are empty: not the one with the operations that the last point includes, which make up for
    /// it if its superblock is damaged.
    pub fn find_idle(&self, applied: u64, unit: usize) -> usize {
        let has_last = |half: &[u8]| {
            let last = Half::read_any(half, unit).records.pop();
            last.is_some_and(|last| last.kind == RecordKind::Operation && last.sequence == applied)
        };
        usize::from(has_last(&self.bytes[0]))
    }

    /// What a consistency point that did not end was writing.
    pub fn unfinished(&self) -> Unfinished {
        let mut unfinished = Unfinished::default();
        self.intents.iter().flat_map(|half| &half.records).for_each(|record| unfinished.add(record));
        unfinished
    }
}

fn is_live(record: &Record, applied: u64) -> bool {
    record.kind == RecordKind::Operation && record.sequence > applied
}

/// The label of a log device.
pub(crate) fn read_label(device: &Arc<dyn BlockDevice>) -> Result<LogLabel> {
    let mut block = zero_block();
    device.read_at(0, &mut block[..])?;
    let damaged = |damage| Error::damaged(device.name().to_owned(), damage);
    let label = LogLabel::decode(&block).map_err(damaged)?;
    if label.half_bytes < MIN_HALF_BYTES || !label.half_bytes.is_multiple_of(BLOCK as u64) {
        let wanted = format!("a multiple of {BLOCK}, {MIN_HALF_BYTES} at least");
        return Err(damaged(Damage::new("log label", "bytes of a half", label.half_bytes, wanted)));
    }
    if label.half_bytes > device.size().0.saturating_sub(BLOCK as u64) / 2 {
        let what = format!("two halves of {} bytes; the device has {}", label.half_bytes, device.size().0);
        return Err(Error::WrongDevice { device: device.name().to_owned(), what });
    }
    Ok(label)
}

/// All records of both halves that were written since the consistency point `point`.
pub(super) fn read_halves(device: &Arc<dyn BlockDevice>, label: &LogLabel, point: u64) -> Result<Halves> {
    let halves = [read_half(device, label, 0)?, read_half(device, label, 1)?];
    let of = |intents| {
        let lap = Lap { uuid: label.uuid, point, intents };
        halves.each_ref().map(|half| Half::read(half, &lap, unit_of(device)))
    };
    let later = Later::find(&halves, unit_of(device), label.uuid, point);
    Ok(Halves { operations: of(false), intents: of(true), later, bytes: halves })
}

/// The records of both halves, whenever they were written.
pub(crate) fn read_any_halves(device: &Arc<dyn BlockDevice>, label: &LogLabel) -> Result<[Vec<Record>; 2]> {
    let halves = [read_half(device, label, 0)?, read_half(device, label, 1)?];
    Ok(halves.map(|half| Half::read_any(&half, unit_of(device)).records))
}

fn read_half(device: &Arc<dyn BlockDevice>, label: &LogLabel, half: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; label.half_bytes as usize];
    device.read_at(BLOCK as u64 + half * label.half_bytes, &mut bytes)?;
    Ok(bytes)
}

pub(super) fn unit_of(device: &Arc<dyn BlockDevice>) -> usize {
    UNIT.max(device.alignment() as usize)
}

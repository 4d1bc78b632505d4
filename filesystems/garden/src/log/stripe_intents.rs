//! Stripe intents: the log names stripes before a consistency point writes them.
//!
//! A loss of power between the write of a block and of its parity leaves a stripe inconsistent. If
//! a drive is lost too, blocks that were not written would be restored wrongly. So the log records
//! which stripes are written, and for partly written ones the XOR of the blocks that stay.

use std::collections::BTreeMap;

use super::{Batch, Log};
use crate::{
    error::Result,
    format::{
        SLOT,
        bytes::{array, u32_at, u64_at},
        data::Data,
        label::MAX_GROUPS,
        log_record::{Commit, Record, RecordKind, record_bytes, unsealed_bytes},
        slot::Slot,
    },
    raid::StripeRange,
};

const RANGE: usize = 20;
const KEPT: usize = 28 + SLOT;

/// The end of the intents in the half that takes over next.
#[derive(Debug, Default)]
pub(super) struct Intents {
    position: u64,
    chain: u32,
    next: u64,
}

/// A stripe that is written in part: bits of the written data drives, and the XOR of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub written: u64,
    pub sum: Slot,
}

/// The stripes that an unfinished consistency point was writing.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    /// Its number, if there is one.
    pub cp: Option<u64>,
    pub stripes: Vec<StripeRange>,
    /// By group and stripe. Stripes without an entry are written whole.
    pub kept: BTreeMap<(u32, u64), Kept>,
    /// Drives that were missing during the write. Their contents are too old since.
    pub without: Vec<u32>,
}

impl Unfinished {
    /// Adds a record. Of several unfinished consistency points the last one counts. Before it
    /// started, the stripes of the earlier ones were corrected, and it may have rewritten them.
    pub fn add(&mut self, record: &Record) {
        let body = &record.body[..];
        if record.kind == RecordKind::Operation || body.len() < 8 || self.cp > Some(u64_at(body, 0)) {
            return;
        }
        if self.cp < Some(u64_at(body, 0)) {
            *self = Self { cp: Some(u64_at(body, 0)), ..Self::default() };
        }
        if record.kind == RecordKind::Intent {
            let range =
                |at: &[u8; RANGE]| StripeRange { group: u32_at(at, 0), first: u64_at(at, 4), count: u64_at(at, 12) };
            self.stripes.extend(body[8..].as_chunks::<RANGE>().0.iter().map(range));
        } else if record.kind == RecordKind::Without {
            self.without = body[8..].as_chunks::<4>().0.iter().map(|drive| u32::from_le_bytes(*drive)).collect();
        } else if body.len() == KEPT {
            let kept = Kept { written: u64_at(body, 20), sum: Slot::from(&array(body, 28)) };
            self.kept.insert((u32_at(body, 8), u64_at(body, 12)), kept);
        }
    }
}

impl Log {
    /// The most stripes that one intent can name, if all are written in part.
    pub fn max_stripes(&self) -> u64 {
        let room = unsealed_bytes(self.half_bytes as usize, self.unit) - record_bytes(8 + 4 * MAX_GROUPS);
        (room / (record_bytes(KEPT) + record_bytes(8 + RANGE))) as u64
    }

    /// Starts the half again for the next intent: the stripes of earlier ones are durable, or there
    /// are none.
    pub fn rewind_intents(&mut self) {
        self.intents = Intents { position: 0, chain: self.lap(true).seed(), next: self.next };
    }

    /// Like [`prepare_intent`](Self::prepare_intent), and makes the intent durable. Returns `false`
    /// if there is no space for it.
    pub fn write_intent(
        &mut self,
        cp: u64,
        ranges: &[StripeRange],
        kept: &BTreeMap<(u32, u64), Kept>,
        without: &[u32],
    ) -> Result<bool> {
        let Some(batch) = self.prepare_intent(cp, ranges, kept, without) else { return Ok(false) };
        self.mirror.commit(&batch)?;
        Ok(true)
    }

    /// A batch with the intent of consistency point `cp` to write these stripes without the drives
    /// `without`. `None` if there is no space before [`rewind_intents`](Self::rewind_intents).
    pub fn prepare_intent(
        &mut self,
        cp: u64,
        ranges: &[StripeRange],
        kept: &BTreeMap<(u32, u64), Kept>,
        without: &[u32],
    ) -> Option<Batch> {
        let mut records = Commit::new(self.unit, Vec::new());
        let (mut chain, mut next) = (self.intents.chain, self.intents.next);
        let mut push = |kind, body: &[&[u8]]| {
            let body: Vec<_> = body.iter().map(|part| Data::from(*part)).collect();
            chain = records.push(kind, next, chain, &body);
            next += 1;
        };
        if !without.is_empty() {
            let drives = without.iter().flat_map(|drive| drive.to_le_bytes());
            push(RecordKind::Without, &[&cp.to_le_bytes().into_iter().chain(drives).collect::<Vec<u8>>()]);
        }
        // The sums come first, so a reader that finds the stripes finds the sums too.
        for ((group, stripe), kept) in kept {
            let head =
                [&cp.to_le_bytes()[..], &group.to_le_bytes(), &stripe.to_le_bytes(), &kept.written.to_le_bytes()];
            push(RecordKind::Kept, &[&head.concat(), &kept.sum[..]]);
        }
        let mut body = cp.to_le_bytes().to_vec();
        for range in ranges {
            body.extend_from_slice(&range.group.to_le_bytes());
            body.extend_from_slice(&range.first.to_le_bytes());
            body.extend_from_slice(&range.count.to_le_bytes());
        }
        push(RecordKind::Intent, &[&body]);
        let bytes = records.seal(&self.lap(true), self.intents.next, next - 1);
        if self.intents.position + bytes.len() as u64 > self.half_bytes {
            return None;
        }
        let offset = self.half_start(1 - self.half) + self.intents.position;
        self.intents = Intents { position: self.intents.position + bytes.len() as u64, chain, next };
        Some(Batch { offset, bytes, last: next - 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(cp: u64, first: u64) -> Record {
        let body = [&cp.to_le_bytes()[..], &0_u32.to_le_bytes(), &first.to_le_bytes(), &2_u64.to_le_bytes()].concat();
        Record { kind: RecordKind::Intent, sequence: 1, body }
    }

    fn kept(cp: u64, stripe: u64, byte: u8) -> Record {
        let body = [&cp.to_le_bytes()[..], &0_u32.to_le_bytes(), &stripe.to_le_bytes(), &1_u64.to_le_bytes()].concat();
        Record { kind: RecordKind::Kept, sequence: 1, body: [body, vec![byte; SLOT]].concat() }
    }

    #[test]
    fn last_cut_consistency_point_counts() {
        let (older, newer) = ([kept(7, 5, 1), intent(7, 5)], [kept(8, 6, 2), intent(8, 6)]);
        for records in [[&older[..], &newer[..]].concat(), [&newer[..], &older[..]].concat()] {
            let mut unfinished = Unfinished::default();
            records.iter().for_each(|record| unfinished.add(record));
            assert_eq!(unfinished.cp, Some(8));
            assert_eq!(unfinished.stripes, [StripeRange { group: 0, first: 6, count: 2 }]);
            assert_eq!(unfinished.kept.keys().collect::<Vec<_>>(), [&(0, 6)]);
        }
    }
}

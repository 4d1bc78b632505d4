//! Stripes that are about to be written: a power loss between a block and its parity would make what stays in the stripe
//! depend on luck if a drive is lost too. So the log is told first which stripes are written, and of those written in part
//! the sum of the blocks that stay.

use std::collections::BTreeMap;

use super::{Batch, Log};
use crate::{
    error::Result,
    format::{
        SLOT,
        bytes::{array, u32_at, u64_at},
        data::Data,
        label::MAX_GROUPS,
        record::{Commit, Record, RecordKind, record_bytes, unsealed_bytes},
        slot::Slot,
    },
    raid::StripeRange,
};

const RANGE: usize = 20;
const KEPT: usize = 28 + SLOT;

/// How far the half that is to take over is filled.
#[derive(Debug, Default)]
pub(super) struct Intents {
    position: u64,
    chain: u32,
    next: u64,
}

/// Of a stripe that is written in part: which drives are (bits of data drives), and the sum of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub written: u64,
    pub sum: Slot,
}

/// What a consistency point that did not end was writing.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    /// Its number, if there is one.
    pub cp: Option<u64>,
    pub stripes: Vec<StripeRange>,
    /// By group and stripe; those without are written whole.
    pub kept: BTreeMap<(u32, u64), Kept>,
    /// Drives that it wrote without: since then what they hold is too old.
    pub without: Vec<u32>,
}

impl Unfinished {
    /// Takes a record. Of several consistency points that did not end, the last one counts: before it began, what those
    /// before it had left was put right, and it may have written the same stripes since.
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
    /// How many stripes can be named at once, if all are written in part.
    pub fn max_stripes(&self) -> u64 {
        let room = unsealed_bytes(self.half_bytes as usize, self.unit) - record_bytes(8 + 4 * MAX_GROUPS);
        (room / (record_bytes(KEPT) + record_bytes(8 + RANGE))) as u64
    }

    /// The next intent begins the half: what those before it named is durable, or nothing was named yet.
    pub fn rewind_intents(&mut self) {
        self.intents = Intents { position: 0, chain: self.lap(true).seed(), next: self.next };
    }

    /// The same as [`prepare_intent`](Self::prepare_intent), and makes it durable.
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

    /// What says, once it is durable, that consistency point `cp` is about to write these stripes, and which drives it writes
    /// `without`; `None` if there is no room before
    /// [`rewind_intents`](Self::rewind_intents).
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
        // First what stays: whoever can read which stripes are written can read this too.
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
    fn of_several_cut_consistency_points_the_last_one_counts() {
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

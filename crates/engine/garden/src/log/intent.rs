//! Stripes that are about to be written: a power loss between a block and its parity would make what stays in the stripe
//! depend on luck if a drive is lost too. So the log is told first which stripes are written, and of those written in part
//! the sum of the blocks that stay.

use std::collections::BTreeMap;

use super::Log;
use crate::{
    error::Result,
    format::{
        SLOT,
        bytes::{array, u32_at, u64_at},
        label::MAX_GROUPS,
        record::{self, Record, RecordKind, chain_start, record_bytes},
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
    /// Takes a record, if it is of a consistency point later than `cp`.
    pub fn add(&mut self, record: &Record, cp: u64) {
        let body = &record.body[..];
        if record.kind == RecordKind::Operation || body.len() < 8 || u64_at(body, 0) <= cp {
            return;
        }
        self.cp = self.cp.max(Some(u64_at(body, 0)));
        if record.kind == RecordKind::Intent {
            let range =
                |at: &[u8; RANGE]| StripeRange { group: u32_at(at, 0), first: u64_at(at, 4), count: u64_at(at, 12) };
            self.stripes.extend(body[8..].as_chunks::<RANGE>().0.iter().map(range));
        } else if record.kind == RecordKind::Without {
            self.without = body[8..].as_chunks::<4>().0.iter().map(|drive| u32::from_le_bytes(*drive)).collect();
        } else if body.len() == KEPT {
            let kept = Kept { written: u64_at(body, 20), sum: Box::new(array(body, 28)) };
            self.kept.insert((u32_at(body, 8), u64_at(body, 12)), kept);
        }
    }
}

impl Log {
    /// How many stripes can be named at once, if all are written in part.
    pub fn max_stripes(&self) -> u64 {
        (self.half_bytes - 2 * self.unit as u64 - record_bytes(8 + 4 * MAX_GROUPS) as u64)
            / (record_bytes(KEPT) + record_bytes(8 + RANGE)) as u64
    }

    /// The next intent begins the half: what those before it named is durable, or nothing was named yet.
    pub fn rewind_intents(&mut self) {
        self.intents = Intents { position: 0, chain: chain_start(&self.uuid), next: self.next };
    }

    /// Says, durably, that consistency point `cp` is about to write these stripes, and which drives it writes
    /// `without`; `false` if there is no room before
    /// [`rewind_intents`](Self::rewind_intents).
    pub fn write_intent(
        &mut self,
        cp: u64,
        ranges: &[StripeRange],
        kept: &BTreeMap<(u32, u64), Kept>,
        without: &[u32],
    ) -> Result<bool> {
        let mut bytes = Vec::new();
        let (mut chain, mut next) = (self.intents.chain, self.intents.next);
        let mut push = |kind, body: &[u8]| {
            chain = record::push(&mut bytes, kind, next, chain, body);
            next += 1;
        };
        if !without.is_empty() {
            let drives = without.iter().flat_map(|drive| drive.to_le_bytes());
            push(RecordKind::Without, &cp.to_le_bytes().into_iter().chain(drives).collect::<Vec<u8>>());
        }
        // First what stays: whoever can read which stripes are written can read this too.
        for ((group, stripe), kept) in kept {
            let head =
                [&cp.to_le_bytes()[..], &group.to_le_bytes(), &stripe.to_le_bytes(), &kept.written.to_le_bytes()];
            push(RecordKind::Kept, &[&head.concat()[..], &kept.sum[..]].concat());
        }
        let mut body = cp.to_le_bytes().to_vec();
        for range in ranges {
            body.extend_from_slice(&range.group.to_le_bytes());
            body.extend_from_slice(&range.first.to_le_bytes());
            body.extend_from_slice(&range.count.to_le_bytes());
        }
        push(RecordKind::Intent, &body);
        bytes.resize(bytes.len().next_multiple_of(self.unit), 0);
        if self.intents.position + bytes.len() as u64 > self.half_bytes {
            return Ok(false);
        }
        self.device.write_at(self.half_start(1 - self.half) + self.intents.position, &bytes)?;
        self.device.flush()?;
        self.intents = Intents { position: self.intents.position + bytes.len() as u64, chain, next };
        Ok(true)
    }
}

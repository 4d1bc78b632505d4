//! Records of the log: a header of 32 bytes and a body, one behind the other, each chained to the one before.
//!
//! A commit begins at a multiple of the device's unit, so that what is durable is never written again. Each unit ends with a
//! stamp that says which commit it is part of: so a commit that was cut is told from one that was whole and is damaged.

use super::{
    bytes::{put, u32_at, u64_at},
    data::Data,
    lap::{Lap, Stamps},
};

const MAGIC: u32 = 0x474f_4c47;
pub(super) const HEADER: usize = 32;
/// Bytes of a stamp.
pub(crate) const STAMP: usize = 24;
/// No record has this number or a higher one: nothing counts so far.
pub(crate) const NO_RECORD: u64 = 1 << 62;
/// Records begin at multiples of this.
pub(crate) const ALIGN: usize = 8;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// An operation on a volume.
    Operation = 1,
    /// Stripes that a consistency point is about to write.
    Intent = 2,
    /// Of one of these, which is written in part: the sum of the blocks that stay.
    Kept = 3,
    /// Drives that are missing while these are written.
    Without = 4,
    /// The consistency point that the lap follows is durable: the first record of a lap, where an aggregate was closed.
    Durable = 5,
}

/// A record as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub kind: RecordKind,
    pub sequence: u64,
    pub body: Vec<u8>,
}

/// Bytes that a record with such a body takes.
pub(crate) fn record_bytes(body: usize) -> usize {
    (HEADER + body).next_multiple_of(ALIGN)
}

/// The end of a unit: which commit it is part of. A commit is written when those before it are durable, so a stamp tells
/// that they were there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Units of the commit behind this one.
    pub left: u32,
    /// The first and the last record of the commit.
    pub first: u64,
    pub last: u64,
}

impl Stamp {
    /// As it is written at the end of a unit whose other bytes have the checksum `unit`.
    fn encode(&self, unit: u32, stamps: Stamps, sum: u32) -> [u8; STAMP] {
        let mut out = [0; STAMP];
        put(&mut out, 0, &sum.to_le_bytes());
        put(&mut out, 4, &self.left.to_le_bytes());
        put(&mut out, 8, &self.first.to_le_bytes());
        match stamps {
            Stamps::Plain => put(&mut out, 16, &self.last.to_le_bytes()),
            Stamps::Summed => {
                put(&mut out, 16, &(self.last.wrapping_sub(self.first) as u32).to_le_bytes());
                put(&mut out, 20, &unit.to_le_bytes());
            }
        }
        out
    }

    /// Stamps a unit.
    fn put_into(self, unit: &mut [u8], stamps: Stamps, seed: u32) {
        let room = unit.len() - STAMP;
        let of_unit = if stamps == Stamps::Summed { crc32c::crc32c(&unit[..room]) } else { 0 };
        let sum = crc32c::crc32c_append(seed, &self.encode(of_unit, stamps, 0)[4..]);
        unit[room..].copy_from_slice(&self.encode(of_unit, stamps, sum));
    }

    /// What bytes say if they are a stamp.
    pub fn read(bytes: &[u8], stamps: Stamps) -> Self {
        let (left, first) = (u32_at(bytes, 4), u64_at(bytes, 8));
        let last = match stamps {
            Stamps::Plain => u64_at(bytes, 16),
            Stamps::Summed => first.saturating_add(u32_at(bytes, 16).into()),
        };
        Self { left, first, last }
    }

    /// Whether a half of this number of units may have it.
    pub fn is_possible(&self, units: usize) -> bool {
        self.first <= self.last && (self.left as usize) < units
    }

    pub fn decode(bytes: &[u8], stamps: Stamps, seed: u32) -> Option<Self> {
        let is_right = u32_at(bytes, 0) == crc32c::crc32c_append(seed, &bytes[4..STAMP]);
        is_right.then(|| Self::read(bytes, stamps))
    }
}

/// Whether a unit is as it was written, in whatever lap; zeros if it never was. Units of version 7 do not say.
pub(crate) fn is_whole(unit: &[u8]) -> bool {
    let room = unit.len() - STAMP;
    u32_at(unit, room + 20) == crc32c::crc32c(&unit[..room]) || unit.iter().all(|&byte| byte == 0)
}

/// Bytes that records take with the stamps of their units.
pub(crate) fn sealed_bytes(records: usize, unit: usize) -> usize {
    records.div_ceil(unit - STAMP) * unit
}

/// Bytes of records that so many bytes have room for.
pub(crate) fn unsealed_bytes(sealed: usize, unit: usize) -> usize {
    sealed / unit * (unit - STAMP)
}

/// Records that are to be written together, laid out in units from the beginning: what they hold is copied once.
pub(crate) struct Commit {
    bytes: Vec<u8>,
    unit: usize,
    /// Bytes of records, without the stamps between them.
    len: usize,
}

impl Commit {
    /// An empty one in memory that was used before, of which the contents are lost.
    pub fn new(unit: usize, mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self { bytes, unit, len: 0 }
    }

    /// Takes all records out.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }

    /// Bytes of records in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Appends a record whose body comes in parts, and gives its checksum, which the next one is chained to. The first in a half is
    /// chained to the [seed](Lap::seed) of the lap.
    pub fn push(&mut self, kind: RecordKind, sequence: u64, chain: u32, body: &[Data<'_>]) -> u32 {
        let len: usize = body.iter().map(|part| part.bytes.len()).sum();
        let mut header = [0; HEADER];
        put(&mut header, 0, &MAGIC.to_le_bytes());
        put(&mut header, 8, &(len as u32).to_le_bytes());
        header[12] = kind as u8;
        put(&mut header, 16, &sequence.to_le_bytes());
        put(&mut header, 24, &chain.to_le_bytes());
        let padding = &[0; ALIGN][..record_bytes(len) - HEADER - len];
        let sum = crc32c::crc32c(&header[8..]);
        let sum = body.iter().fold(sum, |sum, part| part.append_to(sum));
        let sum = crc32c::crc32c_append(sum, padding);
        put(&mut header, 4, &sum.to_le_bytes());
        self.extend(&header);
        body.iter().for_each(|part| self.extend(part.bytes));
        self.extend(padding);
        sum
    }

    fn extend(&mut self, mut bytes: &[u8]) {
        let room = self.unit - STAMP;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(room - self.len % room));
            self.bytes.extend_from_slice(now);
            self.len += now.len();
            if self.len.is_multiple_of(room) {
                self.bytes.extend_from_slice(&[0; STAMP]);
            }
            bytes = later;
        }
    }

    /// Ends it, with the records from `first` to `last` in it, and stamps its units.
    pub fn seal(mut self, lap: &Lap, first: u64, last: u64) -> Vec<u8> {
        self.bytes.resize(sealed_bytes(self.len, self.unit), 0);
        let units = self.bytes.len() / self.unit;
        for (index, unit) in self.bytes.chunks_exact_mut(self.unit).enumerate() {
            let left = (units - index - 1) as u32;
            Stamp { left, first, last }.put_into(unit, lap.stamps, lap.seed());
        }
        self.bytes
    }
}

/// The record that begins these bytes, which have no stamps in between, if it is chained so; what it takes of them, and its checksum.
pub(crate) fn read_record(bytes: &[u8], chain: u32) -> Option<(Record, usize, u32)> {
    read(&|from, len| bytes.get(from..from.checked_add(len)?).map(<[u8]>::to_vec), chain)
}

/// The stamp of the lap that a unit ends with.
pub(crate) fn stamp_of(unit: &[u8], lap: &Lap) -> Option<Stamp> {
    Stamp::decode(&unit[unit.len() - STAMP..], lap.stamps, lap.seed())
}

/// The record that begins a stretch of bytes, what it takes of it, and its checksum.
pub(super) fn read(bytes: &dyn Fn(usize, usize) -> Option<Vec<u8>>, chain: u32) -> Option<(Record, usize, u32)> {
    let header = bytes(0, HEADER)?;
    if u32_at(&header, 0) != MAGIC || u32_at(&header, 24) != chain {
        return None;
    }
    let len = u32_at(&header, 8) as usize;
    let whole = bytes(0, record_bytes(len))?;
    let sum = crc32c::crc32c(&whole[8..]);
    if sum != u32_at(&whole, 4) {
        return None;
    }
    let kind = match whole[12] {
        1 => RecordKind::Operation,
        2 => RecordKind::Intent,
        3 => RecordKind::Kept,
        4 => RecordKind::Without,
        5 => RecordKind::Durable,
        _ => return None,
    };
    let body = whole[HEADER..HEADER + len].to_vec();
    Some((Record { kind, sequence: u64_at(&whole, 16), body }, whole.len(), sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAP: Lap = Lap { uuid: [3; 16], point: 9, intents: false, stamps: Stamps::Plain };
    const UNIT: usize = 512;

    #[test]
    fn golden() {
        let mut records = Commit::new(UNIT, vec![9; 7]);
        records.push(RecordKind::Intent, 0x0102, LAP.seed(), &[b"a"[..].into(), b"bc"[..].into()]);
        let text = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let len = records.len();
        let sealed = records.seal(&LAP, 0x0102, 0x0103);
        assert_eq!(text(&sealed[..len]), GOLDEN);
        assert!(sealed[len..UNIT - STAMP].iter().all(|&byte| byte == 0));
        assert_eq!(text(&sealed[UNIT - STAMP..]), GOLDEN_STAMP);
        assert_eq!(sealed.len(), UNIT);
    }
    const GOLDEN: &str = "474c4f47041f981403000000020000000201000000000000d2b2d442000000006162630000000000";
    const GOLDEN_STAMP: &str = "63e0343d0000000002010000000000000301000000000000";

    #[test]
    fn a_summed_stamp_comes_back_and_any_flipped_bit_of_its_unit_shows() {
        let lap = Lap { stamps: Stamps::Summed, ..LAP };
        let mut records = Commit::new(UNIT, Vec::new());
        records.push(RecordKind::Operation, 5, lap.seed(), &[[7; 600][..].into()]);
        let sealed = records.seal(&lap, 5, 7);
        let (unit, stamp) = (&sealed[..UNIT], Stamp { left: 1, first: 5, last: 7 });
        assert_eq!(stamp_of(unit, &lap), Some(stamp));
        assert!(is_whole(unit) && is_whole(&[0; UNIT]));
        let mut bad = unit.to_vec();
        for at in 0..UNIT {
            bad[at] ^= 1 << (at % 8);
            assert!(!is_whole(&bad) || stamp_of(&bad, &lap).is_none(), "byte {at}");
            bad[at] = unit[at];
        }
    }
}

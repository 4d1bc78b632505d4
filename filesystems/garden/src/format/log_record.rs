//! Records of the log: a header of 32 bytes and a body. Each record is chained to the previous one.
//!
//! A commit starts at a multiple of the device's unit, so durable bytes are never rewritten. Each
//! unit ends with a stamp that identifies its commit. Stamps distinguish a commit that was cut from
//! one that was complete and is damaged.

use super::{
    bytes::{put, u32_at, u64_at},
    data::Data,
    log_lap::{Lap, Stamps},
};

const MAGIC: u32 = 0x474f_4c47;
pub(super) const HEADER: usize = 32;
/// Bytes of a stamp.
pub(crate) const STAMP: usize = 24;
/// Sequences of records are below this.
pub(crate) const NO_RECORD: u64 = 1 << 62;
/// Records start at multiples of this.
pub(crate) const ALIGN: usize = 8;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// An operation on a volume.
    Operation = 1,
    /// Stripes that a consistency point is about to write.
    Intent = 2,
    /// The XOR of the unwritten blocks of one of these stripes, which is written in part.
    Kept = 3,
    /// Drives that are missing while these stripes are written.
    Without = 4,
    /// The consistency point that the lap follows is durable. It is the first record of a lap.
    Durable = 5,
}

/// A decoded record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub kind: RecordKind,
    pub sequence: u64,
    pub body: Vec<u8>,
}

/// Bytes of a record with a body of this length.
pub(crate) fn record_bytes(body: usize) -> usize {
    (HEADER + body).next_multiple_of(ALIGN)
}

/// The end of a unit, which identifies its commit. A commit is written when the previous ones are
/// durable, so a stamp proves that they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Units of the commit after this one.
    pub left: u32,
    /// The first and the last record of the commit.
    pub first: u64,
    pub last: u64,
}

impl Stamp {
    /// Encodes the stamp. `unit` is the checksum of the other bytes of the unit, `sum` that of the
    /// stamp.
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

    /// Decodes the fields of a stamp without a check of its checksum.
    pub fn read(bytes: &[u8], stamps: Stamps) -> Self {
        let (left, first) = (u32_at(bytes, 4), u64_at(bytes, 8));
        let last = match stamps {
            Stamps::Plain => u64_at(bytes, 16),
            Stamps::Summed => first.saturating_add(u32_at(bytes, 16).into()),
        };
        Self { left, first, last }
    }

    /// Whether a half with this number of units can contain the stamp.
    pub fn is_possible(&self, units: usize) -> bool {
        self.first <= self.last && (self.left as usize) < units
    }

    pub fn decode(bytes: &[u8], stamps: Stamps, seed: u32) -> Option<Self> {
        let is_right = u32_at(bytes, 0) == crc32c::crc32c_append(seed, &bytes[4..STAMP]);
        is_right.then(|| Self::read(bytes, stamps))
    }
}

/// Whether a unit is as it was written in any lap, or was never written (zeros). Units of version 7
/// have no checksum.
pub(crate) fn is_whole(unit: &[u8]) -> bool {
    let room = unit.len() - STAMP;
    u32_at(unit, room + 20) == crc32c::crc32c(&unit[..room]) || unit.iter().all(|&byte| byte == 0)
}

/// Bytes of records together with the stamps of their units.
pub(crate) fn sealed_bytes(records: usize, unit: usize) -> usize {
    records.div_ceil(unit - STAMP) * unit
}

/// Bytes of records that fit into `sealed` bytes of units.
pub(crate) fn unsealed_bytes(sealed: usize, unit: usize) -> usize {
    sealed / unit * (unit - STAMP)
}

/// Records of one write, laid out in units. The bytes of a record are copied once, into this
/// buffer.
pub(crate) struct Commit {
    bytes: Vec<u8>,
    unit: usize,
    /// Bytes of records, without the stamps between them.
    len: usize,
}

impl Commit {
    /// An empty commit that reuses the memory of `bytes`. The contents of `bytes` are discarded.
    pub fn new(unit: usize, mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self { bytes, unit, len: 0 }
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }

    /// Bytes of records in the commit.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Appends a record whose body comes in parts. Returns its checksum, which the next record is
    /// chained to. The first record of a half is chained to the [seed](Lap::seed) of the lap.
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

    /// Stamps the units and returns their bytes. The records of the commit are `first` to `last`.
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

/// Decodes the record at the start of `bytes`, which contain no stamps. Returns the record, its
/// length in bytes and its checksum; `None` if it is not chained to `chain`.
pub(crate) fn read_record(bytes: &[u8], chain: u32) -> Option<(Record, usize, u32)> {
    read(&|from, len| bytes.get(from..from.checked_add(len)?).map(<[u8]>::to_vec), chain)
}

/// The stamp at the end of a unit, if it is of this lap.
pub(crate) fn stamp_of(unit: &[u8], lap: &Lap) -> Option<Stamp> {
    Stamp::decode(&unit[unit.len() - STAMP..], lap.stamps, lap.seed())
}

/// Decodes the record at the start of `bytes`. Returns the record, its length in bytes and its
/// checksum.
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
    fn flipped_bits_of_a_stamped_unit_are_detected() {
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

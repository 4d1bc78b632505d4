//! Records of the log: a header of 32 bytes and a body, one behind the other, each chained to the one before.
//!
//! A commit begins at a multiple of the device's unit, so that what is durable is never written again. Each unit ends with a
//! stamp that says which commit it is part of: so a commit that was cut is told from one that was whole and is damaged.

use std::sync::LazyLock;

use super::{
    bytes::{put, u32_at, u64_at},
    data::Data,
    lap::{Durable, Lap},
};

const MAGIC: u32 = 0x474f_4c47;
const HEADER: usize = 32;
/// Bytes of a stamp.
pub(crate) const STAMP: usize = 24;
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
struct Stamp {
    /// Units of the commit behind this one.
    left: u32,
    /// The first and the last record of the commit.
    first: u64,
    last: u64,
}

impl Stamp {
    fn encode(&self, sum: u32) -> [u8; STAMP] {
        let mut out = [0; STAMP];
        put(&mut out, 0, &sum.to_le_bytes());
        put(&mut out, 4, &self.left.to_le_bytes());
        put(&mut out, 8, &self.first.to_le_bytes());
        put(&mut out, 16, &self.last.to_le_bytes());
        out
    }

    fn sum(&self, seed: u32) -> u32 {
        crc32c::crc32c_append(seed, &self.encode(0)[4..])
    }

    /// What `left` changes of the checksum of a stamp where it is 0: the same whatever else stands there.
    fn sum_of_left(left: u32) -> u32 {
        static TABLES: LazyLock<[[u32; 256]; 4]> = LazyLock::new(|| {
            let of = |place: usize, byte: usize| {
                let stamp = Stamp { left: (byte as u32) << (8 * place), first: 0, last: 0 };
                stamp.sum(0) ^ Stamp { left: 0, ..stamp }.sum(0)
            };
            std::array::from_fn(|place| std::array::from_fn(|byte| of(place, byte)))
        });
        left.to_le_bytes().into_iter().zip(&*TABLES).fold(0, |all, (byte, table)| all ^ table[usize::from(byte)])
    }

    fn decode(bytes: &[u8], seed: u32) -> Option<Self> {
        let is_right = u32_at(bytes, 0) == crc32c::crc32c_append(seed, &bytes[4..STAMP]);
        is_right.then(|| Self { left: u32_at(bytes, 4), first: u64_at(bytes, 8), last: u64_at(bytes, 16) })
    }
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
        let last_sum = Stamp { left: 0, first, last }.sum(lap.seed());
        for (index, unit) in self.bytes.chunks_exact_mut(self.unit).enumerate() {
            let left = (units - index - 1) as u32;
            let stamp = Stamp { left, first, last }.encode(last_sum ^ Stamp::sum_of_left(left));
            unit[self.unit - STAMP..].copy_from_slice(&stamp);
        }
        self.bytes
    }
}

/// What a half holds of one lap.
pub(crate) struct Half {
    /// All records up to where the chain ends: behind it lie old bytes, a commit that was cut, or damage.
    pub records: Vec<Record>,
    /// Where it ends, in bytes of records.
    end: usize,
    /// What the next record is chained to.
    pub chain: u32,
    /// Of each unit.
    stamps: Vec<Option<Stamp>>,
    /// Bytes of records in a unit.
    room: usize,
    /// If nothing is to be read from the beginning on, nor the first stamp: the record that begins the second unit, whatever it is
    /// chained to.
    second: Option<u64>,
}

impl Half {
    pub fn read(half: &[u8], lap: &Lap, unit: usize) -> Self {
        Self::read_seeded(half, lap.seed(), unit)
    }

    /// What lies there of whatever lap, for those who look at it.
    pub fn read_any(half: &[u8], unit: usize) -> Self {
        Self::read_seeded(half, u32_at(half, 24), unit)
    }

    fn read_seeded(half: &[u8], seed: u32, unit: usize) -> Self {
        let room = unit - STAMP;
        let stamps: Vec<_> = half.chunks_exact(unit).map(|unit| Stamp::decode(&unit[room..], seed)).collect();
        let (mut records, mut at, mut chain) = (Vec::<Record>::new(), 0_usize, seed);
        loop {
            let wanted = records.last().map(|record| record.sequence + 1);
            // A record follows the one before, or begins the next unit.
            let found = [at, at.next_multiple_of(room)].into_iter().find_map(|start| {
                let (record, len, sum) = read(&|from, len| unsealed(half, unit, start + from, len), chain)?;
                wanted.is_none_or(|wanted| wanted == record.sequence).then_some((record, start + len, sum))
            });
            let Some((record, end, sum)) = found else {
                let is_lost = records.is_empty() && matches!(stamps[..], [None, Some(_), ..]);
                let second = is_lost.then(|| read_unchained(&|from, len| unsealed(half, unit, room + from, len)));
                return Self { records, end: at, chain, stamps, room, second: second.flatten() };
            };
            records.push(record);
            (at, chain) = (end, sum);
        }
    }

    /// Whether anything was written here in this lap.
    pub fn is_begun(&self) -> bool {
        !self.records.is_empty() || self.stamps.iter().any(Option::is_some)
    }

    /// If nothing was written here in this lap but that its consistency point is durable: that.
    pub fn only_durable(&self) -> Option<(Durable, &Record)> {
        let [record] = &self.records[..] else { return None };
        let is_all = record.kind == RecordKind::Durable && self.stamps.iter().flatten().count() == 1;
        Some((Durable::decode(&record.body).filter(|_| is_all)?, record))
    }

    /// Whether the record `wanted`, which is not to be read in either half, was written: a later commit was begun, or all
    /// units of its own are here. Else it may have been cut by a loss of power.
    pub fn was_written(&self, wanted: u64) -> bool {
        if self.stamps.iter().flatten().any(|stamp| stamp.first > wanted) {
            return true;
        }
        let at = |unit: usize| self.stamps.get(unit).copied().flatten();
        // In the unit where the chain ends, if its commit goes on; else in the next one.
        let goes_on = at(self.end / self.room).is_some_and(|stamp| stamp.last >= wanted);
        let mut unit = if goes_on { self.end / self.room } else { self.end.div_ceil(self.room) };
        if at(unit).is_some_and(|stamp| stamp.last < wanted) {
            unit += 1; // where it cannot be read that the point is durable
        } else if self.second == Some(wanted) {
            unit = 1; // the same, and its stamp is gone, too: a first commit that was cut begins in front of there
        }
        let Some(stamp) = at(unit).filter(|stamp| (stamp.first..=stamp.last).contains(&wanted)) else { return false };
        (0..=stamp.left).all(|index| at(unit + index as usize) == Some(Stamp { left: stamp.left - index, ..stamp }))
    }
}

/// Bytes of records, without the stamps between them; `None` behind the end.
fn unsealed(half: &[u8], unit: usize, start: usize, len: usize) -> Option<Vec<u8>> {
    let room = unit - STAMP;
    let mut bytes = Vec::with_capacity(len.min(half.len()));
    let mut at = start;
    while bytes.len() < len {
        let part = half.get(at / room * unit..at / room * unit + room)?;
        let part = &part[at % room..];
        let now = part.len().min(len - bytes.len());
        bytes.extend_from_slice(&part[..now]);
        at += now;
    }
    Some(bytes)
}

/// The number of the record that begins a stretch of bytes, whatever it is chained to.
fn read_unchained(bytes: &dyn Fn(usize, usize) -> Option<Vec<u8>>) -> Option<u64> {
    let chain = u32_at(&bytes(0, HEADER)?, 24);
    read(bytes, chain).map(|(record, ..)| record.sequence)
}

/// The record that begins these bytes, which have no stamps in between, if it is chained so; what it takes of them, and its checksum.
pub(crate) fn read_record(bytes: &[u8], chain: u32) -> Option<(Record, usize, u32)> {
    read(&|from, len| bytes.get(from..from.checked_add(len)?).map(<[u8]>::to_vec), chain)
}

/// Whether a unit ends with a stamp of the lap with this seed.
pub(crate) fn is_stamped(unit: &[u8], seed: u32) -> bool {
    Stamp::decode(&unit[unit.len() - STAMP..], seed).is_some()
}

/// The record that begins a stretch of bytes, what it takes of it, and its checksum.
fn read(bytes: &dyn Fn(usize, usize) -> Option<Vec<u8>>, chain: u32) -> Option<(Record, usize, u32)> {
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

    const LAP: Lap = Lap { uuid: [3; 16], point: 9, intents: false };
    const UNIT: usize = 512;

    /// Commits of records, each beginning a unit.
    fn half(commits: &[&[&[u8]]], lap: &Lap, first: u64) -> Vec<u8> {
        let (mut out, mut chain, mut sequence) = (Vec::new(), lap.seed(), first);
        for commit in commits {
            let (mut records, begin) = (Commit::new(UNIT, Vec::new()), sequence);
            for body in *commit {
                let (one, other) = body.split_at(body.len() / 3);
                chain = records.push(RecordKind::Operation, sequence, chain, &[one.into(), other.into()]);
                sequence += 1;
            }
            out.extend(records.seal(lap, begin, sequence - 1));
        }
        out
    }

    fn read_all(bytes: &[u8], lap: &Lap) -> Vec<Record> {
        Half::read(bytes, lap, UNIT).records
    }

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
    fn the_sum_of_a_stamp_is_made_from_that_of_the_last_one() {
        for left in [0, 1, 0xff, 0x100, 0x0102_0304, u32::MAX] {
            let stamp = Stamp { left, first: 5, last: 1 << 40 };
            let sum = Stamp { left: 0, ..stamp }.sum(LAP.seed()) ^ Stamp::sum_of_left(left);
            assert_eq!(sum, stamp.sum(LAP.seed()));
            assert_eq!(Stamp::decode(&stamp.encode(sum), LAP.seed()), Some(stamp));
        }
    }

    #[test]
    fn that_a_point_is_durable_is_the_first_record() {
        let mut commit = Commit::new(UNIT, Vec::new());
        let body = Durable { point: LAP.point, is_logged: true };
        let chain = commit.push(RecordKind::Durable, 4, LAP.seed(), &[body.encode()[..].into()]);
        let mut bytes = commit.seal(&LAP, 4, 4);
        bytes.resize(8 * UNIT, 0);
        let read = Half::read(&bytes, &LAP, UNIT);
        assert_eq!((read.only_durable().unwrap().0, read.chain), (body, chain));
        let mut next = Commit::new(UNIT, Vec::new());
        next.push(RecordKind::Operation, 5, chain, &[b"one"[..].into()]);
        bytes[UNIT..2 * UNIT].copy_from_slice(&next.seal(&LAP, 5, 5));
        let read = Half::read(&bytes, &LAP, UNIT);
        assert_eq!((read.records.len(), read.only_durable()), (2, None));
        // That it is damaged costs nothing behind it in silence.
        for at in 0..UNIT {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            let read = Half::read(&bad, &LAP, UNIT);
            assert!(read.records.len() == 2 || read.was_written(5), "byte {at}");
        }
        // Nor that its unit was never written, or holds what an earlier lap left there.
        let old = half(&[&[&[9; 400]]], &Lap { point: 8, ..LAP }, 1);
        for left in [&vec![0; UNIT], &old] {
            bytes[..UNIT].copy_from_slice(left);
            let read = Half::read(&bytes, &LAP, UNIT);
            assert!(read.records.is_empty() && read.was_written(5) && !read.was_written(6));
        }
    }

    #[test]
    fn records_come_back_over_the_ends_of_commits() {
        let bytes = half(&[&[b"one", b"two"], &[&[7; 600]], &[b""]], &LAP, 5);
        let got: Vec<(u64, usize)> =
            read_all(&bytes, &LAP).iter().map(|record| (record.sequence, record.body.len())).collect();
        assert_eq!(got, [(5, 3), (6, 3), (7, 600), (8, 0)]);
        let other = Lap { uuid: [4; 16], ..LAP };
        assert_eq!(read_all(&bytes, &other), []);
        assert!(!Half::read(&bytes, &other, UNIT).is_begun());
    }

    #[test]
    fn what_an_earlier_lap_left_is_not_taken() {
        let old = Lap { point: 8, ..LAP };
        let mut bytes = half(&[&[b"one"], &[b"two"], &[b"three"]], &old, 5);
        assert_eq!(read_all(&bytes, &LAP), []);
        assert!(!Half::read(&bytes, &LAP, UNIT).is_begun());
        bytes[..UNIT].copy_from_slice(&half(&[&[b"new"]], &LAP, 5));
        let read = Half::read(&bytes, &LAP, UNIT);
        assert_eq!((read.records.len(), read.was_written(6)), (1, false));
    }

    #[test]
    fn a_first_commit_of_which_some_units_are_lost_was_cut() {
        for commit in [&[&[7; 2000][..]][..], &[&[1; 456], &[2; 456], &[3; 456], b"four"]] {
            let bytes = half(&[commit], &LAP, 5);
            let units = bytes.len() / UNIT;
            for lost in 1..1_usize << units {
                let mut torn = bytes.clone();
                for unit in (0..units).filter(|unit| lost >> unit & 1 == 1) {
                    torn[unit * UNIT..][..UNIT].fill(0);
                }
                let half = Half::read(&torn, &LAP, UNIT);
                assert!(!half.was_written(5 + half.records.len() as u64), "units {lost:b} are lost");
            }
        }
    }

    const COMMITS: &[&[&[u8]]] = &[&[b"one", b"two"], &[&[7; 1300]], &[b"four"], &[b"five", &[8; 700], b"seven"]];

    #[test]
    fn any_flipped_bit_is_told_and_any_cut_is_silent() {
        let bytes = half(COMMITS, &LAP, 5);
        let whole = read_all(&bytes, &LAP);
        assert_eq!(whole.len(), 7);
        let old = half(&[&[&[9; 400]], &[&[1; 2000]], &[&[2; 900]]], &Lap { point: 8, ..LAP }, 1);
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << (at % 8);
            let half = Half::read(&bad, &LAP, UNIT);
            let told = half.was_written(5 + half.records.len() as u64);
            assert!(told || half.records == whole, "byte {at}: {} records", half.records.len());
            assert_eq!(half.records, whole[..half.records.len()]);
        }
        // The last commit is cut anywhere: in front of what an earlier lap left, or with any of its units there.
        let durable = half(&COMMITS[..3], &LAP, 5).len();
        for cut in durable..bytes.len() {
            let mut torn = old.clone();
            torn.resize(bytes.len(), 0);
            torn[..cut].copy_from_slice(&bytes[..cut]);
            let half = Half::read(&torn, &LAP, UNIT);
            assert!(half.records.len() >= 4);
            let told = half.was_written(5 + half.records.len() as u64);
            assert!(!told, "cut at {cut}: {} records", half.records.len());
        }
        let units = (bytes.len() - durable) / UNIT;
        for lost in 1..1_usize << units {
            let mut torn = bytes.clone();
            for unit in (0..units).filter(|unit| lost >> unit & 1 == 1) {
                torn[durable + unit * UNIT..][..UNIT].fill(0);
            }
            let half = Half::read(&torn, &LAP, UNIT);
            assert!(!half.was_written(5 + half.records.len() as u64), "units {lost:b} are lost");
            assert!(half.records.len() >= 4);
        }
    }
}

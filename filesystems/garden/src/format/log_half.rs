//! Reads a half of the log: the records of one lap up to the end of their chain, and the stamps of
//! all units.

use super::{
    bytes::u32_at,
    log_lap::{Durable, Lap, Stamps},
    log_record::{HEADER, Record, RecordKind, STAMP, Stamp, read},
};

/// Contents of a half in one lap.
pub(crate) struct Half {
    /// All records up to the end of the chain. Old bytes, a commit that was cut, or damage follow.
    pub records: Vec<Record>,
    /// The end of the chain, in bytes of records (without stamps).
    end: usize,
    /// The checksum that the next record is chained to.
    pub chain: u32,
    /// The stamp of each unit, if it is of this lap.
    stamps: Vec<Option<Stamp>>,
    /// Bytes of records in a unit.
    room: usize,
    /// The sequence of a record at the start of the second unit, whatever it is chained to. Only
    /// set if neither a record nor the stamp of the first unit can be read.
    second: Option<u64>,
}

impl Half {
    pub fn read(half: &[u8], lap: &Lap, unit: usize) -> Self {
        Self::read_seeded(half, lap.seed(), lap.stamps, unit)
    }

    /// Reads the records of the lap that the first record of the half belongs to, for dumps.
    pub fn read_any(half: &[u8], stamps: Stamps, unit: usize) -> Self {
        Self::read_seeded(half, u32_at(half, 24), stamps, unit)
    }

    fn read_seeded(half: &[u8], seed: u32, form: Stamps, unit: usize) -> Self {
        let room = unit - STAMP;
        let stamps: Vec<_> = half.chunks_exact(unit).map(|unit| Stamp::decode(&unit[room..], form, seed)).collect();
        let (mut records, mut at, mut chain) = (Vec::<Record>::new(), 0_usize, seed);
        loop {
            let last = records.last().map(|record| record.sequence);
            // A record follows the previous one directly, or starts the next unit.
            let found = [at, at.next_multiple_of(room)].into_iter().find_map(|start| {
                let (record, len, sum) = read(&|from, len| unsealed(half, unit, start + from, len), chain)?;
                last.is_none_or(|last| record.sequence.checked_sub(1) == Some(last)).then_some((
                    record,
                    start + len,
                    sum,
                ))
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

    /// The last record that any stamp of this lap names. Its commit was written at least in part.
    pub fn last_stamped(&self) -> Option<u64> {
        self.stamps.iter().flatten().map(|stamp| stamp.last).max()
    }

    /// The unit in which the next commit starts.
    pub fn end_unit(&self) -> usize {
        self.end.div_ceil(self.room)
    }

    /// Whether a unit is part of a commit of this lap.
    pub fn is_stamped(&self, unit: usize) -> bool {
        self.stamps.get(unit).is_some_and(Option::is_some)
    }

    /// Whether the half holds a record or a stamp of this lap.
    pub fn is_begun(&self) -> bool {
        !self.records.is_empty() || self.stamps.iter().any(Option::is_some)
    }

    /// The content and record of kind 5, if the half holds no other record of this lap.
    pub fn only_durable(&self) -> Option<(Durable, &Record)> {
        let [record] = &self.records[..] else { return None };
        let is_all = record.kind == RecordKind::Durable && self.stamps.iter().flatten().count() == 1;
        Some((Durable::decode(&record.body).filter(|_| is_all)?, record))
    }

    /// Whether the record `wanted`, which neither half can return, was written completely. This is
    /// so if a later commit was started, or if all units of its commit have their stamps. Otherwise
    /// a loss of power may have cut it.
    pub fn was_written(&self, wanted: u64) -> bool {
        if self.stamps.iter().flatten().any(|stamp| stamp.first > wanted) {
            return true;
        }
        let at = |unit: usize| self.stamps.get(unit).copied().flatten();
        // The commit continues in the unit where the chain ends, or starts in the next one.
        let goes_on = at(self.end / self.room).is_some_and(|stamp| stamp.last >= wanted);
        let mut unit = if goes_on { self.end / self.room } else { self.end.div_ceil(self.room) };
        if at(unit).is_some_and(|stamp| stamp.last < wanted) {
            unit += 1; // the unit of an unreadable record of kind 5
        } else if self.second == Some(wanted) {
            unit = 1; // the same with a lost stamp: a cut first commit starts before unit 1
        }
        let Some(stamp) = at(unit).filter(|stamp| (stamp.first..=stamp.last).contains(&wanted)) else { return false };
        (0..=stamp.left).all(|index| at(unit + index as usize) == Some(Stamp { left: stamp.left - index, ..stamp }))
    }
}

/// Reads bytes of records without the stamps between them; `None` beyond the end.
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

/// The sequence of the record at the start of `bytes`, whatever it is chained to.
fn read_unchained(bytes: &dyn Fn(usize, usize) -> Option<Vec<u8>>) -> Option<u64> {
    let chain = u32_at(&bytes(0, HEADER)?, 24);
    read(bytes, chain).map(|(record, ..)| record.sequence)
}

#[cfg(test)]
mod tests {
    use super::{super::log_record::Commit, *};

    const LAP: Lap = Lap { uuid: [3; 16], point: 9, intents: false, stamps: Stamps::Summed };
    const UNIT: usize = 512;

    /// Encodes commits of records. Each commit starts a unit.
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
    fn durable_record_comes_first_in_a_lap() {
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
        // Damage to this record never hides the records after it.
        for at in 0..UNIT {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            let read = Half::read(&bad, &LAP, UNIT);
            assert!(read.records.len() == 2 || read.was_written(5), "byte {at}");
        }
        // The same holds if its unit was never written, or holds bytes of an earlier lap.
        let old = half(&[&[&[9; 400]]], &Lap { point: 8, ..LAP }, 1);
        for left in [&vec![0; UNIT], &old] {
            bytes[..UNIT].copy_from_slice(left);
            let read = Half::read(&bytes, &LAP, UNIT);
            assert!(read.records.is_empty() && read.was_written(5) && !read.was_written(6));
        }
    }

    #[test]
    fn records_are_read_across_commits() {
        let bytes = half(&[&[b"one", b"two"], &[&[7; 600]], &[b""]], &LAP, 5);
        let got: Vec<(u64, usize)> =
            read_all(&bytes, &LAP).iter().map(|record| (record.sequence, record.body.len())).collect();
        assert_eq!(got, [(5, 3), (6, 3), (7, 600), (8, 0)]);
        let other = Lap { uuid: [4; 16], ..LAP };
        assert_eq!(read_all(&bytes, &other), []);
        assert!(!Half::read(&bytes, &other, UNIT).is_begun());
    }

    #[test]
    fn records_of_an_earlier_lap_are_ignored() {
        let old = Lap { point: 8, ..LAP };
        let mut bytes = half(&[&[b"one"], &[b"two"], &[b"three"]], &old, 5);
        assert_eq!(read_all(&bytes, &LAP), []);
        assert!(!Half::read(&bytes, &LAP, UNIT).is_begun());
        bytes[..UNIT].copy_from_slice(&half(&[&[b"new"]], &LAP, 5));
        let read = Half::read(&bytes, &LAP, UNIT);
        assert_eq!((read.records.len(), read.was_written(6)), (1, false));
    }

    #[test]
    fn first_commit_with_lost_units_counts_as_cut() {
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
    fn flipped_bits_are_reported_and_cuts_are_not() {
        let bytes = half(COMMITS, &LAP, 5);
        let whole = read_all(&bytes, &LAP);
        assert_eq!(whole.len(), 7);
        let old = half(&[&[&[9; 400]], &[&[1; 2000]], &[&[2; 900]]], &Lap { point: 8, ..LAP }, 1);
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << (at % 8);
            let half = Half::read(&bad, &LAP, UNIT);
            let is_written = half.was_written(5 + half.records.len() as u64);
            assert!(is_written || half.records == whole, "byte {at}: {} records", half.records.len());
            assert_eq!(half.records, whole[..half.records.len()]);
        }
        // Cut the last commit at every byte, with bytes of an earlier lap after it, and with any
        // set of its units lost.
        let durable = half(&COMMITS[..3], &LAP, 5).len();
        for cut in durable..bytes.len() {
            let mut torn = old.clone();
            torn.resize(bytes.len(), 0);
            torn[..cut].copy_from_slice(&bytes[..cut]);
            let half = Half::read(&torn, &LAP, UNIT);
            assert!(half.records.len() >= 4);
            let is_written = half.was_written(5 + half.records.len() as u64);
            assert!(!is_written, "cut at {cut}: {} records", half.records.len());
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

//! Laps of the log: the use of a half between two consistency points, and how stamps identify it.

use std::sync::LazyLock;

use super::{
    bytes::{put, u32_at, u64_at},
    log_record::{STAMP, Stamp},
};

/// The contents of the stamps at the ends of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamps {
    /// Version 7: the commit of the unit.
    Plain,
    /// Also a checksum of the unit, so that a reader can judge each copy of the unit alone.
    Summed,
}

impl Stamps {
    /// The stamps of a version of the format.
    pub fn of(version: u32) -> Self {
        if version == super::OLD_VERSION { Self::Plain } else { Self::Summed }
    }
}

/// The use of a half after one consistency point. Records and stamps of one lap never match another
/// lap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lap {
    pub uuid: [u8; 16],
    /// The consistency point that the lap follows.
    pub point: u64,
    /// Whether the half holds records of kinds 2 to 4 instead of operations.
    pub intents: bool,
    pub stamps: Stamps,
}

impl Lap {
    /// The checksum that the first record is chained to, and that all stamps start from.
    pub fn seed(&self) -> u32 {
        let sum = crc32c::crc32c_append(crc32c::crc32c(&self.uuid), &self.point.to_le_bytes());
        crc32c::crc32c_append(sum, &[u8::from(self.intents)])
    }

    /// The laps that a unit may belong to, derived from the stamp at its end. One lap of each kind,
    /// with points below 2^32: the four-byte checksum determines the point.
    pub fn find(uuid: [u8; 16], stamps: Stamps, stamp: &[u8]) -> impl Iterator<Item = Self> {
        let seed = crc_before(u32_at(stamp, 0), &stamp[4..STAMP]);
        [false, true].into_iter().map(move |intents| {
            let sum = crc_before(seed, &[0, 0, 0, 0, 0, 0, 0, 0, u8::from(intents)]);
            Self { uuid, point: u64::from(sum ^ crc32c::crc32c(&uuid)), intents, stamps }
        })
    }
}

/// The CRC-32C before `bytes` were appended to it.
fn crc_before(sum: u32, bytes: &[u8]) -> u32 {
    /// The table of a CRC has one entry for each byte. All entries differ in their highest byte, so
    /// that byte identifies the entry. Each entry has the byte with it.
    static TABLE: LazyLock<[(u32, u8); 256]> = LazyLock::new(|| {
        let mut table = [(0, 0); 256];
        for byte in 0..=255_u8 {
            let added = !crc32c::crc32c_append(u32::MAX, &[byte]);
            table[(added >> 24) as usize] = (added, byte);
        }
        table
    });
    !bytes.iter().rev().fold(!sum, |sum, byte| {
        let (added, index) = TABLE[(sum >> 24) as usize];
        (sum ^ added) << 8 | u32::from(index ^ byte)
    })
}

/// The body of a record of kind 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Durable {
    pub point: u64,
    /// Whether the operations after the previous point, up to the sequence of this record, recreate
    /// this point.
    pub is_logged: bool,
}

impl Durable {
    pub fn encode(&self) -> [u8; 9] {
        let mut out = [0; 9];
        put(&mut out, 0, &self.point.to_le_bytes());
        out[8] = u8::from(self.is_logged);
        out
    }

    pub fn decode(body: &[u8]) -> Option<Self> {
        (body.len() == 9).then(|| Self { point: u64_at(body, 0), is_logged: body[8] == 1 })
    }
}

/// The lap that the half was last started with, if its consistency point is later than `point`.
pub(crate) fn find_later(half: &[u8], unit: usize, uuid: [u8; 16], stamps: Stamps, point: u64) -> Option<Lap> {
    let stamp = &half[unit - STAMP..unit];
    let was_stamped = Stamp::read(stamp, stamps).is_possible(half.len() / unit) && stamp.iter().any(|&byte| byte != 0);
    let laps = || Lap::find(uuid, stamps, stamp).filter(|_| was_stamped);
    // A stamp that fits an earlier point belongs to that one.
    if laps().any(|lap| lap.point <= point) {
        return None;
    }
    laps().filter(|lap| lap.point - point < FAR).min_by_key(|lap| lap.point)
}

/// The largest plausible distance between two consistency points. A larger one is a random match.
pub(crate) const FAR: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::{
        super::log_record::{Commit, RecordKind},
        *,
    };

    const UNIT: usize = 512;

    #[test]
    fn first_stamp_identifies_the_lap() {
        for (point, intents) in [(9, false), (10, true), (700, false), (1 << 20, true)] {
            let lap = Lap { point, intents, uuid: [3; 16], stamps: Stamps::Summed };
            let mut commit = Commit::new(UNIT, Vec::new());
            commit.push(RecordKind::Operation, 5, lap.seed(), &[[7; 1300][..].into()]);
            let bytes = commit.seal(&lap, 5, 5);
            let later = |than| find_later(&bytes, UNIT, lap.uuid, lap.stamps, than);
            assert_eq!(later(point - 1), Some(lap));
            assert_eq!((later(point), later(point + 5)), (None, None));
            assert_eq!(
                find_later(&bytes, UNIT, [4; 16], lap.stamps, point - 1).filter(|found| found.point == point),
                None
            );
        }
        assert_eq!(find_later(&[0; 4 * UNIT], UNIT, [3; 16], Stamps::Summed, 0), None);
    }
}

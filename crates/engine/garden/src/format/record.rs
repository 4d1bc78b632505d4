//! Records of the log: a header of 32 bytes and a body, one behind the other, each chained to the one before.
//!
//! A group of records begins at a multiple of the device's unit, so that what is durable is never written again.

use super::bytes::{put, u32_at, u64_at};

const MAGIC: u32 = 0x474f_4c47;
const HEADER: usize = 32;
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

/// Appends a record and gives its checksum, which the next one is chained to. The first in a half is chained to `chain`
/// of the aggregate ([`chain_start`]).
pub(crate) fn push(out: &mut Vec<u8>, kind: RecordKind, sequence: u64, chain: u32, body: &[u8]) -> u32 {
    let start = out.len();
    out.resize(start + record_bytes(body.len()), 0);
    let bytes = &mut out[start..];
    put(bytes, 0, &MAGIC.to_le_bytes());
    put(bytes, 8, &(body.len() as u32).to_le_bytes());
    bytes[12] = kind as u8;
    put(bytes, 16, &sequence.to_le_bytes());
    put(bytes, 24, &chain.to_le_bytes());
    put(bytes, HEADER, body);
    let sum = crc32c::crc32c(&bytes[8..]);
    put(bytes, 4, &sum.to_le_bytes());
    sum
}

/// What the first record of a half is chained to: records of another aggregate never fit.
pub(crate) fn chain_start(uuid: &[u8; 16]) -> u32 {
    crc32c::crc32c(uuid)
}

/// Reads all records of a half, up to where the chain ends: behind it lie old bytes, or a write that was cut.
pub(crate) fn read_half(half: &[u8], uuid: &[u8; 16], unit: usize) -> Vec<Record> {
    let (mut records, mut at, mut chain) = (Vec::<Record>::new(), 0_usize, chain_start(uuid));
    loop {
        let wanted = records.last().map(|record| record.sequence + 1);
        // A record follows the one before, or begins the next unit.
        let found = [at, at.next_multiple_of(unit)].into_iter().find_map(|start| {
            let (record, len, sum) = read(half.get(start..)?, chain)?;
            wanted.is_none_or(|wanted| wanted == record.sequence).then_some((record, start + len, sum))
        });
        let Some((record, end, sum)) = found else { return records };
        records.push(record);
        (at, chain) = (end, sum);
    }
}

fn read(bytes: &[u8], chain: u32) -> Option<(Record, usize, u32)> {
    if bytes.len() < HEADER || u32_at(bytes, 0) != MAGIC || u32_at(bytes, 24) != chain {
        return None;
    }
    let len = u32_at(bytes, 8) as usize;
    let whole = bytes.get(..record_bytes(len))?;
    let sum = crc32c::crc32c(&whole[8..]);
    if sum != u32_at(bytes, 4) {
        return None;
    }
    let kind = match bytes[12] {
        1 => RecordKind::Operation,
        2 => RecordKind::Intent,
        3 => RecordKind::Kept,
        4 => RecordKind::Without,
        _ => return None,
    };
    let body = whole[HEADER..HEADER + len].to_vec();
    Some((Record { kind, sequence: u64_at(bytes, 16), body }, whole.len(), sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: [u8; 16] = [3; 16];

    /// Groups of records, each beginning a unit of 512 bytes.
    fn half(groups: &[&[&[u8]]], first: u64) -> Vec<u8> {
        let (mut out, mut chain, mut sequence) = (Vec::new(), chain_start(&UUID), first);
        for group in groups {
            for body in *group {
                chain = push(&mut out, RecordKind::Operation, sequence, chain, body);
                sequence += 1;
            }
            out.resize(out.len().next_multiple_of(512), 0);
        }
        out
    }

    #[test]
    fn golden() {
        let mut out = Vec::new();
        push(&mut out, RecordKind::Intent, 0x0102, chain_start(&UUID), b"abc");
        let text: String = out.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, GOLDEN);
    }
    const GOLDEN: &str = "474c4f476bf98d1e030000000200000002010000000000009235444a000000006162630000000000";

    #[test]
    fn records_come_back_over_the_ends_of_groups() {
        let bytes = half(&[&[b"one", b"two"], &[&[7; 600]], &[b""]], 5);
        let records = read_half(&bytes, &UUID, 512);
        let got: Vec<(u64, usize)> = records.iter().map(|record| (record.sequence, record.body.len())).collect();
        assert_eq!(got, [(5, 3), (6, 3), (7, 600), (8, 0)]);
        assert_eq!(read_half(&bytes, &[4; 16], 512), []);
    }

    #[test]
    fn what_an_earlier_use_left_is_not_taken() {
        let mut bytes = half(&[&[b"one"], &[b"two"], &[b"three"]], 5);
        let newer = half(&[&[b"new"]], 100);
        bytes[..512].copy_from_slice(&newer);
        assert_eq!(read_half(&bytes, &UUID, 512).len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn a_cut_or_flipped_half_gives_a_beginning(cut in 0usize..2048, flip in 0usize..2048) {
            let bytes = half(&[&[b"one", b"two"], &[&[7; 600]], &[b"four"]], 5);
            let whole = read_half(&bytes, &UUID, 512);
            for at in [cut.min(bytes.len()), flip.min(bytes.len())] {
                let got = read_half(&bytes[..at], &UUID, 512);
                proptest::prop_assert_eq!(&got[..], &whole[..got.len()]);
            }
            let mut bad = bytes.clone();
            if flip < bad.len() {
                bad[flip] ^= 1;
                let got = read_half(&bad, &UUID, 512);
                proptest::prop_assert_eq!(&got[..], &whole[..got.len()]);
            }
        }
    }
}

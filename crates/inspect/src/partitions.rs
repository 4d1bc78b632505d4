//! The partitions of a disk or of its image. An error message lists them, so that the user can name
//! one.
//!
//! Sources: UEFI specification 2.10, chapter 5 (GPT); the four entries of a master boot record.
//! Extended partitions and damaged tables are skipped.

use std::path::Path;

use senesce_core::Bytes;
use senesce_volume::{Host, SCAN_BYTES, find_signatures, read_superblock};

/// The largest number of listed partitions.
const MOST: usize = 128;

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, starting at 1.
    pub number: u32,
    /// Its first byte.
    pub start_bytes: u64,
    /// Its length, bytes.
    pub length_bytes: u64,
    /// Its contents: the name of a file system, or another known format with its article.
    pub holds: Option<&'static str>,
}

impl std::fmt::Display for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}, {})", self.number, Bytes(self.length_bytes), self.holds.unwrap_or("nothing known"))
    }
}

/// The partitions of the device or image at `path`; empty if it has no table. `start` has its first
/// bytes.
pub(crate) fn collect_partitions(path: &Path, start: &[u8], host: &dyn Host) -> Vec<Partition> {
    let found = [512, 4096].into_iter().find_map(|sector| {
        let header = start.get(sector..sector + 92).filter(|header| header.starts_with(b"EFI PART"))?;
        let (table, count) = (u64_at(header, 72)?.checked_mul(sector as u64)?, u32_at(header, 80)?);
        let entry_bytes = (u32_at(header, 84)? as usize).clamp(128, 4096);
        let bytes = host.read_device(path, table, entry_bytes * (count as usize).min(MOST)).ok()?;
        Some(parse_gpt(&bytes, entry_bytes, sector as u64))
    });
    let mut partitions = found.unwrap_or_else(|| parse_mbr(start));
    for partition in &mut partitions {
        let beginning = host.read_device(path, partition.start_bytes, SCAN_BYTES).unwrap_or_default();
        let other = || find_signatures(&beginning, &[]).first().map(|found| found.holds);
        partition.holds = read_superblock(&beginning).map(|found| found.file_system.name()).or_else(other);
    }
    partitions
}

fn parse_gpt(entries: &[u8], entry_bytes: usize, sector: u64) -> Vec<Partition> {
    let partition = |(at, entry): (usize, &[u8])| {
        let is_used = entry.get(..16)?.iter().any(|byte| *byte != 0);
        let (first, last) = (u64_at(entry, 32)?, u64_at(entry, 40)?);
        let length_bytes = last.checked_sub(first)?.checked_add(1)?.checked_mul(sector)?;
        let start_bytes = first.checked_mul(sector)?;
        is_used.then_some(Partition { number: at as u32 + 1, start_bytes, length_bytes, holds: None })
    };
    entries.chunks_exact(entry_bytes).enumerate().filter_map(partition).collect()
}

fn parse_mbr(start: &[u8]) -> Vec<Partition> {
    const SECTOR: u64 = 512;
    let Some(table) = start.get(446..510).filter(|_| start.get(510..512) == Some(&b"\x55\xaa"[..])) else {
        return Vec::new();
    };
    let partition = |(at, entry): (usize, &[u8])| {
        let (first, sectors) = (u64::from(u32_at(entry, 8)?), u64::from(u32_at(entry, 12)?));
        // The boot sector of a file system has code where a table has entries. Entries start with 0
        // or 128.
        let is_used = entry[0] & 0x7F == 0 && entry[4] != 0 && first > 0 && sectors > 0;
        let (start_bytes, length_bytes) = (first * SECTOR, sectors * SECTOR);
        is_used.then_some(Partition { number: at as u32 + 1, start_bytes, length_bytes, holds: None })
    };
    table.chunks_exact(16).enumerate().filter_map(partition).collect()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn file_system_boot_sector_is_no_table() {
        let mut sector = vec![0xCC; 512];
        sector[510..].copy_from_slice(b"\x55\xaa");
        assert_eq!(parse_mbr(&sector), []);
        // A second entry of type Linux, from sector 2048 on, 100 sectors long.
        sector[446..510].fill(0);
        sector[462 + 4] = 0x83;
        sector[462 + 8..462 + 12].copy_from_slice(&2048u32.to_le_bytes());
        sector[462 + 12..462 + 16].copy_from_slice(&100u32.to_le_bytes());
        let found = Partition { number: 2, start_bytes: 1 << 20, length_bytes: 51_200, holds: None };
        assert_eq!(parse_mbr(&sector), [found]);
    }

    proptest! {
        #[test]
        fn any_bytes_return_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000), sector in prop::sample::select(vec![512u64, 4096])) {
            let found = parse_gpt(&bytes, 128, sector);
            prop_assert!(found.len() <= bytes.len() / 128);
            prop_assert!(parse_mbr(&bytes).len() <= 4);
        }
    }
}

//! Checks whether an XFS was unmounted: whether its log ends with an unmount record.
//!
//! The log is a ring of sectors. Each sector starts with the number of the cycle in which it was
//! written; a record starts with a magic number, followed by the cycle. So the end of the last
//! write is where the cycle changes. Source: the kernel's fs/xfs/libxfs/xfs_log_format.h.

/// Bytes of a basic block of the log.
const SECTOR_BYTES: u64 = 512;
/// The magic number of a record.
const RECORD_MARK: u32 = 0xFEED_BABE;
/// Bytes of a record for each sector of its header.
const RECORD_BYTES_PER_HEADER: u32 = 32 << 10;
/// The longest record with its headers, sectors.
const MOST_RECORD_SECTORS: u64 = 1024;
/// The flag of an unmount operation, which is the only operation of its record.
const UNMOUNT: u8 = 0x20;

/// Whether an XFS was unmounted after its last change. `read` returns bytes by position and length.
///
/// Errors: the log is on another device; the superblock cannot be read or is inconsistent. Cost: a
/// few dozen reads of a sector.
pub(crate) fn is_xfs_log_clean(read: &dyn Fn(u64, usize) -> Option<Vec<u8>>) -> Result<bool, String> {
    let superblock = read(0, SECTOR_BYTES as usize).ok_or("its superblock cannot be read")?;
    let place = Log::place(&superblock).ok_or("its superblock contradicts itself")?;
    let Some((start, sectors)) = place else {
        return Err("its log is on another device".to_owned());
    };
    let log = Log { start, sectors, read };
    // A log that cannot be read or is inconsistent does not end with an unmount.
    Ok(log.is_clean().unwrap_or(false))
}

struct Log<'a> {
    start: u64,
    sectors: u64,
    read: &'a dyn Fn(u64, usize) -> Option<Vec<u8>>,
}

impl Log<'_> {
    /// First byte and sectors of the log. `Some(None)` if the log is on another device.
    #[expect(clippy::option_option, reason = "`None` is an error, `Some(None)` a log elsewhere")]
    fn place(superblock: &[u8]) -> Option<Option<(u64, u64)>> {
        let [block_bytes, group_blocks, log_blocks] = [4, 84, 96].map(|at| u32_at(superblock, at));
        let (block_bytes, log_blocks) = (u64::from(block_bytes?), u64::from(log_blocks?));
        let start = u64::from_be_bytes(superblock.get(48..56)?.try_into().ok()?);
        let group_bits = u32::from(*superblock.get(124)?);
        if !superblock.starts_with(b"XFSB") || group_bits >= 32 || log_blocks == 0 {
            return None;
        }
        if start == 0 {
            return Some(None);
        }
        let block = (start >> group_bits).checked_mul(u64::from(group_blocks?))? + (start & ((1 << group_bits) - 1));
        Some(Some((block.checked_mul(block_bytes)?, log_blocks.checked_mul(block_bytes)? / SECTOR_BYTES)))
    }

    fn sector(&self, number: u64) -> Option<Vec<u8>> {
        (self.read)(self.start + number % self.sectors * SECTOR_BYTES, SECTOR_BYTES as usize)
    }

    /// The cycle in which a sector was written; 0 for a sector that was never written.
    fn round(&self, number: u64) -> Option<u32> {
        let sector = self.sector(number)?;
        match u32_at(&sector, 0)? {
            RECORD_MARK => u32_at(&sector, 4),
            round => Some(round),
        }
    }

    /// The sector after the last write.
    fn head(&self) -> Option<u64> {
        let first = self.round(0)?;
        let (mut low, mut high) = (0, self.sectors); // below `low` is the cycle of sector 0, from `high` on another
        while low < high {
            let middle = low + (high - low) / 2;
            if self.round(middle)? == first {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low % self.sectors)
    }

    fn is_clean(&self) -> Option<bool> {
        if self.round(0)? == 0 {
            return Some(true); // never written
        }
        let head = self.head()?;
        for back in 1..=MOST_RECORD_SECTORS.min(self.sectors) {
            let at = (head + self.sectors - back) % self.sectors;
            let header = self.sector(at)?;
            if u32_at(&header, 0)? != RECORD_MARK {
                continue;
            }
            let (length, operations) = (u32_at(&header, 12)?, u32_at(&header, 40)?);
            let has_long_records = u32_at(&header, 8)? & 2 != 0;
            let size = if has_long_records { u32_at(&header, 320)? } else { 0 };
            let headers = u64::from(size.div_ceil(RECORD_BYTES_PER_HEADER).max(1));
            let end = at + headers + u64::from(length).div_ceil(SECTOR_BYTES);
            let flags = *self.sector(at + headers)?.get(9)?;
            return Some(operations == 1 && end % self.sectors == head && flags & UNMOUNT != 0);
        }
        None
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECTORS: usize = 64;
    const START: usize = 3 * 4096;

    /// A volume whose log of 64 sectors starts at block 3. Each record has two sectors: header and
    /// one operation.
    fn volume(records: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0u8; START + SECTORS * 512];
        bytes[..4].copy_from_slice(b"XFSB");
        bytes[4..8].copy_from_slice(&4096u32.to_be_bytes());
        bytes[48..56].copy_from_slice(&3u64.to_be_bytes());
        bytes[84..88].copy_from_slice(&1000u32.to_be_bytes());
        bytes[96..100].copy_from_slice(&(SECTORS as u32 / 8).to_be_bytes());
        bytes[124] = 10;
        for (number, flags) in records.iter().enumerate() {
            let round = 1 + (2 * number / SECTORS) as u32;
            let at = START + 2 * number % SECTORS * 512;
            let mut put = |offset: usize, value: u32| {
                bytes[at + offset..at + offset + 4].copy_from_slice(&value.to_be_bytes());
            };
            put(0, RECORD_MARK);
            put(4, round);
            put(8, 2);
            put(12, 512);
            put(40, 1);
            put(320, 32 << 10);
            put(512, round);
            bytes[at + 512 + 9] = *flags;
        }
        bytes
    }

    fn is_clean(bytes: &[u8]) -> Result<bool, String> {
        is_xfs_log_clean(&|at, length| bytes.get(at as usize..at as usize + length).map(<[u8]>::to_vec))
    }

    #[test]
    fn only_log_ending_with_unmount_is_clean() {
        assert_eq!(is_clean(&volume(&[])), Ok(true), "never written");
        for records in [1usize, 5, 31, 32, 33, 40, 64, 65] {
            let mut flags = vec![0; records];
            assert_eq!(is_clean(&volume(&flags)), Ok(false), "{records} records");
            flags[records - 1] = UNMOUNT;
            assert_eq!(is_clean(&volume(&flags)), Ok(true), "{records} records");
            flags.push(0);
            assert_eq!(is_clean(&volume(&flags)), Ok(false), "mounted again, and not unmounted");
        }
        let mut external = volume(&[]);
        external[48..56].fill(0);
        assert!(is_clean(&external).unwrap_err().contains("another device"));
    }

    proptest! {
        #[test]
        fn any_bytes_return_without_panic(mut bytes in prop::collection::vec(any::<u8>(), 600..4000), records in 0usize..70) {
            bytes[..4].copy_from_slice(b"XFSB");
            let _ = is_clean(&bytes);
            let mut volume = volume(&vec![UNMOUNT; records]);
            for (at, byte) in bytes.iter().enumerate() {
                let at = START + at * 7919 % (SECTORS * 512);
                volume[at] = *byte;
            }
            let _ = is_clean(&volume);
        }
    }
}

//! The rules for ranges that can be cloned.

use crate::{FsError, FsResult, Ino, MAX_FILE_BYTES};

/// The unit of sharing between files, and so of cloned ranges, in bytes.
pub const CLONE_BYTES: u64 = 4096;

/// The bytes of a clone of `len` bytes from a source of `size` bytes: at most up to its end.
///
/// Errors: `Invalid` if offsets or lengths are not multiples of [`CLONE_BYTES`] (except at the end
/// of the source), and if ranges of one file overlap; `TooLarge`.
pub fn check_clone(from: (Ino, u64), size: u64, to: (Ino, u64), len: u64) -> FsResult<u64> {
    if !from.1.is_multiple_of(CLONE_BYTES) || !to.1.is_multiple_of(CLONE_BYTES) {
        return Err(FsError::Invalid { what: "a range that does not begin with a block" });
    }
    let len = len.min(size.saturating_sub(from.1));
    if !len.is_multiple_of(CLONE_BYTES) && from.1 + len != size {
        return Err(FsError::Invalid { what: "a range that ends neither with a block nor with the file" });
    }
    match to.1.checked_add(len) {
        Some(end) if end <= MAX_FILE_BYTES => {}
        end => return Err(FsError::TooLarge { bytes: end.unwrap_or(u64::MAX), max: MAX_FILE_BYTES }),
    }
    if from.0 == to.0 && from.1.abs_diff(to.1) < len {
        return Err(FsError::Invalid { what: "ranges of one file that overlap" });
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_aligned_and_end_with_the_source() {
        let check = |from, size, to, len| check_clone((Ino(1), from), size, (Ino(2), to), len).ok();
        assert_eq!(check(0, 10_000, 0, 8192), Some(8192));
        assert_eq!(check(4096, 10_000, 0, 8192), Some(5904));
        assert_eq!(check(0, 10_000, 4096, u64::MAX), Some(10_000));
        assert_eq!(check(12_288, 10_000, 0, 1), Some(0));
        assert_eq!(check(0, 10_000, 0, 8191), None);
        assert_eq!(check(1, 10_000, 0, 4096), None);
        assert_eq!(check(0, 10_000, 1, 4096), None);
        assert_eq!(check(0, 10_000, MAX_FILE_BYTES - 4095, 4096), None);
        let same = |from, to, len| check_clone((Ino(1), from), 10_000, (Ino(1), to), len).ok();
        assert_eq!(same(0, 4096, 4096), Some(4096));
        assert_eq!(same(0, 4096, 4097), None);
        assert_eq!(same(8192, 4096, 8192), Some(1808));
        assert_eq!(same(0, 8192, 10_000), None);
        assert_eq!(same(0, 12_288, 10_000), Some(10_000));
    }
}

//! The data ranges of a file, and their zeros.

use std::{fs::File, os::fd::AsFd};

use rustix::{
    fs::{FallocateFlags, SeekFrom, fallocate, seek},
    io::Errno,
};

/// The unit in which zeros are left out.
pub(crate) const PAGE_BYTES: usize = 4096;

/// The ranges of `0..size` that may hold data, in order. The whole file if the file system does not
/// report holes.
pub(crate) fn collect_data_ranges(file: &File, size: u64) -> std::io::Result<Vec<(u64, u64)>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < size {
        let data = match seek(file.as_fd(), SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(vec![(at, size)]),
            Err(error) => return Err(error.into()),
        };
        let hole = seek(file.as_fd(), SeekFrom::Hole(data))?;
        ranges.push((data, hole.min(size)));
        at = hole;
    }
    Ok(ranges)
}

/// Whether all bytes are zero. Cost: one pass, by words.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    // SAFETY: every bit pattern is a valid u64, and align_to stays within the slice.
    let (before, words, after) = unsafe { bytes.align_to::<u64>() };
    before.iter().all(|byte| *byte == 0)
        && words.chunks(64).all(|some| some.iter().fold(0, |seen, word| seen | word) == 0)
        && after.iter().all(|byte| *byte == 0)
}

/// The runs of pages that are not zero, as ranges of `bytes`.
pub(crate) fn compute_data_runs(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (number, page) in bytes.chunks(PAGE_BYTES).enumerate() {
        if is_zero(page) {
            continue;
        }
        let start = number * PAGE_BYTES;
        match runs.last_mut() {
            Some(run) if run.end == start => run.end += page.len(),
            _ => runs.push(start..start + page.len()),
        }
    }
    runs
}

/// Zeroes a range of a device or file: through the kernel if possible, otherwise by writing zeros.
pub(crate) fn apply_zero(file: &File, start: u64, length: u64) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    match fallocate(file.as_fd(), FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, length) {
        Ok(()) => return Ok(()),
        Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NODEV) => {}
        Err(error) => return Err(error.into()),
    }
    let zeros = vec![0; 1 << 20];
    let mut done = 0;
    while done < length {
        let part = (length - done).min(zeros.len() as u64);
        file.write_all_at(&zeros[..part as usize], start + done)?;
        done += part;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_leave_out_only_pages_of_zeros() {
        let mut bytes = vec![0; 5 * PAGE_BYTES + 10];
        assert!(is_zero(&bytes) && compute_data_runs(&bytes).is_empty());
        bytes[PAGE_BYTES] = 1;
        bytes[3 * PAGE_BYTES - 1] = 1;
        bytes[5 * PAGE_BYTES + 9] = 1;
        assert_eq!(compute_data_runs(&bytes), [PAGE_BYTES..3 * PAGE_BYTES, 5 * PAGE_BYTES..5 * PAGE_BYTES + 10]);
        for at in [0, 1, 7, 8, 511, 4095] {
            let mut page = [0; PAGE_BYTES];
            page[at] = 1;
            assert!(!is_zero(&page) && is_zero(&page[at + 1..]) && is_zero(&page[..at]), "byte {at}");
        }
    }
}

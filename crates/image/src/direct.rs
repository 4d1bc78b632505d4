//! Writes past the page cache. A restored volume is too large to be worth caching, and copying it
//! to the cache would cost more than the rest of the restoration.

use std::{fs::File, os::unix::fs::FileExt};

use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
};

/// Direct writes start and end at multiples of this, in the file and in memory.
const ALIGNMENT: usize = 4096;

/// Bytes at an aligned address.
pub(crate) struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    pub fn new(length: usize) -> Self {
        let bytes = vec![0; length + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Self { bytes, start, length }
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

/// Makes all writes to `file`, whose final size is `size`, bypass the page cache, if the file
/// system supports that.
pub(crate) fn begin_direct(file: &File, size: u64) {
    if size.is_multiple_of(ALIGNMENT as u64) {
        // If this is refused, the restoration is only slower.
        let _ = set_direct(file, true);
    }
}

/// Writes all bytes. If the device needs larger units than [`ALIGNMENT`], uses the page cache from
/// then on.
pub(crate) fn write_all(file: &File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    match file.write_all_at(bytes, at) {
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
            set_direct(file, false)?;
            file.write_all_at(bytes, at)
        }
        result => result,
    }
}

fn set_direct(file: &File, is_direct: bool) -> rustix::io::Result<()> {
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, is_direct);
    fcntl_setfl(file, flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unaligned_bytes_are_written() {
        let file = tempfile::tempfile().unwrap();
        let mut buffer = AlignedBuffer::new(3 * ALIGNMENT);
        let bytes = buffer.as_mut_slice();
        assert!(bytes.as_ptr().addr().is_multiple_of(ALIGNMENT) && bytes.len() == 3 * ALIGNMENT);
        bytes.iter_mut().zip(0u32..).for_each(|(byte, n)| *byte = (n >> 4) as u8);
        file.set_len(3 * ALIGNMENT as u64).unwrap();
        begin_direct(&file, 3 * ALIGNMENT as u64);
        write_all(&file, &bytes[..ALIGNMENT], 0).unwrap();
        write_all(&file, &bytes[ALIGNMENT..2 * ALIGNMENT + 17], ALIGNMENT as u64).unwrap();
        write_all(&file, &bytes[2 * ALIGNMENT + 17..], 2 * ALIGNMENT as u64 + 17).unwrap();
        let mut read = vec![0; 3 * ALIGNMENT];
        file.read_exact_at(&mut read, 0).unwrap();
        assert!(read == bytes);
    }
}

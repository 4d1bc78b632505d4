//! Reads and writes of existing files past the page cache, as databases do them.

use std::{io, os::fd::BorrowedFd};

use rustix::{fs::OFlags, io::Errno};
use senesce_core::StopFn;
use senesce_oplog::Payload;

use crate::content::{CHUNK_BYTES, check_stop, for_each_chunk};

/// The alignment of offsets, lengths and memory for access past the page cache, bytes. No block
/// device needs more.
pub const DIRECT_ALIGNMENT: u64 = 4096;

/// Whether access to a range can bypass the page cache.
pub(crate) fn is_aligned(offset: u64, len: u64) -> bool {
    offset.is_multiple_of(DIRECT_ALIGNMENT) && len.is_multiple_of(DIRECT_ALIGNMENT)
}

/// The flag for openat.
pub(crate) fn direct_flag(direct: bool) -> OFlags {
    if direct { OFlags::DIRECT } else { OFlags::empty() }
}

/// `len` aligned bytes of `buffer`, which grows if needed.
pub(crate) fn aligned(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    let most = len + DIRECT_ALIGNMENT as usize;
    if buffer.len() < most {
        buffer.resize(most, 0);
    }
    let start = buffer.as_ptr().align_offset(DIRECT_ALIGNMENT as usize);
    &mut buffer[start..start + len]
}

/// Reads a range in pieces of at most [`CHUNK_BYTES`], and drops the data.
///
/// Errors: reading; the file ends before the range; `stop` returned true.
pub(crate) fn read_range(
    file: BorrowedFd<'_>,
    offset: u64,
    len: u64,
    buffer: &mut Vec<u8>,
    stop: StopFn,
) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        check_stop(stop)?;
        let size = (len - done).min(CHUNK_BYTES as u64) as usize;
        match rustix::io::pread(file, aligned(buffer, size), offset + done) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => done += n as u64,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Writes a payload at an offset past the page cache. Offset and length are aligned.
///
/// Errors: the error of the kernel (`None` if it wrote nothing without an error), and the number of
/// bytes written.
pub(crate) fn write_direct(
    file: BorrowedFd<'_>,
    offset: u64,
    payload: &Payload,
    buffer: &mut Vec<u8>,
    stop: StopFn,
) -> Result<(), (Option<Errno>, u64)> {
    let mut written = 0u64;
    let mut failed = None;
    let done = for_each_chunk(payload, &mut Vec::new(), |bytes| {
        for piece in bytes.chunks(CHUNK_BYTES) {
            check_stop(stop)?;
            let memory = aligned(buffer, piece.len());
            memory.copy_from_slice(piece);
            let mut at = 0;
            while at < memory.len() {
                match rustix::io::pwrite(file, &memory[at..], offset + written) {
                    Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
                    Ok(n) => {
                        written += n as u64;
                        at += n;
                    }
                    Err(Errno::INTR) => {}
                    Err(errno) => {
                        failed = Some(errno);
                        return Err(errno.into());
                    }
                }
            }
        }
        Ok(())
    });
    done.map_err(|error| (failed.or_else(|| Errno::from_io_error(&error)), written))
}

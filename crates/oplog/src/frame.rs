//! Frames, the units of a log file. Each has its own checksums.
//!
//! A frame's header has a separate checksum, which distinguishes a damaged length from a truncated
//! file.

use crate::Op;

/// The first bytes of every log.
pub(crate) const MAGIC: [u8; 8] = *b"SENESCE\x1a";
/// The newest version of the format, stored after the magic. A log has the lowest version that can
/// encode its content.
pub(crate) const VERSION: u16 = 2;
/// Length of magic and version, bytes.
pub(crate) const START_BYTES: u64 = 10;
/// Length of a frame's header, bytes.
pub(crate) const HEADER_BYTES: usize = 28;
/// The writer closes a frame of steps that holds this many bytes, uncompressed.
pub(crate) const FRAME_RAW_BYTES: usize = 256 << 10;
/// The largest frame, bytes, uncompressed or compressed. It bounds what an untrusted file makes a
/// reader allocate.
pub(crate) const MOST_RAW_BYTES: usize = 256 << 20;
/// The most operations of a step.
pub(crate) const MOST_STEP_OPERATIONS: usize = 4 << 20;
/// Chosen so that the operations of a step need no more memory than the largest frame.
const _: () = assert!(MOST_STEP_OPERATIONS * size_of::<Op>() <= MOST_RAW_BYTES);
/// Compression level of zstd, fixed because the same steps must give the same bytes.
pub(crate) const LEVEL: i32 = 3;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The log's header, JSON: only the first frame.
    Header = 0,
    /// Whole steps.
    Steps = 1,
    /// Totals, JSON: only the last frame.
    Trailer = 2,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub kind: Kind,
    pub sequence: u64,
    pub stored_bytes: u32,
    pub raw_bytes: u32,
    pub crc: u32,
}

impl FrameHeader {
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[0..4].copy_from_slice(&self.stored_bytes.to_le_bytes());
        out[4..8].copy_from_slice(&self.raw_bytes.to_le_bytes());
        out[8..12].copy_from_slice(&self.crc.to_le_bytes());
        out[12..20].copy_from_slice(&self.sequence.to_le_bytes());
        out[20] = self.kind as u8;
        let crc = crc32c::crc32c(&out[..24]);
        out[24..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Result<Self, String> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        if u32_at(24) != crc32c::crc32c(&bytes[..24]) {
            return Err("the checksum of the frame's header does not match".to_owned());
        }
        let kind = match bytes[20..24] {
            [0, 0, 0, 0] => Kind::Header,
            [1, 0, 0, 0] => Kind::Steps,
            [2, 0, 0, 0] => Kind::Trailer,
            _ => return Err(format!("frames of kind {} are unknown", u32_at(20))),
        };
        let header = Self {
            kind,
            sequence: u64::from_le_bytes(bytes[12..20].try_into().expect("eight bytes")),
            stored_bytes: u32_at(0),
            raw_bytes: u32_at(4),
            crc: u32_at(8),
        };
        for bytes in [header.stored_bytes, header.raw_bytes] {
            if bytes as usize > MOST_RAW_BYTES {
                return Err(format!("the frame announces {bytes} bytes, more than any frame has"));
            }
        }
        Ok(header)
    }
}

//! The bytes of the log's header and records.

use senesce_core::{BlockOp, BlockRequest, Nanos};
use serde::{Deserialize, Serialize};

use crate::Served;

/// The largest request that FUSE passes on unsplit with the kernel's usual limit
/// (`fs.fuse.max_pages_limit` of 256), KiB.
pub const MAX_REQUEST_KIB: u32 = 1024;

/// First bytes of every log.
pub(super) const MAGIC: [u8; 8] = *b"SNVDLOG\0";
pub(super) const VERSION: u32 = 1;
/// Bytes of a record without a mark's name and without its checksum.
pub(super) const FIXED_BYTES: usize = 32;
pub(super) const CRC_BYTES: usize = 4;
/// The longest name of a mark and the longest description, bytes. A longer one means damage.
pub(super) const MAX_TEXT_BYTES: usize = 64 << 10;

/// The description of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHeader {
    /// Name of the disk.
    pub disk: String,
    /// Name of the device model.
    pub device: String,
    /// Size of the disk, bytes.
    pub size_bytes: u64,
    /// Virtual time at the start of the log, nanoseconds.
    pub began_ns: u64,
}

pub(super) fn encode_header(header: &LogHeader) -> serde_json::Result<Vec<u8>> {
    let text = serde_json::to_vec(header)?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&text);
    Ok(with_crc(bytes))
}

fn with_crc(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

fn op_code(op: BlockOp) -> u32 {
    match op {
        BlockOp::Read => 0,
        BlockOp::Write => 1,
        BlockOp::Discard => 2,
        BlockOp::Flush => 3,
    }
}

pub(super) const MARK: u32 = 4;

pub(super) fn encode_request(served: &Served) -> Vec<u8> {
    let request = &served.request;
    record(request.issued, served.completed, request.sector, request.sectors, op_code(request.op), &[])
}

pub(super) fn encode_mark(at: Nanos, name: &str) -> Vec<u8> {
    record(at, at, 0, name.len() as u32, MARK, name.as_bytes())
}

fn record(issued: Nanos, completed: Nanos, sector: u64, length: u32, code: u32, name: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FIXED_BYTES + name.len() + CRC_BYTES);
    for value in [issued.0, completed.0, sector] {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&code.to_le_bytes());
    bytes.extend_from_slice(name);
    with_crc(bytes)
}

/// One decoded record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    Request(Served),
    Mark { at: Nanos, name: String },
}

/// The result of decoding the start of `bytes`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// A whole record, and its length.
    Whole(Record, usize),
    /// The bytes end within a record.
    Cut,
    /// The bytes are not a record.
    Bad(&'static str),
}

pub(super) fn decode_record(bytes: &[u8]) -> Decoded {
    let (Some(issued), Some(completed), Some(sector)) = (u64_at(bytes, 0), u64_at(bytes, 8), u64_at(bytes, 16)) else {
        return Decoded::Cut;
    };
    let (Some(length), Some(code)) = (u32_at(bytes, 24), u32_at(bytes, 28)) else { return Decoded::Cut };
    let name_bytes = if code == MARK { length as usize } else { 0 };
    if name_bytes > MAX_TEXT_BYTES {
        return Decoded::Bad("a mark's name has an impossible length");
    }
    let end = FIXED_BYTES + name_bytes;
    let Some(crc) = u32_at(bytes, end) else { return Decoded::Cut };
    if crc32c::crc32c(&bytes[..end]) != crc {
        return Decoded::Bad("the checksum of a record is wrong");
    }
    let op = match code {
        0 => BlockOp::Read,
        1 => BlockOp::Write,
        2 => BlockOp::Discard,
        3 => BlockOp::Flush,
        MARK => {
            let name = String::from_utf8_lossy(&bytes[FIXED_BYTES..end]).into_owned();
            return Decoded::Whole(Record::Mark { at: Nanos(issued), name }, end + CRC_BYTES);
        }
        _ => return Decoded::Bad("a record is of an unknown kind"),
    };
    let request = BlockRequest { issued: Nanos(issued), op, sector, sectors: length };
    Decoded::Whole(Record::Request(Served { request, completed: Nanos(completed) }), end + CRC_BYTES)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

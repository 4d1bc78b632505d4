//! Events of the block layer, decoded from the bytes of records.

use std::fmt;

use senesce_core::{BlockOp, Nanos};
use serde::{Deserialize, Serialize};

use super::{EventFormat, Field, Record};
use crate::Error;

/// The kernel's flags of a request, besides its operation.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestFlags(pub u8);

impl RequestFlags {
    /// A process waits for it.
    pub const SYNC: Self = Self(0x1);
    /// Metadata of a file system. Not every file system sets it on all metadata.
    pub const META: Self = Self(0x2);
    /// Read ahead of any request.
    pub const READAHEAD: Self = Self(0x4);
    /// Durable when it completes.
    pub const FUA: Self = Self(0x8);
    /// Earlier writes must be durable first.
    pub const PREFLUSH: Self = Self(0x10);

    const NAMES: [(Self, &'static str); 5] = [
        (Self::SYNC, "sync"),
        (Self::META, "meta"),
        (Self::READAHEAD, "readahead"),
        (Self::FUA, "fua"),
        (Self::PREFLUSH, "preflush"),
    ];

    /// Whether every flag of `other` is set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union of both sets.
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for RequestFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> =
            Self::NAMES.iter().filter(|(flag, _)| self.contains(*flag)).map(|(_, name)| *name).collect();
        f.write_str(&names.join("|"))
    }
}

/// Parses the letters with which the kernel and `blkparse` describe a request, such as `FWFSM`.
///
/// Out: the operation (none if [`BlockOp`] has no variant for it) and the flags. An `F` before the
/// operation is a preceding flush. An `F` after it means durable on completion. `FF` and `FN` are
/// flushes alone. Source: the behaviour of `blk_fill_rwbs` and `fill_rwbs`.
pub(super) fn parse_letters(letters: &[u8]) -> (Option<BlockOp>, RequestFlags) {
    let mut flags = RequestFlags::default();
    let (first, mut rest) = letters.split_first().map_or((b'?', letters), |(first, rest)| (*first, rest));
    let mut letter = first;
    if first == b'F' {
        match rest.split_first() {
            Some((&next @ (b'R' | b'W' | b'D' | b'Z'), behind)) => {
                flags = flags.with(RequestFlags::PREFLUSH);
                (letter, rest) = (next, behind);
            }
            Some((b'F' | b'N', behind)) => rest = behind,
            _ => {}
        }
    }
    for flag in rest {
        flags = flags.with(match flag {
            b'S' => RequestFlags::SYNC,
            b'M' => RequestFlags::META,
            b'A' => RequestFlags::READAHEAD,
            b'F' => RequestFlags::FUA,
            _ => continue,
        });
    }
    let op = match letter {
        b'R' => Some(BlockOp::Read),
        b'W' => Some(BlockOp::Write),
        b'D' => Some(BlockOp::Discard),
        b'F' => Some(BlockOp::Flush),
        _ => None,
    };
    (op, flags)
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// It was issued to the device.
    Issue,
    /// The driver returned it before the device saw it.
    Requeue,
    /// It, or the first part of its rest, was completed.
    Complete,
}

/// One event of the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// Its time, on the trace's clock.
    pub at: Nanos,
    /// First sector; 0 for a flush.
    pub sector: u64,
    /// Number of sectors; for a completion, of completed sectors.
    pub sectors: u32,
    /// The process in whose context it happened.
    pub pid: u32,
    /// For a completion: the error number (`errno`, positive), 0 for success.
    pub error: u32,
    /// The kind of the event.
    pub action: Action,
    /// The operation; none if [`BlockOp`] has no variant for it.
    pub op: Option<BlockOp>,
    /// The other flags of the kernel.
    pub flags: RequestFlags,
}

/// The fields of one kind of event.
#[derive(Clone, Debug)]
struct Layout {
    id: u64,
    action: Action,
    pid: Field,
    sector: Field,
    sectors: Field,
    letters: Field,
    error: Option<Field>,
}

/// Decodes records into events of the block layer, by the formats of the kernel that wrote them.
#[derive(Clone, Debug)]
pub struct EventDecoder {
    kind: Field,
    layouts: Vec<Layout>,
}

impl EventDecoder {
    /// A decoder of these events: `block_rq_issue`, `block_rq_complete`, `block_rq_requeue`; some
    /// may be missing.
    ///
    /// Errors: another event, or a required field that is missing or has another size. The message
    /// names it.
    pub fn new(formats: &[EventFormat]) -> Result<Self, Error> {
        let mut kind = None;
        let mut layouts = Vec::new();
        for format in formats {
            let bad = |problem: String| Error::BadFormat {
                format: "description of a trace event",
                unit: "event",
                position: format.id,
                problem: format!("{}: {problem}", format.name),
            };
            let field = |name: &str, size: usize| match format.field(name) {
                Some(field) if field.size == size || size == 0 => Ok(field),
                Some(field) => Err(bad(format!("{name} has {} bytes, not {size}", field.size))),
                None => Err(bad(format!("there is no field {name}"))),
            };
            let action = match format.name.as_str() {
                "block_rq_issue" => Action::Issue,
                "block_rq_complete" => Action::Complete,
                "block_rq_requeue" => Action::Requeue,
                _ => return Err(bad("is no event of a request that this version knows".to_owned())),
            };
            kind = Some(field("common_type", 2)?);
            layouts.push(Layout {
                id: format.id,
                action,
                pid: field("common_pid", 4)?,
                sector: field("sector", 8)?,
                sectors: field("nr_sector", 4)?,
                letters: field("rwbs", 0)?,
                error: if action == Action::Complete { format.field("error").or(format.field("errors")) } else { None },
            });
        }
        // Every event starts with the same fields; without a format nothing is decoded.
        Ok(Self { kind: kind.unwrap_or(Field { offset: 0, size: 2 }), layouts })
    }

    /// Decodes the event of a record; none for another event, or if the record is too short.
    pub fn decode(&self, record: &Record<'_>) -> Option<BlockEvent> {
        let bytes = record.event;
        let id = self.kind.unsigned(bytes)?;
        let layout = self.layouts.iter().find(|layout| layout.id == id)?;
        let letters = layout.letters.bytes(bytes)?;
        let letters = letters.split(|&byte| byte == 0).next().unwrap_or_default();
        let (op, flags) = parse_letters(letters);
        let sectors = layout.sectors.unsigned(bytes)? as u32;
        // A flush has no position; the kernel writes 0 at its issue and -1 at its completion.
        let sector = if op == Some(BlockOp::Flush) { 0 } else { layout.sector.unsigned(bytes)? };
        let error = match layout.error {
            Some(field) => (field.unsigned(bytes)? as u32 as i32).unsigned_abs(),
            None => 0,
        };
        let pid = layout.pid.unsigned(bytes)? as u32;
        Some(BlockEvent { at: record.at, sector, sectors, pid, error, action: layout.action, op, flags })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_letters_are_decoded() {
        use RequestFlags as F;
        let none = F::default();
        for (letters, op, flags) in [
            ("R", Some(BlockOp::Read), none),
            ("RA", Some(BlockOp::Read), F::READAHEAD),
            ("RSM", Some(BlockOp::Read), F::SYNC.with(F::META)),
            ("WSM", Some(BlockOp::Write), F::SYNC.with(F::META)),
            ("FWFS", Some(BlockOp::Write), F::PREFLUSH.with(F::FUA).with(F::SYNC)),
            ("WFS", Some(BlockOp::Write), F::FUA.with(F::SYNC)),
            ("FF", Some(BlockOp::Flush), none),
            ("FN", Some(BlockOp::Flush), none),
            ("F", Some(BlockOp::Flush), none),
            ("D", Some(BlockOp::Discard), none),
            ("DE", Some(BlockOp::Discard), none),
            ("N", None, none),
            ("ZR", None, none),
            ("", None, none),
        ] {
            assert_eq!(parse_letters(letters.as_bytes()), (op, flags), "{letters}");
        }
        assert_eq!(format!("{:?}", F::PREFLUSH.with(F::SYNC)), "sync|preflush");
    }

    #[test]
    fn a_format_without_a_field_is_refused_by_name() {
        let text = "name: block_rq_issue\nID: 7\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\n\
                    \tfield:int common_pid;\toffset:4;\tsize:4;\n\tfield:sector_t sector;\toffset:16;\tsize:4;\n";
        let error = EventDecoder::new(&[EventFormat::parse(text).unwrap()]).unwrap_err().to_string();
        assert!(error.contains("block_rq_issue: sector has 4 bytes, not 8"), "{error}");
    }
}

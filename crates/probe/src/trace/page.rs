//! The pages of the kernel's trace ring buffer, in the format of `trace_pipe_raw`.
//!
//! A page is a header followed by records. The header has the time of the first event, and a word
//! with the length of the data and two flags for lost events. Each record follows a word of 5 bits
//! of type and 27 bits of time since the previous record. Source:
//! `Documentation/trace/ring-buffer-map.rst` and `events/header_page`, `events/header_event` of a
//! Linux kernel. The numbers of the record types have been the same since 2.6.30, and are checked
//! against `header_event`.

use senesce_core::Nanos;

use super::format::{Field, parse_fields};
use crate::Error;

/// The largest type number that is a data record's length in words.
const DATA_MAX: u32 = 28;
/// Padding: a discarded record, or the rest of the page.
const PADDING: u32 = 29;
/// More bits of the time difference.
const TIME_EXTEND: u32 = 30;
/// An absolute time.
const TIME_STAMP: u32 = 31;

/// Bits of time in a record's first word.
const DELTA_BITS: u32 = 27;
/// Bits of an absolute time in a time stamp; the higher bits come from the previous time.
const STAMP_BITS: u32 = 59;

/// In the header's word: events were lost before this page.
const MISSED: u64 = 1 << 31;
/// In the header's word: the number of lost events follows the data.
const MISSED_STORED: u64 = 1 << 30;
/// In the header's word: the length of the data.
const LENGTH_MASK: u64 = (1 << DELTA_BITS) - 1;

/// The page layout of the running kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFormat {
    timestamp: Field,
    commit: Field,
    data: Field,
}

impl PageFormat {
    /// Parses `events/header_page` and checks `events/header_event`.
    ///
    /// Errors: a field is missing, or a record type has an unexpected number.
    pub fn parse(header_page: &str, header_event: &str) -> Result<Self, Error> {
        let fields = parse_fields(header_page)?;
        let field = |name: &'static str| {
            let found = fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field);
            found.ok_or_else(|| bad("description of trace pages", "byte", 0, format!("there is no field {name}")))
        };
        let format = Self { timestamp: field("timestamp")?, commit: field("commit")?, data: field("data")? };
        if format.timestamp.size != 8 || !matches!(format.commit.size, 4 | 8) {
            let problem = "timestamp must have 8 bytes, and commit 4 or 8".to_owned();
            return Err(bad("description of trace pages", "byte", 0, problem));
        }
        for (index, line) in header_event.lines().enumerate() {
            let number = |separator: &str| line.rsplit_once(separator).and_then(|(_, n)| n.trim().parse::<u32>().ok());
            let (is, must_be) = match line.split_whitespace().next() {
                Some("padding") => (number("=="), PADDING),
                Some("time_extend") => (number("=="), TIME_EXTEND),
                Some("time_stamp") => (number("=="), TIME_STAMP),
                Some("data") => (number("=="), DATA_MAX),
                _ => continue,
            };
            if is != Some(must_be) {
                let problem = format!("{:?} is not {must_be}", line.trim());
                return Err(bad("description of trace records", "line", index as u64 + 1, problem));
            }
        }
        Ok(format)
    }

    /// Bytes of a page with its header: the buffer size of one read.
    pub fn page_bytes(&self) -> usize {
        self.data.offset + self.data.size
    }
}

/// Events that the kernel lost before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// None.
    None,
    /// This number.
    Count(u64),
    /// At least one; the page has no space for the number.
    Some,
}

/// A record of a page: an event's time and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its time, on the trace's clock.
    pub at: Nanos,
    /// The event in the layout of its format.
    pub event: &'a [u8],
}

/// The records of a page, in order.
///
/// A truncated or malformed record is an error and the last item, because the position of the next
/// record is unknown.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// Events lost before this page.
    pub missed: Missed,
    data: &'a [u8],
    /// Length of the data according to the header.
    length: usize,
    data_at: usize,
    at: usize,
    time: u64,
    failed: bool,
}

impl<'a> Page<'a> {
    /// Parses a page's header. `bytes` may be shorter than the page; then its complete records
    /// come, followed by an error.
    ///
    /// Errors: shorter than a header, or a length that does not fit a page.
    pub fn new(bytes: &'a [u8], format: &PageFormat) -> Result<Self, Error> {
        let cut = || bad("trace page", "byte", bytes.len() as u64, "the page ends within its header".to_owned());
        let time = format.timestamp.unsigned(bytes).ok_or_else(cut)?;
        let commit = format.commit.unsigned(bytes).ok_or_else(cut)?;
        let data = bytes.get(format.data.offset..).ok_or_else(cut)?;
        let length = (commit & LENGTH_MASK) as usize;
        if length > format.data.size {
            let problem = format!("{length} bytes of data do not fit a page of {}", format.page_bytes());
            return Err(bad("trace page", "byte", format.commit.offset as u64, problem));
        }
        let missed = if commit & MISSED == 0 {
            Missed::None
        } else if commit & MISSED_STORED == 0 {
            Missed::Some
        } else {
            let count = Field { offset: length, size: format.commit.size }.unsigned(data);
            count.filter(|&count| count > 0).map_or(Missed::Some, Missed::Count)
        };
        let data = &data[..length.min(data.len())];
        Ok(Self { missed, data, length, data_at: format.data.offset, at: 0, time, failed: false })
    }

    fn word(&self, at: usize) -> Result<u32, Error> {
        let bytes =
            self.data.get(at..at + 4).ok_or_else(|| self.bad(at, "the page ends within a record".to_owned()))?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes were taken")))
    }

    fn bad(&self, at: usize, problem: String) -> Error {
        bad("trace page", "byte", (self.data_at + at) as u64, problem)
    }

    /// The next data record; none at the end.
    fn advance(&mut self) -> Result<Option<Record<'a>>, Error> {
        while self.at < self.length {
            let start = self.at;
            let head = self.word(start)?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            match kind {
                TIME_EXTEND | TIME_STAMP => {
                    let value = u64::from(self.word(start + 4)?) << DELTA_BITS | delta;
                    self.at = start + 8;
                    self.time = if kind == TIME_EXTEND {
                        self.time.wrapping_add(value)
                    } else {
                        extend_stamp(value, self.time)
                    };
                }
                // Without a time, padding means that the rest of the page is empty.
                PADDING if delta == 0 => {
                    self.at = self.length;
                }
                PADDING => {
                    let skipped = self.word(start + 4)? as usize;
                    self.time = self.time.wrapping_add(delta);
                    self.at = start + 4 + skipped.max(4);
                }
                _ => {
                    let (from, end) = if kind == 0 {
                        // The length is a separate word, which it includes.
                        let length = self.word(start + 4)? as usize;
                        if length < 4 {
                            return Err(self.bad(start, format!("a record of {length} bytes is too short")));
                        }
                        (start + 8, start + 4 + length)
                    } else {
                        (start + 4, start + 4 + 4 * kind as usize)
                    };
                    let event = self
                        .data
                        .get(from..end)
                        .ok_or_else(|| self.bad(start, "the page ends within a record".to_owned()))?;
                    self.time = self.time.wrapping_add(delta);
                    self.at = end;
                    return Ok(Some(Record { at: Nanos(self.time), event }));
                }
            }
        }
        Ok(None)
    }
}

impl<'a> Iterator for Page<'a> {
    type Item = Result<Record<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.advance();
        self.failed = next.is_err();
        next.transpose()
    }
}

/// An absolute time from its low bits and the previous time, which is at most slightly later.
fn extend_stamp(stamp: u64, before: u64) -> u64 {
    let full = stamp | before & !((1 << STAMP_BITS) - 1);
    // The low bits may have wrapped since.
    if full < before && before - full > 1 << (STAMP_BITS - 1) { full.wrapping_add(1 << STAMP_BITS) } else { full }
}

fn bad(format: &'static str, unit: &'static str, position: u64, problem: String) -> Error {
    Error::BadFormat { format, unit, position, problem }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;

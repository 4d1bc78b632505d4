//! Reads a request log. A torn end is accepted; damage before the end is an error.

use std::path::Path;

use senesce_core::{BlockRequest, Nanos};

use super::{
    LogHeader,
    format::{self, CRC_BYTES, Decoded, MAGIC, MAX_TEXT_BYTES, Record, VERSION},
};
use crate::{Error, Result};

/// A mark in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its name.
    pub name: String,
    /// Its virtual time.
    pub at: Nanos,
    /// The number of requests before it.
    pub request: usize,
}

/// A request log in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Its description.
    pub header: LogHeader,
    /// The requests in the order of service, each with its completion; `issued` is the arrival.
    pub requests: Vec<(BlockRequest, Nanos)>,
    /// The marks between them.
    pub marks: Vec<Mark>,
    /// Bytes of an incomplete record at the end; 0 if the log is complete.
    pub torn_bytes: u64,
}

/// Reads a request log. A torn record at the end counts as not written.
///
/// Errors: the file cannot be read, is no request log, is newer than this program, or is damaged
/// before its end. Cost: the whole file in memory, and 40 bytes a request.
pub fn read_log(path: &Path) -> Result<Log> {
    let bytes = std::fs::read(path).map_err(Error::std("read the request log", path))?;
    parse_log(path, &bytes)
}

/// Parses the bytes of a log like [`read_log`]; `path` is only for messages.
pub fn parse_log(path: &Path, bytes: &[u8]) -> Result<Log> {
    let bad = |offset: usize, problem: &str| Error::Log {
        path: path.to_owned(),
        offset: offset as u64,
        problem: problem.to_owned(),
    };
    let (header, mut at) = parse_header(bytes).map_err(|problem| bad(0, &problem))?;
    let mut log = Log { header, requests: Vec::new(), marks: Vec::new(), torn_bytes: 0 };
    while at < bytes.len() {
        match format::decode_record(&bytes[at..]) {
            Decoded::Whole(Record::Request(served), length) => {
                log.requests.push((served.request, served.completed));
                at += length;
            }
            Decoded::Whole(Record::Mark { at: time, name }, length) => {
                log.marks.push(Mark { name, at: time, request: log.requests.len() });
                at += length;
            }
            Decoded::Bad(problem) if is_followed_by_a_record(&bytes[at..]) => return Err(bad(at, problem)),
            // A power cut leaves a part of a record, or zeros in its place.
            Decoded::Cut | Decoded::Bad(_) => {
                log.torn_bytes = (bytes.len() - at) as u64;
                break;
            }
        }
    }
    Ok(log)
}

/// Whether a whole record follows shortly after. If so, the bad record is no torn end.
fn is_followed_by_a_record(bytes: &[u8]) -> bool {
    let starts = 1..bytes.len().min(2 * MAX_TEXT_BYTES);
    starts.into_iter().any(|at| matches!(format::decode_record(&bytes[at..]), Decoded::Whole(..)))
}

fn parse_header(bytes: &[u8]) -> std::result::Result<(LogHeader, usize), String> {
    if bytes.get(..8) != Some(&MAGIC) {
        return Err("it does not start with the magic bytes of a request log".to_owned());
    }
    let cut = || "the header is truncated".to_owned();
    let version = format::u32_at(bytes, 8).ok_or_else(cut)?;
    if version != VERSION {
        return Err(format!("it has version {version}; this program reads version {VERSION}"));
    }
    let length = format::u32_at(bytes, 12).ok_or_else(cut)? as usize;
    if length > MAX_TEXT_BYTES {
        return Err(format!("its description has {length} bytes; the limit is {MAX_TEXT_BYTES}"));
    }
    let end = 16 + length;
    let crc = format::u32_at(bytes, end).ok_or_else(cut)?;
    if crc32c::crc32c(&bytes[..end]) != crc {
        return Err("the checksum of the header is wrong".to_owned());
    }
    let header = serde_json::from_slice(&bytes[16..end]).map_err(|error| error.to_string())?;
    Ok((header, end + CRC_BYTES))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use senesce_core::BlockOp;

    use super::*;
    use crate::Served;

    fn header() -> LogHeader {
        LogHeader { disk: "a".to_owned(), device: "model: plain".to_owned(), size_bytes: 1 << 20, began_ns: 7 }
    }

    fn served(n: u64) -> Served {
        let op = [BlockOp::Read, BlockOp::Write, BlockOp::Discard, BlockOp::Flush][n as usize % 4];
        let request = BlockRequest { issued: Nanos(n), op, sector: n * 3, sectors: n as u32 };
        Served { request, completed: Nanos(n + 5) }
    }

    /// A log of `requests` requests with a mark before every third, and the end of each part.
    fn sample(requests: u64) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = format::encode_header(&header()).unwrap();
        let mut ends = vec![bytes.len()];
        for n in 0..requests {
            if n % 3 == 0 {
                bytes.extend(format::encode_mark(Nanos(n), &format!("mark {n}")));
                ends.push(bytes.len());
            }
            bytes.extend(format::encode_request(&served(n)));
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    #[test]
    fn a_written_log_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut writer = LogWriter::create(&path, &header()).unwrap();
        for n in 0..7 {
            if n % 3 == 0 {
                writer.mark(Nanos(n), &format!("mark {n}")).unwrap();
            }
            writer.append(&served(n)).unwrap();
        }
        drop(writer);
        assert_eq!(std::fs::read(&path).unwrap(), sample(7).0);
        let log = read_log(&path).unwrap();
        assert_eq!(log.header, header());
        assert_eq!(log.requests, (0..7).map(|n| (served(n).request, Nanos(n + 5))).collect::<Vec<_>>());
        assert_eq!(log.marks[1], Mark { name: "mark 3".to_owned(), at: Nanos(3), request: 3 });
        assert_eq!(log.torn_bytes, 0);
        assert!(LogWriter::create(&path, &header()).is_err(), "a log is never overwritten");
    }
    use crate::LogWriter;

    #[test]
    fn a_truncated_log_gives_its_complete_records() {
        let (bytes, ends) = sample(8);
        for cut in 0..bytes.len() {
            let got = parse_log(Path::new("x"), &bytes[..cut]);
            if cut < ends[0] {
                assert!(got.is_err(), "cut in the header at {cut}");
                continue;
            }
            let log = got.unwrap();
            let whole = ends.iter().filter(|&&end| end <= cut).count() - 1;
            assert_eq!(log.requests.len() + log.marks.len(), whole, "cut at {cut}");
            assert_eq!(log.torn_bytes as usize, cut - ends[whole]);
        }
    }

    #[test]
    fn zeros_in_place_of_the_end_are_a_torn_end() {
        let (mut bytes, _) = sample(4);
        let whole = bytes.len();
        bytes.extend([0; 1000]);
        let log = parse_log(Path::new("x"), &bytes).unwrap();
        assert_eq!((log.requests.len(), log.torn_bytes), (4, 1000));
        bytes.truncate(whole);
        // Damage before the end is an error.
        let at = whole - 60;
        bytes[at] ^= 1;
        assert!(matches!(parse_log(Path::new("x"), &bytes), Err(Error::Log { .. })));
    }

    #[test]
    fn version_1_stays_readable() {
        let golden = include_bytes!("../../golden/requests-v1.snvdlog");
        assert_eq!(golden.as_slice(), sample(5).0, "the format must not change without a new version");
        assert_eq!(parse_log(Path::new("golden"), golden).unwrap().requests.len(), 5);
        let mut newer = golden.to_vec();
        newer[8] = 2;
        assert!(parse_log(Path::new("x"), &newer).unwrap_err().to_string().contains("version 2"));
    }

    proptest! {
        #[test]
        fn any_bytes_parse_without_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), real in any::<bool>()) {
            if real {
                let mut start = format::encode_header(&header()).unwrap();
                start.extend(bytes);
                bytes = start;
            }
            let _ = parse_log(Path::new("x"), &bytes);
        }
    }
}

//! Reader of logs, up to the last whole frame.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use zstd::bulk::Decompressor;

use crate::{
    DoneStep, Ended, LogError, LogHeader, LogSummary,
    codec::decode_step,
    frame::{FrameHeader, HEADER_BYTES, Kind, MAGIC, START_BYTES, VERSION},
    summary::{Totals, Trailer},
};

/// Iterates over the steps of a log, in bounded memory (one frame).
///
/// The iteration stops without error where a file ends early; [`ended`](Self::ended) reports how.
/// Damaged bytes are an error that names the frame, and the iteration ends after it.
pub struct LogReader<R = BufReader<File>> {
    path: PathBuf,
    input: R,
    header: LogHeader,
    version: u16,
    offset_bytes: u64,
    /// Start of the last frame that was read.
    frame_starts_at: u64,
    frames: u64,
    raw: Vec<u8>,
    taken: usize,
    totals: Totals,
    ended: Option<Ended>,
    failed: bool,
    decompressor: Decompressor<'static>,
}

impl LogReader {
    /// Opens a log and reads its header.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let file = File::open(path).map_err(io_error("open", path))?;
        LogReader::new(BufReader::new(file), path)
    }
}

impl LogReader<io::Take<BufReader<File>>> {
    /// Opens a log as if its file ended at `end_bytes`.
    pub(crate) fn open_up_to(path: &Path, end_bytes: u64) -> Result<Self, LogError> {
        let file = File::open(path).map_err(io_error("open", path))?;
        LogReader::new(BufReader::new(file).take(end_bytes), path)
    }
}

/// One frame, or the clean end of the input.
enum Next {
    Frame(Kind, Vec<u8>),
    Ended(Ended),
}

impl<R: Read> LogReader<R> {
    /// Reads a log from any reader; `path` is for messages only.
    pub fn new(input: R, path: &Path) -> Result<Self, LogError> {
        let not_a_log = |problem| LogError::NotALog { path: path.to_owned(), problem };
        let mut reader = Self {
            path: path.to_owned(),
            input,
            header: LogHeader::new(serde_json::Value::Null, senesce_core::Seed(0)),
            version: VERSION,
            offset_bytes: 0,
            frame_starts_at: 0,
            frames: 0,
            raw: Vec::new(),
            taken: 0,
            totals: Totals::default(),
            ended: None,
            failed: false,
            decompressor: Decompressor::new().map_err(io_error("prepare to decompress", path))?,
        };
        let start = reader.read_up_to(START_BYTES as usize)?;
        if !start.starts_with(&MAGIC) {
            return Err(not_a_log("it does not start with the log's magic number"));
        }
        let version = match start[MAGIC.len()..].try_into().map(u16::from_le_bytes) {
            Ok(0) => return Err(not_a_log("its version is 0")),
            Ok(found) if found > VERSION => {
                return Err(LogError::NewerVersion { path: reader.path, found, known: VERSION });
            }
            Ok(version) => version,
            Err(_) => return Err(not_a_log("it ends within its first bytes")),
        };
        reader.version = version;
        reader.offset_bytes = START_BYTES;
        let json = match reader.next_frame()? {
            Next::Frame(Kind::Header, json) => json,
            Next::Frame(..) => return Err(reader.damaged_at(0, START_BYTES, "a log starts with its header".into())),
            Next::Ended(_) => return Err(not_a_log("it ends within its header")),
        };
        let header = serde_json::from_slice::<LogHeader>(&json);
        reader.header = header.map_err(|e| reader.damaged_at(0, START_BYTES, format!("the log's header: {e}")))?;
        if reader.header.version() != Some(version) {
            return Err(reader.damaged_at(0, START_BYTES, format!("the format is {:?}", reader.header.format)));
        }
        Ok(reader)
    }

    /// The log's header.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// How the log ended; `None` before the end of the iteration, and after damage.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Totals of the steps read so far; of all steps after the iteration.
    pub fn summary(&self) -> LogSummary {
        self.totals.summary(self.frames, self.offset_bytes, self.ended.unwrap_or(Ended::Unfinished))
    }

    pub(crate) fn version(&self) -> u16 {
        self.version
    }

    pub(crate) fn into_totals(self) -> (Totals, u64) {
        (self.totals, self.frames)
    }

    fn next_step(&mut self) -> Result<Option<DoneStep>, LogError> {
        while self.taken == self.raw.len() {
            let (offset_bytes, frame) = (self.offset_bytes, self.frames);
            match self.next_frame()? {
                Next::Frame(Kind::Steps, raw) if !raw.is_empty() => {
                    self.totals.add_raw(&raw);
                    (self.raw, self.taken) = (raw, 0);
                }
                Next::Frame(Kind::Trailer, json) => {
                    let trailer = serde_json::from_slice::<Trailer>(&json)
                        .map_err(|e| self.damaged_at(frame, offset_bytes, format!("the trailer: {e}")))?;
                    if trailer != self.totals.trailer() {
                        let problem = "the trailer's totals or digest are not those of the steps";
                        return Err(self.damaged_at(frame, offset_bytes, problem.into()));
                    }
                    if !self.read_up_to(1)?.is_empty() {
                        let problem = "there are bytes after the trailer";
                        return Err(self.damaged_at(self.frames, self.offset_bytes, problem.into()));
                    }
                    self.ended = Some(Ended::Complete);
                    return Ok(None);
                }
                Next::Frame(..) => {
                    let problem = "a second header, or a frame without steps";
                    return Err(self.damaged_at(frame, offset_bytes, problem.into()));
                }
                Next::Ended(ended) => {
                    self.ended = Some(ended);
                    return Ok(None);
                }
            }
        }
        let mut rest = &self.raw[self.taken..];
        let left = rest.len();
        let done = match decode_step(&mut rest, self.version) {
            Ok(done) => done,
            Err(problem) => return Err(self.damaged_before(problem)),
        };
        self.taken += left - rest.len();
        if done.number != self.totals.steps {
            let problem = format!("step {} where step {} is due", done.number, self.totals.steps);
            return Err(self.damaged_before(problem));
        }
        self.totals.add(&done);
        Ok(Some(done))
    }

    fn next_frame(&mut self) -> Result<Next, LogError> {
        let (frame, offset_bytes) = (self.frames, self.offset_bytes);
        let head = self.read_up_to(HEADER_BYTES)?;
        if head.is_empty() {
            return Ok(Next::Ended(Ended::Unfinished));
        }
        let Ok(head) = <[u8; HEADER_BYTES]>::try_from(head) else {
            return Ok(Next::Ended(Ended::Truncated { at_bytes: offset_bytes }));
        };
        let header = FrameHeader::from_bytes(&head).map_err(|p| self.damaged_at(frame, offset_bytes, p))?;
        if header.sequence != frame {
            let problem = format!("it says it is frame {}", header.sequence);
            return Err(self.damaged_at(frame, offset_bytes, problem));
        }
        let stored = self.read_up_to(header.stored_bytes as usize)?;
        if stored.len() < header.stored_bytes as usize {
            return Ok(Next::Ended(Ended::Truncated { at_bytes: offset_bytes }));
        }
        if crc32c::crc32c(&stored) != header.crc {
            return Err(self.damaged_at(frame, offset_bytes, "the checksum of the frame does not match".into()));
        }
        let raw = self.decompressor.decompress(&stored, header.raw_bytes as usize);
        let raw = raw.map_err(|e| self.damaged_at(frame, offset_bytes, format!("it does not decompress: {e}")))?;
        if raw.len() != header.raw_bytes as usize {
            let problem = format!("it holds {} bytes and announces {}", raw.len(), header.raw_bytes);
            return Err(self.damaged_at(frame, offset_bytes, problem));
        }
        self.frames += 1;
        self.frame_starts_at = offset_bytes;
        self.offset_bytes += (HEADER_BYTES + stored.len()) as u64;
        Ok(Next::Frame(header.kind, raw))
    }

    /// Reads `len` bytes, or fewer at the end of the input. Allocates in proportion to the bytes
    /// present, not to `len`.
    fn read_up_to(&mut self, len: usize) -> Result<Vec<u8>, LogError> {
        let mut out = Vec::new();
        let read = self.input.by_ref().take(len as u64).read_to_end(&mut out);
        read.map_err(io_error("read", &self.path))?;
        Ok(out)
    }

    fn damaged_at(&self, frame: u64, offset_bytes: u64, problem: String) -> LogError {
        LogError::Damaged { path: self.path.clone(), frame, offset_bytes, problem }
    }

    /// Damage inside the last frame that was read.
    fn damaged_before(&self, problem: String) -> LogError {
        self.damaged_at(self.frames.saturating_sub(1), self.frame_starts_at, problem)
    }
}

impl<R: Read> Iterator for LogReader<R> {
    type Item = Result<DoneStep, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.ended.is_some() {
            return None;
        }
        let next = self.next_step();
        self.failed = next.is_err();
        next.transpose()
    }
}

/// Reads and checks a whole log. Returns its totals and how it ended. Errors: damage.
pub fn verify(path: &Path) -> Result<LogSummary, LogError> {
    let mut reader = LogReader::open(path)?;
    for step in reader.by_ref() {
        step?;
    }
    Ok(reader.summary())
}

fn io_error(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
    move |source| LogError::Io { operation, path: path.to_owned(), source }
}

//! Turns lines into records, and records into commits.

use std::io::BufRead;

use senesce_core::{Bytes, RelPath, input::read_line};

use crate::WorkloadError;

/// The longest line, bytes. A path has at most 4 KiB.
const MAX_LINE_BYTES: usize = 8 << 10;

/// The most operations of one commit. The largest of Linux' history has 20,000.
const MAX_CHANGES: usize = 1 << 20;

/// A file of the starting tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// Its path.
    pub path: RelPath,
    /// Its size.
    pub size: Bytes,
}

/// One operation of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceChange {
    /// The file is removed.
    Delete {
        /// Its path.
        path: RelPath,
    },
    /// The file was created, or replaced by one of this size.
    Write {
        /// Its path.
        path: RelPath,
        /// The size after the commit.
        size: Bytes,
    },
}

/// The operations of one commit, in the trace's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceCommit {
    /// Its position, from 1.
    pub number: u64,
    /// Its changes; may be empty.
    pub changes: Vec<TraceChange>,
}

/// Reads a trace from plain text, front to back.
///
/// Errors: [`WorkloadError::Source`] with the line number; after an error the reader is exhausted.
/// Cost: memory for one commit (for the starting tree: one file). A line has at most 8 KiB, a
/// commit at most 1 Mi operations.
#[derive(Debug)]
pub struct TraceReader<R> {
    input: R,
    line: u64,
    form: Option<Form>,
    /// Commits returned so far.
    commits: u64,
    finished: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `C number` comes before the commit's operations.
    Heading,
    /// `C bytes` comes after them.
    Closing,
}

enum Record {
    Start(TraceFile),
    Change(TraceChange),
    Commit(u64),
}

impl<R: BufRead> TraceReader<R> {
    /// A reader at the start of a trace.
    pub fn new(input: R) -> Self {
        Self { input, line: 0, form: None, commits: 0, finished: false }
    }

    /// The number of the last line, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Passes every file of the starting tree to `each`, in order. Call it first, and only once.
    ///
    /// The first `W`, `D` or `C` line ends the starting tree; it belongs to the first commit.
    pub fn read_start(
        &mut self,
        each: &mut dyn FnMut(TraceFile) -> Result<(), WorkloadError>,
    ) -> Result<(), WorkloadError> {
        while let Some(b'S') = self.peek()? {
            match self.read_record()? {
                Some(Record::Start(file)) => each(file)?,
                _ => return Err(self.error("is not a record of the starting tree")),
            }
        }
        Ok(())
    }

    /// The next commit, or `None` at the end of the trace.
    pub fn next_commit(&mut self) -> Result<Option<TraceCommit>, WorkloadError> {
        if self.finished {
            return Ok(None);
        }
        let result = self.read_commit();
        self.finished = !matches!(result, Ok(Some(_)));
        result
    }

    fn read_commit(&mut self) -> Result<Option<TraceCommit>, WorkloadError> {
        let number = self.commits + 1;
        if self.form != Some(Form::Closing) {
            match self.peek()? {
                None => return Ok(None),
                Some(b'C') => match self.read_record()? {
                    Some(Record::Commit(given)) if given == number => self.form = Some(Form::Heading),
                    // The first commit of a closing trace may change nothing.
                    Some(Record::Commit(0)) if self.form.is_none() => {
                        self.form = Some(Form::Closing);
                        self.commits = number;
                        return Ok(Some(TraceCommit { number, changes: Vec::new() }));
                    }
                    Some(Record::Commit(given)) => {
                        return Err(self.error(&format!("says commit {given} where commit {number} must come")));
                    }
                    _ => return Err(self.error("is not a commit record")),
                },
                Some(_) => self.form = Some(Form::Closing),
            }
        }
        let mut changes = Vec::new();
        let mut written_bytes = 0u64;
        loop {
            match (self.peek()?, self.form) {
                (None, Some(Form::Closing)) if changes.is_empty() => return Ok(None),
                (None, Some(Form::Closing)) => {
                    return Err(
                        self.error(&format!("is the last, but commit {number} is not closed: the trace is cut off"))
                    );
                }
                (None | Some(b'C'), Some(Form::Heading)) => break,
                _ => {}
            }
            match self.read_record()? {
                Some(Record::Change(change)) => {
                    if let TraceChange::Write { size, .. } = &change {
                        written_bytes = written_bytes
                            .checked_add(size.0)
                            .ok_or_else(|| self.error("makes the commit larger than 2^64 bytes"))?;
                    }
                    if changes.len() == MAX_CHANGES {
                        return Err(self.error(&format!(
                            "is operation {} of commit {number}; the limit is {MAX_CHANGES}",
                            MAX_CHANGES + 1
                        )));
                    }
                    changes.push(change);
                }
                Some(Record::Commit(given)) if given == written_bytes => break,
                Some(Record::Commit(given)) => {
                    let problem = format!("closes commit {number} with {given} bytes, but it wrote {written_bytes}");
                    return Err(self.error(&problem));
                }
                _ => return Err(self.error("belongs to the starting tree, which must come before every commit")),
            }
        }
        self.commits = number;
        Ok(Some(TraceCommit { number, changes }))
    }

    /// The first byte of the next line.
    fn peek(&mut self) -> Result<Option<u8>, WorkloadError> {
        loop {
            match self.input.fill_buf() {
                Ok(bytes) => return Ok(bytes.first().copied()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.read_error(error)),
            }
        }
    }

    fn read_record(&mut self) -> Result<Option<Record>, WorkloadError> {
        let mut line = Vec::new();
        self.line += 1;
        match read_line(&mut self.input, &mut line, MAX_LINE_BYTES) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(self.read_error(error)),
        }
        if line.pop() != Some(b'\n') {
            return Err(self.error("does not end in a newline: the trace is cut off"));
        }
        match line.split_at_checked(2) {
            Some((b"S ", rest)) => {
                let (path, size) = self.path_and_size(rest)?;
                Ok(Some(Record::Start(TraceFile { path, size })))
            }
            Some((b"W ", rest)) => {
                let (path, size) = self.path_and_size(rest)?;
                Ok(Some(Record::Change(TraceChange::Write { path, size })))
            }
            Some((b"D ", rest)) => Ok(Some(Record::Change(TraceChange::Delete { path: self.path(rest)? }))),
            Some((b"C ", rest)) => Ok(Some(Record::Commit(self.number(rest)?))),
            _ => {
                let shown = String::from_utf8_lossy(&line[..line.len().min(40)]).into_owned();
                Err(self.error(&format!("{shown:?} is no record; a line starts with \"S \", \"D \", \"W \" or \"C \"")))
            }
        }
    }

    fn path_and_size(&self, text: &[u8]) -> Result<(RelPath, Bytes), WorkloadError> {
        let at = text.iter().rposition(|&b| b == b' ').ok_or_else(|| self.error("has a path but no size"))?;
        Ok((self.path(&text[..at])?, Bytes(self.number(&text[at + 1..])?)))
    }

    fn path(&self, bytes: &[u8]) -> Result<RelPath, WorkloadError> {
        let path = RelPath::new(bytes).map_err(|error| WorkloadError::Source {
            what: self.place(),
            problem: "it has no usable path".into(),
            source: Some(Box::new(error)),
        })?;
        if path.is_root() { Err(self.error("has an empty path")) } else { Ok(path) }
    }

    fn number(&self, text: &[u8]) -> Result<u64, WorkloadError> {
        std::str::from_utf8(text)
            .ok()
            .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.error(&format!("has {:?} where a whole number must be", String::from_utf8_lossy(text))))
    }

    fn place(&self) -> String {
        format!("line {} of the trace", self.line)
    }

    /// An error at the last line.
    pub(super) fn error(&self, problem: &str) -> WorkloadError {
        WorkloadError::Source { what: self.place(), problem: format!("it {problem}"), source: None }
    }

    fn read_error(&self, error: std::io::Error) -> WorkloadError {
        WorkloadError::Source {
            what: format!("the trace after line {}", self.line),
            problem: error.to_string(),
            source: Some(Box::new(error)),
        }
    }
}

//! Writer of logs.

use std::{
    fs::{File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use zstd::bulk::Compressor;

use crate::{
    DoneStep, Ended, LogError, LogHeader, LogReader, LogSummary,
    codec::encode_step,
    frame::{FRAME_RAW_BYTES, FrameHeader, HEADER_BYTES, Kind, LEVEL, MAGIC, MOST_RAW_BYTES, START_BYTES},
    summary::Totals,
};

/// Appends steps to a log file. The same header, steps and flushes give the same bytes.
///
/// The writer collects steps into frames. It writes a frame when it holds 256 KiB, and on
/// [`flush`](Self::flush), [`sync`](Self::sync) and [`finish`](Self::finish). Steps that were not
/// flushed are lost when the writer is dropped.
pub struct LogWriter {
    path: PathBuf,
    version: u16,
    file: File,
    position_bytes: u64,
    frames: u64,
    pending: Vec<u8>,
    totals: Totals,
    compressor: Compressor<'static>,
}

impl LogWriter {
    /// Starts a new log. Errors: the file exists; the header has an unknown format.
    pub fn create(path: &Path, header: &LogHeader) -> Result<Self, LogError> {
        let problem = "its header names an unknown format";
        let version = header.version().ok_or_else(|| LogError::NotALog { path: path.to_owned(), problem })?;
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(io_error("create", path))?;
        let mut writer = Self::over(path, file, version)?;
        let mut start = MAGIC.to_vec();
        start.extend_from_slice(&version.to_le_bytes());
        writer.put(&start)?;
        let json = serde_json::to_vec(header).expect("a header is text, a number and JSON");
        writer.put_frame(Kind::Header, &json)?;
        Ok(writer)
    }

    /// Resumes a log at a position that [`sync`](Self::sync) or
    /// [`position_bytes`](Self::position_bytes) returned, and cuts off the bytes after it. From
    /// there it writes the same bytes as an uninterrupted writer.
    ///
    /// Errors: a position that is not the end of a whole frame, a damaged or finished log. Cost:
    /// reads the log up to the position.
    pub fn resume(path: &Path, position_bytes: u64) -> Result<Self, LogError> {
        let bad = |problem| LogError::BadPosition { path: path.to_owned(), offset_bytes: position_bytes, problem };
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(io_error("open", path))?;
        let length = file.metadata().map_err(io_error("stat", path))?.len();
        if length < position_bytes {
            return Err(bad("the file is shorter"));
        }
        let mut reader = LogReader::open_up_to(path, position_bytes)?;
        for step in reader.by_ref() {
            step?;
        }
        match reader.ended() {
            Some(Ended::Unfinished) => {}
            Some(Ended::Complete) => return Err(bad("the log is finished")),
            _ => return Err(bad("no frame ends there")),
        }
        let mut writer = Self::over(path, file, reader.version())?;
        writer.file.set_len(position_bytes).map_err(io_error("truncate", path))?;
        writer.file.seek(SeekFrom::Start(position_bytes)).map_err(io_error("seek in", path))?;
        writer.position_bytes = position_bytes;
        (writer.totals, writer.frames) = reader.into_totals();
        Ok(writer)
    }

    fn over(path: &Path, file: File, version: u16) -> Result<Self, LogError> {
        Ok(Self {
            path: path.to_owned(),
            version,
            file,
            position_bytes: 0,
            frames: 0,
            pending: Vec::new(),
            totals: Totals::default(),
            compressor: Compressor::new(LEVEL).map_err(io_error("prepare to compress", path))?,
        })
    }

    /// Appends a step. If the step ran out of space, the operations after the failed one are left
    /// out.
    ///
    /// Errors: the step's number is not the next one; the step is inconsistent, larger than 128
    /// MiB, or not supported by the log's version; an I/O error while a frame is written.
    pub fn append(&mut self, done: &DoneStep) -> Result<(), LogError> {
        let bad = |problem| LogError::BadStep { number: done.number, label: done.step.label.clone(), problem };
        if done.number != self.totals.steps {
            return Err(bad("its number is not the next one"));
        }
        if self.version < done.version() {
            return Err(bad("it needs version 2 of the log's format"));
        }
        let before = self.pending.len();
        let mut encoded = encode_step(done, &mut self.pending);
        if self.pending.len() - before > MOST_RAW_BYTES / 2 {
            encoded = Err("it is larger than 128 MiB");
        }
        if let Err(problem) = encoded {
            self.pending.truncate(before);
            return Err(bad(problem));
        }
        self.totals.add(done);
        if self.pending.len() >= FRAME_RAW_BYTES { self.flush() } else { Ok(()) }
    }

    /// Closes the current frame and writes it to the file, without fsync.
    pub fn flush(&mut self) -> Result<(), LogError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let raw = std::mem::take(&mut self.pending);
        self.put_frame(Kind::Steps, &raw)?;
        self.totals.add_raw(&raw);
        self.pending = raw;
        self.pending.clear();
        Ok(())
    }

    /// Flushes the frame and makes the file durable. Returns the position for
    /// [`resume`](Self::resume).
    pub fn sync(&mut self) -> Result<u64, LogError> {
        self.flush()?;
        self.file.sync_all().map_err(io_error("sync", &self.path))?;
        Ok(self.position_bytes)
    }

    /// End of the last written frame, bytes from the start of the file.
    pub fn position_bytes(&self) -> u64 {
        self.position_bytes
    }

    /// Steps appended so far, including those of earlier writers.
    pub fn steps(&self) -> u64 {
        self.totals.steps
    }

    /// Writes the trailer with the totals and makes the file durable.
    pub fn finish(mut self) -> Result<LogSummary, LogError> {
        self.flush()?;
        let json = serde_json::to_vec(&self.totals.trailer()).expect("a trailer is numbers and text");
        self.put_frame(Kind::Trailer, &json)?;
        self.file.sync_all().map_err(io_error("sync", &self.path))?;
        Ok(self.totals.summary(self.frames, self.position_bytes, Ended::Complete))
    }

    fn put_frame(&mut self, kind: Kind, raw: &[u8]) -> Result<(), LogError> {
        let stored = self.compressor.compress(raw).map_err(io_error("compress", &self.path))?;
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("append() keeps frames below 4 GiB");
        let header = FrameHeader {
            kind,
            sequence: self.frames,
            stored_bytes: length(&stored),
            raw_bytes: length(raw),
            crc: crc32c::crc32c(&stored),
        };
        let mut frame = Vec::with_capacity(HEADER_BYTES + stored.len());
        frame.extend_from_slice(&header.to_bytes());
        frame.extend_from_slice(&stored);
        self.put(&frame)?;
        self.frames += 1;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        self.file.write_all(bytes).map_err(io_error("write", &self.path))?;
        self.position_bytes += bytes.len() as u64;
        debug_assert!(self.position_bytes >= START_BYTES);
        Ok(())
    }
}

fn io_error(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
    move |source| LogError::Io { operation, path: path.to_owned(), source }
}

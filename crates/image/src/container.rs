//! An open container whose header, index and end are read and checked. `restore` reads the frames.

use std::{
    fs::{File, OpenOptions},
    io::ErrorKind,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use zstd::zstd_safe::compress_bound;

use crate::{
    Description, Error, Result,
    format::{
        CHUNK_BYTES, END_BYTES, ENTRY_BYTES, End, Entry, FORMAT, HASH_BYTES, Header, MAGIC, MAX_HEADER_BYTES,
        PRELUDE_BYTES, VERSION,
    },
    hash::{compute_content_hash, to_hex},
    save::compute_chunk_length,
};

/// A container with a valid header and index.
#[derive(Debug)]
pub struct Container {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) header: Header,
    pub(crate) entries: Vec<Entry>,
    content_hash: String,
    stored_bytes: u64,
}

impl Container {
    /// Opens a container.
    ///
    /// Errors: the file is no container, has a newer version, is truncated, or its header or index
    /// is damaged. Each error has the position. Cost: reads the header and the index (52 bytes for
    /// each MiB that is not zero), no data.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_until(path, || false)
    }

    /// Opens a container like [`open`](Self::open). Calls `stop` before each piece of the index; if
    /// it returns true, fails with [`Error::Stopped`].
    pub fn open_until(path: &Path, stop: fn() -> bool) -> Result<Self> {
        // An open of a pipe without a writer would block.
        let nonblock = OFlags::NONBLOCK.bits() as i32;
        let file = match OpenOptions::new().read(true).custom_flags(nonblock).open(path) {
            // Another process has a lease, which only a regular file can have: wait until it is
            // released.
            Err(error) if error.kind() == ErrorKind::WouldBlock => OpenOptions::new().read(true).open(path),
            opened => opened,
        };
        let file = file.map_err(Error::io("open", path))?;
        let found = file.metadata().map_err(Error::io("look up", path))?;
        if !found.is_file() {
            return Err(Error::NotAContainer { path: path.to_owned(), found: Vec::new() });
        }
        let file_bytes = found.len();
        let reader = Reader { file: &file, path, file_bytes };
        let (header, header_end) = read_header(&reader)?;
        let (end, entries) = read_index(&reader, &header, header_end, stop)?;
        let content_hash = to_hex(&end.content_hash);
        Ok(Self { path: path.to_owned(), file, header, entries, content_hash, stored_bytes: file_bytes })
    }

    /// Reads the first MiB of the volume, where superblocks are, and checks it against its hash.
    pub fn read_start(&self) -> Result<Vec<u8>> {
        let mut start = vec![0; CHUNK_BYTES.min(self.volume_bytes()) as usize];
        if let Some(entry) = self.entries.first().filter(|entry| entry.chunk == 0) {
            let decompressor = zstd::bulk::Decompressor::new();
            let mut decompressor = decompressor.map_err(Error::io("decompress", &self.path))?;
            let mut whole = vec![0; CHUNK_BYTES as usize];
            let length = self.read_chunk(entry, &mut Vec::new(), &mut whole, &mut decompressor)?;
            let length = length.min(start.len());
            start[..length].copy_from_slice(&whole[..length]);
        }
        Ok(start)
    }

    /// The description of the volume by the program that saved it.
    pub fn description(&self) -> &Description {
        &self.header.description
    }

    /// Version of the program that wrote the container.
    pub fn senesce_version(&self) -> &str {
        &self.header.senesce
    }

    /// Size of the volume, bytes.
    pub fn volume_bytes(&self) -> u64 {
        self.header.volume_bytes
    }

    /// Bytes in chunks that are not zero.
    pub fn data_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| self.chunk_length(entry.chunk) as u64).sum()
    }

    /// Size of the container, bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// The content hash, as hexadecimal digits.
    pub fn content_hash(&self) -> &str {
        &self.content_hash
    }

    pub(crate) fn chunk_length(&self, chunk: u64) -> usize {
        compute_chunk_length(chunk, self.header.volume_bytes)
    }

    /// Reads, decompresses and checks one chunk. Errors: it differs from the saved chunk.
    pub(crate) fn read_chunk(
        &self,
        entry: &Entry,
        frame: &mut Vec<u8>,
        out: &mut [u8],
        decompressor: &mut zstd::bulk::Decompressor<'_>,
    ) -> Result<usize> {
        let damaged = |problem: String| Error::DamagedChunk {
            path: self.path.clone(),
            chunk: entry.chunk,
            volume_byte: entry.chunk * CHUNK_BYTES,
            at_byte: entry.at_byte,
            problem,
        };
        frame.resize(entry.stored_bytes as usize, 0);
        self.file.read_exact_at(frame, entry.at_byte).map_err(Error::io("read", &self.path))?;
        let wanted = self.chunk_length(entry.chunk);
        let found = decompressor
            .decompress_to_buffer(frame, &mut out[..wanted])
            .map_err(|error| damaged(format!("it cannot be decompressed: {error}")))?;
        if found != wanted {
            return Err(damaged(format!("it has {found} bytes, not {wanted}")));
        }
        if *blake3::hash(&out[..wanted]).as_bytes() != entry.hash {
            return Err(damaged("its hash is another".to_owned()));
        }
        Ok(wanted)
    }
}

struct Reader<'a> {
    file: &'a File,
    path: &'a Path,
    file_bytes: u64,
}

impl Reader<'_> {
    fn read(&self, what: &'static str, at_byte: u64, length: u64) -> Result<Vec<u8>> {
        if at_byte.checked_add(length).is_none_or(|end| end > self.file_bytes) {
            return Err(Error::Truncated { path: self.path.to_owned(), what, at_byte, file_bytes: self.file_bytes });
        }
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, at_byte).map_err(Error::io("read", self.path))?;
        Ok(bytes)
    }

    fn damaged(&self, what: &'static str, at_byte: u64, problem: impl Into<String>) -> Error {
        Error::Damaged { path: self.path.to_owned(), what, at_byte, problem: problem.into() }
    }
}

/// The header, and the position of its end.
fn read_header(reader: &Reader<'_>) -> Result<(Header, u64)> {
    let start = reader.read("the beginning", 0, reader.file_bytes.min(PRELUDE_BYTES as u64))?;
    if !start.starts_with(&MAGIC[..start.len().min(MAGIC.len())]) || start.is_empty() {
        let found = start[..start.len().min(MAGIC.len())].to_vec();
        return Err(Error::NotAContainer { path: reader.path.to_owned(), found });
    }
    let mut all = reader.read("the header", 0, PRELUDE_BYTES as u64)?;
    let number = |at: usize| u32::from_le_bytes(all[at..at + 4].try_into().expect("four bytes"));
    let (version, text_bytes) = (number(8), number(12));
    if version != VERSION {
        return Err(Error::Version { path: reader.path.to_owned(), found: version, known: VERSION });
    }
    if text_bytes > MAX_HEADER_BYTES {
        return Err(reader.damaged("the header", 12, format!("it says that it has {text_bytes} bytes")));
    }
    let length = PRELUDE_BYTES as u64 + u64::from(text_bytes);
    all = reader.read("the header", 0, length + HASH_BYTES as u64)?;
    let (head, hash) = all.split_at(length as usize);
    if blake3::hash(head).as_bytes() != hash {
        return Err(reader.damaged("the header", 0, "its hash is another"));
    }
    let header: Header = serde_json::from_slice(&head[PRELUDE_BYTES..])
        .map_err(|error| reader.damaged("the header", PRELUDE_BYTES as u64, error.to_string()))?;
    if header.format != FORMAT || header.chunk_bytes != CHUNK_BYTES {
        let problem = format!("{:?} with chunks of {} bytes is not known", header.format, header.chunk_bytes);
        return Err(reader.damaged("the header", PRELUDE_BYTES as u64, problem));
    }
    if i64::try_from(header.volume_bytes).is_err() {
        let problem = format!("a volume of {} bytes is larger than any file", header.volume_bytes);
        return Err(reader.damaged("the header", PRELUDE_BYTES as u64, problem));
    }
    Ok((header, length + HASH_BYTES as u64))
}

/// Bytes of the index in one read: whole entries.
const INDEX_PIECE_BYTES: usize = 1260 * ENTRY_BYTES;

/// Reads and checks the end and the index.
///
/// The sizes in the file are not trusted. The index is read in pieces and each entry is checked
/// before the next piece is read, so that memory grows only with valid entries.
fn read_index(reader: &Reader<'_>, header: &Header, header_end: u64, stop: fn() -> bool) -> Result<(End, Vec<Entry>)> {
    let end_at = reader.file_bytes.saturating_sub(END_BYTES as u64).max(header_end);
    let bytes = reader.read("the end", end_at, END_BYTES as u64)?;
    let Some(end) = End::read(bytes.as_slice().try_into().expect("the read has this length")) else {
        let what = "the mark of the end";
        let (path, at_byte) = (reader.path.to_owned(), reader.file_bytes);
        return Err(Error::Truncated { path, what, at_byte, file_bytes: reader.file_bytes });
    };
    let chunks = header.volume_bytes.div_ceil(CHUNK_BYTES);
    if end.index_at_byte < header_end
        || end.index_at_byte.checked_add(end.index_bytes) != Some(end_at)
        || end.index_bytes % ENTRY_BYTES as u64 != 0
        || end.index_bytes / ENTRY_BYTES as u64 > chunks
    {
        let problem = format!(
            "it puts {} bytes of index at byte {}, for a volume of {chunks} chunks",
            end.index_bytes, end.index_at_byte
        );
        return Err(reader.damaged("the end", end_at, problem));
    }
    let damaged = |problem: String| reader.damaged("the index", end.index_at_byte, problem);
    let mut hasher = blake3::Hasher::new();
    let mut entries = Vec::new();
    let mut at_byte = header_end;
    let mut next_chunk = 0;
    let mut read_bytes = 0;
    while read_bytes < end.index_bytes {
        if stop() {
            return Err(Error::Stopped { path: reader.path.to_owned() });
        }
        let length = (end.index_bytes - read_bytes).min(INDEX_PIECE_BYTES as u64);
        let piece = reader.read("the index", end.index_at_byte + read_bytes, length)?;
        read_bytes += length;
        hasher.update(&piece);
        for bytes in piece.chunks_exact(ENTRY_BYTES) {
            let entry = Entry::read(bytes.try_into().expect("pieces have whole entries"));
            let number = entries.len();
            // Frames are adjacent, so that no byte of the container is unused or used twice.
            if entry.at_byte != at_byte || entry.chunk < next_chunk || entry.chunk >= chunks {
                let problem = format!("entry {number} puts chunk {} at byte {}", entry.chunk, entry.at_byte);
                return Err(damaged(problem));
            }
            let chunk_bytes = compute_chunk_length(entry.chunk, header.volume_bytes);
            let most_bytes = compress_bound(chunk_bytes);
            if entry.stored_bytes == 0 || entry.stored_bytes as usize > most_bytes {
                let problem = format!(
                    "entry {number} stores {} bytes for chunk {}, which takes from 1 to {most_bytes}",
                    entry.stored_bytes, entry.chunk
                );
                return Err(damaged(problem));
            }
            at_byte += u64::from(entry.stored_bytes);
            if at_byte > end.index_at_byte {
                return Err(damaged(format!("the frame of entry {number} ends after the index begins")));
            }
            next_chunk = entry.chunk + 1;
            entries.push(entry);
        }
    }
    if *hasher.finalize().as_bytes() != end.index_hash {
        return Err(damaged("its hash is another".to_owned()));
    }
    if at_byte != end.index_at_byte {
        return Err(damaged(format!("its frames end at byte {at_byte}")));
    }
    if compute_content_hash(header.volume_bytes, &entries) != end.content_hash {
        return Err(reader.damaged("the end", end_at, "the content hash does not follow from the index"));
    }
    Ok((end, entries))
}

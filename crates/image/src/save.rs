//! Saves an image or device to a container.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{BufWriter, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::{
    Error, Result,
    format::{CHUNK_BYTES, Description, End, Entry, FORMAT, Header, render_header},
    hash::{compute_content_hash, to_hex},
    sparse::{collect_data_ranges, is_zero},
};

/// The options of a save.
#[derive(Clone, Copy, Debug)]
pub struct SaveOptions<'a> {
    /// A part of the temporary name of the container ([`temporary_path`]).
    pub mark: &'a str,
    /// Threads that read, hash and compress; 0 counts as 1. The container does not depend on this
    /// number.
    pub threads: usize,
    /// The compression level of zstd.
    pub level: i32,
    /// Called before every chunk. If it returns true, the save stops and removes its file.
    pub stop: fn() -> bool,
}

impl Default for SaveOptions<'_> {
    fn default() -> Self {
        Self { mark: "", threads: 1, level: 3, stop: || false }
    }
}

/// The result of a save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveReport {
    /// Size of the volume, bytes.
    pub volume_bytes: u64,
    /// Bytes in chunks that are not zero.
    pub data_bytes: u64,
    /// Bytes in sectors of 512 that are not zero. Chunk borders have no effect on this number.
    pub nonzero_bytes: u64,
    /// Size of the container, bytes.
    pub stored_bytes: u64,
    /// The content hash.
    pub content_hash: String,
}

/// Writes the image or device `source` to the new container `to`. The name appears only when the
/// container is complete and durable. Chunks of zeros and holes are left out.
///
/// Errors: `to` exists; a read or write fails; the source shrinks during the save. After an error,
/// the new file is removed. Cost: one read of everything except holes; memory of a few MiB per
/// thread.
pub fn save(source: &Path, to: &Path, description: &Description, options: &SaveOptions<'_>) -> Result<SaveReport> {
    let from = File::open(source).map_err(Error::io("open", source))?;
    save_open(&from, source, to, description, options)
}

/// Saves like [`save`], from an open source. `source` is its name in messages.
pub fn save_open(
    from: &File,
    source: &Path,
    to: &Path,
    description: &Description,
    options: &SaveOptions<'_>,
) -> Result<SaveReport> {
    if to.symlink_metadata().is_ok() {
        return Err(Error::Exists { path: to.to_owned() });
    }
    let temporary = Temporary::create(to, options.mark, from)?;
    let report = save_to(Source::of(from, source)?, &temporary, description, options)?;
    temporary.rename(to)?;
    sync_directory(to)?;
    Ok(report)
}

/// The name of an incomplete file that will be renamed to `to`.
pub fn temporary_path(to: &Path, mark: &str) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(if mark.is_empty() { ".partial".to_owned() } else { format!(".{mark}.partial") });
    name.into()
}

/// A new file with its temporary name. It is removed unless it is renamed.
pub(crate) struct Temporary {
    pub path: PathBuf,
    pub file: File,
    is_kept: bool,
}

impl Temporary {
    /// Creates the file. Users who cannot read `like` cannot read it either; if `like` is no
    /// regular file, only the owner can.
    pub fn create(to: &Path, mark: &str, like: &File) -> Result<Self> {
        let path = temporary_path(to, mark);
        let created = like.metadata().and_then(|metadata| {
            let mode = if metadata.is_file() { metadata.mode() & 0o666 } else { 0o600 };
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)
        });
        let file = created.map_err(Error::io("create", &path))?;
        Ok(Self { path, file, is_kept: false })
    }

    pub fn rename(mut self, to: &Path) -> Result<()> {
        std::fs::rename(&self.path, to).map_err(Error::io("rename", &self.path))?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Makes the name of a file durable.
pub(crate) fn sync_directory(of: &Path) -> Result<()> {
    let dir = of.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::io("sync", dir))
}

fn save_to(
    source: Source<'_>,
    to: &Temporary,
    description: &Description,
    options: &SaveOptions<'_>,
) -> Result<SaveReport> {
    let volume_bytes = source.volume_bytes;
    let ranges = collect_data_ranges(source.file, volume_bytes).map_err(Error::io("find the holes of", source.path))?;
    let chunks = compute_chunks(&ranges);
    let header = Header {
        format: FORMAT.to_owned(),
        senesce: env!("CARGO_PKG_VERSION").to_owned(),
        volume_bytes,
        chunk_bytes: CHUNK_BYTES,
        description: description.clone(),
    };
    let mut out = Output { file: BufWriter::with_capacity(1 << 20, &to.file), path: &to.path, at_byte: 0 };
    out.write(&render_header(&header))?;
    let (entries, nonzero_bytes) = save_chunks(&source, &chunks, options, &mut out)?;
    let mut index = Vec::new();
    for entry in &entries {
        entry.write(&mut index);
    }
    let content_hash = compute_content_hash(volume_bytes, &entries);
    let end = End {
        index_at_byte: out.at_byte,
        index_bytes: index.len() as u64,
        index_hash: *blake3::hash(&index).as_bytes(),
        content_hash,
    };
    out.write(&index)?;
    out.write(&end.write())?;
    let stored_bytes = out.at_byte;
    out.file.flush().map_err(Error::io("write", &to.path))?;
    to.file.sync_all().map_err(Error::io("sync", &to.path))?;
    let data_bytes = entries.iter().map(|entry| compute_chunk_length(entry.chunk, volume_bytes) as u64).sum();
    Ok(SaveReport { volume_bytes, data_bytes, nonzero_bytes, stored_bytes, content_hash: to_hex(&content_hash) })
}

/// Length of a chunk. The last one may be short.
pub(crate) fn compute_chunk_length(chunk: u64, volume_bytes: u64) -> usize {
    volume_bytes.saturating_sub(chunk * CHUNK_BYTES).min(CHUNK_BYTES) as usize
}

/// The chunks that ranges touch, in order, each once.
fn compute_chunks(ranges: &[(u64, u64)]) -> Vec<u64> {
    let mut chunks: Vec<u64> = ranges
        .iter()
        .filter(|(start, end)| start < end)
        .flat_map(|(start, end)| start / CHUNK_BYTES..end.div_ceil(CHUNK_BYTES))
        .collect();
    chunks.dedup();
    chunks
}

struct Source<'a> {
    file: &'a File,
    path: &'a Path,
    volume_bytes: u64,
}

impl<'a> Source<'a> {
    fn of(mut file: &'a File, path: &'a Path) -> Result<Self> {
        // For a device, too, the end is its size.
        let volume_bytes = file.seek(SeekFrom::End(0)).map_err(Error::io("find the size of", path))?;
        Ok(Self { file, path, volume_bytes })
    }
}

struct Output<'a> {
    file: BufWriter<&'a File>,
    path: &'a Path,
    at_byte: u64,
}

impl Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(Error::io("write", self.path))?;
        self.at_byte += bytes.len() as u64;
        Ok(())
    }
}

/// The unit in which zeros are counted: no file system has smaller blocks.
const SECTOR_BYTES: usize = 512;

/// A compressed chunk; `None` if it is all zero.
type Packed = Option<PackedChunk>;

struct PackedChunk {
    hash: [u8; 32],
    frame: Vec<u8>,
    /// Bytes in sectors that are not zero.
    nonzero_bytes: u64,
}

/// The shared state of the threads: the next chunk, and the chunks that wait to be written in
/// order.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    next: usize,
    written: usize,
    ready: BTreeMap<usize, Result<Packed>>,
    is_over: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the waits of the other threads, even after a panic.
struct Ending<'a>(&'a Queue);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

/// Compresses chunks on several threads and writes them in their order. Also returns the bytes in
/// sectors that are not zero.
fn save_chunks(
    source: &Source<'_>,
    chunks: &[u64],
    options: &SaveOptions<'_>,
    out: &mut Output<'_>,
) -> Result<(Vec<Entry>, u64)> {
    let threads = options.threads.max(1);
    let state = State { next: 0, written: 0, ready: BTreeMap::new(), is_over: false };
    let queue = Queue { state: Mutex::new(state), changed: Condvar::new() };
    std::thread::scope(|scope| {
        let ending = Ending(&queue);
        for _ in 0..threads {
            scope.spawn(|| pack_chunks(source, chunks, options.level, threads * 4, &queue));
        }
        let (mut entries, mut nonzero_bytes) = (Vec::new(), 0);
        for (turn, &chunk) in chunks.iter().enumerate() {
            if (options.stop)() {
                return Err(Error::Stopped { path: out.path.to_owned() });
            }
            let packed = {
                let mut state = queue.lock();
                loop {
                    if let Some(packed) = state.ready.remove(&turn) {
                        state.written = turn + 1;
                        queue.changed.notify_all();
                        break packed;
                    }
                    state = queue.wait(state);
                }
            };
            if let Some(packed) = packed? {
                let stored_bytes = packed.frame.len() as u32;
                entries.push(Entry { chunk, at_byte: out.at_byte, stored_bytes, hash: packed.hash });
                nonzero_bytes += packed.nonzero_bytes;
                out.write(&packed.frame)?;
            }
        }
        drop(ending);
        Ok((entries, nonzero_bytes))
    })
}

fn pack_chunks(source: &Source<'_>, chunks: &[u64], level: i32, window: usize, queue: &Queue) {
    let mut buffer = vec![0; CHUNK_BYTES as usize];
    let mut compressor = zstd::bulk::Compressor::new(level);
    loop {
        let turn = {
            let mut state = queue.lock();
            while !state.is_over && state.next < chunks.len() && state.next >= state.written + window {
                state = queue.wait(state);
            }
            if state.is_over || state.next >= chunks.len() {
                return;
            }
            state.next += 1;
            state.next - 1
        };
        let packed = match &mut compressor {
            Ok(compressor) => pack(source, chunks[turn], &mut buffer, compressor),
            Err(error) => Err(Error::io("compress", source.path)(std::io::Error::new(error.kind(), error.to_string()))),
        };
        queue.lock().ready.insert(turn, packed);
        queue.changed.notify_all();
    }
}

fn pack(
    source: &Source<'_>,
    chunk: u64,
    buffer: &mut [u8],
    compressor: &mut zstd::bulk::Compressor<'_>,
) -> Result<Packed> {
    let wanted = compute_chunk_length(chunk, source.volume_bytes);
    let bytes = &mut buffer[..wanted];
    let mut read = 0;
    while read < wanted {
        match source.file.read_at(&mut bytes[read..], chunk * CHUNK_BYTES + read as u64) {
            Ok(0) => return Err(Error::SourceShrank { path: source.path.to_owned(), chunk, read, wanted }),
            Ok(some) => read += some,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("read", source.path)(error)),
        }
    }
    if is_zero(bytes) {
        return Ok(None);
    }
    let frame = compressor.compress(bytes).map_err(Error::io("compress", source.path))?;
    let sectors = bytes.chunks(SECTOR_BYTES).filter(|sector| !is_zero(sector));
    let nonzero_bytes = sectors.map(|sector| sector.len() as u64).sum();
    Ok(Some(PackedChunk { hash: *blake3::hash(bytes).as_bytes(), frame, nonzero_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_share_a_chunk_list_it_once() {
        const C: u64 = CHUNK_BYTES;
        assert_eq!(
            compute_chunks(&[(0, 1), (5, 6), (C - 1, C + 1), (3 * C, 4 * C), (6 * C + 1, 6 * C + 2)]),
            [0, 1, 3, 6]
        );
        assert!(compute_chunks(&[(7, 7)]).is_empty());
    }
}

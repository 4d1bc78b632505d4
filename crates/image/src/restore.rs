//! Restores a container to an image or device, or only checks its hashes.

use std::{
    fs::File,
    io::{Seek, SeekFrom},
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use crate::{
    Container, Error, Result,
    direct::{AlignedBuffer, begin_direct, write_all},
    format::CHUNK_BYTES,
    save::{Temporary, sync_directory},
    sparse::{apply_zero, compute_data_runs},
};

/// The options of a restoration.
#[derive(Clone, Copy, Debug)]
pub struct RestoreOptions<'a> {
    /// A part of the temporary name of the image ([`temporary_path`](crate::temporary_path)).
    pub mark: &'a str,
    /// Threads that read, decompress, check and write; 0 counts as 1.
    pub threads: usize,
    /// Whether an existing file may be replaced. The caller decides whether a device may be
    /// written.
    pub replace: bool,
    /// Whether the image is made durable before the call returns.
    pub sync: bool,
    /// Called before every chunk. If it returns true, the restoration stops and removes its file.
    pub stop: fn() -> bool,
}

impl Default for RestoreOptions<'_> {
    fn default() -> Self {
        Self { mark: "", threads: 1, replace: false, sync: true, stop: || false }
    }
}

/// The result of a restoration or check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// Size of the volume, bytes.
    pub volume_bytes: u64,
    /// Bytes in chunks that are not zero. Every chunk was checked against its hash.
    pub data_bytes: u64,
    /// Bytes written: pages that are not zero, or whole chunks to a device.
    pub written_bytes: u64,
    /// The content hash.
    pub content_hash: String,
}

/// Restores the volume in `container` to the sparse file `to`, equal byte for byte. The name
/// appears only when the file is complete.
///
/// Errors: the container is truncated or damaged, with the position; `to` exists and may not be
/// replaced, or is not a file. After an error there is no new file.
pub fn restore(container: &Path, to: &Path, options: &RestoreOptions<'_>) -> Result<RestoreReport> {
    let container = Container::open_until(container, options.stop)?;
    if to.symlink_metadata().is_ok_and(|found| !(options.replace && found.is_file())) {
        return Err(Error::Exists { path: to.to_owned() });
    }
    let temporary = Temporary::create(to, options.mark, &container.file)?;
    let report = restore_file(&container, &temporary, options)?;
    temporary.rename(to)?;
    if options.sync {
        sync_directory(to)?;
    }
    Ok(report)
}

/// Checks every chunk of a container against its hash, and writes nothing. Errors: those of
/// [`restore`].
pub fn verify(container: &Path, options: &RestoreOptions<'_>) -> Result<RestoreReport> {
    let container = Container::open_until(container, options.stop)?;
    for_each_chunk(&container, options, &|_, _| Ok(0))
}

/// Bytes of a device that are zeroed in one call.
const ZERO_BYTES: usize = 64 << 20;

fn restore_file(container: &Container, to: &Temporary, options: &RestoreOptions<'_>) -> Result<RestoreReport> {
    let Temporary { path: to, file, .. } = to;
    file.set_len(container.volume_bytes()).map_err(Error::io("set the size of", to))?;
    begin_direct(file, container.volume_bytes());
    let report = for_each_chunk(container, options, &|start, bytes| write_runs(file, to, start, bytes))?;
    if options.sync {
        file.sync_all().map_err(Error::io("sync", to))?;
    }
    Ok(report)
}

/// Restores like [`restore`], to a block device that is open for writing. The caller decided that
/// it may be written; `to` is its name in messages.
///
/// Errors: the container is damaged; the device is too small. After an error, the device may be
/// partly written.
pub fn restore_device(
    container: &Path,
    mut device: &File,
    to: &Path,
    options: &RestoreOptions<'_>,
) -> Result<RestoreReport> {
    let container = &Container::open_until(container, options.stop)?;
    let (found, wanted) =
        (device.seek(SeekFrom::End(0)).map_err(Error::io("find the size of", to))?, container.volume_bytes());
    if found < wanted {
        return Err(Error::TooSmall { path: to.to_owned(), found, wanted });
    }
    let zero = |start: u64, end: u64| {
        // In pieces, because one call for a large device would delay a signal.
        for from in (start..end).step_by(ZERO_BYTES) {
            if (options.stop)() {
                return Err(Error::Stopped { path: to.to_owned() });
            }
            let length = (end - from).min(ZERO_BYTES as u64);
            apply_zero(device, from, length).map_err(Error::io("zero a part of", to))?;
        }
        Ok(())
    };
    let mut at = 0;
    for entry in &container.entries {
        zero(at, entry.chunk * CHUNK_BYTES)?;
        at = ((entry.chunk + 1) * CHUNK_BYTES).min(wanted);
    }
    zero(at, wanted)?;
    begin_direct(device, wanted);
    // Stored chunks are written whole, because the device may have other data in the pages that are
    // zero.
    let write = |start: u64, bytes: &[u8]| {
        write_all(device, bytes, start).map_err(Error::io("write", to))?;
        Ok(bytes.len() as u64)
    };
    let report = for_each_chunk(container, options, &write)?;
    device.sync_all().map_err(Error::io("sync", to))?;
    Ok(report)
}

fn write_runs(file: &File, path: &Path, start: u64, bytes: &[u8]) -> Result<u64> {
    let mut written = 0;
    for run in compute_data_runs(bytes) {
        write_all(file, &bytes[run.clone()], start + run.start as u64).map_err(Error::io("write", path))?;
        written += run.len() as u64;
    }
    Ok(written)
}

/// Processes a chunk that was checked: its position in the volume and its bytes. Returns the bytes
/// that it wrote.
type Act<'a> = dyn Fn(u64, &[u8]) -> Result<u64> + Sync + 'a;

/// Reads, decompresses and checks all chunks, on several threads. The first failure ends it.
fn for_each_chunk(container: &Container, options: &RestoreOptions<'_>, act: &Act<'_>) -> Result<RestoreReport> {
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (written, failure) = (AtomicU64::new(0), Mutex::new(None));
    let work = || -> Result<()> {
        let mut decompressor = zstd::bulk::Decompressor::new().map_err(Error::io("decompress", &container.path))?;
        let (mut frame, mut buffer) = (Vec::new(), AlignedBuffer::new(CHUNK_BYTES as usize));
        let out = buffer.as_mut_slice();
        while !is_over.load(Ordering::Relaxed) {
            let Some(entry) = container.entries.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            if (options.stop)() {
                return Err(Error::Stopped { path: container.path.clone() });
            }
            let length = container.read_chunk(entry, &mut frame, out, &mut decompressor)?;
            written.fetch_add(act(entry.chunk * CHUNK_BYTES, &out[..length])?, Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| {
                if let Err(error) = work() {
                    is_over.store(true, Ordering::Relaxed);
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    Ok(RestoreReport {
        volume_bytes: container.volume_bytes(),
        data_bytes: container.data_bytes(),
        written_bytes: written.into_inner(),
        content_hash: container.content_hash().to_owned(),
    })
}

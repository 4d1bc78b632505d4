//! Files and block devices of the operating system.

#[cfg(test)]
mod tests;

use std::{
    fs::{File, OpenOptions},
    io::{self, IoSlice, IoSliceMut, Seek, SeekFrom},
    os::{
        fd::AsRawFd,
        unix::fs::{FileTypeExt, OpenOptionsExt},
    },
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::{
    fs::{FallocateFlags, FlockOperation, OFlags},
    io::{Errno, ReadWriteFlags},
};
use senesce_core::Bytes;

use crate::{
    BlockDevice, BlockError, BlockOperation, BlockProblem, BlockResult, aligned::AlignedBuffer,
    check_range::check_range,
};

/// The alignment of offsets, lengths and sizes for requests that bypass the page cache: the largest
/// one that a device requires.
pub const DIRECT_ALIGNMENT: u32 = 4096;

/// Writes to block devices of at least this length bypass the page cache. Copying them there, and
/// finding the pages again for a sync, takes more processor time than the device needs.
const LONG_WRITE: usize = 512 << 10;
/// The same limit for reads. Shorter ones benefit from the kernel's readahead.
const LONG_READ: usize = 1 << 20;

/// The number of request buffers that are kept. A burst of readers must not increase the memory
/// permanently.
const KEPT_BUFFERS: usize = 2;

/// The mode of opening a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Bypass the page cache (O_DIRECT); requests must then be multiples of [`DIRECT_ALIGNMENT`].
    /// Their memory need not be aligned, because it is copied.
    pub direct: bool,
    /// Refuse writes; other readers are then allowed.
    pub read_only: bool,
}

/// A file or block device of the operating system, opened exclusively. A second opening of the same
/// file fails, in this process and in others. So does the opening of a mounted block device, unless
/// it is read-only.
///
/// The size is that of the file at opening; with `direct` it is rounded down to the alignment.
#[derive(Debug)]
pub struct FileDevice {
    name: String,
    file: File,
    /// The same file opened with O_DIRECT, for long reads and writes, if possible.
    past: Option<File>,
    size: Bytes,
    options: FileOptions,
    /// Separate open files for flushes and for durable writes. The kernel reports a lost write once
    /// to each open file. If both calls shared one, only the first would fail, and the other would
    /// confirm lost data.
    ///
    /// `None` if the device is read-only.
    flushes: Option<Mutex<File>>,
    durable_writes: Option<Mutex<File>>,
    /// Whether a flush failed: the kernel reports that once and forgets which writes it lost.
    failed: AtomicBool,
    buffers: Mutex<Vec<AlignedBuffer>>,
}

impl FileDevice {
    /// Creates a sparse file of this size. Errors: the file exists, or cannot be created.
    pub fn create(path: &Path, size: Bytes, options: FileOptions) -> BlockResult<Self> {
        let failed = |source| failure(path, source);
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
        file.set_len(size.0).and_then(|()| file.sync_all()).map_err(failed)?;
        drop(file);
        Self::open(path, size, options)
    }

    /// Opens a file or block device of at least this size.
    ///
    /// Errors: it does not exist, has another type, is too short, or is in use.
    pub fn open(path: &Path, at_least: Bytes, options: FileOptions) -> BlockResult<Self> {
        let failed = |source| failure(path, source);
        let kind = std::fs::metadata(path).map_err(failed)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(failed(io::Error::other("it is neither a file nor a block device")));
        }
        let mut flags = OFlags::empty();
        if options.direct {
            flags |= OFlags::DIRECT;
        }
        if kind.is_block_device() && !options.read_only {
            flags |= OFlags::EXCL; // fails if the device is mounted or in use
        }
        let mut open = OpenOptions::new();
        open.read(true).write(!options.read_only).custom_flags(flags.bits() as i32);
        let file = open_patiently(&open, path).map_err(failed)?;
        Self::from_file(file, path, at_least, options)
    }

    /// Makes a device from an open file or block device. So a caller who checked the file need not
    /// open its name again. It must be open as in `options`; a block device for writing must be
    /// open with O_EXCL.
    ///
    /// Errors: too short, or locked by another process.
    pub fn from_file(mut file: File, path: &Path, at_least: Bytes, options: FileOptions) -> BlockResult<Self> {
        let failed = |source| failure(path, source);
        let kind = file.metadata().map_err(failed)?.file_type();
        let lock = match options.read_only {
            true => FlockOperation::NonBlockingLockShared,
            false => FlockOperation::NonBlockingLockExclusive,
        };
        rustix::fs::flock(&file, lock).map_err(|errno| match errno {
            Errno::WOULDBLOCK => failed(io::Error::new(io::ErrorKind::ResourceBusy, "it is open elsewhere")),
            errno => failed(errno.into()),
        })?;
        let mut size = file.seek(SeekFrom::End(0)).map_err(failed)?;
        if size < at_least.0 {
            let short = format!("it has {size} bytes, and {} are needed", at_least.0);
            return Err(failed(io::Error::other(short)));
        }
        if options.direct {
            size -= size % u64::from(DIRECT_ALIGNMENT);
        }
        if kind.is_block_device() && !options.read_only {
            forget_lost_writes(&file);
        }
        let again = |flags: OFlags| {
            // By the descriptor, because the name may lead to another file now.
            let name = format!("/proc/self/fd/{}", file.as_raw_fd());
            OpenOptions::new().read(true).write(true).custom_flags(flags.bits() as i32).open(name)
        };
        // Not for files: the page cache reads their holes faster.
        let has_past = kind.is_block_device() && !options.read_only && !options.direct;
        // Without it, long requests use the page cache, and flushes make writes durable.
        let past = has_past.then(|| again(OFlags::DIRECT).ok()).flatten();
        let syncing = || {
            let file = (!options.read_only).then(|| again(OFlags::empty())).transpose();
            let twice = |error| io::Error::other(format!("cannot open it a second time by /proc/self/fd: {error}"));
            Ok(file.map_err(|error| failed(twice(error)))?.map(Mutex::new))
        };
        let (flushes, durable_writes) = (syncing()?, syncing()?);
        let name = path.display().to_string();
        let (failed, buffers) = (AtomicBool::new(false), Mutex::default());
        Ok(Self { name, file, past, size: Bytes(size), options, flushes, durable_writes, failed, buffers })
    }

    /// Calls `work` with aligned memory of this length, which is kept for the next request.
    fn with_aligned<T>(&self, len: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
        let free = || lock(&self.buffers);
        let mut buffer = free().pop().unwrap_or_default();
        let done = work(buffer.memory(len));
        let mut kept = free();
        if kept.len() < KEPT_BUFFERS {
            kept.push(buffer);
        }
        done
    }

    /// Writes the whole blocks with O_DIRECT, and the partial first and last block through the page
    /// cache.
    fn write_long(&self, past: &File, offset: u64, parts: &[IoSlice<'_>], len: usize) -> io::Result<()> {
        let alignment = DIRECT_ALIGNMENT as usize;
        let head = (offset.next_multiple_of(alignment as u64) - offset) as usize;
        let middle = (len - head) / alignment * alignment;
        self.with_aligned(middle, |memory| {
            for (from, to) in [(0, head), (head + middle, len)] {
                let memory = &mut memory[..to - from];
                gather(parts, from, memory);
                write_whole(&self.file, offset + from as u64, memory)?;
            }
            gather(parts, head, memory);
            let offset = offset + head as u64;
            // The error may belong to another write, see `read_long`. If it belongs to this one, a
            // flush reports it.
            write_whole(past, offset, memory).or_else(|_| write_whole(&self.file, offset, memory))
        })
    }

    fn expect_no_failed_flush(&self) -> BlockResult<()> {
        if self.failed.load(Ordering::SeqCst) {
            let lost = io::Error::other("an earlier flush failed, and what it lost is not known");
            return Err(self.error(BlockOperation::Flush, 0, 0, lost));
        }
        Ok(())
    }

    /// Reads the whole blocks of a long range with O_DIRECT, if possible. The kernel first writes
    /// back their dirty pages. Returns whether `take` received the range.
    fn read_long(&self, offset: u64, len: usize, take: impl FnOnce(&[u8])) -> bool {
        let Some(past) = self.past.as_ref().filter(|_| len >= LONG_READ) else { return false };
        let alignment = DIRECT_ALIGNMENT as usize;
        let head = (offset % alignment as u64) as usize;
        let whole_len = (head + len).next_multiple_of(alignment);
        self.with_aligned(whole_len, |memory| {
            let start = offset - head as u64;
            match whole(whole_len, |done| rustix::io::pread(past, &mut memory[done..], start + done as u64)) {
                Ok(()) => {
                    take(&memory[head..head + len]);
                    true
                }
                // The block size may be larger, or the device ends within a block. Or the error
                // belongs to a write elsewhere: the kernel writes back before it reads, and returns
                // all earlier errors. The page cache reports the errors of this range.
                Err(_) => false,
            }
        })
    }

    fn error(&self, operation: BlockOperation, offset: u64, len: usize, source: io::Error) -> BlockError {
        BlockError::new(&self.name, operation, offset, len as u64, BlockProblem::System(source))
    }
}

/// Drops pages that an earlier user of a block device wrote and that the device did not store. The
/// kernel keeps them as if the device had them, also if that user saw the error. An error that no
/// user saw would fail our first flush.
///
/// Errors are ignored: if the device still fails, the requests of the new user report it.
fn forget_lost_writes(file: &File) {
    let _ = file.sync_data();
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A search for a free loop device claims all of them for a moment, so a busy device is retried for
/// a tenth of a second.
fn open_patiently(open: &OpenOptions, path: &Path) -> io::Result<File> {
    for _ in 0..20 {
        match open.open(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(Duration::from_millis(5)),
            done => return done,
        }
    }
    open.open(path)
}

fn failure(path: &Path, source: io::Error) -> BlockError {
    BlockError::new(path.display().to_string(), BlockOperation::Open, 0, 0, BlockProblem::System(source))
}

/// Repeats a transfer that may be interrupted or partial until all of `len` bytes are done.
fn whole(len: usize, mut transfer: impl FnMut(usize) -> Result<usize, Errno>) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        match transfer(done) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => done += bytes,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn write_whole(file: &File, offset: u64, memory: &[u8]) -> io::Result<()> {
    whole(memory.len(), |done| rustix::io::pwrite(file, &memory[done..], offset + done as u64))
}

/// Copies bytes from the concatenated parts, from byte `from` on.
fn gather(parts: &[IoSlice<'_>], from: usize, out: &mut [u8]) {
    let (mut skip, mut rest) = (from, out);
    for part in parts {
        let before = skip.min(part.len());
        let part = &part[before..];
        skip -= before;
        let (now, later) = rest.split_at_mut(part.len().min(rest.len()));
        now.copy_from_slice(&part[..now.len()]);
        rest = later;
    }
}

impl BlockDevice for FileDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> Bytes {
        self.size
    }

    fn alignment(&self) -> u32 {
        if self.options.direct { DIRECT_ALIGNMENT } else { 1 }
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        check_range(self, BlockOperation::Read, offset, out.len() as u64)?;
        let read = |memory: &mut [u8]| {
            whole(memory.len(), |done| rustix::io::pread(&self.file, &mut memory[done..], offset + done as u64))
        };
        let len = out.len();
        let done = if self.options.direct {
            self.with_aligned(len, |memory| read(memory).map(|()| out.copy_from_slice(memory)))
        } else {
            if self.read_long(offset, len, |bytes| out.copy_from_slice(bytes)) { Ok(()) } else { read(out) }
        };
        done.map_err(|source| self.error(BlockOperation::Read, offset, len, source))
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        check_range(self, BlockOperation::Write, offset, data.len() as u64)?;
        let done = if self.options.direct {
            self.with_aligned(data.len(), |memory| {
                memory.copy_from_slice(data);
                write_whole(&self.file, offset, memory)
            })
        } else if let Some(past) = self.past.as_ref().filter(|_| data.len() >= LONG_WRITE) {
            self.write_long(past, offset, &[IoSlice::new(data)], data.len())
        } else {
            write_whole(&self.file, offset, data)
        };
        done.map_err(|source| self.error(BlockOperation::Write, offset, data.len(), source))
    }

    fn read_parts_at(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> BlockResult<()> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        check_range(self, BlockOperation::Read, offset, len as u64)?;
        let failed = |source| self.error(BlockOperation::Read, offset, len, source);
        if self.options.direct {
            let done = self.with_aligned(len, |memory| {
                whole(len, |done| rustix::io::pread(&self.file, &mut memory[done..], offset + done as u64))?;
                let mut at = 0;
                for part in parts {
                    let len = part.len();
                    part.copy_from_slice(&memory[at..at + len]);
                    at += len;
                }
                Ok(())
            });
            return done.map_err(failed);
        }
        let is_read = self.read_long(offset, len, |bytes| {
            let mut at = 0;
            for part in parts.iter_mut() {
                let len = part.len();
                part.copy_from_slice(&bytes[at..at + len]);
                at += len;
            }
        });
        if is_read {
            return Ok(());
        }
        let done = match rustix::io::preadv(&self.file, parts, offset) {
            Ok(bytes) => bytes,
            Err(Errno::INTR) => 0,
            Err(errno) => return Err(failed(errno.into())),
        };
        // The rest of a partial call is read part by part.
        let mut at = 0;
        for part in parts {
            let from = done.saturating_sub(at).min(part.len());
            if from < part.len() {
                self.read_at(offset + (at + from) as u64, &mut part[from..])?;
            }
            at += part.len();
        }
        Ok(())
    }

    fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> BlockResult<()> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        check_range(self, BlockOperation::Write, offset, len as u64)?;
        let failed = |source| self.error(BlockOperation::Write, offset, len, source);
        if self.options.direct {
            let done = self.with_aligned(len, |memory| {
                gather(parts, 0, memory);
                write_whole(&self.file, offset, memory)
            });
            return done.map_err(failed);
        }
        if let Some(past) = self.past.as_ref().filter(|_| len >= LONG_WRITE) {
            return self.write_long(past, offset, parts, len).map_err(failed);
        }
        let done = match rustix::io::pwritev(&self.file, parts, offset) {
            Ok(bytes) => bytes,
            Err(Errno::INTR) => 0,
            Err(errno) => return Err(failed(errno.into())),
        };
        // The rest of a partial call is written part by part.
        let mut at = 0;
        for part in parts {
            let from = done.saturating_sub(at).min(part.len());
            if from < part.len() {
                self.write_at(offset + (at + from) as u64, &part[from..])?;
            }
            at += part.len();
        }
        Ok(())
    }

    fn write_durably_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        // A flush of the file waits for all other writes, perhaps hundreds of MiB. This call waits
        // for its own range only.
        let is_by_range = !self.options.direct && (self.past.is_none() || data.len() < LONG_WRITE);
        if !is_by_range {
            self.write_at(offset, data)?;
            return self.flush();
        }
        check_range(self, BlockOperation::Write, offset, data.len() as u64)?;
        let file = self.durable_writes.as_ref().map(lock);
        // The kernel refuses writes to a file that is open for reading.
        let file = file.as_deref().unwrap_or(&self.file);
        self.expect_no_failed_flush()?;
        let write = |done: usize| {
            let parts = [IoSlice::new(&data[done..])];
            rustix::io::pwritev2(file, &parts, offset + done as u64, ReadWriteFlags::DSYNC)
        };
        match whole(data.len(), write) {
            // The kernel is older than 4.7, or the file system does not support the flag.
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::OPNOTSUPP | Errno::NOSYS)) => {
                self.write_at(offset, data)?;
                self.flush()
            }
            done => done.map_err(|source| {
                // The kernel reports a lost write once, here or to a flush.
                self.failed.store(true, Ordering::SeqCst);
                self.error(BlockOperation::Write, offset, data.len(), source)
            }),
        }
    }

    fn flush(&self) -> BlockResult<()> {
        let Some(file) = self.flushes.as_ref().map(lock) else { return Ok(()) };
        self.expect_no_failed_flush()?;
        file.sync_data().map_err(|source| {
            // Set before another flush can lock the file.
            self.failed.store(true, Ordering::SeqCst);
            self.error(BlockOperation::Flush, 0, 0, source)
        })
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        check_range(self, BlockOperation::Discard, offset, len)?;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        loop {
            match rustix::fs::fallocate(&self.file, flags, offset, len) {
                Err(Errno::INTR) if len > 0 => {}
                // A discard is only a hint.
                Ok(()) | Err(Errno::OPNOTSUPP) => return Ok(()),
                Err(_) if len == 0 => return Ok(()),
                Err(errno) => return Err(self.error(BlockOperation::Discard, offset, len as usize, errno.into())),
            }
        }
    }
}

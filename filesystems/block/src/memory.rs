//! A device in memory with cheap copies.

use std::{
    io::{IoSlice, IoSliceMut},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use senesce_core::Bytes;

use crate::{BlockDevice, BlockOperation, BlockResult, Slot, check_range::check_range};

/// The bytes that are copied together; forks share them until one of them writes there.
pub(crate) const CHUNK_BYTES: usize = 4096;

/// The first bytes of the slot; the bytes after them stay zero.
type Chunk = Option<Arc<Slot>>;

/// A device in memory. Unwritten chunks and wholly discarded ones take no memory, and read as
/// zeros.
///
/// Flushes do nothing, because no write is lost. To simulate losses, see
/// [`Recording`](crate::Recording).
#[derive(Debug)]
pub struct MemoryDevice {
    name: String,
    size: Bytes,
    chunks: RwLock<Vec<Chunk>>,
}

impl MemoryDevice {
    /// A device of zeros.
    pub fn new(name: impl Into<String>, size: Bytes) -> Self {
        let chunks = vec![None; size.0.div_ceil(CHUNK_BYTES as u64) as usize];
        Self { name: name.into(), size, chunks: RwLock::new(chunks) }
    }

    /// An independent copy. Cost: 8 bytes for each 4 KiB of the size.
    pub fn fork(&self) -> Self {
        Self { name: self.name.clone(), size: self.size, chunks: RwLock::new(self.read().clone()) }
    }

    /// All contents.
    pub fn contents(&self) -> Vec<u8> {
        let mut all = vec![0; self.size.0 as usize];
        copy_out(&self.read(), 0, &mut all);
        all
    }

    /// Whether both have the same contents. Cost: little for shared chunks.
    pub fn same_contents(&self, other: &Self) -> bool {
        const ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];
        if self.size != other.size {
            return false;
        }
        let (mine, theirs) = (self.read().clone(), other.read().clone());
        mine.iter().zip(&theirs).all(|(a, b)| match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
            (Some(one), None) | (None, Some(one)) => one[..CHUNK_BYTES] == ZEROS,
        })
    }

    /// The memory of the contents, including shared chunks.
    pub fn allocated(&self) -> Bytes {
        Bytes((self.read().iter().flatten().count() * CHUNK_BYTES) as u64)
    }

    // If a thread panicked during a write, the write is partial, as on a real device.
    fn read(&self) -> RwLockReadGuard<'_, Vec<Chunk>> {
        self.chunks.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Chunk>> {
        self.chunks.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pieces of a range: chunk, first byte in it, bytes.
pub(crate) fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let mut at = offset as usize;
    let end = at + len;
    std::iter::from_fn(move || {
        let (chunk, first) = (at / CHUNK_BYTES, at % CHUNK_BYTES);
        let bytes = (CHUNK_BYTES - first).min(end - at);
        at += bytes;
        (bytes > 0).then_some((chunk, first, bytes))
    })
}

fn copy_out(chunks: &[Chunk], offset: u64, out: &mut [u8]) {
    let mut done = 0;
    for (chunk, first, bytes) in pieces(offset, out.len()) {
        match &chunks[chunk] {
            Some(data) => out[done..done + bytes].copy_from_slice(&data[first..first + bytes]),
            None => out[done..done + bytes].fill(0),
        }
        done += bytes;
    }
}

fn copy_in(chunks: &mut [Chunk], offset: u64, data: &[u8]) {
    let mut done = 0;
    for (chunk, first, bytes) in pieces(offset, data.len()) {
        let memory = chunks[chunk].get_or_insert_with(|| Arc::new(Slot::zeros()));
        Arc::make_mut(memory)[first..first + bytes].copy_from_slice(&data[done..done + bytes]);
        done += bytes;
    }
}

impl BlockDevice for MemoryDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> Bytes {
        self.size
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        check_range(self, BlockOperation::Read, offset, out.len() as u64)?;
        copy_out(&self.read(), offset, out);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        check_range(self, BlockOperation::Write, offset, data.len() as u64)?;
        copy_in(&mut self.write(), offset, data);
        Ok(())
    }

    fn read_parts_at(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> BlockResult<()> {
        check_range(self, BlockOperation::Read, offset, parts.iter().map(|part| part.len() as u64).sum())?;
        let (chunks, mut at) = (self.read(), offset);
        for part in parts {
            copy_out(&chunks, at, part);
            at += part.len() as u64;
        }
        Ok(())
    }

    fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> BlockResult<()> {
        check_range(self, BlockOperation::Write, offset, parts.iter().map(|part| part.len() as u64).sum())?;
        let (mut chunks, mut at) = (self.write(), offset);
        for part in parts {
            copy_in(&mut chunks, at, part);
            at += part.len() as u64;
        }
        Ok(())
    }

    fn flush(&self) -> BlockResult<()> {
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        check_range(self, BlockOperation::Discard, offset, len)?;
        let mut chunks = self.write();
        for (chunk, _, bytes) in pieces(offset, len as usize) {
            if bytes == CHUNK_BYTES {
                chunks[chunk] = None;
            }
        }
        Ok(())
    }
}

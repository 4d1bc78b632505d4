//! Reads of a device in use, past the page cache if the system allows it. So a read returns the
//! latest writes of the file system.

use std::{
    collections::{HashMap, VecDeque},
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    rc::Rc,
};

use rustix::fs::OFlags;

/// Alignment of direct reads, bytes. No device has larger sectors.
const ALIGN_BYTES: usize = 4096;
/// The number of cached pieces, of up to 64 KiB each.
const KEPT: usize = 256;

/// A device with a cache of its last reads.
#[derive(Debug)]
pub(super) struct Device {
    file: File,
    kept: HashMap<u64, Rc<[u8]>>,
    order: VecDeque<u64>,
}

impl Device {
    /// Opens the device read-only.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let direct = OFlags::DIRECT.bits() as i32;
        let file = match OpenOptions::new().read(true).custom_flags(direct).open(path) {
            // Images in memory do not support direct reads.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => File::open(path)?,
            opened => opened?,
        };
        Ok(Self { file, kept: HashMap::new(), order: VecDeque::new() })
    }

    /// Reads `length` bytes at `offset`.
    pub(super) fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let before = (offset % ALIGN_BYTES as u64) as usize;
        let whole = (before + length).next_multiple_of(ALIGN_BYTES);
        let mut buffer = vec![0; whole + ALIGN_BYTES];
        let skip = buffer.as_ptr().align_offset(ALIGN_BYTES);
        let aligned = buffer.get_mut(skip..skip + whole).ok_or(io::ErrorKind::OutOfMemory)?;
        // The last sectors of an image need not fill the unit.
        let mut got = 0;
        while got < before + length {
            match self.file.read_at(&mut aligned[got..], offset - before as u64 + got as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => got += more,
            }
        }
        Ok(aligned[before..before + length].to_vec())
    }

    /// Reads like `read`, with a cache: neighbouring inodes need the same piece. A caller must use
    /// the same length for each offset.
    pub(super) fn read_kept(&mut self, offset: u64, length: usize) -> io::Result<Rc<[u8]>> {
        if let Some(kept) = self.kept.get(&offset).filter(|kept| kept.len() == length) {
            return Ok(Rc::clone(kept));
        }
        let bytes: Rc<[u8]> = self.read(offset, length)?.into();
        if self.order.len() >= KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.kept.remove(&oldest);
        }
        if self.kept.insert(offset, Rc::clone(&bytes)).is_none() {
            self.order.push_back(offset);
        }
        Ok(bytes)
    }
}

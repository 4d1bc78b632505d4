//! The source of the bytes: a device, an image, or memory.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom},
    os::unix::fs::FileExt,
};

/// Reads at positions, from several threads at once.
pub trait ReadAt: Sync {
    /// Fills the whole buffer with the bytes from `offset_bytes` on.
    ///
    /// Errors: those of the device, or `UnexpectedEof` if it ends before the buffer is full.
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// The length of the device or image, bytes.
    fn length_bytes(&self) -> io::Result<u64>;
}

impl ReadAt for File {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset_bytes)
    }

    /// The position of the end, which works for block devices too (their metadata has 0). Moves the
    /// file's cursor.
    fn length_bytes(&self) -> io::Result<u64> {
        let mut cursor = self;
        cursor.seek(SeekFrom::End(0))
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = usize::try_from(offset_bytes)
            .ok()
            .and_then(|start| self.get(start..start.checked_add(buffer.len())?))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn length_bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_at(offset_bytes, buffer)
    }

    fn length_bytes(&self) -> io::Result<u64> {
        (**self).length_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn file_and_memory_have_equal_bytes() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        assert_eq!(ReadAt::length_bytes(&file).unwrap(), 256);
        assert_eq!(bytes.length_bytes().unwrap(), 256);
        for (offset, length, fits) in [(0, 256, true), (250, 6, true), (250, 7, false), (u64::MAX, 1, false)] {
            let (mut a, mut b) = (vec![0; length], vec![0; length]);
            assert_eq!(ReadAt::read_at(&file, offset, &mut a).is_ok(), fits, "{offset} {length}");
            assert_eq!(bytes.read_at(offset, &mut b).is_ok(), fits, "{offset} {length}");
            if fits {
                assert_eq!(a, b);
            }
        }
    }
}

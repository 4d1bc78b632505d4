//! The seal: a checksum of the whole file at its end.
//!
//! The checksum of zstd does not cover the headers of its frame, so some changes of the file would
//! change nothing that a reader sees. The seal covers every byte before it. It is a skippable frame
//! of zstd, so other programs unpack a bundle as usual.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

/// The start of a skippable frame with 32 bytes.
const HEAD: [u8; 8] = [0x5e, 0x2a, 0x4d, 0x18, 32, 0, 0, 0];
/// The length of the seal, bytes.
pub(crate) const SEAL_BYTES: u64 = 40;

/// The seal of a file whose other bytes have this checksum.
fn seal(hash: Sha256) -> Vec<u8> {
    [&HEAD[..], &hash.finalize()[..]].concat()
}

/// Whether these bytes are the seal of that content. Reads all of it.
pub(crate) fn is_sealed(mut content: impl Read, found: &[u8]) -> io::Result<bool> {
    let mut sealing = Sealing::new(io::sink());
    io::copy(&mut content, &mut sealing)?;
    Ok(seal(sealing.hash) == found)
}

/// The digits of a checksum.
pub(crate) fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A writer that can end its output with a seal.
pub(crate) struct Sealing<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> Sealing<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, hash: Sha256::new() }
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&seal(self.hash))?;
        Ok(self.out)
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.hash.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

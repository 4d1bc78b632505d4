//! The content of one file, as the pieces that were written to it.

use std::io;

use senesce_core::StopFn;
use senesce_oplog::{Payload, seeded_bytes};

use crate::content::{check_stop, for_each_chunk};

/// A range of a payload's bytes, at an offset in a file.
#[derive(Clone, Debug)]
struct Piece {
    at: u64,
    len: u64,
    /// The offset of the piece in its payload, bytes.
    skip: u64,
    payload: Payload,
}

/// The content of a file: pieces in order without overlaps, with zeros between them.
///
/// Seeded payloads are kept as a seed, so that a file needs no memory for its bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    len: u64,
    pieces: Vec<Piece>,
}

impl Contents {
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Writes the first `len` bytes of a payload at `at`.
    pub fn write(&mut self, at: u64, payload: Payload, len: u64) {
        if len == 0 {
            return;
        }
        self.cut(at, len);
        let place = self.pieces.partition_point(|piece| piece.at < at);
        self.pieces.insert(place, Piece { at, len, skip: 0, payload });
        self.len = self.len.max(at + len);
    }

    /// Makes a range read as zeros. The length of the file does not change.
    pub fn clear(&mut self, at: u64, len: u64) {
        if len > 0 {
            self.cut(at, len);
        }
    }

    /// Removes the pieces of a range.
    fn cut(&mut self, at: u64, len: u64) {
        let end = at.saturating_add(len);
        let mut kept = Vec::with_capacity(self.pieces.len() + 2);
        for piece in self.pieces.drain(..) {
            let piece_end = piece.at + piece.len;
            if piece.at < at {
                kept.push(Piece { len: piece.len.min(at - piece.at), ..piece.clone() });
            }
            if piece_end > end {
                let cut = end.saturating_sub(piece.at);
                kept.push(Piece { at: piece.at + cut, len: piece.len - cut, skip: piece.skip + cut, ..piece });
            }
        }
        self.pieces = kept;
    }

    pub fn set_len(&mut self, len: u64) {
        self.pieces.retain(|piece| piece.at < len);
        if let Some(last) = self.pieces.last_mut() {
            last.len = last.len.min(len - last.at);
        }
        self.len = len;
    }

    /// BLAKE3 of the whole content. Fails if `stop` returns true.
    pub fn hash(&self, stop: StopFn) -> io::Result<[u8; 32]> {
        let mut hasher = blake3::Hasher::new();
        let mut at = 0;
        for piece in &self.pieces {
            update_zeros(&mut hasher, piece.at - at, stop)?;
            piece.each_chunk(|bytes| {
                check_stop(stop)?;
                hasher.update(bytes);
                Ok(())
            })?;
            at = piece.at + piece.len;
        }
        update_zeros(&mut hasher, self.len - at, stop)?;
        Ok(hasher.finalize().into())
    }
}

fn update_zeros(hasher: &mut blake3::Hasher, mut len: u64, stop: StopFn) -> io::Result<()> {
    let zeros = [0; 64 << 10];
    while len > 0 {
        check_stop(stop)?;
        let part = len.min(zeros.len() as u64);
        hasher.update(&zeros[..part as usize]);
        len -= part;
    }
    Ok(())
}

impl Piece {
    fn each_chunk(&self, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match &self.payload {
            Payload::Bytes(bytes) => each(&bytes[self.skip as usize..(self.skip + self.len) as usize]),
            Payload::Seeded { seed, .. } => {
                let mut buffer = vec![0; 64 << 10];
                let (mut at, end) = (self.skip, self.skip + self.len);
                while at < end {
                    // Seeded bytes are generated from a multiple of eight.
                    let start = at & !7;
                    let size = (end - start).min(buffer.len() as u64) as usize;
                    seeded_bytes(*seed, start, &mut buffer[..size]);
                    each(&buffer[(at - start) as usize..size])?;
                    at = start + size as u64;
                }
                Ok(())
            }
            Payload::File { .. } => unreachable!("to_memory() is called before a payload is written"),
        }
    }
}

/// A payload that does not depend on a file of the host.
pub(super) fn to_memory(payload: &Payload) -> io::Result<Payload> {
    let Payload::File { .. } = payload else { return Ok(payload.clone()) };
    let mut all = Vec::new();
    for_each_chunk(payload, &mut Vec::new(), |bytes| {
        all.extend_from_slice(bytes);
        Ok::<(), io::Error>(())
    })?;
    Ok(Payload::Bytes(all.into()))
}

//! A compression group: the compressed contents of several blocks of a file.
//!
//! The first eight bytes hold the length of the frame, the number of blocks, and the method (1: one
//! frame of Zstandard).

use super::{
    BLOCK, Block, Damage, Decoded,
    bytes::{put, u32_at},
    pointer::MAX_GROUP,
    zero_block,
};

const HEAD: usize = 8;
const ZSTD: u8 = 1;
/// The cheapest usual level of the library, because a consistency point waits for the compression.
const LEVEL: i32 = 1;

/// Compresses blocks; `None` if the result exceeds `most` bytes, head included.
pub(crate) fn compress(blocks: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; most];
    // Compression fails only if the output does not fit.
    let length = zstd::bulk::compress_to_buffer(blocks, out.get_mut(HEAD..)?, LEVEL).ok()?;
    put(&mut out, 0, &(length as u32).to_le_bytes());
    out[4] = (blocks.len() / BLOCK) as u8;
    out[5] = ZSTD;
    out.truncate(HEAD + length);
    Some(out)
}

/// Decompresses a group of `of` blocks from the contents of its stored blocks.
pub(crate) fn decompress(stored: &[u8], of: u8) -> Decoded<Vec<Box<Block>>> {
    let damage = |field, found: String, expected: String| Damage::new("compression group", field, found, expected);
    let length = u32_at(stored, 0) as usize;
    if stored[4] != of || of > MAX_GROUP {
        return Err(damage("blocks", stored[4].to_string(), of.to_string()));
    }
    if stored[5] != ZSTD {
        return Err(damage("method", stored[5].to_string(), "1".to_owned()));
    }
    let expected = || format!("more than {} and at most {}", stored.len().saturating_sub(BLOCK), stored.len());
    let end = HEAD + length;
    if end > stored.len() || end + BLOCK <= stored.len() {
        return Err(damage("bytes", end.to_string(), expected()));
    }
    let bytes = usize::from(of) * BLOCK;
    let blocks = zstd::bulk::decompress(&stored[HEAD..end], bytes);
    let blocks =
        blocks.map_err(|error| damage("frame", error.to_string(), "one that can be decompressed".to_owned()))?;
    if blocks.len() != bytes {
        return Err(damage("frame's bytes", blocks.len().to_string(), bytes.to_string()));
    }
    let boxed = |bytes: &[u8; BLOCK]| {
        let mut block = zero_block();
        block.copy_from_slice(bytes);
        block
    };
    Ok(blocks.as_chunks::<BLOCK>().0.iter().map(boxed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(blocks: usize) -> Vec<u8> {
        (0..blocks * BLOCK / 8).flat_map(|at| (at as u64 / 3).to_le_bytes()).collect()
    }

    fn padded(mut stored: Vec<u8>) -> Vec<u8> {
        stored.resize(stored.len().next_multiple_of(BLOCK), 0);
        stored
    }

    #[test]
    fn golden() {
        let stored = compress(&[7; 2 * BLOCK], BLOCK).unwrap();
        // A length, two blocks, Zstandard; then the magic number of Zstandard.
        assert_eq!(stored[..12], [(stored.len() - 8) as u8, 0, 0, 0, 2, 1, 0, 0, 0x28, 0xb5, 0x2f, 0xfd]);
        assert_eq!(decompress(&padded(stored), 2).unwrap(), vec![Box::new([7; BLOCK]); 2]);
    }

    #[test]
    fn groups_are_restored_and_overlong_ones_are_none() {
        for blocks in 2..=8 {
            let text = text(blocks);
            let stored = compress(&text, text.len()).unwrap();
            assert_eq!(compress(&text, stored.len() - 1), None);
            let back: Vec<u8> = decompress(&padded(stored), blocks as u8).unwrap().concat_blocks();
            assert_eq!(back, text);
        }
    }

    #[test]
    fn forged_groups_are_refused() {
        let good = padded(compress(&text(4), 3 * BLOCK).unwrap());
        let forge = |at: usize, byte: u8| {
            let mut bad = good.clone();
            bad[at] = byte;
            decompress(&bad, 4).unwrap_err().field
        };
        assert_eq!((forge(4, 3), forge(5, 2)), ("blocks", "method"));
        assert_eq!((forge(2, 1), forge(8, 0)), ("bytes", "frame"));
        assert_eq!(decompress(&[&good[..], &[0; BLOCK]].concat(), 4).unwrap_err().field, "bytes");
    }

    trait Concat {
        fn concat_blocks(self) -> Vec<u8>;
    }

    impl Concat for Vec<Box<Block>> {
        fn concat_blocks(self) -> Vec<u8> {
            self.into_iter().flat_map(|block| block.to_vec()).collect()
        }
    }
}

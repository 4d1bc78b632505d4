//! The data of a write, with the checksums of its blocks. Each block is summed once, for the log
//! and for its trailer.

use std::sync::LazyLock;

use super::{BLOCK, block_sum};

/// Bytes, and the checksums of their first whole blocks, as far as these are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Data<'a> {
    pub bytes: &'a [u8],
    pub sums: &'a [u32],
}

impl<'a> From<&'a [u8]> for Data<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self { bytes, sums: &[] }
    }
}

impl Data<'_> {
    /// The checksums of all whole blocks of `bytes`.
    pub fn sums_of(bytes: &[u8]) -> Vec<u32> {
        bytes.as_chunks::<BLOCK>().0.iter().map(|block| block_sum(block)).collect()
    }

    /// Extends a CRC-32C over these bytes. Blocks with a known checksum are not read again.
    pub fn append_to(&self, sum: u32) -> u32 {
        let sum = self.sums.iter().fold(sum, |sum, block| behind_a_block(sum) ^ block);
        crc32c::crc32c_append(sum, &self.bytes[self.sums.len() * BLOCK..])
    }
}

/// Extends a CRC-32C by one block of zeros. A CRC is linear: XOR with the checksum of the actual
/// block gives the CRC over both. The result combines one table entry for each byte of `sum`.
fn behind_a_block(sum: u32) -> u32 {
    static TABLES: LazyLock<[[u32; 256]; 4]> = LazyLock::new(|| {
        let of = |place: usize, byte: usize| crc32c::crc32c_combine((byte as u32) << (8 * place), 0, BLOCK);
        std::array::from_fn(|place| std::array::from_fn(|byte| of(place, byte)))
    });
    let tables = &*TABLES;
    sum.to_le_bytes().into_iter().zip(tables).fold(0, |all, (byte, table)| all ^ table[usize::from(byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_equal_with_and_without_known_sums() {
        let bytes: Vec<u8> = (0..3 * BLOCK + 100).map(|at| (at * at / 32) as u8).collect();
        for len in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 100] {
            let sums = Data::sums_of(&bytes[..len]);
            assert_eq!(sums.len(), len / BLOCK);
            let want = crc32c::crc32c(&[b"head", &bytes[..len]].concat());
            for known in 0..=sums.len() {
                let data = Data { bytes: &bytes[..len], sums: &sums[..known] };
                assert_eq!(data.append_to(crc32c::crc32c(b"head")), want, "{len} bytes, {known} sums known");
            }
        }
    }
}

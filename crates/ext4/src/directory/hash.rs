//! The hashes by which indexed directories are sorted and listed.
//!
//! There are three functions, each in a variant for names of signed bytes (as first written on x86)
//! and of unsigned bytes. Source: the kernel's documentation of the format, "Hash Tree
//! Directories". The half-MD4 rounds are those of RFC 1320 with half of the words. The Tiny
//! Encryption Algorithm is that of Wheeler and Needham (1994). Tests compare the results with
//! `debugfs -R dx_hash`.

/// The hash function of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HashKind {
    Legacy,
    HalfMd4,
    Tea,
}

/// A hash function with its variant and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameHash {
    pub(crate) kind: HashKind,
    pub(crate) signed: bool,
    pub(crate) seed: [u32; 4],
}

/// The sort key of directories: the hash, then the minor hash.
pub(crate) type HashKey = (u32, u32);

impl NameHash {
    /// The key of a name.
    pub(crate) fn compute(&self, name: &[u8]) -> HashKey {
        const STANDARD: [u32; 4] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];
        let start = if self.seed == [0; 4] { STANDARD } else { self.seed };
        let (major, minor) = match self.kind {
            HashKind::Legacy => (self.legacy(name), 0),
            HashKind::HalfMd4 => {
                let state = self.chunks::<8>(name, start, half_md4);
                (state[1], state[2])
            }
            HashKind::Tea => {
                let state = self.chunks::<4>(name, start, tea);
                (state[0], state[1])
            }
        };
        // The lowest bit is a flag of the index, and the highest value marks the end of the
        // directory.
        const END: u32 = 0xFFFF_FFFE;
        let major = major & !1;
        (if major == END { END - 2 } else { major }, minor)
    }

    /// A byte of a name as a number.
    fn byte(&self, byte: u8) -> u32 {
        if self.signed { byte as i8 as u32 } else { u32::from(byte) }
    }

    /// Passes a name to `transform`, `WORDS` words at a time.
    fn chunks<const WORDS: usize>(
        &self,
        name: &[u8],
        start: [u32; 4],
        transform: impl Fn([u32; 4], [u32; WORDS]) -> [u32; 4],
    ) -> [u32; 4] {
        let mut state = start;
        let mut rest = name;
        while !rest.is_empty() {
            state = transform(state, self.words(rest));
            rest = rest.get(WORDS * 4..).unwrap_or(&[]);
        }
        state
    }

    /// Packs the first bytes of `rest` into words, padded with its length.
    fn words<const WORDS: usize>(&self, rest: &[u8]) -> [u32; WORDS] {
        let length = rest.len() as u32;
        let filler = length.wrapping_mul(0x0101_0101);
        let mut packed = [filler; WORDS];
        for (word, bytes) in packed.iter_mut().zip(rest.chunks(4)) {
            *word = bytes.iter().fold(filler, |word, &byte| (word << 8).wrapping_add(self.byte(byte)));
        }
        packed
    }

    fn legacy(&self, name: &[u8]) -> u32 {
        let (mut last, mut before) = (0x12A3_FE2D_u32, 0x37AB_E8F9_u32);
        for &byte in name {
            let mut next = before.wrapping_add(last ^ self.byte(byte).wrapping_mul(7_152_373));
            if next & 0x8000_0000 != 0 {
                next = next.wrapping_sub(0x7FFF_FFFF);
            }
            (before, last) = (last, next);
        }
        last << 1
    }
}

/// Three rounds of eight steps. MD4 has sixteen.
fn half_md4(state: [u32; 4], words: [u32; 8]) -> [u32; 4] {
    fn choose(x: u32, y: u32, z: u32) -> u32 {
        (x & y) | (!x & z)
    }
    fn majority(x: u32, y: u32, z: u32) -> u32 {
        (x & y) | (x & z) | (y & z)
    }
    fn parity(x: u32, y: u32, z: u32) -> u32 {
        x ^ y ^ z
    }
    type Round = (fn(u32, u32, u32) -> u32, u32, [usize; 8], [u32; 4]);
    const ROUNDS: [Round; 3] = [
        (choose, 0, [0, 1, 2, 3, 4, 5, 6, 7], [3, 7, 11, 19]),
        (majority, 0x5A82_7999, [1, 3, 5, 7, 0, 2, 4, 6], [3, 5, 9, 13]),
        (parity, 0x6ED9_EBA1, [3, 7, 2, 6, 1, 5, 0, 4], [3, 9, 11, 15]),
    ];
    let [mut a, mut b, mut c, mut d] = state;
    for (mix, constant, order, shifts) in ROUNDS {
        for (step, word) in order.into_iter().enumerate() {
            let sum = a.wrapping_add(mix(b, c, d)).wrapping_add(words[word]).wrapping_add(constant);
            (a, b, c, d) = (d, sum.rotate_left(shifts[step % 4]), b, c);
        }
    }
    let mixed = [a, b, c, d];
    std::array::from_fn(|word| state[word].wrapping_add(mixed[word]))
}

/// Sixteen cycles of the cipher on the first two words of the state.
fn tea(state: [u32; 4], key: [u32; 4]) -> [u32; 4] {
    let [mut left, mut right, ..] = state;
    let mut sum = 0u32;
    for _ in 0..16 {
        sum = sum.wrapping_add(0x9E37_79B9);
        let half = |other: u32, k0: u32, k1: u32| {
            (other << 4).wrapping_add(k0) ^ other.wrapping_add(sum) ^ (other >> 5).wrapping_add(k1)
        };
        left = left.wrapping_add(half(right, key[0], key[1]));
        right = right.wrapping_add(half(left, key[2], key[3]));
    }
    [state[0].wrapping_add(left), state[1].wrapping_add(right), state[2], state[3]]
}

//! Bytes generated from a seed. The crate's only unsafe code is here: a call that needs a processor
//! feature.

use senesce_core::{Rng, Seed};

/// Writes bytes `offset .. offset + out.len()` of the stream of `seed` to `out`. `offset` must be a
/// multiple of 8.
///
/// Cost: several GB/s in a release build. Any part can be generated without the parts before it.
pub fn seeded_bytes(seed: u64, offset: u64, out: &mut [u8]) {
    debug_assert_eq!(offset % 8, 0);
    let start = Rng::for_purpose(Seed(seed), "content").next_u64();
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
    {
        // SAFETY: the checks above show that the processor has the required features.
        return unsafe { grow_wide(start, offset / 8, out) };
    }
    grow(start, offset / 8, out);
}

/// The same as [`grow`], compiled for processors that multiply eight words at once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn grow_wide(start: u64, first: u64, out: &mut [u8]) {
    grow(start, first, out);
}

/// splitmix64 over the position, starting at word number `first`.
#[inline(always)]
fn grow(start: u64, first: u64, out: &mut [u8]) {
    let word = |position: u64| {
        let mut z = start.wrapping_add(position.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).to_le_bytes()
    };
    // Whole words first, so that the compiler sees a fixed length: a quarter of the time of the
    // general form.
    let (words, rest) = out.as_chunks_mut::<8>();
    let tail = first + words.len() as u64;
    for (position, chunk) in (first..).zip(words) {
        *chunk = word(position);
    }
    let length = rest.len();
    rest.copy_from_slice(&word(tail)[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_bytes_never_change() {
        let mut bytes = [0u8; 19];
        seeded_bytes(7, 0, &mut bytes);
        assert_eq!(bytes, SEVEN);
        let mut later = [0u8; 11];
        seeded_bytes(7, 8, &mut later);
        assert_eq!(later, SEVEN[8..]);
    }
    const SEVEN: [u8; 19] = [162, 131, 106, 177, 114, 97, 29, 222, 224, 162, 121, 64, 248, 156, 36, 198, 6, 37, 225];

    proptest::proptest! {
        #[test]
        fn all_code_paths_generate_equal_bytes(seed: u64, word in 0u64..1 << 40, len in 0usize..2_000) {
            let (mut plain, mut chosen) = (vec![0; len], vec![0; len]);
            grow(Rng::for_purpose(Seed(seed), "content").next_u64(), word, &mut plain);
            seeded_bytes(seed, word * 8, &mut chosen);
            proptest::prop_assert_eq!(plain, chosen);
        }
    }
}

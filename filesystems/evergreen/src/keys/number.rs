//! Numbers with an encoding that sorts like the numbers.

/// Numbers below this one take one byte.
const ONE_BYTE: u64 = 0xf0;

/// Appends a number. Below 240 it is one byte; else the count of bytes, then the bytes, highest
/// first, without leading zeros.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64) {
    if number < ONE_BYTE {
        out.push(number as u8);
        return;
    }
    let zeros = number.leading_zeros() as usize / 8;
    out.push(ONE_BYTE as u8 + 7 - zeros as u8);
    out.extend_from_slice(&number.to_be_bytes()[zeros..]);
}

/// Decodes a number, and returns it with the rest. Returns `None` for bytes that `put_number` never
/// writes.
pub(crate) fn take_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    if u64::from(first) < ONE_BYTE {
        return Some((u64::from(first), rest));
    }
    let count = usize::from(first) - ONE_BYTE as usize + 1;
    if count > 8 || rest.len() < count {
        return None;
    }
    let (digits, rest) = rest.split_at(count);
    let number = digits.iter().fold(0, |number, &digit| number << 8 | u64::from(digit));
    (digits[0] != 0 && number >= ONE_BYTE).then_some((number, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0..64u32).prop_map(|(number, shift)| number >> shift)
    }

    fn put(number: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, number);
        out
    }

    proptest! {
        #[test]
        fn numbers_round_trip_and_keep_their_order(a in numbers(), b in numbers(), behind in any::<[u8; 2]>()) {
            prop_assert_eq!(put(a).cmp(&put(b)), a.cmp(&b));
            let bytes = [&put(a)[..], &behind].concat();
            prop_assert_eq!(take_number(&bytes), Some((a, &behind[..])));
        }

        #[test]
        fn a_number_has_one_encoding(bytes in prop::collection::vec(prop_oneof![Just(0u8), 0xee..=0xffu8, any::<u8>()], 0..10)) {
            if let Some((number, rest)) = take_number(&bytes) {
                prop_assert_eq!([&put(number)[..], rest].concat(), bytes);
            }
        }
    }
}

//! Changes of bytes, chosen by an input.

/// Longest result: insertions stop there.
const LONGEST: usize = 1 << 20;

/// The base after changes. Each eight bytes of `changes` are one change: an operation, a place (3 bytes), a value
/// (4 bytes).
pub fn patch(base: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for change in changes.chunks_exact(8).take(64) {
        if bytes.is_empty() {
            break;
        }
        let place = u32::from_le_bytes([change[1], change[2], change[3], 0]) as usize % bytes.len();
        let value = &change[4..8];
        let length = usize::from(u16::from_le_bytes([value[0], value[1]])).min(bytes.len() - place);
        match change[0] % 8 {
            0..=2 => bytes[place] = value[0],
            3 => bytes[place] ^= 1 << (value[0] % 8),
            4 => bytes[place..].iter_mut().zip(value).for_each(|(byte, value)| *byte = *value),
            5 => drop(bytes.drain(place..place + length)),
            6 if bytes.len() + length <= LONGEST => {
                let copied = bytes[place..place + length].to_vec();
                bytes.splice(place..place, copied);
            }
            6 => {}
            _ => bytes[place..place + length].fill(value[2]),
        }
    }
    bytes
}

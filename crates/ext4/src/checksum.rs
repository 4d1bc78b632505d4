//! The checksums of metadata: CRC-32C without the usual inversions (`metadata_csum`), and CRC-16 of
//! group descriptors (`uninit_bg`).
//!
//! Source: the kernel's documentation of the format, "Checksums".

/// Continues a raw CRC-32C: neither the initial value nor the result is inverted.
pub(crate) fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    // The library inverts before and after, as most users of the polynomial do.
    !crc32c::crc32c_append(!seed, bytes)
}

/// Continues a CRC-16 with the reflected polynomial 0x8005, without inversions.
pub(crate) fn crc16(seed: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(seed, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xA001 } else { crc >> 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_catalogue_values() {
        // The catalogue's check value of CRC-32C is E3069283, inverted at both ends; that of
        // CRC-16/ARC is BB3D.
        assert_eq!(!crc32c(!0, b"123456789"), 0xE306_9283);
        assert_eq!(crc16(0, b"123456789"), 0xBB3D);
        assert_eq!(crc32c(crc32c(!0, b"1234"), b"56789"), crc32c(!0, b"123456789"));
    }
}

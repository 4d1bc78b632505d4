//! Data inside inodes: 60 bytes in place of the extents, and the rest as the value of the extended
//! attribute `system.data` after the fields of the inode.
//!
//! Source: the kernel's documentation of the format, "Inline Data" and "Extended Attributes".

use crate::{
    Problem,
    bytes::{u8_at, u16_at, u32_at},
    inode::compute_extra_end,
};

const MAGIC: u32 = 0xEA02_0000;
const SYSTEM: u8 = 7;
const NAME: &[u8] = b"data";
const ENTRY_BYTES: usize = 16;

/// The value of `system.data` in the bytes of an inode; empty if there is none.
///
/// Errors: attributes do not fit into the inode.
pub(crate) fn parse_inline_value(inode: &[u8]) -> Result<&[u8], Problem> {
    let header = compute_extra_end(inode);
    let Some(area) = inode.get(header + 4..).filter(|_| u32_at(inode, header) == MAGIC) else {
        return Ok(&[]);
    };
    let mut at = 0;
    // The list ends with four zero bytes, or with the inode.
    while at + ENTRY_BYTES <= area.len() && u32_at(area, at) != 0 {
        let name_length = usize::from(u8_at(area, at));
        let name = area.get(at + ENTRY_BYTES..at + ENTRY_BYTES + name_length);
        let name = name.ok_or_else(|| Problem::from("the name of an attribute does not fit into it"))?;
        if u8_at(area, at + 1) == SYSTEM && name == NAME {
            let (offset, size) = (usize::from(u16_at(area, at + 2)), u32_at(area, at + 8) as usize);
            return offset.checked_add(size).and_then(|end| area.get(offset..end)).ok_or_else(|| {
                format!("{size} bytes of inline data at {offset} do not fit into its {} bytes", area.len()).into()
            });
        }
        at += (ENTRY_BYTES + name_length).next_multiple_of(4);
    }
    Ok(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An inode of 256 bytes with one attribute of another kind and `system.data`.
    fn example() -> Vec<u8> {
        let mut inode = vec![0; 256];
        inode[0x80] = 32;
        inode[160..164].copy_from_slice(&MAGIC.to_le_bytes());
        inode[164..184].copy_from_slice(b"\x03\x01\x00\x00\0\0\0\0\0\0\0\0\0\0\0\0abc\0");
        inode[184..204].copy_from_slice(b"\x04\x07\x40\x00\0\0\0\0\x05\0\0\0\0\0\0\0data");
        inode[164 + 0x40..164 + 0x45].copy_from_slice(b"hello");
        inode
    }

    #[test]
    fn value_is_found_among_other_attributes() {
        assert_eq!(parse_inline_value(&example()).unwrap(), b"hello");
        assert_eq!(parse_inline_value(&[0; 256]).unwrap(), b"");
        assert_eq!(parse_inline_value(&[0; 128]).unwrap(), b"");
    }

    #[test]
    fn oversized_values_and_names_are_refused() {
        let mut inode = example();
        inode[192] = 255;
        assert!(parse_inline_value(&inode).unwrap_err().to_string().contains("255 bytes"));
        let mut inode = example();
        inode[164] = 255;
        assert!(parse_inline_value(&inode).unwrap_err().to_string().contains("name"));
    }
}

//! Pointers: 8 bytes in files of the aggregate, 16 in files of volumes.
//!
//! A physical pointer says where a block lies (PVBN) and which tag its trailer has. A pointer of a volume says where it
//! lies in the container file (VVBN), and where that was when the pointer was written: a guess that saves asking the map.

use super::{
    Damage, Decoded,
    bytes::{put, u64_at},
};

/// PVBNs are below this.
pub(crate) const PVBN_END: u64 = 1 << 44;
/// VVBNs are below this.
pub(crate) const VVBN_END: u64 = 1 << 40;
const MAPPED: u64 = 1;
const KIND_BLOCK: u64 = 1;

/// Where a block lies, and its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Physical {
    pub pvbn: u64,
    pub tag: u16,
}

/// A pointer in either kind of file; those of the aggregate's files have no VVBN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pointer {
    pub vvbn: Option<u64>,
    pub at: Physical,
}

/// How pointers of a file look: their size, how many a block and an inode hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Aggregate,
    Volume,
}

impl Shape {
    pub fn bytes(self) -> usize {
        match self {
            Self::Aggregate => 8,
            Self::Volume => 16,
        }
    }

    /// Pointers in a block.
    pub fn fanout(self) -> u64 {
        (super::BLOCK / self.bytes()) as u64
    }

    /// Pointers in an inode.
    pub fn roots(self) -> u64 {
        (super::inode::AREA / self.bytes()) as u64
    }

    /// How many blocks of contents a file with pointers `height` levels above its contents holds.
    pub fn capacity(self, height: u8) -> u64 {
        self.roots().saturating_mul(self.fanout().saturating_pow(u32::from(height)))
    }

    /// The least height for as many blocks.
    pub fn height(self, blocks: u64) -> u8 {
        (0..).find(|&height| self.capacity(height) >= blocks).unwrap_or(u8::MAX)
    }

    /// Reads the pointer in a place of a block or of an inode's area; `None` is a hole.
    pub fn decode(self, bytes: &[u8], slot: u64) -> Decoded<Option<Pointer>> {
        let at = slot as usize * self.bytes();
        match self {
            Self::Aggregate => Ok(decode_physical(u64_at(bytes, at))?.map(|at| Pointer { vvbn: None, at })),
            Self::Volume => decode_volume(u64_at(bytes, at), u64_at(bytes, at + 8)),
        }
    }

    /// Writes it.
    pub fn encode(self, bytes: &mut [u8], slot: u64, pointer: Option<Pointer>) {
        let at = slot as usize * self.bytes();
        let physical = encode_physical(pointer.map(|pointer| pointer.at));
        match self {
            Self::Aggregate => put(bytes, at, &physical.to_le_bytes()),
            Self::Volume => {
                let virt = pointer.and_then(|pointer| pointer.vvbn).map_or(0, |vvbn| vvbn | KIND_BLOCK << 40);
                put(bytes, at, &virt.to_le_bytes());
                put(bytes, at + 8, &physical.to_le_bytes());
            }
        }
    }
}

fn encode_physical(at: Option<Physical>) -> u64 {
    at.map_or(0, |at| at.pvbn | u64::from(at.tag) << 44 | MAPPED << 60)
}

fn decode_physical(word: u64) -> Decoded<Option<Physical>> {
    match word >> 60 {
        0 if word == 0 => Ok(None),
        MAPPED => Ok(Some(Physical { pvbn: word & (PVBN_END - 1), tag: (word >> 44) as u16 })),
        flags => Err(Damage::new("pointer", "flags", flags, "1, or all zeros")),
    }
}

fn decode_volume(virt: u64, physical: u64) -> Decoded<Option<Pointer>> {
    let at = decode_physical(physical)?;
    match (virt >> 40, at) {
        (0, None) if virt == 0 => Ok(None),
        (KIND_BLOCK, Some(at)) => Ok(Some(Pointer { vvbn: Some(virt & (VVBN_END - 1)), at })),
        (kind, _) => Err(Damage::new("volume pointer", "kind", kind, "1 with a place, or all zeros")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden() {
        let at = Physical { pvbn: 0x0abc_def0_1234, tag: 0xbeef };
        let mut bytes = [0xff; 32];
        Shape::Aggregate.encode(&mut bytes, 1, Some(Pointer { vvbn: None, at }));
        assert_eq!(bytes[8..16], [0x34, 0x12, 0xf0, 0xde, 0xbc, 0xfa, 0xee, 0x1b]);
        Shape::Volume.encode(&mut bytes, 1, Some(Pointer { vvbn: Some(0x12_3456_789a), at }));
        assert_eq!(bytes[16..24], [0x9a, 0x78, 0x56, 0x34, 0x12, 1, 0, 0]);
        assert_eq!(bytes[24..], [0x34, 0x12, 0xf0, 0xde, 0xbc, 0xfa, 0xee, 0x1b]);
    }

    #[test]
    fn heights_change_at_the_boundaries() {
        for (shape, blocks, height) in [
            (Shape::Volume, 0, 0),
            (Shape::Volume, 10, 0),
            (Shape::Volume, 11, 1),
            (Shape::Volume, 2560, 1),
            (Shape::Volume, 2561, 2),
            (Shape::Aggregate, 20, 0),
            (Shape::Aggregate, 21, 1),
            (Shape::Aggregate, 10_240, 1),
            (Shape::Aggregate, 10_241, 2),
        ] {
            assert_eq!(shape.height(blocks), height, "{shape:?} {blocks}");
        }
    }

    proptest::proptest! {
        #[test]
        fn pointers_come_back(vvbn in 0..VVBN_END, pvbn in 0..PVBN_END, tag: u16, slot in 0u64..256) {
            let mut block = [0; crate::format::BLOCK];
            let at = Physical { pvbn, tag };
            for (shape, vvbn) in [(Shape::Aggregate, None), (Shape::Volume, Some(vvbn))] {
                shape.encode(&mut block, slot, Some(Pointer { vvbn, at }));
                proptest::prop_assert_eq!(shape.decode(&block, slot).unwrap(), Some(Pointer { vvbn, at }));
                shape.encode(&mut block, slot, None);
                proptest::prop_assert_eq!(shape.decode(&block, slot).unwrap(), None);
            }
        }
    }
}

//! Pointers: 8 bytes in files of the aggregate, 16 in files of volumes.
//!
//! A physical pointer holds a PVBN, the tag of the trailer there, and the form of the block. A
//! pointer of a volume holds a VVBN, and the physical pointer that was valid when it was written.
//! That one is a hint that saves a lookup in the container map. A pointer of a compression group
//! also holds its position in the group; some of these name no block.

use super::{
    Damage, Decoded,
    bytes::{put, u64_at},
};

/// PVBNs on drives are below this.
pub(crate) const PVBN_END: u64 = 1 << 44;
/// VVBNs are below this.
pub(crate) const VVBN_END: u64 = 1 << 40;
const KIND_BLOCK: u64 = 1;
const KIND_STORED: u64 = 2;
const KIND_SAVED: u64 = 3;
/// Bits of the number of a block in an object.
const SLOT_BITS: u32 = 10;
/// Blocks of a compression group, at most.
pub(crate) const MAX_GROUP: u8 = 8;

/// How a block is stored at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Form {
    /// The block has the place for itself.
    Block = 1,
    /// The block is a chunk of the compacted block there.
    Compacted = 2,
    /// The place is in an object.
    Object = 3,
}

/// The place of a block, the tag of the slot there, and the form. Numbers from [`PVBN_END`] on are
/// places in objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Physical {
    pub pvbn: u64,
    pub tag: u16,
    pub form: Form,
}

impl Physical {
    /// The value of pointers without a place.
    const NOWHERE: Self = Self::block(0, 0);

    /// A place that a block has for itself.
    pub const fn block(pvbn: u64, tag: u16) -> Self {
        Self { pvbn, tag, form: Form::Block }
    }

    /// The place in an object; `None` if it is on a drive.
    pub fn in_object(self) -> Option<ObjectPlace> {
        ObjectPlace::of(self.pvbn)
    }
}

/// The place of a block in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectPlace {
    pub object: u64,
    pub slot: u64,
}

impl ObjectPlace {
    /// The number of this place among all PVBNs.
    pub fn pvbn(self) -> u64 {
        PVBN_END | self.object << SLOT_BITS | self.slot
    }

    /// The place in an object that a PVBN denotes; `None` for one of a drive.
    pub fn of(pvbn: u64) -> Option<Self> {
        let within = pvbn.checked_sub(PVBN_END)?;
        Some(Self { object: within >> SLOT_BITS, slot: within & ((1 << SLOT_BITS) - 1) })
    }

    /// The pointer to this place with a tag.
    pub fn with(self, tag: u16) -> Physical {
        Physical { pvbn: self.pvbn(), tag, form: Form::Object }
    }
}

/// The role of a pointer in a compression group, which is a set of blocks of a file that were
/// compressed together. `at` is the position in the group, `of` its number of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// The block is in no group.
    Whole,
    /// The VVBN holds the next 4,096 bytes of the compressed group.
    Stored { at: u8, of: u8 },
    /// A saved hole: it uses no VVBN. `first` is the first VVBN of the group, so that two groups
    /// differ in all their pointers.
    Saved { at: u8, of: u8, first: u64 },
}

/// A pointer of either kind of file. Pointers of the aggregate's files and saved holes have no
/// VVBN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pointer {
    pub vvbn: Option<u64>,
    pub at: Physical,
    pub part: Part,
}

impl Pointer {
    /// A pointer of a file of the aggregate.
    pub fn physical(at: Physical) -> Self {
        Self { vvbn: None, at, part: Part::Whole }
    }

    /// A pointer of a volume to a block that is in no group.
    pub fn whole(vvbn: u64, at: Physical) -> Self {
        Self { vvbn: Some(vvbn), at, part: Part::Whole }
    }

    /// A pointer of a volume that names no block: a saved hole.
    pub fn saved(at: u8, of: u8, first: u64) -> Self {
        Self { vvbn: None, at: Physical::NOWHERE, part: Part::Saved { at, of, first } }
    }

    /// The position in the compression group and the number of its blocks; `None` outside a group.
    pub fn in_group(&self) -> Option<(u8, u8)> {
        match self.part {
            Part::Whole => None,
            Part::Stored { at, of } | Part::Saved { at, of, .. } => Some((at, of)),
        }
    }

    /// Whether the block is in no group and has its place for itself.
    pub fn is_plain(&self) -> bool {
        self.part == Part::Whole && self.at.form == Form::Block
    }
}

/// The shape of pointers in a file: their size, and the number in a block and in an inode.
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

    /// Blocks of contents that a file can hold with `height` levels of pointer blocks.
    pub fn capacity(self, height: u8) -> u64 {
        self.roots().saturating_mul(self.fanout().saturating_pow(u32::from(height)))
    }

    /// The least height for a number of blocks of contents.
    pub fn height(self, blocks: u64) -> u8 {
        (0..).find(|&height| self.capacity(height) >= blocks).unwrap_or(u8::MAX)
    }

    /// Decodes the pointer at a position of a block or of an inode's area; `None` is a hole.
    pub fn decode(self, bytes: &[u8], slot: u64) -> Decoded<Option<Pointer>> {
        let at = slot as usize * self.bytes();
        match self {
            Self::Aggregate => Ok(decode_physical(u64_at(bytes, at))?.map(Pointer::physical)),
            Self::Volume => decode_volume(u64_at(bytes, at), u64_at(bytes, at + 8)),
        }
    }

    /// Encodes a pointer at a position; `None` is a hole.
    pub fn encode(self, bytes: &mut [u8], slot: u64, pointer: Option<Pointer>) {
        let at = slot as usize * self.bytes();
        match self {
            Self::Aggregate => {
                let physical = pointer.map_or(0, |pointer| encode_physical(pointer.at));
                put(bytes, at, &physical.to_le_bytes());
            }
            Self::Volume => {
                let (virt, physical) = pointer.map_or((0, 0), encode_volume);
                put(bytes, at, &virt.to_le_bytes());
                put(bytes, at + 8, &physical.to_le_bytes());
            }
        }
    }
}

fn encode_physical(at: Physical) -> u64 {
    at.pvbn & (PVBN_END - 1) | u64::from(at.tag) << 44 | (at.form as u64) << 60
}

fn decode_physical(word: u64) -> Decoded<Option<Physical>> {
    let form = match word >> 60 {
        0 if word == 0 => return Ok(None),
        1 => Form::Block,
        2 => Form::Compacted,
        3 => Form::Object,
        flags => return Err(Damage::new("pointer", "flags", flags, "1, 2 or 3, or all zeros")),
    };
    let first = if form == Form::Object { PVBN_END } else { 0 };
    Ok(Some(Physical { pvbn: first | word & (PVBN_END - 1), tag: (word >> 44) as u16, form }))
}

fn encode_volume(pointer: Pointer) -> (u64, u64) {
    let group = |at: u8, of: u8| u64::from(at) << 48 | u64::from(of) << 56;
    let vvbn = pointer.vvbn.unwrap_or_default();
    match pointer.part {
        Part::Whole => (vvbn | KIND_BLOCK << 40, encode_physical(pointer.at)),
        Part::Stored { at, of } => (vvbn | KIND_STORED << 40 | group(at, of), encode_physical(pointer.at)),
        Part::Saved { at, of, first } => (first | KIND_SAVED << 40 | group(at, of), 0),
    }
}

fn decode_volume(virt: u64, physical: u64) -> Decoded<Option<Pointer>> {
    let place = decode_physical(physical)?;
    let (kind, vvbn, at, of) = (virt >> 40 & 0xff, virt & (VVBN_END - 1), (virt >> 48) as u8, (virt >> 56) as u8);
    if matches!(kind, KIND_STORED | KIND_SAVED) && (!(2..=MAX_GROUP).contains(&of) || at >= of) {
        return Err(Damage::new("volume pointer", "place in its group", format!("{at} of {of}"), "0 to 7 of 2 to 8"));
    }
    match (kind, place) {
        (0, None) if virt == 0 => Ok(None),
        (KIND_BLOCK, Some(place)) if virt >> 48 == 0 => Ok(Some(Pointer::whole(vvbn, place))),
        (KIND_STORED, Some(place)) => Ok(Some(Pointer { vvbn: Some(vvbn), at: place, part: Part::Stored { at, of } })),
        (KIND_SAVED, None) if at > 0 => Ok(Some(Pointer::saved(at, of, vvbn))),
        _ => {
            let found = format!("{kind} of a group's {of}, with a place: {}", place.is_some());
            Err(Damage::new("volume pointer", "kind", found, "1 or 2 with a place, 3 without, or all zeros"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden() {
        let at = Physical::block(0x0abc_def0_1234, 0xbeef);
        let mut bytes = [0xff; 32];
        Shape::Aggregate.encode(&mut bytes, 1, Some(Pointer::physical(at)));
        assert_eq!(bytes[8..16], [0x34, 0x12, 0xf0, 0xde, 0xbc, 0xfa, 0xee, 0x1b]);
        Shape::Volume.encode(&mut bytes, 1, Some(Pointer::whole(0x12_3456_789a, at)));
        assert_eq!(bytes[16..24], [0x9a, 0x78, 0x56, 0x34, 0x12, 1, 0, 0]);
        assert_eq!(bytes[24..], [0x34, 0x12, 0xf0, 0xde, 0xbc, 0xfa, 0xee, 0x1b]);
        let at = Physical { form: Form::Compacted, ..at };
        let stored = Pointer { vvbn: Some(0x12_3456_789a), at, part: Part::Stored { at: 1, of: 3 } };
        Shape::Volume.encode(&mut bytes, 1, Some(stored));
        assert_eq!(bytes[16..24], [0x9a, 0x78, 0x56, 0x34, 0x12, 2, 1, 3]);
        assert_eq!(bytes[24..], [0x34, 0x12, 0xf0, 0xde, 0xbc, 0xfa, 0xee, 0x2b]);
        Shape::Volume.encode(&mut bytes, 1, Some(Pointer::saved(2, 3, 0x12_3456_789a)));
        assert_eq!(bytes[16..24], [0x9a, 0x78, 0x56, 0x34, 0x12, 3, 2, 3]);
        assert_eq!(bytes[24..], [0; 8]);
        let cold = ObjectPlace { object: 0x0003_0201, slot: 0x3eb };
        Shape::Aggregate.encode(&mut bytes, 0, Some(Pointer::physical(cold.with(0xbeef))));
        assert_eq!(bytes[..8], [0xeb, 0x07, 0x08, 0x0c, 0x00, 0xf0, 0xee, 0x3b]);
        assert_eq!(cold.with(7).in_object(), Some(cold));
    }

    #[test]
    fn forged_group_pointers_are_refused() {
        let place = encode_physical(Physical::block(7, 7));
        for (virt, physical) in [
            (KIND_STORED << 40 | 2 << 48 | 2 << 56, place),
            (KIND_STORED << 40 | 9 << 56, place),
            (KIND_STORED << 40 | 1 << 56, place),
            (KIND_STORED << 40 | 2 << 56, 0),
            (KIND_SAVED << 40 | 1 << 48 | 2 << 56, place),
            (KIND_SAVED << 40 | 2 << 56, 0),
            (KIND_BLOCK << 40 | 1 << 48, place),
            (4 << 40, place),
        ] {
            assert!(decode_volume(virt, physical).is_err(), "{virt:#x} {physical:#x}");
        }
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
        fn pointers_round_trip(vvbn in 0..VVBN_END, pvbn in 0..PVBN_END, tag: u16, slot in 0u64..256) {
            let mut block = [0; crate::format::BLOCK];
            let at = match tag % 3 {
                0 => Physical::block(pvbn, tag),
                1 => Physical { form: Form::Compacted, ..Physical::block(pvbn, tag) },
                _ => Physical { pvbn: PVBN_END | pvbn, tag, form: Form::Object },
            };
            let stored = Pointer { part: Part::Stored { at: 0, of: 2 }, ..Pointer::whole(vvbn, at) };
            for (shape, pointer) in [
                (Shape::Aggregate, Pointer::physical(at)),
                (Shape::Volume, Pointer::whole(vvbn, at)),
                (Shape::Volume, stored),
                (Shape::Volume, Pointer::saved(7, 8, vvbn)),
            ] {
                shape.encode(&mut block, slot, Some(pointer));
                proptest::prop_assert_eq!(shape.decode(&block, slot).unwrap(), Some(pointer));
                shape.encode(&mut block, slot, None);
                proptest::prop_assert_eq!(shape.decode(&block, slot).unwrap(), None);
            }
        }
    }
}

//! Trailers of blocks on drives, for observers of the requests to drives.

use crate::format::{BLOCK, SLOT, bytes::u64_at, slot::Kind};

/// The contents of a slot, according to its trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// Whether it is a block of a volume; otherwise it is one of the aggregate's own files.
    pub of_volume: bool,
    /// 0 for contents of files, more for blocks of pointers.
    pub level: u8,
    /// The file, in its volume or of the aggregate.
    pub file: u64,
    /// The number of the block in the file, at its level.
    pub block: u64,
}

/// Reads the trailer of a slot of 4,160 bytes. `None` for labels, superblocks, compacted blocks,
/// and bytes that are no slot. Checksums are not checked, because observers need not detect damage.
pub fn read_trailer(slot: &[u8]) -> Option<Trailer> {
    let trailer = slot.get(BLOCK..SLOT)?;
    let of_volume = match trailer[8] {
        kind if kind == Kind::Aggregate as u8 => false,
        kind if kind == Kind::Volume as u8 => true,
        _ => return None,
    };
    let (file, block) = if of_volume { (48, 56) } else { (16, 24) };
    Some(Trailer { of_volume, level: trailer[9], file: u64_at(trailer, file), block: u64_at(trailer, block) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::slot::{self, Context};

    #[test]
    fn trailers_are_read_as_encoded() {
        let context = Context {
            kind: Kind::Volume,
            level: 1,
            tag: 2,
            owner: 17,
            block: 3,
            pvbn: 4,
            cp: 5,
            hint_file: 42,
            hint_block: 7,
        };
        let of = |context: &Context| read_trailer(&slot::encode(&[9; BLOCK], context)[..]);
        assert_eq!(of(&context), Some(Trailer { of_volume: true, level: 1, file: 42, block: 7 }));
        let own = Context { kind: Kind::Aggregate, level: 0, ..context };
        assert_eq!(of(&own), Some(Trailer { of_volume: false, level: 0, file: 17, block: 3 }));
        assert_eq!(of(&Context { kind: Kind::Superblock, ..context }), None);
        assert_eq!(read_trailer(&[0; SLOT]), None);
        assert_eq!(read_trailer(&[4; SLOT - 1]), None);
    }
}

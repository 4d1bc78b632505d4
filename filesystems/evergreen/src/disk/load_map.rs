//! Reads the map of nodes from any copy that is whole.

use super::{
    Area, BLOCK, Damage, Decoded, Extent, NodeMap, Superblock,
    node_map_chunk::{STRUCTURE, decode_chunk},
};
use crate::{Error, Result};

impl NodeMap {
    /// Reads the map that a superblock names. It uses the second copy if the first one is damaged,
    /// and whole chunks of both if neither copy is whole. Errors: `Device`; `Damaged`.
    pub fn load(area: &Area, superblock: &Superblock) -> Result<Self> {
        Self::load_noting(area, superblock, false, &mut Vec::new())
    }

    /// Like [`load`](Self::load). `bad` receives the faults of copies of a readable map. If
    /// `is_thorough`, it always reads the second copy.
    pub(crate) fn load_noting(
        area: &Area,
        superblock: &Superblock,
        is_thorough: bool,
        bad: &mut Vec<Error>,
    ) -> Result<Self> {
        let (mut whole, mut errors) = (None, Vec::new());
        for (name, extents) in superblock.map.copies() {
            if whole.is_none() || is_thorough {
                match Self::load_copy(area, superblock, name, extents) {
                    Ok(map) => whole = whole.or(Some(map)),
                    Err(error) => errors.push(error),
                }
            }
        }
        match whole.or_else(|| Self::load_chunks(area, superblock)) {
            Some(map) => {
                bad.append(&mut errors);
                Ok(map)
            }
            None => Err(errors.swap_remove(0)),
        }
    }

    fn load_copy(area: &Area, superblock: &Superblock, name: &str, extents: &[Extent]) -> Result<Self> {
        let bytes = area.read(extents, 0, superblock.map.bytes as usize)?;
        Self::decode_whole(&bytes, area, superblock).map_err(|damage| {
            let at = extents.first().map_or(0, |extent| area.geometry().unit_at(extent.first));
            let place = format!("{}, superblock {}, {name} at byte {at}", area.device().name(), superblock.generation);
            Error::damaged(place, &damage)
        })
    }

    /// Builds the map from the whole chunks of both copies. Returns `None` if a chunk is whole in
    /// neither.
    fn load_chunks(area: &Area, superblock: &Superblock) -> Option<Self> {
        let (mut bytes, generation) = (Vec::new(), superblock.generation);
        for number in 0..superblock.map.bytes as usize / BLOCK {
            // A chunk that the device cannot read is not whole.
            let read = |(_, extents): (&str, &[Extent])| area.read(extents, (number * BLOCK) as u64, BLOCK).ok();
            let is_whole = |chunk: &bytes::Bytes| {
                decode_chunk(chunk, number, &superblock.uuid, generation, area.geometry()).is_ok()
            };
            bytes.extend_from_slice(&superblock.map.copies().filter_map(read).find(is_whole)?);
        }
        // The caller reports the errors of the copies.
        Self::decode_whole(&bytes, area, superblock).ok()
    }

    fn decode_whole(bytes: &[u8], area: &Area, superblock: &Superblock) -> Decoded<Self> {
        let map = Self::decode(bytes, &superblock.uuid, superblock.generation, area.geometry())?;
        let (found, expected) = (Self::sum(bytes), superblock.map.sum);
        if found != expected {
            let (found, expected) = (format!("{found:#018x}"), format!("{expected:#018x}"));
            return Err(Damage::new(STRUCTURE, "checksum of all", found, expected));
        }
        Ok(map)
    }
}

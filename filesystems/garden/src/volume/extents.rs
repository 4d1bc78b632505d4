//! The places of a file's blocks.

use senesce_core::Extent;

use crate::{
    error::{Error, Result},
    format::{BLOCK, Damage},
    store::{Key, Store},
};

impl Store {
    /// The extents of a file whose blocks are all written, according to the container map, because
    /// pointers may be stale. Blocks in objects have no extent. Positions count all blocks, plus
    /// one unused block after each drive, so that no extent crosses the end of a drive.
    ///
    /// Cost: reads the blocks of pointers of the file and of the map.
    pub fn file_extents(&mut self, space: u32, file: u64) -> Result<Vec<Extent>> {
        let inode = self.inode(space, file)?;
        let mut extents: Vec<Extent> = Vec::new();
        if inode.inline {
            return Ok(extents);
        }
        let (end, block) = (inode.size.div_ceil(BLOCK as u64), BLOCK as u64);
        let mut from = 0;
        // Excludes blocks beyond the end, which were reserved.
        while let Some(at) = self.find_block(space, file, from, end, true)? {
            from = at + 1;
            let Some(pvbn) = self.address_of(Key::new(space, file, 0, at))? else { continue };
            let next = Extent { logical: at * block, physical: pvbn * block, length: block };
            match extents.last_mut() {
                Some(last) if last.continues_into(&next) => last.length += block,
                _ => extents.push(next),
            }
        }
        Ok(extents)
    }

    fn address_of(&mut self, key: Key) -> Result<Option<u64>> {
        let Some(vvbn) = self.pointer(key)?.and_then(|pointer| pointer.vvbn) else { return Ok(None) };
        let nowhere = || Damage::new("container map", "place", "none", format!("one for VVBN {vvbn}"));
        let place = || format!("inode {} of volume {}, block {}", key.file(), key.space(), key.index());
        let at = self.container(key.space(), vvbn)?.ok_or_else(|| Error::damaged(place(), nowhere()))?;
        if at.in_object().is_some() {
            return Ok(None);
        }
        let outside = || Damage::new("container map", "PVBN", at.pvbn, "a block of the aggregate");
        let found = self.raid.geometry.locate(at.pvbn).ok_or_else(|| Error::damaged(place(), outside()))?;
        let drive = self.raid.geometry.first_drive(found.group) + found.drive;
        Ok(Some(at.pvbn + drive as u64))
    }
}

//! What an open aggregate offers to make contents smaller.

use crate::{
    engine::Garden,
    error::{Error, Result},
    format::{pointer::MAX_GROUP, volume},
};

/// How the contents of a volume's regular files are made smaller when they are written. Nothing is, by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// Blocks of 4,096 bytes that are compressed together: 2, 4 or 8; 0 for none. To change one of them all are read and written
    /// again, so 2 suits files that are written over in places, 8 those that are written once.
    pub group_blocks: u8,
    /// Whether partial blocks share a block: the ends of compressed groups, and blocks that end in zeros.
    pub compaction: bool,
}

impl Packing {
    /// What suits most: groups of two blocks, since writing over one of them then costs at most one more; and compaction.
    pub const USUAL: Self = Self { group_blocks: 2, compaction: true };
}

impl Garden {
    /// Says how contents of a volume that are written from now on are made smaller; durable when it returns. What is written
    /// stays as it is until it is written again.
    ///
    /// Errors: `Invalid` if there is no such volume, or for a group of another size; `NoSpace` for the map of chunks.
    pub fn set_packing(&self, volume: &[u8], packing: Packing) -> Result<()> {
        if !matches!(packing.group_blocks, 0 | 2 | 4 | MAX_GROUP) {
            let what = format!("groups of {} blocks are compressed; 2, 4 or 8, or 0 for none", packing.group_blocks);
            return Err(Error::invalid(what));
        }
        self.change(|_, store| {
            let space = store.find_volume(volume)?;
            let Packing { group_blocks, compaction } = packing;
            store.set_packing(space, group_blocks, compaction)
        })
    }

    /// How contents of a volume are made smaller. Errors: `Invalid` if there is no such volume.
    pub fn packing(&self, volume: &[u8]) -> Result<Packing> {
        let store = self.shared.lock();
        let volume::Packing { group_blocks, compaction, .. } = store.volume(store.find_volume(volume)?)?.record.packing;
        Ok(Packing { group_blocks, compaction })
    }
}

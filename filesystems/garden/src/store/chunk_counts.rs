//! Counts of chunks: a file of the aggregate with two bytes for each PVBN. They count the chunks
//! that a compacted block was written with, and the chunks that are left. Most of the file is
//! holes. A compacted block without chunks is free.

use super::{AGGREGATE, Key, Store, aggregate, reserve::map_blocks};
use crate::{
    error::{Error, Result},
    format::{
        BLOCK, Block, Damage,
        compacted::{self, Tuple},
        pointer::{Form, Physical, Shape},
        slot::Context,
    },
};

/// Bytes of the counts of a PVBN.
pub(crate) const COUNTS: u64 = 2;
/// Counts in a block.
pub(super) const PER_BLOCK: u64 = BLOCK as u64 / COUNTS;

impl Store {
    /// The initial and the current number of chunks of a compacted block; zeros if the place has
    /// none.
    pub(super) fn chunks(&mut self, pvbn: u64) -> Result<(u8, u8)> {
        let (key, at) = place(pvbn);
        let block = self.get(key)?;
        Ok((block[at], block[at + 1]))
    }

    pub(super) fn set_chunks(&mut self, pvbn: u64, (initial, left): (u8, u8)) -> Result<()> {
        let (key, at) = place(pvbn);
        let block = self.modify(key)?;
        (block[at], block[at + 1]) = (initial, left);
        Ok(())
    }

    /// Removes a chunk. Returns whether it was the last one.
    pub(super) fn free_chunk(&mut self, pvbn: u64) -> Result<bool> {
        match self.chunks(pvbn)? {
            (_, 0) => {
                let damage = Damage::new("chunk counts", "chunks left", 0, "1 at least");
                Err(Error::damaged(format!("PVBN {pvbn}"), damage))
            }
            (_, 1) => self.set_chunks(pvbn, (0, 0)).map(|()| true),
            (initial, left) => self.set_chunks(pvbn, (initial, left - 1)).map(|()| false),
        }
    }

    /// Loads the blocks that change when a place is freed.
    pub(super) fn read_for_give(&mut self, at: Physical) -> Result<()> {
        if let Some(place) = at.in_object() {
            return self.read_for_change(super::objects::record_place(place.object).0);
        }
        self.read_for_change(super::space::bitmap_key(AGGREGATE, aggregate::BITMAP, at.pvbn))?;
        match at.form {
            Form::Compacted => self.read_for_change(place(at.pvbn).0),
            _ => Ok(()),
        }
    }

    /// The chunks of a compacted block that the container map names.
    pub(super) fn live_chunks(&mut self, context: &Context, block: &Block) -> Result<Vec<Tuple>> {
        let at = Physical { pvbn: context.pvbn, tag: context.tag, form: Form::Compacted };
        let Ok(mut tuples) = compacted::decode(block) else { return Ok(Vec::new()) };
        if context.owner < aggregate::FIRST_CONTAINER || self.try_inode(AGGREGATE, context.owner)?.is_none() {
            return Ok(Vec::new());
        }
        let mut live = Vec::new();
        for tuple in tuples.drain(..) {
            let pointer = self.pointer(Key::new(AGGREGATE, context.owner, 0, tuple.vvbn))?;
            if pointer.is_some_and(|pointer| pointer.at == at) {
                live.push(tuple);
            }
        }
        Ok(live)
    }

    /// The most blocks of the file that change when this number of places is freed or allocated.
    pub(super) fn chunk_map_blocks(&self, places: u64) -> u64 {
        let records = self.volumes.iter().flatten().map(|volume| &volume.record).chain(self.deleted.values());
        if !records.into_iter().any(|record| record.packing.was_on) {
            return 0;
        }
        let all = map_blocks(Shape::Aggregate, self.raid.geometry.blocks().div_ceil(PER_BLOCK));
        all.min(places.saturating_mul(4))
    }
}

fn place(pvbn: u64) -> (Key, usize) {
    let key = Key::new(AGGREGATE, aggregate::CHUNKS, 0, pvbn / PER_BLOCK);
    (key, (pvbn % PER_BLOCK * COUNTS) as usize)
}

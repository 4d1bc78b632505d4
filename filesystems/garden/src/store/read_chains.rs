//! Reading blocks of a file in chains: one request reads blocks that are adjacent on a drive.
//! Blocks that moved after their pointers were written mostly moved together, and are read together
//! from their new places.

use std::{collections::BTreeSet, ops::Range};

use super::{Key, Store, objects::Unread};
use crate::{
    error::Result,
    format::pointer::{Form, Part, Physical},
    raid::Want,
};

/// A block to be read, at the place that its pointer or the container map names.
#[derive(Clone, Copy)]
struct Wanted {
    at: Physical,
    vvbn: u64,
    key: Key,
}

impl Store {
    /// Loads blocks of a file. For blocks that are not where their pointers say, asks the container
    /// map, then restores them by parity. Blocks that remain unreadable, or that must first be
    /// fetched from objects, are left to the read that needs them.
    pub fn read_chains(&mut self, space: u32, file: u64, blocks: Range<u64>) -> Result<()> {
        if blocks.end - blocks.start < 2 {
            return Ok(());
        }
        let mut wanted = Vec::new();
        for key in blocks.map(|block| Key::new(space, file, 0, block)) {
            if self.cache.contains(key) {
                continue;
            }
            // Blocks of groups and chunks are left to the read that needs them.
            if let Some(pointer) =
                self.pointer(key)?.filter(|pointer| pointer.part == Part::Whole && pointer.at.form != Form::Compacted)
                && let Some(vvbn) = pointer.vvbn
            {
                wanted.push(Wanted { at: pointer.at, vvbn, key });
            }
        }
        self.counts.volume_reads += wanted.len() as u64;
        let mut moved = Vec::new();
        for (block, why) in self.read_wanted(wanted) {
            if why.is_for_later() {
                self.counts.volume_reads -= 1;
                continue;
            }
            match self.look_up(block.key, block.vvbn) {
                Ok(at) if at == block.at => self.repair_wanted(&block, why),
                Ok(at) => moved.push(Wanted { at, ..block }),
                // The block is not in memory, so the read that needs it asks the map itself and
                // returns the error.
                Err(_) => {}
            }
        }
        let keys: Vec<Key> = moved.iter().map(|block| block.key).collect();
        let failed = self.read_wanted(moved);
        let later: BTreeSet<Key> =
            failed.iter().filter(|(_, why)| why.is_for_later()).map(|(block, _)| block.key).collect();
        keys.into_iter().filter(|key| !later.contains(key)).for_each(|key| self.note_redirect(key));
        self.counts.volume_reads -= later.len() as u64;
        self.counts.map_lookups -= later.len() as u64;
        for (block, why) in failed {
            self.repair_wanted(&block, why);
        }
        Ok(())
    }

    /// Loads blocks from these places. Returns those that are not there, and why.
    fn read_wanted(&mut self, mut wanted: Vec<Wanted>) -> Vec<(Wanted, Unread)> {
        wanted.sort_unstable_by_key(|block| block.at.pvbn);
        let (mut rest, mut elsewhere) = (&wanted[..], Vec::new());
        while let Some(first) = rest.first() {
            let (chain, later) = rest.split_at(self.chain_of(rest.iter().map(|block| block.at.pvbn)));
            let wants: Vec<Want> = chain.iter().map(|block| self.want(block)).collect();
            let found = match first.at.in_object() {
                Some(place) => self.read_cold(place, &wants),
                None => {
                    let found = self.raid.read_chain(first.at.pvbn, &wants, &mut self.cache.spare);
                    found.into_iter().map(|data| data.map_err(Unread::Wrong)).collect()
                }
            };
            for (block, data) in chain.iter().zip(found) {
                match data {
                    Ok(data) => {
                        self.cache.insert(block.key, data);
                    }
                    Err(why) => elsewhere.push((*block, why)),
                }
            }
            rest = later;
        }
        elsewhere
    }

    fn want(&self, block: &Wanted) -> Want {
        self.want_of_volume(block.key.space(), block.vvbn, block.at)
    }

    /// Loads a block that is not where the container map says, by repairing it.
    fn repair_wanted(&mut self, block: &Wanted, why: Unread) {
        // If it cannot be repaired, the read that needs it returns the error.
        if let Ok(data) = self.repair_place(block.key.space(), block.vvbn, block.at, why) {
            self.cache.insert(block.key, data);
        }
    }
}

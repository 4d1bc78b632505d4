//! Blocks of a file that are read together: those that lie one behind the other on a drive come with one request.

use std::ops::Range;

use super::{Key, Store, container_of};
use crate::{
    error::Result,
    format::{pointer::Physical, slot::Kind},
    raid::{CHAIN_SLOTS, Want},
};

/// A block that is to be read, and where its pointer says that it lies.
struct Wanted {
    at: Physical,
    vvbn: u64,
    key: Key,
}

impl Store {
    /// Takes those of a file's blocks into memory that are where their pointers say. The others are left to whoever wants
    /// them: the container map and parity are asked for each by itself.
    pub fn read_chains(&mut self, space: u32, file: u64, blocks: Range<u64>) -> Result<()> {
        if blocks.end - blocks.start < 2 {
            return Ok(());
        }
        let mut wanted = Vec::new();
        for key in blocks.map(|block| Key::new(space, file, 0, block)) {
            if self.cache.contains(key) {
                continue;
            }
            if let Some(pointer) = self.pointer(key)?
                && let Some(vvbn) = pointer.vvbn
            {
                wanted.push(Wanted { at: pointer.at, vvbn, key });
            }
        }
        wanted.sort_unstable_by_key(|block| block.at.pvbn);
        let mut rest = &wanted[..];
        while let Some(first) = rest.first() {
            let stripes_left = self.raid.geometry.stripes_behind(first.at.pvbn);
            let most = stripes_left.min(CHAIN_SLOTS as u64) as usize;
            let follows = |(block, pvbn): &(&Wanted, u64)| block.at.pvbn == *pvbn;
            let count = rest.iter().zip(first.at.pvbn..).take(most.max(1)).take_while(follows).count();
            let (chain, later) = rest.split_at(count);
            let owner = container_of(space);
            let want = |of: &Wanted| Want { kind: Kind::Volume, level: None, owner, block: of.vvbn, tag: of.at.tag };
            let wants: Vec<Want> = chain.iter().map(want).collect();
            let found = self.raid.read_chain(first.at.pvbn, &wants);
            for (block, data) in chain.iter().zip(found) {
                if let Ok(data) = data {
                    self.counts.volume_reads += 1;
                    self.cache.insert(block.key, data);
                }
            }
            rest = later;
        }
        Ok(())
    }
}

//! Walking over the pointers of a file.

use super::reader::{Reader, Tree};
use crate::format::{
    Decoded,
    pointer::{Part, Physical, Pointer},
};

/// A pointer, and the place of its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub level: u8,
    /// The number of the block on its level.
    pub index: u64,
    pub pointer: Pointer,
    /// The place in the container map for a volume's file, otherwise that in the pointer. Undefined
    /// for a saved hole.
    pub at: Physical,
}

/// Passes all pointers of a file down to level `least` to `each`, each before those below it.
/// Returns the damage.
///
/// Cost: reads the blocks of pointers.
pub(super) fn walk(reader: &Reader, tree: &Tree, least: u8, each: &mut dyn FnMut(Met)) -> Vec<String> {
    let mut walk = Walk { reader, tree, least, each, wrong: Vec::new() };
    if !tree.inode.inline && tree.inode.height >= least {
        for slot in 0..tree.shape().roots() {
            walk.pointer(tree.inode.height, slot, tree.shape().decode(&tree.inode.area, slot));
        }
    }
    walk.wrong
}

struct Walk<'a> {
    reader: &'a Reader,
    tree: &'a Tree,
    least: u8,
    each: &'a mut dyn FnMut(Met),
    wrong: Vec<String>,
}

impl Walk<'_> {
    fn pointer(&mut self, level: u8, index: u64, pointer: Decoded<Option<Pointer>>) {
        if let Err(damage) = pointer.and_then(|pointer| pointer.map_or(Ok(()), |at| self.below(level, index, at))) {
            self.wrong.push(format!("level {level}, block {index}: {damage}"));
        }
    }

    fn below(&mut self, level: u8, index: u64, pointer: Pointer) -> Decoded<()> {
        if let Part::Saved { .. } = pointer.part {
            if level == self.least {
                (self.each)(Met { level, index, pointer, at: pointer.at });
            }
            return Ok(());
        }
        let (at, _) = self.reader.wanted(self.tree, level, index, pointer)?;
        (self.each)(Met { level, index, pointer, at });
        if level == self.least {
            return Ok(());
        }
        let block = self.reader.block(self.tree, level, index, pointer)?;
        let shape = self.tree.shape();
        for slot in 0..shape.fanout() {
            self.pointer(level - 1, index * shape.fanout() + slot, shape.decode(&block[..], slot));
        }
        Ok(())
    }
}

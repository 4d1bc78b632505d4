//! Differences between two trees of a volume: a snapshot, and a later one or the volume.
//!
//! A VVBN that a snapshot uses never gets another block, and the places of its block are the only
//! thing that changes. So below two pointers with the same VVBN everything is equal, and nothing is
//! read there. The cost depends on the differences, not on the size of the trees.

use std::{collections::BTreeSet, ops::Range};

use senesce_fsapi::FileKind;

use super::{Key, Store, volume};
use crate::{
    error::{Error, Result},
    format::{
        inode::{INODE, Inode, PER_BLOCK},
        pointer::{Part, Shape},
    },
};

/// How an inode differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only the later tree has it.
    Created,
    /// Only the earlier tree has it.
    Removed,
    /// Both trees have it.
    Changed {
        /// Whether the attributes that `stat` shows, or an extended attribute, differ.
        attributes: bool,
    },
}

/// An inode that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeChange {
    /// The inode number. A reused number occurs twice: removed, then created.
    pub ino: u64,
    /// The kind, in the later tree if that has it.
    pub kind: FileKind,
    /// The difference.
    pub change: Change,
    /// Blocks of 4,096 bytes of its contents that differ, are new or are gone; of a new inode, all
    /// its blocks. A block that was rewritten with equal bytes counts as different, as do all
    /// blocks of its compression group.
    pub blocks: Vec<Range<u64>>,
}

/// A file in one of the trees.
struct Side {
    space: u32,
    file: u64,
    inode: Inode,
}

/// The content of a position of a tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Hole,
    /// With the role in a compression group: saved holes of two groups differ only in that.
    Block(Option<u64>, Part),
    /// The other tree is higher: all pointers of the inode are here.
    Inode,
}

impl Side {
    /// Inline contents count as no tree.
    fn height(&self) -> u8 {
        if self.inode.inline { 0 } else { self.inode.height }
    }

    fn has_inline(&self) -> bool {
        self.inode.inline && self.inode.size > 0
    }
}

impl Store {
    /// The inodes of users that differ between two spaces of one volume, in the order of their
    /// numbers. Nothing may have changed since the last consistency point.
    ///
    /// Cost: reads the blocks above differences.
    pub fn diff(&mut self, from: u32, to: u32) -> Result<Vec<InodeChange>> {
        let side = |store: &mut Self, space| {
            Ok::<_, Error>(Side { space, file: volume::INODES, inode: store.inode(space, volume::INODES)? })
        };
        let (one, other) = (side(self, from)?, side(self, to)?);
        let (mut changes, mut owners) = (Vec::new(), BTreeSet::new());
        for block in self.blocks_that_differ(&one, &other)?.into_iter().flatten() {
            let data = |store: &mut Self, space| store.get(Key::new(space, volume::INODES, 0, block)).copied();
            let (before, after) = (data(self, from)?, data(self, to)?);
            for (ino, at) in (block * PER_BLOCK..).zip((0..before.len()).step_by(INODE)) {
                let decode = |bytes: &[u8]| {
                    let decoded = Inode::decode(&bytes[at..at + INODE]);
                    decoded.map_err(|damage| Error::damaged(format!("inode {ino}"), damage))
                };
                if ino != volume::ROOT && ino < volume::FIRST_USER {
                    continue;
                }
                let (before, after) = (decode(&before)?, decode(&after)?);
                let sides = [(from, before), (to, after)]
                    .map(|(space, inode)| inode.map(|inode| Side { space, file: ino, inode }));
                self.diff_inode(&sides, &mut changes, &mut owners)?;
            }
        }
        self.note_owners(to, owners, &mut changes)?;
        Ok(changes)
    }

    fn diff_inode(
        &mut self,
        sides: &[Option<Side>; 2],
        changes: &mut Vec<InodeChange>,
        owners: &mut BTreeSet<u64>,
    ) -> Result<()> {
        let [one, other] = sides;
        if let (Some(one), Some(other)) = (one, other)
            && one.inode.generation == other.inode.generation
        {
            let blocks = self.blocks_that_differ(one, other)?;
            let attributes = attributes_differ(&one.inode, &other.inode);
            if is_holder(&other.inode) {
                owners.extend((!blocks.is_empty()).then_some(other.inode.parent));
            } else if attributes || !blocks.is_empty() {
                let change = Change::Changed { attributes };
                changes.push(InodeChange { ino: other.file, kind: other.inode.kind, change, blocks });
            }
            return Ok(());
        }
        for (side, change) in [(one, Change::Removed), (other, Change::Created)] {
            let Some(side) = side else { continue };
            if is_holder(&side.inode) {
                owners.insert(side.inode.parent);
                continue;
            }
            let nothing = Side { inode: Inode::new(side.inode.kind), ..*side };
            let blocks = if change == Change::Created { self.blocks_that_differ(&nothing, side)? } else { Vec::new() };
            changes.push(InodeChange { ino: side.file, kind: side.inode.kind, change, blocks });
        }
        Ok(())
    }

    /// Adds the owners of changed files of extended attributes to the changes.
    fn note_owners(&mut self, to: u32, owners: BTreeSet<u64>, changes: &mut Vec<InodeChange>) -> Result<()> {
        for ino in owners {
            let mut own = changes.iter_mut().filter(|change| change.ino == ino).peekable();
            if own.peek().is_some() {
                for change in own {
                    if let Change::Changed { attributes } = &mut change.change {
                        *attributes = true;
                    }
                }
            } else if let Some(inode) = self.try_inode(to, ino)? {
                let change = Change::Changed { attributes: true };
                changes.push(InodeChange { ino, kind: inode.kind, change, blocks: Vec::new() });
            }
        }
        changes.sort_by_key(|change| (change.ino, change.change != Change::Removed));
        Ok(())
    }

    /// Ranges of blocks of contents that differ.
    fn blocks_that_differ(&mut self, one: &Side, other: &Side) -> Result<Vec<Range<u64>>> {
        let mut runs = Vec::new();
        let is_same_inline = one.inode.inline == other.inode.inline && one.inode.area == other.inode.area;
        if (one.has_inline() || other.has_inline()) && !is_same_inline {
            runs.push(0..1);
        }
        let height = one.height().max(other.height());
        for index in 0..Shape::Volume.roots() {
            self.compare(one, other, height, index, &mut runs)?;
        }
        Ok(runs)
    }

    fn compare(&mut self, one: &Side, other: &Side, level: u8, index: u64, runs: &mut Vec<Range<u64>>) -> Result<()> {
        let (a, b) = (self.node_at(one, level, index)?, self.node_at(other, level, index)?);
        if a == b && a != Node::Inode {
            return Ok(());
        }
        if level > 0 {
            let fanout = Shape::Volume.fanout();
            return (0..fanout).try_for_each(|slot| self.compare(one, other, level - 1, index * fanout + slot, runs));
        }
        match runs.last_mut() {
            Some(last) if last.end > index => {}
            Some(last) if last.end == index => last.end += 1,
            _ => runs.push(index..index + 1),
        }
        Ok(())
    }

    fn node_at(&mut self, side: &Side, level: u8, index: u64) -> Result<Node> {
        let height = side.height();
        if side.inode.inline || level == height && index >= Shape::Volume.roots() || level > height && index > 0 {
            return Ok(Node::Hole);
        }
        if level > height {
            return Ok(Node::Inode);
        }
        let pointer = if level == height {
            let decoded = Shape::Volume.decode(&side.inode.area, index);
            decoded.map_err(|damage| Error::damaged(format!("inode {}", side.file), damage))?
        } else {
            self.pointer(Key::new(side.space, side.file, level, index))?
        };
        Ok(pointer.map_or(Node::Hole, |pointer| Node::Block(pointer.vvbn, pointer.part)))
    }
}

/// Whether an inode holds the extended attributes of another inode.
fn is_holder(inode: &Inode) -> bool {
    inode.kind != FileKind::Directory && inode.parent != 0
}

/// Whether two inodes differ in more than the places of their contents.
fn attributes_differ(one: &Inode, other: &Inode) -> bool {
    let bare = |inode: &Inode| Inode {
        blocks: 0,
        inline: false,
        height: 0,
        area: [0; crate::format::inode::AREA],
        ..inode.clone()
    };
    bare(one) != bare(other)
}

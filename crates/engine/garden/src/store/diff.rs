//! What differs between two trees of a volume: a snapshot and a later one, or the volume.
//!
//! A VVBN that a snapshot uses is never given to another block, and of its block only places change: two pointers with one VVBN
//! have the same below them, and nothing there is looked at. So the cost goes by what differs, not by what there is.

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

/// What became of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only the later tree has it.
    Created,
    /// Only the earlier tree has it.
    Removed,
    /// Both have it.
    Changed {
        /// Whether what `stat` shows, or an extended attribute, is another.
        attributes: bool,
    },
}

/// An inode that is not the same in two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeChange {
    /// Its number. A number that was given again stands twice: removed, then created.
    pub ino: u64,
    /// Its kind, in the later tree if that has it.
    pub kind: FileKind,
    /// What became of it.
    pub change: Change,
    /// Of its contents, the blocks of 4,096 bytes that are others, are new or are gone; of a new one, those that it has. A
    /// block that was written with what it held counts as another, and so do all that were compressed with it.
    pub blocks: Vec<Range<u64>>,
}

/// A file in one of the trees.
struct Side {
    space: u32,
    file: u64,
    inode: Inode,
}

/// What stands in a place of a tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Hole,
    /// With what it is to a group: pointers of two groups differ in that, where none of them has a VVBN.
    Block(Option<u64>, Part),
    /// The other tree is higher: here are all pointers of the inode.
    Inode,
}

impl Side {
    /// Contents in the inode count as no tree.
    fn height(&self) -> u8 {
        if self.inode.inline { 0 } else { self.inode.height }
    }

    fn has_inline(&self) -> bool {
        self.inode.inline && self.inode.size > 0
    }
}

impl Store {
    /// The inodes of users that differ between two spaces of one volume, in the order of their numbers. Nothing may have
    /// changed since the last consistency point. Cost: reads the blocks above what differs.
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

    /// Extended attributes that do not fit an inode lie in a file of their own, and are what is told of their owner.
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

    /// Runs of blocks of contents that are not the same.
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

/// Whether an inode holds extended attributes of another one, and is nobody's.
fn is_holder(inode: &Inode) -> bool {
    inode.kind != FileKind::Directory && inode.parent != 0
}

/// Whether two inodes differ in anything but where their contents lie.
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

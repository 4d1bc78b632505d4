//! Compression groups: complete, with consecutive pointers, and decompressible. A group with a part
//! in objects is not decompressed, because that would need a request for each. Its pointers and the
//! checksums of its blocks are checked.

use super::volume::{Files, Walked};
use crate::{
    Damage,
    format::{
        Block, compression_group,
        pointer::{Part, Pointer},
    },
};

/// The group that a walk over a file is in.
#[derive(Debug)]
pub(super) struct Group {
    /// Its first block.
    start: u64,
    of: u8,
    /// The number of its pointers that were met.
    met: u8,
    /// Its first VVBN.
    first: u64,
    /// The contents of its VVBNs; `None` if another tree proved them right, or a part is in an
    /// object or unreadable.
    stored: Option<Vec<Box<Block>>>,
    /// Whether a saved hole was met: no stored part may follow.
    saves: bool,
}

impl Files<'_> {
    /// Takes the next pointer to contents, of any kind.
    pub(super) fn meet_in_group(
        &mut self,
        file: u64,
        index: u64,
        pointer: Option<Pointer>,
        keep: bool,
        walked: &mut Walked,
    ) {
        let place = pointer.as_ref().and_then(Pointer::in_group);
        let goes_on = self
            .group
            .as_ref()
            .is_some_and(|group| place == Some((group.met, group.of)) && index == group.start + u64::from(group.met));
        if !goes_on {
            self.end_groups(file);
        }
        let (Some(pointer), Some((at, of))) = (pointer, place) else { return };
        let damage = |found: String, expected: &str| Damage::new("compression group", "pointer", found, expected);
        if self.group.is_none() && (at > 0 || pointer.vvbn.is_none()) {
            return self.find(file, damage(format!("{at} of {of} at block {index}"), "one after the previous ones"));
        }
        // Operations check the record first. Without it, they would change one block and leave the
        // others without it.
        if self.group.is_none() && !self.may_have_groups {
            let expected = "on once, for there are compression groups";
            self.find_in(file, index, Damage::new("volume record", "packing", "never on", expected));
        }
        let first = pointer.vvbn.unwrap_or_default();
        let new = Group { start: index, of, met: 0, first, stored: Some(Vec::new()), saves: false };
        let mut group = self.group.take().unwrap_or(new);
        group.met += 1;
        match pointer.part {
            Part::Saved { first, .. } if first == group.first => group.saves = true,
            Part::Stored { .. } if !group.saves => match self.block(file, 0, index, pointer, keep) {
                Ok(Some(data)) => group.stored.iter_mut().for_each(|stored| stored.push(data.clone())),
                Ok(None) => group.stored = None,
                Err(damage) => {
                    self.find_in(file, index, damage);
                    group.stored = None;
                }
            },
            _ => {
                self.find(file, damage(format!("{:?} at block {index}", pointer.part), "one of the group before it"));
                group.stored = None;
            }
        }
        if group.met < group.of {
            self.group = Some(group);
            return;
        }
        let Some(stored) = group.stored else { return };
        let bytes: Vec<u8> = stored.iter().flat_map(|block| block.iter().copied()).collect();
        match compression_group::decompress(&bytes, group.of) {
            Ok(blocks) if keep => walked.contents.extend((group.start..).zip(blocks)),
            Ok(_) => {}
            Err(damage) => self.find_in(file, group.start, damage),
        }
    }

    /// Ends the current group, which is damage if it is incomplete.
    pub(super) fn end_groups(&mut self, file: u64) {
        if let Some(Group { start, of, met, .. }) = self.group.take() {
            let found = format!("{met} at block {start}");
            self.find(file, Damage::new("compression group", "pointers", found, of));
        }
    }

    fn find_in(&mut self, file: u64, index: u64, damage: Damage) {
        self.report.find(format!("inode {file} of {}, level 0, block {index}", self.tree), damage);
    }
}

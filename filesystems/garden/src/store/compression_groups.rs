//! Compression groups of files: read as a whole, and changed as a whole.
//!
//! A block of a group can only be read with the others. A change of one makes all of them dirty,
//! with their current bytes. From then on they are ordinary blocks, and the consistency point
//! decides again which ones to compress.

use super::{AGGREGATE, Key, Store, aggregate, cache::State, container_of, tree::place};
use crate::{
    error::{Error, Result},
    format::{
        BLOCK, Damage, compacted, compression_group,
        page::Page,
        pointer::{Form, MAX_GROUP, Part, Physical, Pointer},
    },
    raid::Want,
};

/// The most other blocks that an operation changes because they are in groups with the blocks at
/// both ends of its range.
pub(crate) const THAWED: u64 = 2 * (MAX_GROUP as u64 - 1);

impl Store {
    /// The first block of the group that a block is in on the drives, and the number of its blocks.
    fn group_of(&mut self, key: Key) -> Result<Option<(u64, u8)>> {
        if key.level() > 0 || key.space() == AGGREGATE {
            return Ok(None);
        }
        let found = self.pointer(key)?.and_then(|pointer| pointer.in_group());
        Ok(found.and_then(|(at, of)| Some((key.index().checked_sub(at.into())?, of))))
    }

    /// Whether a block may be in a group: its volume has or had packing.
    pub(super) fn may_be_in_group(&self, key: Key) -> Result<bool> {
        let is_contents = key.level() == 0 && key.space() < aggregate::MAX_VOLUMES;
        Ok(is_contents && self.volume(key.space())?.record.packing.was_on)
    }

    /// Loads the blocks that [`thaw`](Self::thaw) needs, so that a failure here changes nothing.
    /// One block in memory does not imply that the others of its group are.
    pub(crate) fn read_group(&mut self, key: Key) -> Result<()> {
        if !self.may_be_in_group(key)? || self.is_dirty(key) {
            return Ok(());
        }
        let Some((first, of)) = self.group_of(key)? else { return Ok(()) };
        (first..first + u64::from(of)).try_for_each(|index| self.get(key.neighbour(index)).map(drop))
    }

    /// Makes all blocks of a block's group dirty, so that each can change alone.
    ///
    /// Errors: those of reading the group, before any change.
    pub(crate) fn thaw(&mut self, key: Key) -> Result<()> {
        if !self.may_be_in_group(key)? || self.is_dirty(key) {
            return Ok(()); // if it is dirty, so are the others
        }
        let Some((first, of)) = self.group_of(key)? else { return Ok(()) };
        self.read_group(key)?;
        for key in (first..first + u64::from(of)).map(|index| key.neighbour(index)) {
            if self.cache.state(key) == Some(State::Clean) {
                self.dirty_above(key)?;
                self.make_dirty(key)?;
            }
        }
        Ok(())
    }

    /// Dissolves the groups that lose only a part of their blocks when blocks from `first` to
    /// `last` are removed.
    pub(crate) fn thaw_ends(&mut self, space: u32, file: u64, first: u64, last: u64) -> Result<()> {
        let cut = self.cut_groups(space, file, first, last)?;
        cut.into_iter().flatten().try_for_each(|key| self.thaw(key))
    }

    /// Loads the blocks that [`thaw_ends`](Self::thaw_ends) needs, so that a failure here changes
    /// nothing.
    pub(crate) fn read_ends(&mut self, space: u32, file: u64, first: u64, last: u64) -> Result<()> {
        let cut = self.cut_groups(space, file, first, last)?;
        cut.into_iter().flatten().try_for_each(|key| self.read_group(key))
    }

    /// One block of each group that extends beyond the range from `first` to `last`.
    fn cut_groups(&mut self, space: u32, file: u64, first: u64, last: u64) -> Result<[Option<Key>; 2]> {
        if first >= last || !self.volume(space)?.record.packing.was_on {
            return Ok([None; 2]);
        }
        let (head, tail) = (Key::new(space, file, 0, first), Key::new(space, file, 0, last - 1));
        let is_cut = |group: (u64, u8)| group.0 < first || group.0 + u64::from(group.1) > last;
        Ok([
            self.group_of(head)?.filter(|group| is_cut(*group)).map(|_| head),
            self.group_of(tail)?.filter(|group| is_cut(*group)).map(|_| tail),
        ])
    }

    /// Reads a group and caches its blocks; returns the requested one.
    pub(super) fn fetch_group(&mut self, key: Key, pointer: Pointer) -> Result<Page> {
        let damaged = |damage| Error::damaged(place(key), damage);
        let Some((at, of)) = pointer.in_group() else { return self.fetch(key, pointer) };
        let none = || Damage::new("volume pointer", "place in its group", at, format!("{} at most", key.index()));
        let first = key.index().checked_sub(at.into()).ok_or_else(|| damaged(none()))?;
        let (mut stored, mut head) = (Vec::new(), None);
        for number in 0..of {
            let member = key.neighbour(first + u64::from(number));
            let found = self.pointer(member)?;
            let is_end = !stored.len().is_multiple_of(BLOCK) || stored.len() < usize::from(number) * BLOCK;
            match found.map(|found| (found.vvbn, found.at, found.part)) {
                Some((Some(vvbn), guess, Part::Stored { at, of: same })) if (at, same) == (number, of) && !is_end => {
                    head.get_or_insert(vvbn);
                    stored.extend_from_slice(&self.fetch_of_volume(member, vvbn, guess)?[..]);
                }
                Some((None, _, Part::Saved { at, of: same, first }))
                    if (at, same) == (number, of) && Some(first) == head => {}
                _ => {
                    let found = format!("{:?}", found.map(|found| found.part));
                    let expected = format!("{number} of the {of} of the group at block {first}");
                    return Err(damaged(Damage::new("volume pointer", "place in its group", found, expected)));
                }
            }
        }
        let blocks = compression_group::decompress(&stored, of).map_err(damaged)?;
        let mut own = None;
        for (number, block) in (0..).zip(blocks) {
            let member = key.neighbour(first + number);
            if member == key {
                own = Some(block.into());
            } else if !self.cache.contains(member) {
                self.cache.insert(member, block);
            }
        }
        own.ok_or_else(|| damaged(none()))
    }

    /// Reads a block of a volume from a place. Errors: its difference from the wanted block.
    pub(super) fn read_at(&mut self, space: u32, vvbn: u64, at: Physical) -> std::result::Result<Page, Damage> {
        let want = self.want_at(space, vvbn, at);
        let block = self.raid.read(at.pvbn, &want)?;
        match at.form {
            Form::Block | Form::Object => Ok(block),
            Form::Compacted => compacted::extract(&block, vvbn).map(Page::from),
        }
    }

    /// Restores the block from the other drives, and writes it back.
    pub(super) fn repair_at(&mut self, space: u32, vvbn: u64, at: Physical, why: Damage) -> Result<Page> {
        let want = self.want_at(space, vvbn, at);
        let block = self.raid.repair(at.pvbn, &want, why)?;
        match at.form {
            Form::Block | Form::Object => Ok(block),
            Form::Compacted => compacted::extract(&block, vvbn).map(Page::from).map_err(|damage| {
                Error::damaged(format!("block {vvbn} of volume {space} at PVBN {}", at.pvbn), damage)
            }),
        }
    }

    fn want_at(&self, space: u32, vvbn: u64, at: Physical) -> Want {
        match at.form {
            Form::Block | Form::Object => self.want_of_volume(space, vvbn, at),
            Form::Compacted => Want::compacted(container_of(self.home(space, vvbn)), at.tag),
        }
    }
}

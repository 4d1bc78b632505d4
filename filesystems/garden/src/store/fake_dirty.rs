//! Fake dirty: a block that changes its place and nothing else.
//!
//! The next consistency point gives the block another PVBN and keeps its VVBN. So snapshots see no
//! difference and hold no additional block. The same happens to the blocks above it, in which only
//! the places of pointers change. So the volume finds everything at the places in its pointers. A
//! snapshot with the same blocks reads its pointers in the old or the new state; both lead to the
//! block.
//!
//! A real change before that makes the block dirty like any other, and all blocks above it too.

use std::collections::BTreeMap;

use super::{
    AGGREGATE, Key, Store, aggregate,
    cache::State,
    container_of,
    space::bitmap_key,
    tree::{container_key, inode_place, place},
    volume,
};
use crate::{
    Medium,
    error::{Error, Result},
    format::{
        Damage,
        pointer::{Physical, Pointer},
        slot::{Context, Kind},
    },
    raid::Place,
};

/// A block that only changes its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fake {
    /// The place in the container map before.
    old: Physical,
    /// Whether its contents stay. Otherwise the places in its pointers change.
    is_same: bool,
    /// The file and the block that its trailer names.
    hint: (u64, u64),
}

impl Store {
    /// Makes a block change its place at the next consistency point, and returns whether it does. A
    /// dirty block changes its place anyway, so nothing happens.
    ///
    /// Errors: those of reading the block and the blocks above it.
    ///
    /// Cost: reads these, and the container map for each.
    pub(super) fn fake_dirty(&mut self, key: Key) -> Result<bool> {
        debug_assert!(key.space() < aggregate::MAX_VOLUMES, "snapshots have no places of their own");
        let done = self.fake(key, true)?;
        self.counts.fake_dirty += u64::from(done);
        Ok(done)
    }

    fn fake(&mut self, key: Key, is_same: bool) -> Result<bool> {
        if self.is_dirty(key) {
            return Ok(false);
        }
        let Some(pointer) = self.pointer(key)?.filter(Pointer::is_plain) else { return Ok(false) };
        let Pointer { vvbn: Some(vvbn), .. } = pointer else { return Ok(false) };
        let Some(old) = self.container(key.space(), vvbn)? else {
            let damage = Damage::new("container map", "place", "none", format!("one for VVBN {vvbn}"));
            return Err(Error::damaged(place(key), damage));
        };
        if old.in_object().is_some() {
            return Ok(false); // cold blocks stay in place until they are written
        }
        // Read errors must occur here, not in the consistency point.
        self.get(key)?;
        let Some(hint) = self.hint(key, vvbn, old)? else { return Ok(false) };
        self.read_above(container_key(self.home(key.space(), vvbn), vvbn))?;
        self.read_for_change(bitmap_key(AGGREGATE, aggregate::BITMAP, old.pvbn))?;
        self.fake_above(key)?;
        self.make_dirty(key)?;
        self.fakes.insert(key, Fake { old, is_same, hint });
        Ok(true)
    }

    /// The pointer that the trailer names after the move: the first pointer of a shared block,
    /// whichever pointer started the move. A snapshot may have only that one, and no count. `None`
    /// if it is unknown: a chunk has no trailer.
    ///
    /// Cost: reads a block that is or was shared.
    fn hint(&mut self, key: Key, vvbn: u64, at: Physical) -> Result<Option<(u64, u64)>> {
        if key.level() > 0 || self.owners(key.space(), vvbn)? == 0 {
            return Ok(Some((key.file(), key.index())));
        }
        let place = self.place_of(at.pvbn)?;
        let slot =
            self.raid.read_for_cleaning(place.group, place.drive, place.stripe..place.stripe + 1).pop().flatten();
        let found = self.identify(place, slot)?.filter(|(context, _)| context.kind == Kind::Volume);
        Ok(found.map(|(context, _)| (context.hint_file, context.hint_block)))
    }

    /// Also rewrites the block with the pointer, under its VVBN.
    fn fake_above(&mut self, key: Key) -> Result<()> {
        let height = self.inode(key.space(), key.file())?.height;
        if key.level() < height {
            self.fake(key.parent().0, false)?;
        } else if key.file() == volume::INODES {
            self.volume_mut(key.space())?.record_dirty = true;
        } else {
            self.fake(inode_place(key.space(), key.file()).0, false)?;
        }
        Ok(())
    }

    /// Changes the place in the pointer to a block, which keeps its VVBN. Durable with the next
    /// consistency point.
    ///
    /// Errors: those of reading the blocks above.
    pub(super) fn put_place(&mut self, key: Key, vvbn: u64, at: Physical) -> Result<()> {
        self.fake_above(key)?;
        self.set_place(key, Pointer::whole(vvbn, at))
    }

    /// Whether the contents of a block differ from the last consistency point.
    pub fn is_changed(&self, key: Key) -> bool {
        self.is_dirty(key) && !self.fakes.contains_key(&key)
    }

    /// Turns a fake dirty block into a dirty one, with all blocks above it.
    pub(super) fn change_in_earnest(&mut self, key: Key) -> Result<()> {
        if self.fakes.contains_key(&key) {
            self.dirty_above(key)?;
            self.fakes.remove(&key);
        }
        Ok(())
    }

    /// Runs before blocks get places. Real changes allocate and free VVBNs, which changes the
    /// inodes of the maps. The first block of inodes holds these, so it must not keep its place
    /// under its old VVBN.
    pub(super) fn settle_fakes(&mut self) -> Result<()> {
        let mut fakes: BTreeMap<u32, u64> = BTreeMap::new();
        for key in self.fakes.keys() {
            *fakes.entry(key.space()).or_default() += 1;
        }
        for (space, count) in fakes {
            if self.volume(space)?.dirty > count {
                self.modify(inode_place(space, volume::ACTIVE_MAP).0)?;
            }
        }
        Ok(())
    }

    /// Allocates the new place of a fake dirty block. `None` if another pointer to the block did so
    /// already.
    pub(super) fn place_fake(&mut self, key: Key) -> Result<Option<(Place, Context)>> {
        let fake = self.fakes.get(&key).copied();
        let (Some(fake), Some(Pointer { vvbn: Some(vvbn), .. })) = (fake, self.pointer(key)?) else {
            return Err(Error::invalid(format!("{}: no block that only moves", place(key))));
        };
        let now = self.container(key.space(), vvbn)?;
        if let Some(now) = now.filter(|now| fake.is_same && *now != fake.old) {
            self.set_place(key, Pointer::whole(vvbn, now))?;
            self.cache.set_state(key, State::Clean);
            return Ok(None);
        }
        self.cache.set_state(key, State::Placed);
        // Contents are rewritten for sequential readers, which disks serve well.
        let medium = if key.level() == 0 && key.file() >= volume::FIRST_USER { Medium::Hdd } else { Medium::Ssd };
        let at = Physical::block(self.alloc_pvbn(medium)?, self.sb.cp as u16);
        let home = self.home(key.space(), vvbn);
        self.set_container(home, vvbn, Some(at))?;
        self.set_place(key, Pointer::whole(vvbn, at))?;
        self.free_pvbn(now.unwrap_or(fake.old))?;
        self.counts.fake_writes += 1;
        let context = Context {
            kind: Kind::Volume,
            level: key.level(),
            tag: at.tag,
            owner: container_of(home),
            block: vvbn,
            pvbn: at.pvbn,
            cp: self.sb.cp,
            hint_file: fake.hint.0,
            hint_block: fake.hint.1,
        };
        Ok(Some((self.place_of(at.pvbn)?, context)))
    }

    /// Ends the moves of a durable consistency point. The next prediction of places starts again.
    pub(super) fn end_fakes(&mut self) {
        self.fakes.clear();
        self.reading.rewritten = 0;
        self.forecast = None;
    }

    /// Writes a pointer into the block above, which is dirty or fake dirty already.
    fn set_place(&mut self, key: Key, pointer: Pointer) -> Result<()> {
        let mut inode = self.inode(key.space(), key.file())?;
        let lost = || Error::invalid(format!("{}: the block above it is not dirty", place(key)));
        if key.level() < inode.height {
            let (parent, slot) = key.parent();
            let block = self.cache.get_mut(parent).ok_or_else(lost)?;
            key.shape().encode(&mut block[..], slot, Some(pointer));
            return Ok(());
        }
        key.shape().encode(&mut inode.area, key.index(), Some(pointer));
        if key.file() == volume::INODES {
            let volume = self.volume_mut(key.space())?;
            (volume.record.inode_file, volume.record_dirty) = (inode, true);
            return Ok(());
        }
        let (above, at) = inode_place(key.space(), key.file());
        let block = self.cache.get_mut(above).ok_or_else(lost)?;
        inode.encode(&mut block[at..at + crate::format::inode::INODE]);
        Ok(())
    }
}

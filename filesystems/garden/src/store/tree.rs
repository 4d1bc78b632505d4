//! Trees of files: finding, reading and changing blocks by key.

use super::{
    AGGREGATE, Key, Store, aggregate,
    cache::{At, State},
    container_of,
    objects::Unread,
    volume, volume_of,
};
use crate::{
    error::{Error, Result},
    format::{
        BLOCK, Block, Damage,
        inode::{AREA, INODE, Inode, PER_BLOCK},
        page::Page,
        pointer::{Form, Part, Physical, Pointer},
        slot::Kind,
    },
    raid::Want,
};

impl Store {
    /// The inode of a file. Errors: `Damaged` if it is not in use, because callers name existing
    /// files.
    pub fn inode(&mut self, space: u32, file: u64) -> Result<Inode> {
        let none = || Damage::new("inode", "kind", 0, "an inode in use");
        self.try_inode(space, file)?.ok_or_else(|| Error::damaged(file_place(space, file), none()))
    }

    /// The inode of a file, if it is in use.
    pub fn try_inode(&mut self, space: u32, file: u64) -> Result<Option<Inode>> {
        match (space, file) {
            (AGGREGATE, aggregate::INODES) => Ok(Some(self.sb.root.clone())),
            (_, volume::INODES) => Ok(Some(self.volume(space)?.record.inode_file.clone())),
            _ => {
                let (key, at) = inode_place(space, file);
                let decoded = Inode::decode(&self.get(key)?[at..at + INODE]);
                decoded.map_err(|damage| Error::damaged(file_place(space, file), damage))
            }
        }
    }

    pub fn put_inode(&mut self, space: u32, file: u64, inode: &Inode) -> Result<()> {
        match (space, file) {
            (AGGREGATE, aggregate::INODES) => {
                self.sb.root = inode.clone();
                self.touched = true;
            }
            (_, volume::INODES) => {
                let volume = self.volume_mut(space)?;
                volume.record.inode_file = inode.clone();
                volume.record_dirty = true;
                self.touched = true;
            }
            _ => {
                let (key, at) = inode_place(space, file);
                inode.encode(&mut self.modify(key)?[at..at + INODE]);
            }
        }
        Ok(())
    }

    pub fn clear_inode(&mut self, space: u32, file: u64) -> Result<()> {
        let (key, at) = inode_place(space, file);
        self.modify(key)?[at..at + INODE].fill(0);
        Ok(())
    }

    /// The height of a file's tree, and the area of its inode: the parts that each access to a
    /// block needs.
    fn tree(&mut self, space: u32, file: u64) -> Result<(u8, &[u8; AREA])> {
        match (space, file) {
            (AGGREGATE, aggregate::INODES) => Ok((self.sb.root.height, &self.sb.root.area)),
            (_, volume::INODES) => {
                let inode = &self.volume(space)?.record.inode_file;
                Ok((inode.height, &inode.area))
            }
            _ => {
                let (key, at) = inode_place(space, file);
                let found = Inode::tree(&self.get(key)?[at..at + INODE]);
                let none = || Damage::new("inode", "kind", 0, "an inode in use");
                let found = found.and_then(|found| found.ok_or_else(none));
                found.map_err(|damage| Error::damaged(file_place(space, file), damage))
            }
        }
    }

    /// Levels of pointer blocks between a file's inode and its contents.
    pub(super) fn height(&mut self, space: u32, file: u64) -> Result<u8> {
        self.tree(space, file).map(|(height, _)| height)
    }

    /// The pointer to a block; `None` for a hole, and beyond the end of the tree.
    pub fn pointer(&mut self, key: Key) -> Result<Option<Pointer>> {
        let (height, area) = self.tree(key.space(), key.file())?;
        let decoded = if key.level() >= height {
            let beyond = key.level() > height || key.index() >= key.shape().roots();
            if beyond { Ok(None) } else { key.shape().decode(area, key.index()) }
        } else {
            let (parent, slot) = key.parent();
            let at = match self.cache.find(parent) {
                Some(at) => at,
                None if self.pointer(parent)?.is_none() => return Ok(None),
                None => self.load(parent)?,
            };
            key.shape().decode(self.cache.read(at), slot)
        };
        decoded.map_err(|damage| Error::damaged(place(key), damage))
    }

    /// Sets the pointer to a block. The blocks above become dirty.
    pub fn set_pointer(&mut self, key: Key, pointer: Option<Pointer>) -> Result<()> {
        if key.level() >= self.height(key.space(), key.file())? {
            let mut inode = self.inode(key.space(), key.file())?;
            key.shape().encode(&mut inode.area, key.index(), pointer);
            return self.put_inode(key.space(), key.file(), &inode);
        }
        let (parent, slot) = key.parent();
        key.shape().encode(&mut self.modify(parent)?[..], slot, pointer);
        Ok(())
    }

    /// A block. A hole is a block of zeros.
    pub fn get(&mut self, key: Key) -> Result<&Block> {
        let at = self.load(key)?;
        Ok(self.cache.read(at))
    }

    /// A block to be changed. It and all blocks above become dirty.
    pub fn modify(&mut self, key: Key) -> Result<&mut Block> {
        self.modify_page(key).map(|page| &mut **page)
    }

    fn modify_page(&mut self, key: Key) -> Result<&mut Page> {
        let mut at = self.load(key)?;
        if self.cache.state_at(at) == State::Clean {
            self.thaw(key)?;
            at = self.load(key)?;
        }
        if self.cache.state_at(at) == State::Clean {
            self.dirty_above(key)?;
            self.make_dirty(key)?;
        } else if !self.fakes.is_empty() {
            self.change_in_earnest(key)?;
        }
        // Also for dirty blocks, because the caller changes the state that the last operation left.
        self.touched = true;
        Ok(self.cache.page_mut(at))
    }

    /// Like [`modify`](Self::modify), for a block that the caller overwrites completely. A block
    /// that is not in memory is not read, but filled with zeros.
    pub fn replace(&mut self, key: Key) -> Result<&mut Block> {
        if !self.cache.contains(key) {
            self.thaw(key)?;
        }
        if !self.cache.contains(key) {
            // The zeros come last: after a failure here, readers must find the contents of the
            // devices.
            self.dirty_above(key)?;
            self.cache.insert(key, Page::zeros());
            self.make_dirty(key)?;
        }
        self.modify(key)
    }

    /// Overwrites a block; `sum` is its checksum if known.
    pub fn put(&mut self, key: Key, block: &Block, sum: Option<u32>) -> Result<()> {
        let mut is_here = self.cache.contains(key);
        if !is_here && self.may_be_in_group(key)? {
            self.thaw(key)?;
            is_here = self.cache.contains(key);
        }
        if is_here {
            self.modify_page(key)?.put(block, sum);
            return Ok(());
        }
        self.dirty_above(key)?;
        self.touched = true;
        let page = match self.cache.spare.pop() {
            Some(mut page) => {
                page.put(block, sum);
                page
            }
            None => Page::of(block, sum),
        };
        self.cache.insert(key, page);
        self.make_dirty(key)
    }

    /// Makes a block dirty with contents `data` that come from elsewhere, and all blocks above it
    /// dirty.
    pub(super) fn supply(&mut self, key: Key, data: impl Into<Page>) -> Result<()> {
        self.dirty_above(key)?;
        self.cache.insert(key, data);
        self.make_dirty(key)
    }

    /// Notes that a block in memory changed. All blocks above it are dirty already.
    pub(super) fn make_dirty(&mut self, key: Key) -> Result<()> {
        self.cache.set_state(key, State::Dirty);
        self.dirty.insert(key);
        if key.space() != AGGREGATE {
            self.volume_mut(key.space())?.dirty += 1;
        }
        Ok(())
    }

    /// Whether a block changed since the last consistency point.
    pub fn is_dirty(&self, key: Key) -> bool {
        self.cache.state(key).is_some_and(|state| state != State::Clean)
    }

    /// The number of changed blocks of contents in a range of a file, without blocks that only
    /// move.
    pub fn dirty_contents(&self, space: u32, file: u64, offset: u64, len: u64) -> u64 {
        let block = |at: u64| Key::new(space, file, 0, at / BLOCK as u64);
        let dirty = self.dirty.range(block(offset), block(offset.saturating_add(len)));
        dirty.filter(|key| self.is_changed(*key)).count() as u64
    }

    /// The number of blocks that changed since the last consistency point.
    pub fn dirty_blocks(&self) -> u64 {
        self.dirty.len() as u64
    }

    /// Removes a block from memory, dirty or not.
    pub fn forget(&mut self, key: Key) {
        self.touched = true;
        self.cache.remove(key);
        self.fakes.remove(&key);
        // The only error is a deleted volume, which has no counts.
        if self.dirty.remove(key)
            && let Ok(volume) = self.volume_mut(key.space())
        {
            volume.dirty -= 1;
        }
    }

    /// Notes that a pointer of a file was removed.
    pub fn note_freed(&mut self, space: u32, pointer: Pointer) -> Result<()> {
        self.touched = true;
        let volume = self.volume_mut(space)?;
        volume.freed.extend(pointer.vvbn);
        Ok(())
    }

    pub(super) fn dirty_above(&mut self, key: Key) -> Result<()> {
        let height = self.height(key.space(), key.file())?;
        if key.level() < height {
            let (parent, _) = key.parent();
            return self.modify(parent).map(|_| ());
        }
        if key.level() > height || key.index() >= key.shape().roots() {
            return Err(Error::invalid(format!("{}: beyond the end of a tree of height {height}", place(key))));
        }
        let inode = self.inode(key.space(), key.file())?;
        // The inode changes with the pointer, so its block must get a place after it.
        self.put_inode(key.space(), key.file(), &inode)
    }

    /// Loads all blocks that [`modify`](Self::modify) needs, and changes nothing.
    pub(super) fn read_for_change(&mut self, key: Key) -> Result<()> {
        self.load(key)?;
        self.read_above(key)
    }

    /// Loads the blocks above a block, and those above its inode.
    pub(super) fn read_above(&mut self, mut key: Key) -> Result<()> {
        let height = self.height(key.space(), key.file())?;
        while key.level() < height {
            key = key.parent().0;
            self.load(key)?;
        }
        match (key.space(), key.file()) {
            (AGGREGATE, aggregate::INODES) | (_, volume::INODES) => Ok(()),
            _ => self.read_for_change(inode_place(key.space(), key.file()).0),
        }
    }

    fn load(&mut self, key: Key) -> Result<At> {
        if let Some(at) = self.cache.find(key) {
            return Ok(at);
        }
        let data = match self.pointer(key)? {
            None => Page::zeros(),
            Some(pointer) => self.fetch(key, pointer)?,
        };
        Ok(self.cache.insert(key, data))
    }

    /// Reads a block from the drives.
    pub(super) fn fetch(&mut self, key: Key, pointer: Pointer) -> Result<Page> {
        if pointer.part != Part::Whole {
            return self.fetch_group(key, pointer);
        }
        match pointer.vvbn {
            Some(vvbn) => self.fetch_of_volume(key, vvbn, pointer.at),
            None => {
                let Physical { pvbn, tag, form } = pointer.at;
                if form != Form::Block {
                    let damage = Damage::new("pointer", "flags", form as u8, "1");
                    return Err(Error::damaged(place(key), damage));
                }
                let want = Want {
                    kind: Kind::Aggregate,
                    level: Some(key.level()),
                    owner: key.file(),
                    block: key.index(),
                    tag,
                };
                match self.raid.read(pvbn, &want) {
                    Ok(data) => Ok(data),
                    Err(why) => self.raid.repair(pvbn, &want, why),
                }
            }
        }
    }

    /// The read rule. If the trailer at the place in the pointer matches, that is the block.
    /// Otherwise the container map has its place. If that is the same place, the block is damaged.
    pub(super) fn fetch_of_volume(&mut self, key: Key, vvbn: u64, guess: Physical) -> Result<Page> {
        let done = match self.read_place(key.space(), vvbn, guess) {
            Ok(data) => Ok(data),
            // The contents of the place must be known first.
            Err(why @ Unread::Later) => self.repair_place(key.space(), vvbn, guess, why),
            Err(why) => self.fetch_by_map(key, vvbn, guess, why),
        };
        self.counts.volume_reads += u64::from(done.is_ok() || !self.wants_objects());
        done
    }

    /// Reads a block that is not where its pointer says, because of `why`.
    fn fetch_by_map(&mut self, key: Key, vvbn: u64, guess: Physical, why: Unread) -> Result<Page> {
        let at = self.look_up(key, vvbn)?;
        let why = if at == guess {
            why
        } else {
            let found = self.read_place(key.space(), vvbn, at);
            match found {
                Err(Unread::Later) => self.counts.map_lookups -= 1, // the next attempt counts again
                _ => self.note_redirect(key),
            }
            match found {
                Ok(data) => return Ok(data),
                Err(why) => why,
            }
        };
        self.repair_place(key.space(), vvbn, at, why)
    }

    /// The place of a block in the container map, after its pointer proved stale.
    pub(super) fn look_up(&mut self, key: Key, vvbn: u64) -> Result<Physical> {
        self.counts.map_lookups += 1;
        self.container(key.space(), vvbn)?.ok_or_else(|| {
            let damage = Damage::new("container map", "place", "none", format!("one for VVBN {vvbn}"));
            Error::damaged(place(key), damage)
        })
    }

    /// The place of a volume's block in the container map.
    pub fn container(&mut self, space: u32, vvbn: u64) -> Result<Option<Physical>> {
        let pointer = self.pointer(container_key(self.home(space, vvbn), vvbn))?;
        Ok(pointer.map(|pointer| pointer.at))
    }

    /// The volume whose container holds a VVBN of a volume or snapshot: the origin, for VVBNs that
    /// a clone has from it.
    pub(super) fn home(&self, space: u32, vvbn: u64) -> u32 {
        let mut home = volume_of(space);
        // The number of volumes bounds the loop, because damaged records may form a cycle.
        for _ in &self.volumes {
            let volume = self.volumes.get(home as usize).and_then(Option::as_ref);
            match volume.and_then(|volume| volume.record.origin) {
                Some(origin) if vvbn < origin.blocks => home = origin.volume,
                _ => break,
            }
        }
        home
    }

    /// The expected trailer of a volume's block.
    pub(super) fn want_of_volume(&self, space: u32, vvbn: u64, at: Physical) -> Want {
        let owner = container_of(self.home(space, vvbn));
        Want { kind: Kind::Volume, level: None, owner, block: vvbn, tag: at.tag }
    }

    pub(super) fn set_container(&mut self, space: u32, vvbn: u64, at: Option<Physical>) -> Result<()> {
        self.set_pointer(container_key(space, vvbn), at.map(Pointer::physical))
    }
}

/// The key of a volume's block in its container file.
pub(super) fn container_key(space: u32, vvbn: u64) -> Key {
    Key::new(AGGREGATE, container_of(space), 0, vvbn)
}

pub(super) fn inode_place(space: u32, file: u64) -> (Key, usize) {
    let table = if space == AGGREGATE { aggregate::INODES } else { volume::INODES };
    (Key::new(space, table, 0, file / PER_BLOCK), (file % PER_BLOCK) as usize * INODE)
}

fn file_place(space: u32, file: u64) -> String {
    if space == AGGREGATE { format!("file {file} of the aggregate") } else { format!("inode {file} of volume {space}") }
}

pub(super) fn place(key: Key) -> String {
    format!("{}, level {}, block {}", file_place(key.space(), key.file()), key.level(), key.index())
}

//! Selection of cold blocks, and naming them in objects.
//!
//! A block of a regular file's contents is cold in two cases: it was not written or moved for a
//! number of consistency points, or only snapshots use it. Metadata stay on the drives, so without
//! the store everything works except reads of cold contents. A block keeps its VVBN and its
//! trailer; only the container map changes, as in a move. The object is durable before the map
//! names it.

use std::collections::BTreeSet;

use senesce_fsapi::FileKind;

use super::{Key, Store, container_of, objects, snapshots::slot_of, tree::container_key, volume};
use crate::{
    error::{Error, Result},
    format::{
        Damage,
        object::{self, MAX_OBJECTS, ObjectHead, ObjectRecord, SLOTS},
        page::Page,
        pointer::{Form, ObjectPlace, Physical, Pointer},
        slot::{self, Context, Kind, Slot},
    },
    raid::Want,
};

/// The most blocks that change when an object is named, besides maps: its record, and the blocks
/// above.
const NAMING_BLOCKS: u64 = 8;
/// Numbers of objects that a consistency point reserves. A loss of power skips up to this number.
const NUMBERS_AHEAD: u64 = 16;

/// Which blocks move to objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiering {
    /// The least age of a block: consistency points since it was written or moved, up to 65,535.
    /// Blocks that only snapshots use move at once, unless the volume has clones.
    pub age: u16,
    /// Whether cached blocks move too. They were read recently.
    pub with_cached: bool,
}

impl Default for Tiering {
    fn default() -> Self {
        Self { age: 64, with_cached: false }
    }
}

/// A block to be put into an object.
#[derive(Clone, Debug)]
pub(crate) struct Cold {
    vvbn: u64,
    /// Its place in the container map.
    old: Physical,
    context: Context,
    data: Page,
}

/// A block in an object that a container map names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Living {
    vvbn: u64,
    old: Physical,
    pub place: ObjectPlace,
    want: Want,
}

/// The result of a step over a volume's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collected {
    pub looked: u64,
    /// Blocks that could not be read.
    pub unread: u64,
    /// The next VVBN; `None` at the end.
    pub next: Option<u64>,
}

/// An object under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filling {
    blocks: Vec<Cold>,
}

impl Filling {
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Blocks that the object can still hold.
    pub fn room(&self) -> u64 {
        (SLOTS - self.blocks.len()) as u64
    }

    pub fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub fn push(&mut self, cold: Cold) {
        self.blocks.push(cold);
    }

    /// Encodes the object under a number.
    pub fn encode(&self, uuid: [u8; 16], object: u64) -> Vec<u8> {
        let place = |slot: usize| ObjectPlace { object, slot: slot as u64 }.pvbn();
        let slots: Vec<Slot> = self
            .blocks
            .iter()
            .enumerate()
            .map(|(at, cold)| object::placed(&cold.data, &cold.context, place(at)))
            .collect();
        let blocks = self.blocks.iter().map(|cold| (cold.context.owner, cold.vvbn)).collect();
        ObjectHead { uuid, object, blocks }.with(&slots)
    }
}

impl Store {
    /// Scans up to `most` blocks of a volume from a VVBN on, up to the free space of the object,
    /// and adds the cold ones. An error leaves the object unchanged, so the step can be repeated.
    ///
    /// Cost: reads maps, and each block that is old enough.
    pub fn collect_cold(
        &mut self,
        space: u32,
        from: u64,
        tiering: Tiering,
        most: u64,
        filling: &mut Filling,
    ) -> Result<Collected> {
        self.check_running()?;
        let end = self.volume(space)?.record.blocks;
        let most = most.min(filling.room()).max(1);
        let found = self.find_places(space, from..end, most)?;
        let looked = found.len() as u64;
        let next = found.last().map(|last| last + 1).filter(|_| looked == most);
        let (mut old, mut taken) = (Vec::new(), Vec::new());
        for vvbn in found {
            if let Some(at) = self.container(space, vvbn)?
                && self.may_be_cold(space, vvbn, at, tiering)?
            {
                old.push((at, vvbn));
            }
        }
        old.sort_unstable_by_key(|(at, _)| at.pvbn);
        let (mut rest, mut unread) = (&old[..], 0);
        while let Some(&(first, _)) = rest.first() {
            let (run, later) = rest.split_at(self.chain_of(rest.iter().map(|(at, _)| at.pvbn)));
            rest = later;
            let place = self.place_of(first.pvbn)?;
            let slots =
                self.raid.read_for_cleaning(place.group, place.drive, place.stripe..place.stripe + run.len() as u64);
            for ((&(at, vvbn), slot), stripe) in run.iter().zip(slots).zip(place.stripe..) {
                match self.identify(crate::raid::Place { stripe, ..place }, slot)? {
                    None => unread += 1,
                    Some((context, data)) => {
                        if self.is_cold_contents(space, vvbn, &context, tiering)? {
                            taken.push(Cold { vvbn, old: at, context, data });
                        }
                    }
                }
            }
        }
        filling.blocks.append(&mut taken);
        Ok(Collected { looked, unread, next })
    }

    /// Whether the maps allow the move: the block is on a drive, does not move otherwise, and is
    /// old enough.
    fn may_be_cold(&mut self, space: u32, vvbn: u64, at: Physical, tiering: Tiering) -> Result<bool> {
        let key = container_key(space, vvbn);
        // Compacted blocks are small already.
        if at.form != Form::Block || self.moves.contains_key(&key) {
            return Ok(false);
        }
        let age = (self.sb.cp as u16).wrapping_sub(at.tag);
        let only_snapshots = !self.is_active(space, vvbn)? && !self.has_clones(space);
        Ok(age >= tiering.age || only_snapshots)
    }

    /// Whether the trailer allows the move: the block belongs to contents of a regular file, and is
    /// neither dirty nor cached.
    fn is_cold_contents(&mut self, space: u32, vvbn: u64, context: &Context, tiering: Tiering) -> Result<bool> {
        if context.kind != Kind::Volume || context.level > 0 || context.hint_file < volume::FIRST_USER {
            return Ok(false);
        }
        let key = Key::new(space, context.hint_file, 0, context.hint_block);
        if self.is_dirty(key) || !tiering.with_cached && self.cache.contains(key) {
            return Ok(false);
        }
        if self.is_active(space, vvbn)? {
            // Only contents of regular files are shared, and the first file of a shared block may
            // be gone.
            return Ok(self.is_regular(space, context.hint_file)? || self.owners(space, vvbn)? > 0);
        }
        for view in self.snapshots_of(space) {
            if self.is_active(view, vvbn)? {
                return Ok(self.is_regular(view, context.hint_file)? || self.owners(view, vvbn)? > 0);
            }
        }
        Ok(false) // no tree uses it: it will be freed soon
    }

    fn is_regular(&mut self, space: u32, file: u64) -> Result<bool> {
        let inode = self.try_inode(space, file)?;
        Ok(inode.is_some_and(|inode| inode.kind == FileKind::File && inode.parent == 0 && !inode.inline))
    }

    fn is_active(&mut self, space: u32, vvbn: u64) -> Result<bool> {
        Ok(self.count_bits(space, volume::ACTIVE_MAP, vvbn..vvbn + 1)? > 0)
    }

    /// Whether a volume was cloned from one of its snapshots.
    fn has_clones(&self, space: u32) -> bool {
        let own: Vec<u32> = self.snapshots_of(space).into_iter().map(slot_of).collect();
        let mut origins = self.volumes.iter().flatten().filter_map(|volume| volume.record.origin);
        origins.any(|origin| own.contains(&origin.snapshot))
    }

    /// Allocates a number for an object. No other object ever had it: numbers are only allocated
    /// below the `next_object` of a durable superblock, with which an opening starts. `None` if
    /// none is left below that; a consistency point reserves more.
    ///
    /// Errors: `Invalid` if the aggregate has used all numbers.
    pub fn take_object_number(&mut self) -> Result<Option<u64>> {
        self.check_running()?;
        let object = self.objects.next;
        if object >= MAX_OBJECTS {
            return Err(Error::invalid(format!("{MAX_OBJECTS} objects are the most that an aggregate can put")));
        }
        if object >= self.durable.next_object {
            self.reserve_object_numbers();
            return Ok(None);
        }
        self.objects.next += 1;
        Ok(Some(object))
    }

    /// Makes the next consistency point reserve numbers of objects, if few are left.
    pub fn reserve_object_numbers(&mut self) {
        if self.objects.next + NUMBERS_AHEAD / 2 > self.sb.next_object {
            self.sb.next_object = (self.objects.next + NUMBERS_AHEAD).min(MAX_OBJECTS);
            self.log.note_other_changes();
        }
    }

    /// Names the blocks of an object in the container map, if their old places are still there, and
    /// frees these. Durable with the next consistency point. A block that is in the object twice is
    /// named once. Returns the number of named blocks; if it is 0, nothing will ever need the
    /// object.
    ///
    /// Errors: `NoSpace` for maps, and those of reading them, before any change.
    pub fn name_object(&mut self, number: u64, filling: &Filling) -> Result<u64> {
        self.check_running()?;
        self.reserve_release(NAMING_BLOCKS, filling.blocks())?;
        let (mut named, mut keys) = (Vec::new(), BTreeSet::new());
        for (slot, cold) in (0..).zip(&filling.blocks) {
            let space = (cold.context.owner - container_of(0)) as u32;
            let is_there = self.volume(space).is_ok_and(|volume| cold.vvbn >= volume.record.first_own());
            if !is_there || self.container(space, cold.vvbn)? != Some(cold.old) {
                continue;
            }
            let key = container_key(space, cold.vvbn);
            if !keys.insert(key) {
                continue;
            }
            self.read_above(key)?;
            self.read_for_give(cold.old)?;
            let at = ObjectPlace { object: number, slot }.with(cold.old.tag);
            named.push((key, cold.old, at));
        }
        if named.is_empty() {
            return Ok(0);
        }
        self.read_for_change(objects::record_place(number).0)?;
        let live = named.len() as u64;
        let done = self.name_all(number, filling, named);
        if let Err(error) = &done {
            self.stop(error);
        }
        done.map(|()| live)
    }

    fn name_all(&mut self, number: u64, filling: &Filling, named: Vec<(Key, Physical, Physical)>) -> Result<()> {
        let live = named.len() as u16;
        let record = ObjectRecord { live, blocks: filling.blocks() as u16, cp: self.sb.cp + 1 };
        self.put_object_record(number, Some(record))?;
        self.sb.cold += u64::from(live);
        self.counts.tiered += u64::from(live);
        for (key, old, at) in named {
            self.set_pointer(key, Some(Pointer::physical(at)))?;
            self.free_pvbn(old)?;
        }
        Ok(())
    }

    /// The blocks of an object that container maps name there, from the bytes of its head. Errors:
    /// damage.
    ///
    /// Cost: reads maps.
    pub fn find_living(&mut self, number: u64, head: &[u8]) -> Result<Vec<Living>> {
        self.check_running()?;
        let head = self.decode_object_head(number, head)?;
        let mut living = Vec::new();
        for (slot, (owner, vvbn)) in (0..).zip(head.blocks) {
            let place = ObjectPlace { object: number, slot };
            let Some(space) = owner.checked_sub(container_of(0)).and_then(|space| u32::try_from(space).ok()) else {
                let damage = Damage::new("object", "owner", owner, "a container");
                return Err(Error::damaged(format!("object {}", self.object_key(number)), damage));
            };
            // A deleted volume has no live blocks.
            if self.volume(space).is_ok()
                && let Some(old) = self.container(space, vvbn)?.filter(|at| at.in_object() == Some(place))
            {
                living.push(Living { vvbn, old, place, want: self.want_of_volume(space, vvbn, old) });
            }
        }
        Ok(living)
    }

    /// Decodes one of these blocks. Errors: it is not the one that the map names.
    pub fn judge_living(&mut self, living: &Living, bytes: &[u8]) -> Result<Cold> {
        self.counts.cold_reads += 1;
        let judged = object::slot_of(bytes).and_then(|slot| {
            let context = slot::decode(&slot)?;
            living.want.check(&context, living.place.pvbn()).map(|()| (context, slot.into()))
        });
        let (context, data) = judged.map_err(|damage| self.damaged_object(living.place, damage))?;
        Ok(Cold { vvbn: living.vvbn, old: living.old, context, data })
    }
}

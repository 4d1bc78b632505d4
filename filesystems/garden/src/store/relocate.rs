//! Relocation: a volume's block is rewritten as contents of its container, without a change in the
//! volume.
//!
//! A block that moves is dirty under its key in the container file. The next consistency point
//! allocates a place for it like for any other. Only the container map changes: the VVBN, the
//! pointers in the volume and the volume's blocks stay. Readers detect pointers with the old place.
//!
//! The trailer at a place names the owner of its block. It is used only if the map names this
//! place. The map is checked again when the block gets its new place, so a block that was freed or
//! moved in between is skipped.

use std::collections::BTreeMap;

use super::{AGGREGATE, Key, Store, areas::AreaId, cache::State, media::Lane};
use crate::{
    Medium,
    error::{Error, Result},
    format::{
        Block, compacted,
        page::Page,
        pointer::{Form, Physical, Pointer},
        slot::{self, Context, Kind, Slot},
    },
    raid::{CHAIN_SLOTS, Place},
};

/// The fields of the old trailer that a moving block keeps, and its old place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    level: u8,
    hint_file: u64,
    hint_block: u64,
    /// The consistency point that wrote the contents.
    cp: u64,
    old: Physical,
    /// The target medium, in mixed aggregates.
    to: Medium,
}

/// The blocks that move at the next consistency point, by their keys in the containers.
pub(crate) type Moves = BTreeMap<Key, Move>;

/// A block and its trailer, confirmed by a map.
pub(super) type Found = (Context, Page);

/// Counts of the blocks of a moved area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AreaMoves {
    /// Blocks of volumes that move at the next consistency point.
    pub blocks: u64,
    /// Blocks of the aggregate's own files that move.
    pub metadata: u64,
    /// Blocks in use that stay, because they cannot be read or no map names them.
    pub stuck: u64,
}

impl std::ops::AddAssign for AreaMoves {
    fn add_assign(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.metadata += other.metadata;
        self.stuck += other.stuck;
    }
}

impl Store {
    /// Makes all blocks of an allocation area move at the next consistency point, which allocates
    /// nothing there.
    ///
    /// Cost: reads the range from the first to the last block in use on each drive; writes each
    /// block.
    pub(super) fn move_area(&mut self, area: AreaId) -> Result<AreaMoves> {
        self.begin_cleaning(area);
        let mut moves = AreaMoves::default();
        for (drive, used) in self.area_runs(area)? {
            self.move_run(area.0, drive, &used, &mut moves)?;
        }
        self.counts.metadata_relocations += moves.metadata;
        self.counts.moves_stuck += moves.stuck;
        if moves.stuck > 0 {
            let used = self.count_used(area)?;
            self.alloc.states.stuck.insert(area, used);
        } else {
            self.counts.areas_cleaned += 1;
        }
        Ok(moves)
    }

    /// The blocks in use of an area, drive by drive, in runs that one request reads.
    pub(super) fn area_runs(&mut self, area: AreaId) -> Result<Vec<(usize, Vec<u64>)>> {
        let mut runs = Vec::new();
        for (drive, range) in self.area_blocks(area.0, area.1).into_iter().enumerate() {
            let used = self.used_in(range)?;
            let mut rest = &used[..];
            while let Some(&first) = rest.first() {
                let count = rest.iter().take_while(|&&pvbn| pvbn < first + CHAIN_SLOTS as u64).count();
                let (now, later) = rest.split_at(count);
                rest = later;
                runs.push((drive, now.to_vec()));
            }
        }
        Ok(runs)
    }

    /// Reads blocks of one drive that are close together; `None` for those that cannot be
    /// identified.
    pub(super) fn read_run(&mut self, group: usize, drive: usize, used: &[u64]) -> Result<Vec<Option<Found>>> {
        let Some(first) = used.first().and_then(|&first| self.raid.geometry.locate(first)) else { return Ok(vec![]) };
        let stripe_of = |pvbn: u64| first.stripe + (pvbn - used[0]);
        let end = stripe_of(used[used.len() - 1]) + 1;
        let mut slots = self.raid.read_for_cleaning(group, drive, first.stripe..end);
        let mut found = Vec::with_capacity(used.len());
        for &pvbn in used {
            let place = Place { group, drive, stripe: stripe_of(pvbn) };
            let slot = slots[(place.stripe - first.stripe) as usize].take();
            found.push(self.identify(place, slot)?);
        }
        Ok(found)
    }

    fn move_run(&mut self, group: usize, drive: usize, used: &[u64], moves: &mut AreaMoves) -> Result<()> {
        for found in self.read_run(group, drive, used)? {
            match found {
                None => moves.stuck += 1,
                Some((context, data)) if context.kind == Kind::Volume => {
                    let to = self.medium_after(&context);
                    self.move_block(&context, data, to)?;
                    moves.blocks += 1;
                }
                Some((context, data)) if context.kind == Kind::Compacted => {
                    let to = self.medium_after(&context);
                    match self.move_chunks(&context, &data, to) {
                        Ok(()) => moves.blocks += 1,
                        Err(Error::NoSpace { .. }) => moves.stuck += 1,
                        Err(error) => return Err(error),
                    }
                }
                Some((context, _)) => {
                    self.modify(Key::new(AGGREGATE, context.owner, context.level, context.block))?;
                    moves.metadata += 1;
                }
            }
        }
        Ok(())
    }

    /// Identifies a slot as the block that a map has at this place, or restores that block from the
    /// other drives.
    pub(super) fn identify(&mut self, place: Place, slot: Option<Slot>) -> Result<Option<Found>> {
        if let Some(slot) = slot
            && let Some(context) = self.believe(place, &slot)?
        {
            return Ok(Some((context, slot.into())));
        }
        let Some(slot) = self.raid.rebuild_slot(place.group, place.drive, place.stripe) else { return Ok(None) };
        let Some(context) = self.believe(place, &slot)? else { return Ok(None) };
        self.raid.put_back(place, &slot);
        Ok(Some((context, slot.into())))
    }

    fn believe(&mut self, place: Place, slot: &Slot) -> Result<Option<Context>> {
        let Ok(context) = slot::decode(slot) else { return Ok(None) };
        if context.pvbn != self.raid.geometry.pvbn(place) {
            return Ok(None);
        }
        match self.is_named(&context, slot) {
            // A damaged map names nothing, so its blocks stay in place.
            Err(Error::Damaged { .. }) => Ok(None),
            named => Ok(named?.then_some(context)),
        }
    }

    /// Makes a block of a volume move at the next consistency point, to a medium in mixed
    /// aggregates. `context` is its trailer, which the map confirms.
    pub(super) fn move_block(&mut self, context: &Context, data: Page, to: Medium) -> Result<()> {
        let key = Key::new(AGGREGATE, context.owner, 0, context.block);
        let Context { level, hint_file, hint_block, cp, pvbn, tag, .. } = *context;
        let own = Move { level, hint_file, hint_block, cp, old: Physical::block(pvbn, tag), to };
        self.supply_move(key, own, data)
    }

    /// Makes the live chunks of a compacted block move. Each is an own block, and they are packed
    /// again at their next places.
    ///
    /// Errors: `NoSpace` before any change, because each chunk may need a block.
    pub(super) fn move_chunks(&mut self, context: &Context, block: &Block, to: Medium) -> Result<()> {
        let live = self.live_chunks(context, block)?;
        self.reserve(None, live.len() as u64, false)?;
        let old = Physical { pvbn: context.pvbn, tag: context.tag, form: Form::Compacted };
        for tuple in live {
            let key = Key::new(AGGREGATE, context.owner, 0, tuple.vvbn);
            self.supply_move(
                key,
                Move { level: 0, hint_file: 0, hint_block: 0, cp: context.cp, old, to },
                tuple.padded(block),
            )?;
        }
        Ok(())
    }

    fn supply_move(&mut self, key: Key, own: Move, data: impl Into<Page>) -> Result<()> {
        if self.moves.insert(key, own).is_none() {
            self.supply(key, data)?;
        }
        Ok(())
    }

    /// Allocates the new place of a moving block. `None` if the move is dropped, because the map
    /// does not name the place that the block was read from any more.
    pub(super) fn place_moved(&mut self, key: Key, old: Option<Pointer>) -> Result<Option<(Place, Context)>> {
        let own = self.moves.get(&key).copied().filter(|own| Some(own.old) == old.map(|pointer| pointer.at));
        let Some(own) = own else {
            self.moves.remove(&key);
            self.cache.remove(key);
            self.counts.moves_dropped += 1;
            return Ok(None);
        };
        self.cache.set_state(key, State::Placed);
        if own.old.form == Form::Compacted {
            let chunk = compacted::trim(self.get(key)?).to_vec();
            let at = self.pack(key.file(), Some((own.to, own.cp)), key.index(), &chunk)?;
            self.set_pointer(key, Some(Pointer::physical(at)))?;
            self.free_pvbn(own.old)?;
            self.note_moved(own.old.pvbn, at.pvbn);
            return Ok(None);
        }
        let lane = Lane::between(self.raid.geometry.medium_of(own.old.pvbn), own.to);
        let at = Physical::block(self.take_in(lane)?, self.sb.cp as u16);
        self.set_pointer(key, Some(Pointer::physical(at)))?;
        self.free_pvbn(own.old)?;
        self.note_moved(own.old.pvbn, at.pvbn);
        let context = Context {
            kind: Kind::Volume,
            level: own.level,
            tag: at.tag,
            owner: key.file(),
            block: key.index(),
            pvbn: at.pvbn,
            cp: own.cp,
            hint_file: own.hint_file,
            hint_block: own.hint_block,
        };
        Ok(Some((self.place_of(at.pvbn)?, context)))
    }

    fn note_moved(&mut self, from: u64, to: u64) {
        let [from, to] = [from, to].map(|pvbn| self.raid.geometry.medium_of(pvbn));
        self.counts.relocations += 1;
        self.counts.demotions += u64::from((from, to) == (Medium::Ssd, Medium::Hdd));
    }

    /// Ends the moves of a durable consistency point. The blocks leave memory, because they may
    /// also be cached under their keys in the volume.
    pub(super) fn end_moves(&mut self) {
        for key in std::mem::take(&mut self.moves).into_keys() {
            self.cache.remove(key);
        }
    }
}

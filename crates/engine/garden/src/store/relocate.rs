//! Moving blocks without their volumes knowing: a volume's block is written again as the contents of its container.
//!
//! A block that is to move is dirty under the name that it has in its container file. The next consistency point gives it a
//! place like any other, and the container map is all that changes: the VVBN, the pointers in the volume and the volume's
//! blocks stay as they are. Pointers that remember the old place are found out by the read rule.
//!
//! Who lives in a place is told by the trailer there, and only believed if the map names this place. The map is asked again when the
//! block gets its new place: what was freed or moved in between is left alone.

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

/// What a block that moves keeps from its old trailer, and where that lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    level: u8,
    hint_file: u64,
    hint_block: u64,
    /// The consistency point that wrote what it holds.
    cp: u64,
    old: Physical,
    /// Where there are several media, the one that it moves to.
    to: Medium,
}

/// The blocks that move at the next consistency point, under their names in their containers.
pub(crate) type Moves = BTreeMap<Key, Move>;

/// The trailer of a block, which a map confirms, and what it holds.
pub(super) type Found = (Context, Page);

/// What became of an area's blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AreaMoves {
    /// Blocks of volumes that move at the next consistency point.
    pub blocks: u64,
    /// Blocks of the aggregate's own files that do.
    pub metadata: u64,
    /// Blocks in use that cannot be read, or that no map names: they stay.
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
    /// Makes all blocks of an allocation area move at the next consistency point, which takes no block of it.
    ///
    /// Cost: reads of each drive what lies between its first and its last block in use; then a block for each.
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

    /// What each of these blocks of one drive holds, which lie close together; `None` if that cannot be told.
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

    /// What a slot holds, if that is the block that a map has in this place; else what the other drives say that it held.
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
            // A map that is damaged names nothing: its blocks stay where they are.
            Err(Error::Damaged { .. }) => Ok(None),
            named => Ok(named?.then_some(context)),
        }
    }

    /// Makes a block of a volume move at the next consistency point, to a medium if there are several. `context` is its trailer,
    /// which the map confirms.
    pub(super) fn move_block(&mut self, context: &Context, data: Page, to: Medium) -> Result<()> {
        let key = Key::new(AGGREGATE, context.owner, 0, context.block);
        let Context { level, hint_file, hint_block, cp, pvbn, tag, .. } = *context;
        let own = Move { level, hint_file, hint_block, cp, old: Physical::block(pvbn, tag), to };
        self.supply_move(key, own, data)
    }

    /// Makes the chunks of a compacted block that the map means move, as blocks of their own that share their next places again.
    ///
    /// Errors: `NoSpace`, before anything changed, for each of them may want a block.
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

    /// Gives a block that moves its new place, as `place` does for others. `None` if it is not to move any more: the map does
    /// not name the place that it was read from.
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
            self.give_pvbn(own.old)?;
            self.note_moved(own.old.pvbn, at.pvbn);
            return Ok(None);
        }
        let lane = Lane::between(self.raid.geometry.medium_of(own.old.pvbn), own.to);
        let at = Physical::block(self.take_in(lane)?, self.sb.cp as u16);
        self.set_pointer(key, Some(Pointer::physical(at)))?;
        self.give_pvbn(own.old)?;
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

    /// What moved is durable. It leaves memory: under its name in the volume it may be there as well.
    pub(super) fn end_moves(&mut self) {
        for key in std::mem::take(&mut self.moves).into_keys() {
            self.cache.remove(key);
        }
    }
}

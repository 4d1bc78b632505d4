//! The consistency point: all changed blocks get new places and are written. Then one superblock
//! makes them the state of the aggregate.
//!
//! Phases:
//!
//! 1. Cold blocks of an overfull flash are marked to move. Blocks that operations freed leave
//!    the maps.
//! 2. Blocks of volumes get places: files of users in the order of inodes, metadata of volumes,
//!    the bits of VVBNs.
//! 3. Areas are cleaned ahead, and blocks of containers move. Compacted blocks are built.
//! 4. The volume table, containers and metadata of the aggregate get places, until nothing new
//!    is dirty.
//! 5. The log names the stripes. The blocks are written to the drives and flushed.
//! 6. The superblock is written and flushed.
//! 7. Freed blocks can be allocated, and the other half of the log takes over.

use super::{
    AGGREGATE, Freed, Key, Store, aggregate,
    cache::{Cache, State},
    container_of,
    packing::{Placed, Written},
};
use crate::{
    error::{Error, Result},
    format::{
        SLOT,
        pointer::{Part, Physical, Pointer},
        slot::{Context, Kind},
    },
    raid::{Place, Slots, StripeRange},
};

/// Stripes that are built in memory at once, and that the log names with one flush.
const STRIPES_AT_ONCE: u64 = 256;
/// A stripe without parity is only a few blocks, and the log keeps no sum for it. This number of
/// them counts as one.
const WITHOUT_PARITY: u64 = 128;

impl Store {
    /// Makes all changes durable. An error leaves the devices at the last consistency point and
    /// stops the engine.
    pub fn consistency_point(&mut self) -> Result<()> {
        self.wait_for_inflight()?;
        self.check_running()?;
        self.reclaim_and(Self::try_consistency_point)
    }

    /// Frees blocks of deleted snapshots and volumes, then makes a consistency point by `make`. An
    /// error stops the engine.
    pub(super) fn reclaim_and(&mut self, make: fn(&mut Self) -> Result<()>) -> Result<()> {
        self.reclaim_along().and_then(|()| make(self)).inspect_err(|error| self.stop(error))
    }

    fn try_consistency_point(&mut self) -> Result<()> {
        let (placed, freed) = self.prepare_point()?;
        self.finish_point(&placed, &freed)
    }

    /// Allocates a place for every dirty block. Also returns the blocks that the last consistency
    /// point uses and this one does not.
    pub(super) fn prepare_point(&mut self) -> Result<(Placed, Freed)> {
        self.fix_noted()?;
        match self.demote() {
            Err(Error::Damaged { .. }) => {} // the point continues with the moves so far
            done => done?,
        }
        if self.raid.missing() != self.durable.missing || self.durable.closed {
            // A missing drive may hold the newest superblock for blocks that this point overwrites,
            // and a closed aggregate hides its log. So the current state becomes durable first.
            self.commit_drives()?;
        }
        self.sb.cp += 1;
        self.sb.point = self.sb.cp;
        self.sb.applied = self.log.last();
        for space in self.spaces() {
            let volume = self.volume_mut(space)?;
            let changed = volume.dirty > 0 || volume.record_dirty || !volume.released.is_empty();
            let freed = std::mem::take(&mut volume.freed);
            for &vvbn in &freed {
                self.free_vvbn(space, vvbn)?;
            }
            self.release_held(space)?;
            if changed || !freed.is_empty() {
                self.save_record(space)?;
            }
        }
        self.settle_fakes()?;
        self.dirty_top_areas()?;
        let mut placed = self.place_all()?;
        placed.sort_by_cached_key(|(place, ..)| *place);
        // Nothing more is allocated before the superblock is durable, so the lists of areas
        // describe the state after it.
        let freed = self.release_pending();
        self.fill_top_areas()?;
        Ok((placed, freed))
    }

    /// Writes all placed blocks, and makes the consistency point durable.
    pub(super) fn finish_point(&mut self, placed: &[Written], freed: &Freed) -> Result<()> {
        self.write_all(placed, freed)?;
        self.raid.flush()?;
        self.commit_superblock(self.sb.clone())?;
        placed.iter().for_each(|(_, at, _)| self.cache.set_state_at(*at, State::Clean));
        self.end_changes();
        self.end_point();
        Ok(())
    }

    /// Ends moves, packing and fake dirty blocks, after all blocks have places.
    pub(super) fn end_changes(&mut self) {
        self.end_moves();
        self.end_packing();
        self.end_fakes();
    }

    /// Finishes a durable consistency point.
    pub(super) fn end_point(&mut self) {
        self.counts.consistency_points += 1;
        self.activity.end((self.raid.counts(), self.raid.drive_counts()));
        self.objects.end_point();
        self.log.swap(self.durable.point, self.durable.applied);
        self.shrink_cache();
    }

    /// Allocates a place for every dirty block. This dirties blocks of maps, which follow later in
    /// the order, or are placed again.
    fn place_all(&mut self) -> Result<Placed> {
        let (mut placed, mut cleaned) = (Placed::new(), false);
        loop {
            while let Some(key) = self.dirty.first() {
                if key.space() != AGGREGATE {
                    if self.place_group(key, &mut placed)? {
                        continue;
                    }
                    self.volume_mut(key.space())?.dirty -= 1;
                } else if !std::mem::replace(&mut cleaned, true) {
                    // The maps now contain all that volumes wrote and freed. So blocks in use stay
                    // in use after this point.
                    match self.clean_ahead((placed.len() + self.packing.blocks()) as u64) {
                        // A map that only cleaning needs cannot be read. The point continues with
                        // the moves so far.
                        Err(Error::Damaged { .. }) => {}
                        done => done?,
                    }
                    continue;
                } else if key.file() < aggregate::FIRST_CONTAINER && self.close_compacted(&mut placed)? {
                    continue;
                }
                self.dirty.remove(key);
                if let Some((place, context)) = self.place(key)? {
                    let at = self.cache.find(key).expect("dirty blocks stay");
                    placed.push((place, at, context));
                }
            }
            // The records hold the roots of the volumes, which are final only now.
            for space in self.spaces() {
                if self.volume(space)?.record_dirty {
                    self.save_record(space)?;
                }
            }
            if self.dirty.is_empty() && !self.close_compacted(&mut placed)? {
                return Ok(placed);
            }
        }
    }

    /// Allocates a new place for one block and frees the old one; `None` if the block is all zeros
    /// and becomes a hole.
    fn place(&mut self, key: Key) -> Result<Option<(Place, Context)>> {
        let old = self.pointer(key)?;
        if self.moves.contains_key(&key) {
            return self.place_moved(key, old);
        }
        if self.fakes.contains_key(&key) {
            return self.place_fake(key);
        }
        let is_hole = key.zeros_are_a_hole() && self.get(key)?.iter().all(|&byte| byte == 0);
        if is_hole {
            self.cache.remove(key);
            self.set_pointer(key, None)?;
            self.free_old(key, old)?;
            return Ok(None);
        }
        self.cache.set_state(key, State::Placed);
        let (tag, medium) = (self.sb.cp as u16, self.choose_medium(key));
        let vvbn = if key.space() == AGGREGATE { None } else { Some(self.alloc_vvbn(key.space())?) };
        if let Some(vvbn) = vvbn
            && let Some(at) = self.place_chunk(key, vvbn)?
        {
            self.set_container(key.space(), vvbn, Some(at))?;
            self.set_pointer(key, Some(Pointer::whole(vvbn, at)))?;
            self.free_old(key, old)?;
            return Ok(None);
        }
        let pvbn = self.alloc_pvbn(medium)?;
        let at = Physical::block(pvbn, tag);
        let (kind, owner, block) = match vvbn {
            None => (Kind::Aggregate, key.file(), key.index()),
            Some(vvbn) => (Kind::Volume, container_of(key.space()), vvbn),
        };
        if let Some(vvbn) = vvbn {
            self.set_container(key.space(), vvbn, Some(at))?;
        }
        self.set_pointer(key, Some(vvbn.map_or(Pointer::physical(at), |vvbn| Pointer::whole(vvbn, at))))?;
        self.free_old(key, old)?;
        let context = Context {
            kind,
            level: key.level(),
            tag,
            owner,
            block,
            pvbn,
            cp: self.sb.cp,
            hint_file: key.file(),
            hint_block: key.index(),
        };
        Ok(Some((self.place_of(pvbn)?, context)))
    }

    pub(super) fn place_of(&self, pvbn: u64) -> Result<Place> {
        let unknown = || Error::invalid(format!("PVBN {pvbn} is beyond the end of the aggregate"));
        self.raid.geometry.locate(pvbn).ok_or_else(unknown)
    }

    pub(super) fn free_old(&mut self, key: Key, old: Option<Pointer>) -> Result<()> {
        match old {
            None | Some(Pointer { part: Part::Saved { .. }, .. }) => Ok(()),
            Some(Pointer { vvbn: Some(vvbn), .. }) => self.free_vvbn(key.space(), vvbn),
            Some(Pointer { vvbn: None, at, .. }) => self.free_pvbn(at),
        }
    }

    /// Writes all blocks to their places. `freed` are the blocks that the last consistency point
    /// uses and this one does not.
    fn write_all(&mut self, placed: &[Written], freed: &Freed) -> Result<()> {
        let at_once = STRIPES_AT_ONCE.min(self.log.max_stripes());
        self.log.rewind_intents();
        let runs = self.raid.stripes_of(placed.iter().map(|(place, ..)| place));
        let groups = self.raid.geometry.groups.clone();
        let as_one = |run: &StripeRange| if groups[run.group as usize].parity { 1 } else { WITHOUT_PARITY };
        let runs: Vec<StripeRange> = runs.iter().flat_map(|run| run.split(at_once * as_one(run))).collect();
        let (mut rest, mut blocks) = (&runs[..], placed);
        while !rest.is_empty() {
            let mut stripes = 0;
            let fits = |run: &&StripeRange| {
                stripes += run.count.div_ceil(as_one(run));
                stripes <= at_once
            };
            let (now, later) = rest.split_at(rest.iter().take_while(fits).count());
            let end = now.last().map_or(blocks.len(), |run| blocks.partition_point(|(place, ..)| *place < run.end()));
            let (these, others) = blocks.split_at(end);
            self.write_stripes(now, these, freed)?;
            (rest, blocks) = (later, others);
        }
        Ok(())
    }

    /// Writes the blocks of some runs of stripes. First names the stripes in the log, so that
    /// opening can correct parity after a loss of power.
    fn write_stripes(&mut self, runs: &[StripeRange], blocks: &[Written], freed: &Freed) -> Result<()> {
        let places: Vec<Place> = blocks.iter().map(|(place, ..)| *place).collect();
        let mut old = self.raid.read_old(&places);
        self.mend_stays(&mut old, freed)?;
        let mut plans = self.raid.plan(&places, old)?;
        let kept =
            plans.iter_mut().filter_map(|plan| Some(((plan.group as u32, plan.stripe), plan.kept.take()?))).collect();
        if !self.log.write_intent(self.sb.point, runs, &kept, &self.raid.missing())? {
            // The stripes named so far must be durable before the log overwrites their names.
            self.raid.flush()?;
            self.log.rewind_intents();
            if !self.log.write_intent(self.sb.point, runs, &kept, &self.raid.missing())? {
                return Err(Error::invalid(format!("the log's half does not hold {} stripes", plans.len())));
            }
        }
        // A copy of the log without these stripes must not be used any more.
        self.note_logs()?;
        self.raid.write(&places, &mut Pages { blocks, cache: &mut self.cache }, plans)
    }
}

/// The blocks of a consistency point. They are sealed in the cache, without a copy.
struct Pages<'a> {
    blocks: &'a [Written],
    cache: &'a mut Cache,
}

impl Slots for Pages<'_> {
    fn seal(&mut self, number: usize) -> &[u8; SLOT] {
        let (_, at, context) = &self.blocks[number];
        self.cache.page_mut(*at).seal(context)
    }

    fn sealed(&self, number: usize) -> &[u8; SLOT] {
        let (_, at, _) = &self.blocks[number];
        self.cache.page(*at).slot()
    }
}

impl StripeRange {
    fn split(&self, most: u64) -> impl Iterator<Item = StripeRange> + '_ {
        let firsts = (self.first..self.first + self.count).step_by(most as usize);
        let end = self.first + self.count;
        firsts.map(move |first| StripeRange { group: self.group, first, count: most.min(end - first) })
    }

    /// The first place after the range.
    fn end(&self) -> Place {
        Place { group: self.group as usize, stripe: self.first + self.count, drive: 0 }
    }
}

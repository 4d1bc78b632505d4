//! Demotion: in an aggregate with disks and flash, contents that are not written any more move from
//! flash to disks.
//!
//! A clock hand visits the allocation areas of the flash in turn. It advances at the start of
//! consistency points, while the flash is too full. A block of contents is *cold* if it was not
//! written since the start of the previous round. It is moved as in cleaning, but to the disks. So
//! its VVBN stays, and no block of its volume changes. Metadata stay on flash. The fuller the
//! flash, the faster the rounds, and the younger are the blocks that count as cold.

use super::{Key, Store, areas::AreaId, clean::READY_HALVES, container_of, volume};
use crate::{
    Medium,
    error::{Error, Result},
    format::{
        BLOCK,
        slot::{Context, Kind},
    },
};

/// When blocks leave the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demotion {
    /// The percentage of the flash that may be in use; blocks above it move to the disks. The
    /// default, 75, gives cleaning as much space as in an aggregate that is 85 % full with a tenth
    /// in reserve.
    pub full_percent: u64,
}

impl Default for Demotion {
    fn default() -> Self {
        Self { full_percent: 75 }
    }
}

/// Blocks that are scanned for each wanted one. If fewer are cold, the flash becomes fuller, and
/// the next point scans more.
const LOOKED_FOR_EACH: u64 = 4;

/// The clock hand. It starts again after an opening.
#[derive(Debug, Default)]
pub(super) struct Hand {
    /// The current area, counted over all groups of flash.
    area: u64,
    /// The consistency points at the starts of this round and of the previous one.
    began: u64,
    before: u64,
    /// Whether the flash is too full.
    sheds: bool,
}

impl Store {
    /// Makes cold blocks move to the disks, until enough of the flash is free. Stops after a
    /// limited number of scanned blocks.
    pub(super) fn demote(&mut self) -> Result<()> {
        self.gardener.hand.sheds = false;
        let Some(demotion) = self.gardener.gardening.demotion.filter(|_| self.raid.geometry.is_mixed()) else {
            return Ok(());
        };
        let mut wanted = self.count_too_many(demotion);
        if wanted == 0 || self.reserve(None, wanted, false).is_err() {
            return Ok(());
        }
        self.gardener.hand.sheds = true;
        let mut looks = LOOKED_FOR_EACH * wanted;
        let areas = self.flash_areas();
        for _ in 0..areas.len() {
            let at = self.gardener.hand.area as usize % areas.len();
            let area = areas[at];
            if !self.alloc.states.cleaning.contains(&area) {
                let looked = self.demote_from(area, &mut wanted)?;
                looks = looks.saturating_sub(looked);
            }
            if wanted == 0 {
                return Ok(()); // the next call continues in this area
            }
            let hand = &mut self.gardener.hand;
            hand.area = at as u64 + 1;
            if hand.area == areas.len() as u64 {
                (hand.area, hand.before, hand.began) = (0, hand.began, self.sb.cp);
            }
            if looks == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The medium for a block that cleaning moves: cold blocks leave a flash that is too full.
    pub(super) fn medium_after(&self, context: &Context) -> Medium {
        let medium = self.raid.geometry.medium_of(context.pvbn);
        if medium == Medium::Ssd && self.gardener.hand.sheds && self.has_cooled(context) { Medium::Hdd } else { medium }
    }

    /// The number of blocks that should leave the flash, limited by the free space of the disks and
    /// by dirty memory.
    fn count_too_many(&self, demotion: Demotion) -> u64 {
        let geometry = &self.raid.geometry;
        let [disks, flash] = Medium::ALL.map(|medium| geometry.groups_of(medium));
        let free = |groups: &[usize]| groups.iter().map(|&group| self.alloc.groups[group].free()).sum::<u64>();
        let blocks: u64 = flash.iter().map(|&group| geometry.groups[group].blocks()).sum();
        let spare = blocks * 100_u64.saturating_sub(demotion.full_percent) / 100;
        let next = self.gardener.expected[Medium::Ssd] as u64 * READY_HALVES / 2;
        let short = spare.max(next).saturating_sub(free(&flash));
        short.min(free(&disks) / 2).min(self.limits.dirty_bytes / BLOCK as u64)
    }

    fn flash_areas(&self) -> Vec<AreaId> {
        let geometry = &self.raid.geometry;
        let flash = geometry.groups_of(Medium::Ssd).into_iter();
        flash.flat_map(|group| (0..geometry.areas(group) as u32).map(move |area| (group, area))).collect()
    }

    /// Makes up to `wanted` cold blocks of an area move, and reduces `wanted` by them. Returns the
    /// number of scanned blocks.
    fn demote_from(&mut self, area: AreaId, wanted: &mut u64) -> Result<u64> {
        let mut looked = 0;
        for (drive, used) in self.area_runs(area)? {
            for (context, data) in self.read_run(area.0, drive, &used)?.into_iter().flatten() {
                if *wanted == 0 || !self.has_cooled(&context) || self.is_written(&context) {
                    continue;
                }
                let moved = match context.kind {
                    Kind::Compacted => self.move_chunks(&context, &data, Medium::Hdd),
                    _ => self.move_block(&context, data, Medium::Hdd),
                };
                match moved {
                    Ok(()) => *wanted -= 1,
                    Err(Error::NoSpace { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            looked += used.len() as u64;
            if *wanted == 0 {
                break;
            }
        }
        Ok(looked)
    }

    /// Whether a block of a volume is dirty and so gets another place anyway.
    fn is_written(&self, context: &Context) -> bool {
        let space = context.owner.wrapping_sub(container_of(0)) as u32;
        context.kind == Kind::Volume && self.is_dirty(Key::new(space, context.hint_file, 0, context.hint_block))
    }

    fn has_cooled(&self, context: &Context) -> bool {
        let is_contents = match context.kind {
            Kind::Compacted => true,
            Kind::Volume => context.level == 0 && context.hint_file >= volume::FIRST_USER,
            _ => false,
        };
        is_contents && context.cp < self.gardener.hand.before
    }
}

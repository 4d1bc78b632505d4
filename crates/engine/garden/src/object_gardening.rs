//! What is done with objects beside serving: cold blocks leave the drives, and objects of which little is wanted are written anew.

use std::collections::BTreeSet;

use senesce_objects::PriceList;

use crate::{
    engine::Garden,
    error::{Error, Result},
    format::object::SLOTS,
    store::Tiering,
    tiering::Tier,
};

/// Blocks of a volume that a step looks at.
const BLOCKS: u64 = 1024;
/// Pointers of container maps in a block.
const PER_BLOCK: u64 = 512;

/// What is done with objects, where there is a store of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectGardening {
    /// What leaves the drives.
    pub tiering: Tiering,
    /// By whose prices it is judged whether an object is worth writing anew; none is without.
    pub prices: Option<PriceList>,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectStep {
    /// Blocks that were read and written.
    pub cost: u64,
    /// Blocks that lie in objects from now on.
    pub tiered: u64,
    /// Blocks that lie in other objects now.
    pub rewritten: u64,
    /// The pass is done.
    pub ended: bool,
}

/// A pass over all volumes, and then over the objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectPass {
    /// Volumes that are done.
    volumes: usize,
    tier: Option<(Vec<u8>, Tier)>,
    /// Objects that could not be read.
    unread: BTreeSet<u64>,
}

impl ObjectPass {
    /// Goes on with it. Its end is durable: objects that nothing needs are deleted.
    ///
    /// Errors: `ColdStore`, `ForeignObjects`, `NoSpace`, those of a consistency point; then the pass begins again, or goes on, as the caller likes.
    pub fn step(&mut self, garden: &Garden, wished: &ObjectGardening) -> Result<ObjectStep> {
        let names = garden.volumes();
        let Some(name) = names.get(self.volumes) else { return self.write_anew(garden, wished) };
        let mut tier = match self.tier.take().filter(|(of, _)| of == name) {
            Some((_, tier)) => tier,
            None => match garden.begin_tier(name, wished.tiering) {
                // It is gone since its name was looked up.
                Err(Error::Invalid { .. }) if !garden.volumes().contains(name) => {
                    return Ok(ObjectStep { cost: 1, ..ObjectStep::default() });
                }
                begun => begun?,
            },
        };
        let before = tier.counts();
        let is_gone = match garden.tier_step(&mut tier, BLOCKS) {
            // The next one has its place now, or another one its name.
            Err(Error::Invalid { .. }) if !tier.is_over(garden, name) => true,
            done => done.map(|()| false)?,
        };
        let counts = tier.counts();
        match tier.is_done() {
            _ if is_gone => {}
            true => self.volumes += 1,
            false => self.tier = Some((name.clone(), tier)),
        }
        let tiered = counts.tiered - before.tiered;
        let looked = counts.looked - before.looked;
        // Each is read, and written to the store.
        Ok(ObjectStep { cost: 1 + looked.div_ceil(PER_BLOCK) + 2 * tiered, tiered, ..ObjectStep::default() })
    }

    /// As much of the objects as fills a new one; the end of the pass when nothing is worth it any more.
    fn write_anew(&mut self, garden: &Garden, wished: &ObjectGardening) -> Result<ObjectStep> {
        // What was tiered is there, and what was emptied can be deleted.
        garden.consistency_point()?;
        let unread = self.unread.len();
        let rewritten = match wished.prices {
            Some(prices) => garden.defrag_but(&prices, SLOTS as u64, &mut self.unread)?.blocks,
            None => 0,
        };
        // Those behind some that cannot be read come next.
        let ended = rewritten == 0 && self.unread.len() == unread;
        if ended {
            garden.delete_objects()?;
            *self = Self::default();
        }
        Ok(ObjectStep { cost: 1 + 2 * rewritten, rewritten, ended, tiered: 0 })
    }
}

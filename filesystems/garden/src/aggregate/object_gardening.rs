//! Background work on objects: cold blocks move from drives to objects, and sparse objects are
//! rewritten.

use std::collections::BTreeSet;

use senesce_objects::PriceList;

use crate::{
    aggregate::Garden,
    aggregate::tiering::Tier,
    error::{Error, Result},
    format::object::SLOTS,
    store::Tiering,
};

/// Blocks of a volume that a step scans.
const BLOCKS: u64 = 1024;
/// Pointers of container maps in a block.
const PER_BLOCK: u64 = 512;

/// The policy for objects, if the garden has an object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectGardening {
    /// Which blocks move to objects.
    pub tiering: Tiering,
    /// The prices that decide whether an object is worth rewriting; `None` disables that.
    pub prices: Option<PriceList>,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectStep {
    /// Blocks that were read and written.
    pub cost: u64,
    /// Blocks that moved to objects.
    pub tiered: u64,
    /// Blocks that moved from one object to another.
    pub rewritten: u64,
    /// Whether the pass has ended.
    pub ended: bool,
}

/// A pass over all volumes and then over the objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectPass {
    /// Volumes that are finished.
    volumes: usize,
    tier: Option<(Vec<u8>, Tier)>,
    /// Objects that could not be read.
    unread: BTreeSet<u64>,
}

impl ObjectPass {
    /// Runs the next step. The end of the pass is durable: it deletes objects that nothing needs.
    ///
    /// Errors: `ColdStore`, `ForeignObjects`, `NoSpace`, those of a consistency point. After an
    /// error the caller may start the pass again or continue it.
    pub fn step(&mut self, garden: &Garden, wished: &ObjectGardening) -> Result<ObjectStep> {
        let names = garden.volumes();
        let Some(name) = names.get(self.volumes) else { return self.write_anew(garden, wished) };
        let mut tier = match self.tier.take().filter(|(of, _)| of == name) {
            Some((_, tier)) => tier,
            None => match garden.begin_tier(name, wished.tiering) {
                // The volume was deleted after its name was read.
                Err(Error::Invalid { .. }) if !garden.volumes().contains(name) => {
                    return Ok(ObjectStep { cost: 1, ..ObjectStep::default() });
                }
                begun => begun?,
            },
        };
        let before = tier.counts();
        let is_gone = match garden.tier_step(&mut tier, BLOCKS) {
            // The volume was deleted: another one has its place or its name now.
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
        // Each block is read, and written to the store.
        Ok(ObjectStep { cost: 1 + looked.div_ceil(PER_BLOCK) + 2 * tiered, tiered, ..ObjectStep::default() })
    }

    /// Rewrites as many live blocks as fill a new object. Ends the pass if no object is worth it
    /// any more.
    fn write_anew(&mut self, garden: &Garden, wished: &ObjectGardening) -> Result<ObjectStep> {
        // Makes the tiered blocks durable in their objects, so that emptied objects can be deleted.
        garden.consistency_point()?;
        let unread = self.unread.len();
        let rewritten = match wished.prices {
            Some(prices) => garden.defrag_but(&prices, SLOTS as u64, &mut self.unread)?.blocks,
            None => 0,
        };
        // If objects could not be read, the next step tries others.
        let ended = rewritten == 0 && self.unread.len() == unread;
        if ended {
            garden.delete_objects()?;
            *self = Self::default();
        }
        Ok(ObjectStep { cost: 1 + 2 * rewritten, rewritten, ended, tiered: 0 })
    }
}

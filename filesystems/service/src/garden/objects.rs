//! Tiering: moves cold blocks from the drives to objects.

use senesce_garden::{ObjectDefrag, TierCounts, Tiering};

use super::Service;
use crate::{BLOCK_BYTES, Error, Response, Result, Task, Tiered, error::While, request::Prices};

/// Blocks of one step, which locks the aggregate.
const BLOCKS: u64 = 4096;

impl Service<'_> {
    /// Deletes objects in no consistency point, then writes cold blocks of all volumes to objects.
    /// If `prices` justify it, it rewrites objects. Finally it deletes unused objects.
    pub(super) fn tier(
        &self,
        objects: &str,
        age: u16,
        prices: Option<Prices>,
        task: &mut dyn Task,
    ) -> Result<Response> {
        match self.objects {
            None => {
                let hint = format!("mount it with --objects {objects}, or tier it while it is not mounted");
                return Err(Error::usage(format!("{} is open without a store of objects", self.place), Some(&hint)));
            }
            Some(own) if own != objects => {
                let message = format!("the objects of {} are in {own}, and not in {objects}", self.place);
                return Err(Error::usage(message, Some("name the store that it is mounted with")));
            }
            Some(_) => {}
        }
        let _pass = self.begin_pass(task)?;
        let place = self.place;
        let orphans = self.garden.reclaim_objects().when(|| format!("cannot use the objects of {place}"))?;
        let counts = self.tier_all(age, task).when(|| format!("cannot tier {place}"))?;
        self.close()?;
        let mut anew = ObjectDefrag::default();
        if let Some(prices) = prices.filter(|_| !task.is_cancelled()) {
            anew = self.garden.defrag_objects(&prices.list()).when(|| format!("cannot rewrite objects of {place}"))?;
            self.close()?;
        }
        let mut deleted = 0;
        if !task.is_cancelled() {
            deleted = self.garden.delete_objects().when(|| format!("cannot delete objects of {place}"))?;
            self.close()?;
        }
        let (cold, report) = (self.garden.cold(), self.garden.report());
        Ok(Response::Tiered(Tiered {
            looked_at: counts.looked,
            tiered_blocks: counts.tiered,
            objects_put: counts.objects + anew.puts,
            objects_tiered: counts.objects,
            unread: counts.unread,
            orphans_deleted: orphans,
            objects_deleted: deleted,
            objects_written_anew: anew.emptied,
            blocks_written_anew: anew.blocks,
            cost_dollars: anew.cost,
            saved_in_a_month_dollars: anew.saved_in_a_month,
            objects: cold.objects,
            cold_blocks: cold.blocks,
            wanted_cold_blocks: cold.live,
            free_bytes: report.free * BLOCK_BYTES,
            bytes: report.blocks * BLOCK_BYTES,
        }))
    }

    fn tier_all(&self, age: u16, task: &mut dyn Task) -> Result<TierCounts> {
        let mut all = TierCounts::default();
        let report = self.garden.report();
        let of = report.blocks - report.free;
        for volume in self.garden.volumes() {
            let mut tier = self.garden.begin_tier(&volume, Tiering { age, with_cached: false })?;
            while !tier.is_done() && !task.is_cancelled() {
                self.garden.tier_step(&mut tier, BLOCKS)?;
                task.progress("looking for cold blocks", "blocks", all.looked + tier.counts().looked, of);
            }
            all += tier.counts();
        }
        Ok::<_, Error>(all)
    }
}

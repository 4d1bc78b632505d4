//! A background consistency point: a thread writes it while operations continue in memory.
//!
//! All blocks have places. The thread names the stripes in the log, writes the blocks, and then the
//! superblock, each durable before the next. Meanwhile the written blocks are clean but stay in
//! memory, so reads find them there. A change makes a copy for the next point. Operations in
//! between are not logged, so only the next point makes them durable. Until
//! [`wait_for_inflight`](Store::wait_for_inflight) nothing else runs: no other point, and no step
//! that reads the drives.
//!
//! Used only without parity (parity is inconsistent while the write is in progress), with all
//! drives present, and without packed volumes or objects. If a block is being relocated, the point
//! is made synchronously, because that block can be looked up under a second address.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
};

use senesce_block::BlockDevice;

use super::{Key, Store, cache::At, packing::Written};
use crate::{
    error::{Error, Result},
    format::{slot::Slot, superblock::Superblock},
    log::{Batch, Mirror},
    raid::{Place, Request, superblock_at},
};

/// Blocks in memory, with their positions.
type Pinned = Vec<(Key, At)>;

/// The writes of a point, in this order.
struct Load {
    log: Arc<Mirror>,
    /// Names the stripes that are about to be written.
    intent: Batch,
    blocks: Vec<Request>,
    drives: Vec<Arc<dyn BlockDevice>>,
    /// With its offset.
    superblock: (u64, Slot),
}

impl Load {
    fn write(&self) -> Result<()> {
        self.log.commit(&self.intent)?;
        self.blocks.iter().try_for_each(Request::write)?;
        let flush = || self.drives.iter().try_for_each(|device| device.flush());
        flush()?;
        let (offset, slot) = &self.superblock;
        self.drives.iter().try_for_each(|device| device.write_at(*offset, &slot[..]))?;
        Ok(flush()?)
    }
}

/// A background consistency point.
pub(crate) struct InflightCheckpoint {
    /// The superblock of the point.
    sb: Superblock,
    /// Blocks that must stay in memory until it is durable.
    pinned: Pinned,
    thread: Option<JoinHandle<Result<()>>>,
    /// The result, if there is no thread.
    done: Result<()>,
}

impl InflightCheckpoint {
    fn begin(sb: Superblock, pinned: Pinned, load: Load) -> Self {
        let (load, mut done) = (Arc::new(load), Ok(()));
        let own = load.clone();
        let thread = thread::Builder::new().name("point".to_owned()).spawn(move || own.write()).ok();
        if thread.is_none() {
            done = load.write();
        }
        Self { sb, pinned, thread, done }
    }

    /// Waits for the end of all writes.
    fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.done =
                thread.join().unwrap_or_else(|_| Err(Error::invalid("a panic in the thread that writes blocks")));
        }
    }
}

/// Dropping waits for the writes, so the devices are idle once the aggregate is closed.
impl Drop for InflightCheckpoint {
    fn drop(&mut self) {
        self.wait();
    }
}

impl Store {
    /// Starts a background consistency point, or makes a synchronous one if that is not possible.
    /// To wait for durability, call [`wait_for_inflight`](Self::wait_for_inflight). Waiting records
    /// are dropped from the log.
    ///
    /// Errors: those of [`consistency_point`](Self::consistency_point), also of the previous point.
    pub fn start_checkpoint(&mut self) -> Result<()> {
        self.wait_for_inflight()?;
        if !self.can_run_in_background() {
            return self.consistency_point();
        }
        self.log.leave_out();
        self.reclaim_and(Self::start_inflight)
    }

    fn can_run_in_background(&self) -> bool {
        let has_parity = self.raid.geometry.groups.iter().any(|group| group.parity);
        let is_packed = self.volumes.iter().flatten().any(|volume| volume.record.packing.was_on);
        let is_whole = self.raid.missing().is_empty() && self.raid.filling().is_empty();
        !has_parity && !is_packed && is_whole && self.objects.records().is_empty() && self.stopped.is_none()
    }

    fn start_inflight(&mut self) -> Result<()> {
        let (placed, freed) = self.prepare_point()?;
        let blocks: Vec<Place> = placed.iter().map(|(place, ..)| *place).collect();
        self.log.rewind_intents();
        let intent = match self.moves.is_empty() && self.fakes.is_empty() {
            true => self.log.prepare_intent(self.sb.cp, &self.raid.stripes_of(blocks.iter()), &Default::default(), &[]),
            false => None,
        };
        let Some(intent) = intent else { return self.finish_point(&placed, &freed) };
        let (blocks, pinned) = self.seal_all(&placed, &blocks)?;
        self.end_changes();
        let sb = self.next_superblock(self.sb.clone());
        let drives = self.raid.present().map(|(_, device)| device.clone()).collect();
        let superblock = superblock_at(self.sb_slot, sb.cp, &sb.encode());
        let load = Load { log: self.log.mirror().clone(), intent, blocks, drives, superblock };
        self.inflight = Some(InflightCheckpoint::begin(sb, pinned, load));
        self.counts.points_beside += 1;
        Ok(())
    }

    /// Seals all blocks and builds the requests that write them. The blocks stay pinned in memory.
    fn seal_all(&mut self, placed: &[Written], places: &[Place]) -> Result<(Vec<Request>, Pinned)> {
        let Self { cache, raid, .. } = self;
        let (mut blocks, mut pinned) = (Vec::with_capacity(placed.len()), Vec::with_capacity(placed.len()));
        raid.count_stripes(places);
        for (place, at, context) in placed {
            let page = cache.page_mut(*at);
            page.seal(context);
            blocks.push((*place, page.share()));
            pinned.push((cache.pin(*at), *at));
        }
        Ok((raid.requests(blocks)?, pinned))
    }

    /// Waits until the background consistency point is durable, if there is one.
    ///
    /// Errors: those of a device; then the engine is stopped.
    pub fn wait_for_inflight(&mut self) -> Result<()> {
        let Some(mut inflight) = self.inflight.take() else { return Ok(()) };
        inflight.wait();
        if let Err(error) = std::mem::replace(&mut inflight.done, Ok(())) {
            self.stop(&error);
            return Err(error);
        }
        for (key, at) in std::mem::take(&mut inflight.pinned) {
            self.cache.unpin(key, at);
        }
        self.note_durable(inflight.sb.clone());
        self.end_point();
        self.note_logs()
    }
}

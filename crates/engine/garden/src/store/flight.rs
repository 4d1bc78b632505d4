//! A consistency point that is on its way to the drives while operations go on in memory.
//!
//! All blocks have their places, and a thread of its own names the stripes in the log, writes the blocks, and then the superblock,
//! each durable before the next. Meanwhile blocks that it writes are clean, but stay in memory: what is read is found there, and
//! who changes one changes a copy, for the next point. What operations change in between is not in the log, so the next point alone makes
//! it durable. Nothing else is done before it has [landed](Store::land): no other point, no step that looks at the drives.
//!
//! Only where the drives have no parity, which could not be believed meanwhile, and where nothing moves or is packed: blocks that are known by one
//! name only, so that nobody looks for them on the drives under another.

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

/// Blocks in memory, with where they are.
type Pinned = Vec<(Key, At)>;

/// What is written, in this order.
struct Load {
    log: Arc<Mirror>,
    /// Says what is about to be written.
    intent: Batch,
    blocks: Vec<Request>,
    drives: Vec<Arc<dyn BlockDevice>>,
    /// With its place.
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

/// A consistency point on its way.
pub(crate) struct Flight {
    /// As it will be durable.
    sb: Superblock,
    /// Blocks that must not leave before.
    pinned: Pinned,
    thread: Option<JoinHandle<Result<()>>>,
    /// If there is no thread.
    done: Result<()>,
}

impl Flight {
    fn begin(sb: Superblock, pinned: Pinned, load: Load) -> Self {
        let (load, mut done) = (Arc::new(load), Ok(()));
        let own = load.clone();
        let thread = thread::Builder::new().name("point".to_owned()).spawn(move || own.write()).ok();
        if thread.is_none() {
            done = load.write();
        }
        Self { sb, pinned, thread, done }
    }

    /// Waits until all is written, or failed.
    fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.done = thread.join().unwrap_or_else(|_| Err(Error::invalid("a panic while blocks were written")));
        }
    }
}

/// Nobody finds the devices being written who has closed the aggregate.
impl Drop for Flight {
    fn drop(&mut self) {
        self.wait();
    }
}

impl Store {
    /// Begins to make all changes durable, and ends with it where that cannot go on beside operations. Whoever wants them durable waits
    /// until it has [landed](Self::land). What waits in the log is left out of it.
    ///
    /// Errors: as [`consistency_point`](Self::consistency_point), also those of the one before.
    pub fn begin_point(&mut self) -> Result<()> {
        self.land()?;
        if !self.can_fly() {
            return self.consistency_point();
        }
        self.log.leave_out();
        self.reclaim_and(Self::take_off)
    }

    fn can_fly(&self) -> bool {
        let has_parity = self.raid.geometry.groups.iter().any(|group| group.parity);
        let is_packed = self.volumes.iter().flatten().any(|volume| volume.record.packing.was_on);
        let is_whole = self.raid.missing().is_empty() && self.raid.filling().is_empty();
        !has_parity && !is_packed && is_whole && self.objects.records().is_empty() && self.stopped.is_none()
    }

    fn take_off(&mut self) -> Result<()> {
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
        self.flight = Some(Flight::begin(sb, pinned, load));
        self.counts.points_beside += 1;
        Ok(())
    }

    /// Requests that write all blocks as they are now, and the blocks, which stay in memory.
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

    /// Ends a consistency point that is on its way, if there is one: waits until it is durable.
    ///
    /// Errors: a device's; the engine is stopped then.
    pub fn land(&mut self) -> Result<()> {
        let Some(mut flight) = self.flight.take() else { return Ok(()) };
        flight.wait();
        if let Err(error) = std::mem::replace(&mut flight.done, Ok(())) {
            self.stop(&error);
            return Err(error);
        }
        for (key, at) in std::mem::take(&mut flight.pinned) {
            self.cache.unpin(key, at);
        }
        self.note_durable(flight.sb.clone());
        self.end_point();
        self.note_logs()
    }
}

//! The aggregate as its users see it: one lock around the state, one around commits of the log.
//!
//! Operations append their records under the first lock. Under the second one, a thread writes all
//! waiting records. An operation returns once its record is durable, or earlier ([`Acknowledge`]).

use std::{
    ops::Add,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use senesce_block::BlockDevice;
use senesce_core::Bytes;
use senesce_fsapi::{Caller, FsResult};

use crate::{
    error::{Error, Result},
    format::{
        OLD_VERSION,
        operation::{Act, Operation},
    },
    fs::VolumeFs,
    log::{Batch, LogDevices, LogPlaces, Mirror, is_log},
    store::{self, Fetches, FormatOptions, RebuildStep, ScrubStep, Store, Worth},
    volume::Done,
};

/// Options of a new volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeOptions {
    /// Size in blocks of 4,096 bytes. The aggregate may have fewer.
    pub blocks: u64,
    /// Inodes, at most.
    pub inodes: u64,
    /// The seed for the order of names in directories.
    pub seed: u64,
}

/// When an operation is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledge {
    /// When it is durable. No acknowledged operation is lost.
    #[default]
    Durable,
    /// When it is done in memory. A loss of power leaves a state at or after the last sync.
    Done,
}

/// The part of the dirty bytes that records may use while they wait for a sync. Above it, the next
/// consistency point replaces the records, so that no byte is written twice.
const WAITING_PART: u64 = 8;

pub(crate) struct Shared {
    /// A thread that needs both locks acquires this one before `store`.
    commits: Mutex<Commits>,
    store: Mutex<Store>,
    log: Arc<Mirror>,
    /// Whether operations are acknowledged before they are durable.
    is_early: AtomicBool,
    /// Held while objects change. A thread acquires it before the other locks.
    pub objects: Mutex<()>,
}

pub(crate) struct Commits {
    /// The last durable record.
    durable: u64,
    /// A buffer for the records of the next commit.
    memory: Vec<u8>,
}

impl Commits {
    /// Makes a consistency point, if it would change anything.
    ///
    /// Errors: also an earlier failure, which may have left nothing to write.
    pub fn checkpoint(&mut self, store: &mut Store) -> Result<()> {
        store.check_running()?;
        let is_newer = store.sb.next_object != store.durable.next_object;
        if store.is_waiting() || is_newer || store.log.last() > store.sb.applied {
            store.consistency_point()?;
            self.durable = store.log.last();
        }
        Ok(())
    }
}

/// An open aggregate. Acknowledged operations are durable, also without a clean close, unless
/// [`set_acknowledge`](Garden::set_acknowledge) says otherwise.
pub struct Garden {
    pub(crate) shared: Arc<Shared>,
}

impl Garden {
    /// Makes an empty aggregate. **All data on the devices are lost.**
    ///
    /// Errors: the number of drives differs from the groups, drives are too small for the maps, the
    /// log has less than 392 KiB, or a device fails.
    ///
    /// Cost: writes all drives once, unless they hold zeros already.
    pub fn format(
        options: &FormatOptions,
        drives: Vec<Arc<dyn BlockDevice>>,
        log: impl Into<LogDevices>,
    ) -> Result<()> {
        store::format(options, drives, &log.into())
    }

    /// An open aggregate after the replay of its log.
    pub(crate) fn of(store: Store) -> Self {
        let (log, durable) = (store.log.mirror().clone(), store.log.last());
        let commits = Mutex::new(Commits { durable, memory: Vec::new() });
        let (store, objects) = (Mutex::new(store), Mutex::default());
        Self { shared: Arc::new(Shared { commits, store, log, is_early: AtomicBool::new(false), objects }) }
    }

    /// Makes an empty volume. It is durable on return.
    ///
    /// Errors: `Invalid` for a name that is taken or a size out of bounds, `NoSpace`.
    pub fn create_volume(&self, name: &[u8], options: &VolumeOptions) -> Result<()> {
        // The log has no record for a new volume, so no client may use it before it is durable.
        self.change(|_, store| store.create_volume(name, options.blocks, options.inodes, options.seed).map(|_| ()))
    }

    /// The names of all volumes, in the order of the table.
    pub fn volumes(&self) -> Vec<Vec<u8>> {
        let store = self.shared.lock();
        store.volumes.iter().flatten().map(|volume| volume.record.name.clone()).collect()
    }

    /// Returns a volume as a file system.
    ///
    /// Errors: `Invalid` if no volume has this name.
    pub fn volume(&self, name: &[u8]) -> Result<VolumeFs> {
        let store = self.shared.lock();
        let space = store.find_volume(name)?;
        Ok(VolumeFs::new(self.shared.clone(), space, store.number_of(space)?))
    }

    pub(crate) fn space_of(&self, name: &[u8]) -> Result<u32> {
        self.shared.lock().find_volume(name)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Sets when operations are acknowledged. Earlier operations are durable on return.
    pub fn set_acknowledge(&self, when: Acknowledge) -> Result<()> {
        self.shared.is_early.store(when == Acknowledge::Done, Relaxed);
        self.shared.sync()
    }

    /// Makes all acknowledged operations durable.
    ///
    /// Cost: writes the waiting records; a consistency point if records were dropped from the log.
    pub fn sync(&self) -> Result<()> {
        self.shared.sync()
    }

    /// Makes a consistency point, if anything changed.
    pub fn consistency_point(&self) -> Result<()> {
        self.shared.consistency_point()
    }

    /// Whether removed blocks become free space of a volume only at the next consistency point.
    pub fn has_uncounted_removals(&self) -> bool {
        self.shared.lock().has_uncounted_removals()
    }

    /// Makes a consistency point if anything changed, and a record in the log that it is durable.
    /// If its superblocks are damaged later, opening reports that. Cost: one more flush for each
    /// point.
    pub fn commit_checkpoint(&self) -> Result<()> {
        let mut commits = self.shared.lock_commits();
        let mut store = self.shared.lock();
        commits.checkpoint(&mut store)?;
        let Some(batch) = store.log.take_durable() else { return Ok(()) };
        // Other operations continue; their records are committed after this one.
        drop(store);
        self.shared.commit_batch(&batch)
    }

    /// Makes a consistency point, and records in its superblock that the log holds nothing more, so
    /// that losing the log loses no data. The next change reverts this. Cost: one more superblock.
    pub fn close(&self) -> Result<()> {
        self.commit_checkpoint()?;
        let mut commits = self.shared.lock_commits();
        let mut store = self.shared.lock();
        commits.checkpoint(&mut store)?;
        store.close()
    }

    /// Ensures that the log proves the last consistency point, and closes the point if not. Cost: a
    /// flush of the log for each point; a consistency point if a change has no record.
    pub(crate) fn log_checkpoint(&self) -> Result<()> {
        self.sync()?;
        let tells = {
            let _commits = self.shared.lock_commits();
            let store = self.shared.lock();
            store.check_running()?;
            store.log.tells_point()
        };
        if tells { Ok(()) } else { self.commit_checkpoint() }
    }

    /// Runs `act` while no consistency point and no commit of the log is written.
    pub fn hold_still<T>(&self, act: impl FnOnce() -> T) -> Result<T> {
        let _commits = self.shared.lock_commits();
        let store = self.shared.lock();
        store.check_running()?;
        Ok(act())
    }

    /// Counts the free blocks of up to `most` allocation areas, and returns the number of remaining
    /// areas. Allocation counts an area at the latest when it may be the best one.
    ///
    /// Cost: reads the bits of each area.
    pub fn count_areas(&self, most: u64) -> Result<u64> {
        let mut store = self.shared.lock();
        store.check_running()?;
        let left = store.count_areas(most)?;
        store.shrink_cache();
        Ok(left)
    }

    /// The cost of cleaning an allocation area, and the savings at its next write, over its
    /// stripes.
    ///
    /// Errors: `Invalid` if the area does not exist.
    ///
    /// Cost: reads the bits of the area.
    pub fn area_worth(&self, group: usize, area: u64) -> Result<Worth> {
        let mut store = self.shared.lock();
        let geometry = &store.raid.geometry;
        let number = u32::try_from(area).ok();
        match number.filter(|_| group < geometry.groups.len() && area < geometry.areas(group)) {
            Some(area) => Ok(store.area_worth(group, area)?.into_iter().fold(Worth::default(), Worth::add)),
            None => Err(Error::invalid(format!("RAID group {group} has no allocation area {area}"))),
        }
    }

    /// Puts a new drive in the place of a missing one; [`rebuild_step`](Self::rebuild_step) then
    /// fills it. **All data on the device are lost.** The device may be the missing drive itself,
    /// but its contents are not used.
    ///
    /// Errors: `Invalid` if the drive is not missing; `WrongDevice` if the device is too small, in
    /// use, or a drive of another aggregate.
    pub fn replace_drive(&self, drive: u32, device: Arc<dyn BlockDevice>) -> Result<()> {
        self.shared.lock().replace_drive(drive, device)
    }

    /// The bytes of a device that its label assigns to the aggregate, counted from the start.
    ///
    /// Errors: the device is no drive of an aggregate, or it is damaged.
    pub fn drive_length(device: &Arc<dyn BlockDevice>) -> Result<Bytes> {
        store::drive_length(device)
    }

    /// Whether a device has a readable label of a log of any aggregate. Reads up to three blocks.
    pub fn is_log(device: &Arc<dyn BlockDevice>) -> bool {
        is_log(device)
    }

    /// Where the copies of an aggregate's log are, according to the first readable drive label.
    /// `None` if no label is readable, or in version 7, where only the log itself records its size.
    pub fn log_places(drives: &[Arc<dyn BlockDevice>]) -> Option<LogPlaces> {
        store::find_aggregate(drives).filter(|found| found.version > OLD_VERSION).map(|found| LogPlaces {
            copies: found.log.copies.into(),
            bytes: Bytes(found.log.copy_bytes()),
            is_shared: found.log.is_shared,
        })
    }

    /// The least size of a drive in this place, in bytes.
    ///
    /// Errors: `Invalid` if the place does not exist.
    pub fn drive_bytes(&self, drive: u32) -> Result<Bytes> {
        let geometry = &self.shared.lock().raid.geometry;
        match (drive as usize) < geometry.drives() {
            true => Ok(Bytes(geometry.drive_bytes(geometry.group_of(drive as usize)))),
            false => Err(Error::invalid(format!("there is no drive {drive}; the aggregate has {}", geometry.drives()))),
        }
    }

    /// Fills up to `stripes` stripes of a new drive from the other drives of its group. They are
    /// durable on return. `None` if no drive is being filled. Continues where the last step ended.
    ///
    /// Errors: a drive fails; if the new drive fails, it is missing again.
    ///
    /// Cost: reads the stripes, writes one block of each.
    pub fn rebuild_step(&self, stripes: u64) -> Result<Option<RebuildStep>> {
        self.shared.lock().rebuild_step(stripes)
    }

    /// Checks up to `stripes` stripes against their trailers, parity and maps, and repairs a stripe
    /// in which one drive is wrong. Continues where the last step ended; after an opening, from the
    /// start.
    ///
    /// Errors: a drive fails that its group cannot do without.
    ///
    /// Cost: reads the stripes.
    pub fn scrub_step(&self, stripes: u64) -> Result<ScrubStep> {
        let mut store = self.shared.lock();
        let done = store.scrub_step(stripes);
        store.shrink_cache();
        done
    }

    /// Sets the stripe at which the next scrub step starts, counted over all RAID groups.
    ///
    /// Errors: `Invalid` if the stripe does not exist.
    pub fn scrub_from(&self, stripe: u64) -> Result<()> {
        let mut store = self.shared.lock();
        let of: u64 = store.raid.geometry.groups.iter().map(|group| group.stripes).sum();
        if stripe >= of {
            return Err(Error::invalid(format!("there is no stripe {stripe}; the aggregate has {of}")));
        }
        store.scrub.done = stripe;
        Ok(())
    }
}

/// Consistency points that one operation makes for lack of space before it fails.
const MOST_POINTS: u32 = 16;

impl Shared {
    /// Locks the state after a background point. The next operation returns the error of the point.
    pub fn lock(&self) -> MutexGuard<'_, Store> {
        let mut store = self.lock_for_operation();
        let _ = store.wait_for_inflight(); // a failure stopped the engine, and the next check returns it
        store
    }

    /// Locks the state; a consistency point may be in progress. If another thread panicked, the
    /// engine stops, and the next check returns that error.
    pub fn lock_for_operation(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(|poisoned| {
            let mut store = poisoned.into_inner();
            store.stop(&Error::invalid("a panic in another thread"));
            store
        })
    }

    pub fn consistency_point(&self) -> Result<()> {
        let mut commits = self.lock_commits();
        commits.checkpoint(&mut self.lock())
    }

    /// Makes a consistency point for an operation that needs log space for a record body of this
    /// length. With early acknowledgement the point may still be in progress on return.
    fn make_room(&self, body: usize) -> Result<()> {
        let mut commits = self.lock_commits();
        let mut store = self.lock_for_operation();
        if !store.is_due() && store.log.has_room(body) {
            return Ok(()); // another thread has made the point
        }
        if self.is_early.load(Relaxed) {
            return store.start_checkpoint();
        }
        commits.checkpoint(&mut store)
    }

    /// Frees space of deleted snapshots and volumes: up to 64 blocks of maps.
    fn reclaim_some(&self) -> Result<()> {
        let mut commits = self.lock_commits();
        let store = &mut *self.lock();
        store.check_running()?;
        commits.reclaim(store, 64).map(|_| ())
    }

    pub fn lock_commits(&self) -> MutexGuard<'_, Commits> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an operation and makes it durable. `plan` derives the operation from the state. It may
    /// be called several times.
    ///
    /// Errors: those of the operation; `NoSpace` if the operation might not complete.
    pub fn run<'a>(
        &self,
        volume: u32,
        caller: &Caller,
        plan: &mut dyn FnMut(&mut Store) -> FsResult<Act<'a>>,
    ) -> FsResult<Done> {
        let (mut fresh, mut points, mut fetches) = (false, 0, Fetches::default());
        loop {
            let mut store = self.lock_for_operation();
            store.check_running()?;
            let operation = Operation { volume, caller: *caller, act: plan(&mut store)? };
            if matches!(operation.act, Act::CloneRange { .. }) {
                store.wait_for_inflight()?; // readers of the other file look for its blocks on the drives
            }
            let body = operation.encode();
            let (blocks, frees) = store.cost(&operation)?;
            let room = store.reserve(Some(volume), blocks, frees);
            let due = store.is_due() || !store.log.has_room(body.len());
            // Other threads may free the blocks that this operation needs.
            let is_short = room.is_err() && points < MOST_POINTS && store.may_gain(volume, blocks, frees);
            if is_short || due && !fresh {
                drop(store);
                if is_short {
                    points += 1;
                    self.consistency_point()?
                } else {
                    self.make_room(body.len())?
                }
                fresh = true;
                continue;
            }
            if room.is_err() && store.may_reclaim(volume, blocks, frees) {
                drop(store);
                if self.reclaim_some().is_err() {
                    room?;
                }
                continue;
            }
            room?;
            if !store.log.has_room(body.len()) {
                fresh = false; // another thread filled the log again
                continue;
            }
            store.reopen()?;
            let before = store.dirty_blocks();
            let done = store.do_without_waiting(&mut fetches, |store| store.apply(&operation));
            if done.is_err() && !store.touched && fetches.are_wanted() {
                // Other threads continue meanwhile, and may change the outcome of `plan`.
                drop(store);
                fetches.fetch();
                fresh = false;
                continue;
            }
            let done = done?;
            debug_assert!(
                store.dirty_blocks().saturating_sub(before) <= blocks,
                "{blocks} blocks were reserved, not {}",
                store.dirty_blocks() - before
            );
            let sequence = store.log.append(&body);
            store.shrink_cache();
            let may_wait = self.is_early.load(Relaxed);
            if may_wait && store.log.waiting_bytes() as u64 >= store.limits.dirty_bytes / WAITING_PART {
                store.log.leave_out();
            }
            drop(store);
            if !may_wait {
                self.commit(sequence)?;
            }
            return Ok(done);
        }
    }

    pub fn sync(&self) -> Result<()> {
        let last = self.lock_for_operation().log.last();
        self.commit(last)
    }

    /// The longest data of one write, in bytes.
    pub fn max_write(&self) -> usize {
        (self.lock_for_operation().log.max_body() - 256).min(1 << 20)
    }

    /// Commits records. If a copy of the log failed, also makes durable which copies are left. An
    /// error stops the engine.
    fn commit_batch(&self, batch: &Batch) -> Result<()> {
        let done = self.log.commit(batch);
        if done.is_ok() && !self.log.has_news() {
            return Ok(());
        }
        let mut store = self.lock();
        done.inspect_err(|error| store.stop(error)).and_then(|()| store.note_logs())
    }

    /// Returns when the operation `sequence` is durable. One flush serves all waiting records, one
    /// consistency point all operations without a record.
    fn commit(&self, sequence: u64) -> Result<()> {
        let mut commits = self.lock_commits();
        if commits.durable >= sequence {
            return Ok(());
        }
        let batch = {
            let mut store = self.lock();
            store.check_running()?;
            if store.durable.applied >= sequence {
                return Ok(()); // the background consistency point included it
            }
            if store.log.leaves_out() {
                store.start_checkpoint()?;
                store.wait_for_inflight()?;
                commits.durable = store.log.last();
                return Ok(());
            }
            store.log.take_batch(std::mem::take(&mut commits.memory))
        };
        let Some(batch) = batch else { return Ok(()) };
        self.commit_batch(&batch)?;
        (commits.durable, commits.memory) = (batch.last, batch.bytes);
        Ok(())
    }
}

//! The aggregate as its users have it: one lock around the state, one around commits of the log.
//!
//! An operation is applied in memory and its record put behind the others under the first lock; under the second one, one
//! thread writes the records of all that wait. An operation returns when its record is durable, unless that is not [wished](Acknowledge).

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

/// How a volume is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeOptions {
    /// Its size in blocks of 4,096 bytes; the aggregate may have fewer.
    pub blocks: u64,
    /// How many inodes there can be.
    pub inodes: u64,
    /// Seeds the order of names in directories.
    pub seed: u64,
}

/// When an operation is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledge {
    /// When it is durable: nothing that was acknowledged is ever lost.
    #[default]
    Durable,
    /// When it is done in memory, as other file systems have it: a loss of power leaves what was there at a moment, at or after the last
    /// sync.
    Done,
}

/// Of operations that are acknowledged before they are durable, records wait for a sync up to this part of the bytes that may be dirty. If
/// more comes before anybody asks for one, a consistency point is what makes it durable: then no byte is written twice.
const WAITING_PART: u64 = 8;

pub(crate) struct Shared {
    /// Locked before `store` by whoever wants both.
    commits: Mutex<Commits>,
    store: Mutex<Store>,
    log: Arc<Mirror>,
    /// Operations are acknowledged when they are done.
    is_early: AtomicBool,
    /// Locked before the others by whoever changes objects.
    pub objects: Mutex<()>,
}

pub(crate) struct Commits {
    /// The last record that is durable.
    durable: u64,
    /// Memory for the records of another commit.
    memory: Vec<u8>,
}

impl Commits {
    /// Makes a consistency point, if it would change anything. One that failed before may have left nothing to write: that is told again.
    pub fn make_point(&mut self, store: &mut Store) -> Result<()> {
        store.check_running()?;
        let is_newer = store.sb.next_object != store.durable.next_object;
        if store.is_waiting() || is_newer || store.log.last() > store.sb.applied {
            store.consistency_point()?;
            self.durable = store.log.last();
        }
        Ok(())
    }
}

/// An open aggregate. What was acknowledged is durable, whether it is closed or not, unless somebody wishes
/// [otherwise](Garden::set_acknowledge).
pub struct Garden {
    pub(crate) shared: Arc<Shared>,
}

impl Garden {
    /// Makes an empty aggregate. **Everything on the devices is lost.**
    ///
    /// Errors: as many drives as the groups say are wanted, large enough for the maps; a log of 400 KiB at least; devices'.
    /// Cost: writes all drives once, unless they hold zeros already.
    pub fn format(
        options: &FormatOptions,
        drives: Vec<Arc<dyn BlockDevice>>,
        log: impl Into<LogDevices>,
    ) -> Result<()> {
        store::format(options, drives, &log.into())
    }

    /// An open aggregate of which all that was logged is done.
    pub(crate) fn of(store: Store) -> Self {
        let (log, durable) = (store.log.mirror().clone(), store.log.last());
        let commits = Mutex::new(Commits { durable, memory: Vec::new() });
        let (store, objects) = (Mutex::new(store), Mutex::default());
        Self { shared: Arc::new(Shared { commits, store, log, is_early: AtomicBool::new(false), objects }) }
    }

    /// Makes an empty volume; it is durable.
    ///
    /// Errors: `Invalid` for a name that is taken or a size out of bounds, `NoSpace`.
    pub fn create_volume(&self, name: &[u8], options: &VolumeOptions) -> Result<()> {
        // The log does not say that a volume is made: nobody may use it before it is durable.
        self.change(|_, store| store.create_volume(name, options.blocks, options.inodes, options.seed).map(|_| ()))
    }

    /// The names of all volumes, in the order of the table.
    pub fn volumes(&self) -> Vec<Vec<u8>> {
        let store = self.shared.lock();
        store.volumes.iter().flatten().map(|volume| volume.record.name.clone()).collect()
    }

    /// A volume as a file system. Errors: `Invalid` if there is none of this name.
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

    /// Says when operations are acknowledged from now on. What waited until now is durable when it returns.
    pub fn set_acknowledge(&self, when: Acknowledge) -> Result<()> {
        self.shared.is_early.store(when == Acknowledge::Done, Relaxed);
        self.shared.sync()
    }

    /// Makes all that was acknowledged durable. Cost: writes the records that wait; a consistency point, if some were left out of the log.
    pub fn sync(&self) -> Result<()> {
        self.shared.sync()
    }

    /// Makes a consistency point of all that was done, if anything was.
    pub fn consistency_point(&self) -> Result<()> {
        self.shared.consistency_point()
    }

    /// Whether operations removed blocks that a volume's free space shows only after the next consistency point. Others it
    /// shows at once.
    pub fn has_uncounted_removals(&self) -> bool {
        self.shared.lock().has_uncounted_removals()
    }

    /// Makes a consistency point of all that was done, if anything was, and notes in the log that the last one is durable: should
    /// all superblocks of it be damaged, opening says so. Cost: one flush of the log more, once for each point.
    pub fn close_point(&self) -> Result<()> {
        let mut commits = self.shared.lock_commits();
        let mut store = self.shared.lock();
        commits.make_point(&mut store)?;
        let Some(batch) = store.log.take_durable() else { return Ok(()) };
        // Others go on meanwhile; their records are committed behind it.
        drop(store);
        self.shared.commit_batch(&batch)
    }

    /// Makes a consistency point of all that was done, and notes in the superblock that the log holds nothing more: a log that is lost
    /// from then on costs nothing. The first change after it, if there is one, takes that back. Cost: a superblock more.
    pub fn close(&self) -> Result<()> {
        self.close_point()?;
        let mut commits = self.shared.lock_commits();
        let mut store = self.shared.lock();
        commits.make_point(&mut store)?;
        store.close()
    }

    /// Makes it known that there was the last consistency point, should all superblocks of it be damaged: if nothing behind it in the log
    /// tells so, it is closed. Cost: one flush of the log, once for each point; a consistency point, if something waits that is in no record.
    pub(crate) fn tell_point(&self) -> Result<()> {
        self.sync()?;
        let tells = {
            let _commits = self.shared.lock_commits();
            let store = self.shared.lock();
            store.check_running()?;
            store.log.tells_point()
        };
        if tells { Ok(()) } else { self.close_point() }
    }

    /// Acts while nothing is written to the devices: no consistency point and no commit of the log is under way.
    pub fn hold_still<T>(&self, act: impl FnOnce() -> T) -> Result<T> {
        let _commits = self.shared.lock_commits();
        let store = self.shared.lock();
        store.check_running()?;
        Ok(act())
    }

    /// One step of the scan that counts the free blocks of allocation areas, which an opening leaves to later: counts
    /// `most` areas at most, and says how many are left. Where to write is known without it; each is counted at the latest
    /// when it may be the best one. Cost: reads the bits of each.
    pub fn count_areas(&self, most: u64) -> Result<u64> {
        let mut store = self.shared.lock();
        store.check_running()?;
        let left = store.count_areas(most)?;
        store.shrink_cache();
        Ok(left)
    }

    /// What cleaning an allocation area would cost, and save when it is written the next time: the sum over its stripes.
    ///
    /// Errors: `Invalid` if there is no such area. Cost: reads its bits in the file of free blocks.
    pub fn area_worth(&self, group: usize, area: u64) -> Result<Worth> {
        let mut store = self.shared.lock();
        let geometry = &store.raid.geometry;
        let number = u32::try_from(area).ok();
        match number.filter(|_| group < geometry.groups.len() && area < geometry.areas(group)) {
            Some(area) => Ok(store.area_worth(group, area)?.into_iter().fold(Worth::default(), Worth::add)),
            None => Err(Error::invalid(format!("RAID group {group} has no allocation area {area}"))),
        }
    }

    /// Puts a new drive in the place of one that is missing, to be filled by [`rebuild_step`](Self::rebuild_step).
    /// **Everything on the device is lost.** It may be the drive that was missing: what it holds is not used.
    ///
    /// Errors: `Invalid` if the drive is not missing; `WrongDevice` if it is too small, in use, another aggregate's drive.
    pub fn replace_drive(&self, drive: u32, device: Arc<dyn BlockDevice>) -> Result<()> {
        self.shared.lock().replace_drive(drive, device)
    }

    /// How many bytes from its beginning on a drive takes of the device that it lies on, as its label says; what lies behind
    /// is not the aggregate's. Errors: no drive of an aggregate, damage. Cost: one read.
    pub fn drive_length(device: &Arc<dyn BlockDevice>) -> Result<Bytes> {
        store::drive_length(device)
    }

    /// Whether a label of some aggregate's log can be read on a device. Cost: reads three blocks.
    pub fn is_log(device: &Arc<dyn BlockDevice>) -> bool {
        is_log(device)
    }

    /// Where the copies of an aggregate's log are, as the first drive label says that can be read. `None`: none can, or it is of version 7,
    /// which has one copy of a size that only its log says.
    pub fn log_places(drives: &[Arc<dyn BlockDevice>]) -> Option<LogPlaces> {
        store::find_aggregate(drives).filter(|found| found.version > OLD_VERSION).map(|found| LogPlaces {
            copies: found.log.copies.into(),
            bytes: Bytes(found.log.copy_bytes()),
            is_shared: found.log.is_shared,
        })
    }

    /// How many bytes a drive in this place has at least. Errors: `Invalid` if there is no such place.
    pub fn drive_bytes(&self, drive: u32) -> Result<Bytes> {
        let geometry = &self.shared.lock().raid.geometry;
        match (drive as usize) < geometry.drives() {
            true => Ok(Bytes(geometry.drive_bytes(geometry.group_of(drive as usize)))),
            false => Err(Error::invalid(format!("there is no drive {drive}; the aggregate has {}", geometry.drives()))),
        }
    }

    /// Fills at most so many stripes of a new drive from the others of its group; durable when it returns. `None` if no
    /// drive is being filled. Volumes can be used in between; opening goes on where the last step ended.
    ///
    /// Errors: a drive's; a new drive that fails is missing again. Cost: reads the stripes, writes one block of each.
    pub fn rebuild_step(&self, stripes: u64) -> Result<Option<RebuildStep>> {
        self.shared.lock().rebuild_step(stripes)
    }

    /// Checks at most so many stripes against their trailers, their parity and the maps, and puts right what one drive of a
    /// stripe has wrong. Goes on where the last step ended, from the beginning after opening.
    ///
    /// Errors: a drive fails that its group cannot do without. Cost: reads the stripes.
    pub fn scrub_step(&self, stripes: u64) -> Result<ScrubStep> {
        let mut store = self.shared.lock();
        let done = store.scrub_step(stripes);
        store.shrink_cache();
        done
    }

    /// The next step of the scrub begins with this stripe, counted over all RAID groups: where a pass ended that was
    /// interrupted. Errors: `Invalid` if there is no such stripe.
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

/// Consistency points that one operation makes for want of space before it is refused.
const MOST_POINTS: u32 = 16;

impl Shared {
    /// The state, as the drives have it but for what operations changed: a consistency point that was on its way has landed. If that failed,
    /// the next error says so.
    pub fn lock(&self) -> MutexGuard<'_, Store> {
        let mut store = self.lock_for_operation();
        let _ = store.land(); // it stopped the engine, and says why
        store
    }

    /// The state; a consistency point may be on its way. A panic of another thread left it as it was, and the next error says so.
    pub fn lock_for_operation(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(|poisoned| {
            let mut store = poisoned.into_inner();
            store.stop(&Error::invalid("a panic in another thread"));
            store
        })
    }

    pub fn consistency_point(&self) -> Result<()> {
        let mut commits = self.lock_commits();
        commits.make_point(&mut self.lock())
    }

    /// Makes a consistency point because an operation with a record of this length wants one; where operations are acknowledged
    /// early, it may still be on its way when this returns.
    fn make_room(&self, body: usize) -> Result<()> {
        let mut commits = self.lock_commits();
        let mut store = self.lock_for_operation();
        if !store.is_due() && store.log.has_room(body) {
            return Ok(()); // another thread wanted it too
        }
        if self.is_early.load(Relaxed) {
            return store.begin_point();
        }
        commits.make_point(&mut store)
    }

    /// Makes space of what deleted snapshots have left behind, a part of it if there is much.
    fn reclaim_some(&self) -> Result<()> {
        let mut commits = self.lock_commits();
        let store = &mut *self.lock();
        store.check_running()?;
        commits.reclaim(store, 64).map(|_| ())
    }

    pub fn lock_commits(&self) -> MutexGuard<'_, Commits> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does an operation and makes it durable. `plan` says what it is, from the state, and may be asked more than once.
    ///
    /// Errors: what the operation gives; `NoSpace` if it might not be able to end.
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
                store.land()?; // who reads the other file looks for its blocks on the drives
            }
            let body = operation.encode();
            let (blocks, frees) = store.cost(&operation)?;
            let room = store.reserve(Some(volume), blocks, frees);
            let due = store.is_due() || !store.log.has_room(body.len());
            // Others change something after each point, and may free what this one needs.
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
                // Others go on while the object store is asked. What they do may make another operation of this one, or use the space that
                // a consistency point made for it.
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

    /// The longest data that one write may carry.
    pub fn max_write(&self) -> usize {
        (self.lock_for_operation().log.max_body() - 256).min(1 << 20)
    }

    /// Makes records durable, and which copies of the log hold them, if one failed. An error stops the engine.
    fn commit_batch(&self, batch: &Batch) -> Result<()> {
        let done = self.log.commit(batch);
        if done.is_ok() && !self.log.has_news() {
            return Ok(());
        }
        let mut store = self.lock();
        done.inspect_err(|error| store.stop(error)).and_then(|()| store.note_logs())
    }

    /// Returns when the operation `sequence` is durable. One flush serves all records that wait, one consistency point all that have none.
    fn commit(&self, sequence: u64) -> Result<()> {
        let mut commits = self.lock_commits();
        if commits.durable >= sequence {
            return Ok(());
        }
        let batch = {
            let mut store = self.lock();
            store.check_running()?;
            if store.durable.applied >= sequence {
                return Ok(()); // the consistency point that was on its way has it
            }
            if store.log.leaves_out() {
                store.begin_point()?;
                store.land()?;
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

//! Reads and batches: a batch goes to the log and to the tree, or waits for space in either.

use std::ops::{ControlFlow, Range};

use bytes::Bytes;

use super::{Evergreen, KEPT_PART, LONG_BATCH, SHORT_LOG, State};
use crate::{Batch, Error, KeyValue, Live, Result, log::record_bytes, model::check_lengths};

/// The size of a batch that creates a name or writes a block, in bytes.
const SMALL_BATCH: usize = 16 << 10;
/// The most checkpoints of one call that asks for the free space.
const MOST_ROUNDS: u32 = 16;

/// The outcome of an attempt to apply a batch.
enum Tried {
    Done,
    /// The log is full, or too many nodes are dirty: a checkpoint helps.
    Full,
    /// Too little space is free.
    NoRoom,
}

impl Evergreen {
    /// Syncs the log after a long batch, if syncs of other files are expected. So the writer of the
    /// stream waits for the log, and the syncs need not.
    fn shorten_log(&self, record: usize) -> Result<()> {
        let is_long = record >= LONG_BATCH && self.log.waiting_bytes() > SHORT_LOG;
        if is_long && self.core.lock().run.expects_syncs(self.core.shape.node_bytes as usize) {
            // If the log has a hole, only a checkpoint helps; it is due anyway.
            self.log.sync()?;
        }
        Ok(())
    }

    /// Applies a batch whose log record has `record` bytes, if there is space now.
    fn try_apply(&self, batch: &mut Batch, record: usize) -> Result<Tried> {
        self.core.expect_working()?;
        self.core.claim(&self.core.lock(), &batch.claim)?;
        let mut tree = self.core.tree();
        tree.settle()?;
        let mut state = self.core.lock();
        let live = self.core.claim(&state, &batch.claim)?;
        let is_full = self.core.dirty_bytes() > self.most_dirty(record);
        if is_full || !self.has_log_room(&state, batch, record) {
            return Ok(Tried::Full);
        }
        if !self.core.has_room(&state, record, batch.claim.is_removal) {
            return Ok(Tried::NoRoom);
        }
        self.commit(&mut state, live, batch, record)?;
        Ok(Tried::Done)
    }

    /// Makes a checkpoint of dirty nodes. If there are none, it first flushes waiting messages.
    /// Returns whether there was anything to do.
    fn make_room(&self) -> Result<bool> {
        self.core.expect_working()?;
        let is_any = self.core.dirty_bytes() > 0 || self.core.reclaim()?;
        if is_any {
            self.checkpoint()?;
        }
        Ok(is_any)
    }

    fn is_unlogged(&self, state: &State, batch: &Batch) -> bool {
        state.run.is_continued_by(batch, self.core.shape.node_bytes as usize)
    }

    pub(super) fn has_log_room(&self, state: &State, batch: &Batch, record: usize) -> bool {
        // Long batches leave a part free, so that a small batch next to a stream need not wait for
        // a checkpoint.
        let kept = if record >= LONG_BATCH { self.log.ring_bytes() / KEPT_PART } else { 0 };
        self.log.has_room(record + kept as usize) || self.is_unlogged(state, batch)
    }

    /// Adds a batch to the log, or to a hole of it, and to the tree.
    pub(super) fn commit(&self, state: &mut State, live: u64, batch: &mut Batch, record: usize) -> Result<()> {
        if self.is_unlogged(state, batch) {
            self.log.leave_out()?;
            self.core.counters.note_unlogged(record);
        } else {
            self.log.append(batch)?;
        }
        // Only batches that the log accepted are claimed.
        state.live = live;
        self.core.earn(state, &batch.claim);
        state.run.note(batch);
        let mut view = self.core.shared.lock();
        view.ingest(std::mem::take(batch).into());
        view.trim(self.core.limits.cache_bytes);
        Ok(())
    }
}

impl KeyValue for Evergreen {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.core.expect_working()?;
        let value = self.core.shared.find(|view| view.get(key));
        self.core.trim();
        value
    }

    fn scan(&self, from: &[u8], to: &[u8], sink: &mut dyn FnMut(&[u8], Bytes) -> ControlFlow<()>) -> Result<()> {
        // The first steps are small, because many callers need one key only.
        const FIRST: usize = 16;
        const MOST: usize = 1024;
        let to = Bytes::copy_from_slice(to);
        let mut next = (*from < to[..]).then(|| Bytes::copy_from_slice(from));
        let (mut most, mut is_long) = (FIRST, false);
        while let Some(at) = next {
            self.core.expect_working()?;
            let step = self.core.shared.find(|view| view.scan_step(&at, &to, most, is_long));
            self.core.trim();
            let step = step?;
            for (key, value) in step.entries {
                if sink(&key, value).is_break() {
                    return Ok(());
                }
            }
            next = step.next;
            is_long |= step.is_at_end;
            most = (most * 4).min(MOST);
        }
        Ok(())
    }

    fn apply(&self, mut batch: Batch) -> Result<()> {
        check_lengths(&batch)?;
        let record = record_bytes(&batch);
        let most = self.log.max_record_bytes();
        if record > most {
            return Err(Error::Invalid { what: format!("a batch of {record} bytes; the log takes at most {most}") });
        }
        if !self.has_background() {
            self.checkpoint_if_due()?;
        } else if self.apply_at_once(&mut batch, record)? {
            return self.shorten_log(record);
        }
        let mut was_checkpointed = false;
        loop {
            match self.try_apply(&mut batch, record)? {
                Tried::Done => return self.shorten_log(record),
                Tried::NoRoom if was_checkpointed && !self.core.reclaim()? => {
                    return Err(self.core.no_space(record));
                }
                Tried::NoRoom | Tried::Full => self.checkpoint()?,
            }
            was_checkpointed = true;
        }
    }

    fn sync(&self) -> Result<()> {
        self.core.expect_working()?;
        self.core.lock().run.restart();
        if self.log.sync()? { Ok(()) } else { self.checkpoint() }
    }

    fn sync_of(&self, keys: &Range<Vec<u8>>) -> Result<()> {
        let waits = self.log.has_holes();
        self.core.lock().run.note_sync(keys, waits, self.core.shape.node_bytes as usize);
        self.sync()
    }

    fn max_batch_bytes(&self) -> usize {
        self.log.max_record_bytes()
    }

    fn live(&self) -> Live {
        let most = self.core.most_live(false);
        Live { bytes: self.core.lock().live, most }
    }

    fn claimable(&self) -> u64 {
        let Live { bytes, most } = self.live();
        let claims = most.saturating_sub(bytes);
        let mut rounds = 0;
        loop {
            let (spare, wanted) = (self.core.spare(&self.core.lock(), SMALL_BATCH), self.core.near_end(SMALL_BATCH));
            if spare >= claims.min(wanted) {
                return claims;
            }
            // A batch without space does the same. A failed store refuses every batch.
            rounds += 1;
            match self.make_room() {
                Ok(true) if rounds < MOST_ROUNDS => {}
                // Other threads use the freed space, or no space can be freed.
                Ok(_) => return claims.min(spare),
                Err(_) => return 0,
            }
        }
    }
}

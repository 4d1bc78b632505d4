//! The tree on a device: keys and values that outlive losses of power.
//!
//! A batch is appended to the log, then it is in the tree, in memory. A **checkpoint** takes the tree as it is between two batches,
//! writes its dirty nodes where nothing lies that a durable superblock names, then the map of nodes, flushes, writes the superblock,
//! and flushes; only then is free what it no longer names, and the log before it. Opening takes the newest superblock and does the
//! batches again that the log has behind it. What happens inside the tree is never logged: it follows from the batches.
//!
//! **Space** is refused before anything is done: so much is always free that a checkpoint of all that is dirty fits. See `room`.

mod apply;
mod checkpoint;
mod copies;
mod figures;
mod gap;
mod groups;
mod locate;
mod open;
mod place;
mod pool;
mod room;
mod run;
mod sweep;
#[cfg(test)]
mod tests;
mod tidy;
mod work;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub use copies::CopyFigures;
pub use figures::{FLUSHED_LEVELS, Figures, Flushes};
pub use open::{MakeOptions, Torn};
pub use sweep::{LeafSweep, Sweep};

use crate::{
    Error, KeyValue, Result,
    disk::{Area, MapPlace, NodeId, OLDEST_VERSION, Shape, Space, Superblock},
    log::{Log, LogStart},
    tree::{Shared, Tree},
};
use copies::CopyWatch;
use figures::Counters;
use pool::Pool;
use run::Run;
use work::Bell;

/// A batch of this many bytes or more is part of a stream. It waits before others do.
const LONG_BATCH: usize = 64 << 10;
/// This part of the log, and of what may be dirty, long batches leave to others.
const KEPT_PART: u64 = 8;
/// While syncs of other files are expected, at most this much of the log waits in memory.
const SHORT_LOG: u64 = 1 << 20;
/// This part of what may be dirty waits for the log at most, beside the cache.
const LOG_PART: u64 = 4;

/// How much memory a store takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of nodes that are kept in memory, about. What is dirty is kept in any case.
    pub cache_bytes: usize,
    /// Bytes of dirty nodes at which a checkpoint begins. Of the log a quarter of that may wait to be written.
    pub dirty_bytes: u64,
}

impl Default for Limits {
    /// 256 MiB, a quarter of which may be dirty.
    fn default() -> Self {
        Self { cache_bytes: 256 << 20, dirty_bytes: 64 << 20 }
    }
}

/// A B-epsilon-tree on a device: [`KeyValue`] with [checkpoints](Self::checkpoint).
///
/// It makes no threads. A checkpoint is made by who asks for it, or by the one whose batch comes when the log is half full or too much
/// is dirty; others may read and write meanwhile. Whoever wants little to be replayed after a loss of power asks every few seconds.
/// Whoever has a thread for it [attends](Self::attend) to it: then batches wait for neither flushes nor checkpoints. Without that, what
/// is on the device follows from the calls alone.
///
/// Readers wait for no writer, no flush and no checkpoint, and for other readers only if they read from the same node.
pub struct Evergreen {
    core: Core,
    log: Log,
    /// Held by the one that makes a checkpoint.
    turn: Mutex<Durable>,
    bell: Bell,
    torn: Option<Torn>,
}

/// All but the log.
struct Core {
    area: Area,
    /// The format version of what is written.
    version: u32,
    uuid: [u8; 16],
    shape: Shape,
    limits: Limits,
    /// What readers see. Locked last, and never while a device works.
    shared: Arc<Shared<Pool>>,
    /// Held by the one who flushes, also while nodes are read for that. Locked before the state.
    tree: Mutex<Tree<Pool>>,
    state: Mutex<State>,
    /// Why nothing can go on.
    failed: OnceLock<String>,
    counters: Counters,
    watch: CopyWatch,
}

/// What the newest superblock says.
struct Durable {
    generation: u64,
    replay: LogStart,
    map: MapPlace,
}

/// What changes with a batch, beside the tree.
struct State {
    space: Space,
    /// The sum of all claims.
    live: u64,
    /// Bytes of nodes that a checkpoint writes, and that have no place yet.
    unplaced: u64,
    /// Bytes of nodes that a checkpoint moves as they are, and for which no space is taken yet.
    promised: u64,
    /// Units of second copies, as the last checkpoint has them.
    second_units: u64,
    run: Run,
    /// Bytes that may be written that need not be. See `tidy`.
    credit: u64,
    /// Leaves that the next checkpoint lays behind each other.
    gathered: Vec<Vec<NodeId>>,
    /// Where the last of those ends that lie so.
    swept_to: u32,
    /// More would be gathered at once if more were free in one piece.
    is_gap_wanted: bool,
}

impl State {
    /// Of what was just opened. `live`: the sum of all claims.
    fn new(space: Space, live: u64) -> Self {
        Self {
            space,
            live,
            unplaced: 0,
            promised: 0,
            second_units: 0,
            run: Run::default(),
            credit: 0,
            gathered: Vec::new(),
            swept_to: 0,
            is_gap_wanted: false,
        }
    }
}

impl Evergreen {
    /// Writes all that is dirty, so that nothing is left to be replayed. Cost: the dirty nodes and the map of nodes are written.
    ///
    /// Errors: `Device` for a request that failed: nothing is lost, and it may be tried again; unless it was the superblock's, then
    /// the state is unknown, and all that follows is `Stopped`.
    pub fn checkpoint(&self) -> Result<()> {
        let mut durable = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.checkpoint_in_turn(&mut durable)
    }

    fn checkpoint_in_turn(&self, durable: &mut Durable) -> Result<()> {
        // Others may earn, while this goes on, what the next round spends.
        const MOST_ROUNDS: usize = 16;
        for _ in 0..MOST_ROUNDS {
            let most = self.core.credit();
            let tidied = self.core.tidy(most);
            let (start, moved) = self.core.checkpoint(durable, || self.log.cut(), most - most.min(tidied))?;
            self.log.trim(&start);
            self.log.witness(&start)?;
            self.core.spend(tidied + moved);
            // Where little is free, there is room for some leaves each time.
            if tidied == 0 {
                break;
            }
        }
        Ok(())
    }

    /// What was read and written since it was opened.
    pub fn figures(&self) -> Figures {
        self.core.counters.figures()
    }

    /// The superblock that could not be read when it was opened, if one could not.
    pub fn torn(&self) -> Option<&Torn> {
        self.torn.as_ref()
    }

    /// Which store it is.
    pub fn uuid(&self) -> [u8; 16] {
        self.core.uuid
    }

    /// The shape that it was made with.
    pub fn shape(&self) -> Shape {
        self.core.shape
    }

    /// A checkpoint, if one is due and nobody makes one; and the log is written, if much of it waits in memory.
    fn checkpoint_if_due(&self) -> Result<()> {
        if self.is_checkpoint_due()
            && let Ok(mut durable) = self.turn.try_lock()
        {
            self.checkpoint_in_turn(&mut durable)?;
        }
        self.write_log_if_due().map(drop)
    }

    fn is_checkpoint_due(&self) -> bool {
        self.log.is_half_full() || self.core.dirty_bytes() > self.core.limits.dirty_bytes
    }

    /// The most bytes that may be dirty when a batch comes.
    fn most_dirty(&self, record: usize) -> u64 {
        let most = 2 * self.core.limits.dirty_bytes;
        if record >= LONG_BATCH { most - most / KEPT_PART } else { most }
    }

    fn is_log_due(&self) -> bool {
        self.log.waiting_bytes() > self.core.limits.dirty_bytes / LOG_PART
    }

    fn write_log_if_due(&self) -> Result<bool> {
        let is_due = self.is_log_due();
        if is_due {
            self.sync()?;
        }
        Ok(is_due)
    }
}

impl Core {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tree(&self) -> MutexGuard<'_, Tree<Pool>> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings down what waits in the root, if that is due. Returns whether it was and is not any more: what waits for a child that
    /// cannot be read stays, and to try that again at once is of no use.
    fn settle(&self) -> Result<bool> {
        let mut tree = self.tree();
        let is_due = !tree.is_settled();
        tree.settle().map(|()| is_due && tree.is_settled())
    }

    /// Forgets what is too much.
    fn trim(&self) {
        self.shared.lock().trim(self.limits.cache_bytes);
    }

    /// What nodes and maps say of whose they are; in format version 1 they do not.
    fn identity(&self) -> Option<&[u8; 16]> {
        (self.version > OLDEST_VERSION).then_some(&self.uuid)
    }

    /// Bytes of dirty nodes, each counted once: what memory and the time of a checkpoint go by.
    fn dirty_bytes(&self) -> u64 {
        self.shared.lock().cache.dirty_room().once
    }

    fn fail(&self, error: &Error) {
        // Fails if there is a reason already: the first one is reported.
        self.failed.set(error.to_string()).ok();
    }

    fn expect_working(&self) -> Result<()> {
        match self.failed.get() {
            Some(reason) => Err(Error::Stopped { reason: reason.clone() }),
            None => Ok(()),
        }
    }
}

impl From<&Superblock> for Durable {
    fn from(superblock: &Superblock) -> Self {
        Self { generation: superblock.generation, replay: superblock.replay, map: superblock.map.clone() }
    }
}

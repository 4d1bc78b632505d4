//! The store: the tree on a device. It keeps keys and values through losses of power.
//!
//! A batch is appended to the log, and then applied to the tree in memory. A **checkpoint** takes a
//! snapshot of the tree between two batches, and writes its dirty nodes and the map of nodes to
//! free space. It flushes, writes the superblock, and flushes again. Only then the old nodes and
//! the log before the snapshot are free. Opening a store reads the newest superblock, and applies
//! the batches of the log after it. Changes inside the tree are not logged, because they follow
//! from the batches.
//!
//! **Space**: a batch is refused before it has any effect. There is always enough free space for a
//! checkpoint of all dirty nodes. See `room`.

mod adjacent_space;
mod apply;
mod background;
mod checkpoint;
mod io_counts;
mod leaf_sweep;
mod node_groups;
mod node_places;
mod open;
mod read_nodes;
mod rewrite_leaves;
mod second_copies;
mod space_limits;
#[cfg(test)]
mod tests;
mod unlogged_run;
mod value_places;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub use io_counts::{FLUSHED_LEVELS, Figures, Flushes};
pub use leaf_sweep::{LeafSweep, Sweep};
pub use open::{MakeOptions, UnreadableSuperblock};
pub use second_copies::CopyFigures;

use crate::{
    Error, KeyValue, Result,
    disk::{Area, MapPlace, NodeId, OLDEST_VERSION, Shape, Space, Superblock},
    log::{Log, LogStart},
    tree::{Shared, Tree},
};
use background::WorkSignal;
use io_counts::Counters;
use read_nodes::Pool;
use second_copies::CopyWatch;
use unlogged_run::Run;

/// A batch of at least this many bytes is part of a stream. Streams wait earlier than other
/// batches.
const LONG_BATCH: usize = 64 << 10;
/// Long batches leave 1/8 of the log, and of the dirty limit, to other batches.
const KEPT_PART: u64 = 8;
/// The most log bytes that wait in memory during a stream while syncs of other files are expected.
const SHORT_LOG: u64 = 1 << 20;
/// The log bytes in memory may be 1/4 of the dirty limit, in addition to the cache.
const LOG_PART: u64 = 4;

/// The memory limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The approximate bytes of cached nodes. Dirty nodes stay in memory in any case.
    pub cache_bytes: usize,
    /// The bytes of dirty nodes that start a checkpoint. A quarter of that may wait for the log.
    pub dirty_bytes: u64,
}

impl Default for Limits {
    /// 256 MiB of cache, and 64 MiB of dirty nodes.
    fn default() -> Self {
        Self { cache_bytes: 256 << 20, dirty_bytes: 64 << 20 }
    }
}

/// A B-epsilon-tree on a device: [`KeyValue`] with [checkpoints](Self::checkpoint).
///
/// The store has no threads of its own. A checkpoint runs in the thread that requests it, or in
/// that of a batch when the log is half full or too many nodes are dirty. Other threads may read
/// and write meanwhile. To limit the replay after a loss of power, a caller requests checkpoints
/// every few seconds. A caller can [give](Self::start_background) the store a background thread;
/// then batches wait for neither flushes nor checkpoints. Without one, the bytes on the device
/// depend only on the calls.
///
/// Readers do not wait for writers, flushes and checkpoints. They wait for other readers only if
/// both read from the same node.
pub struct Evergreen {
    core: Core,
    log: Log,
    /// Locked by the thread that makes a checkpoint.
    turn: Mutex<Durable>,
    signal: WorkSignal,
    torn: Option<UnreadableSuperblock>,
}

/// All of the store except the log.
struct Core {
    area: Area,
    /// The format version to write.
    version: u32,
    uuid: [u8; 16],
    shape: Shape,
    limits: Limits,
    /// The tree for readers. It is locked last, and never during device requests.
    shared: Arc<Shared<Pool>>,
    /// Locked by the thread that flushes, also while it reads nodes. It is locked before the state.
    tree: Mutex<Tree<Pool>>,
    state: Mutex<State>,
    /// The error after which all calls fail.
    failed: OnceLock<String>,
    counters: Counters,
    watch: CopyWatch,
}

/// The facts of the newest superblock.
struct Durable {
    generation: u64,
    replay: LogStart,
    map: MapPlace,
}

/// The state that changes with a batch, without the tree.
struct State {
    space: Space,
    /// The sum of all claims, in bytes.
    live: u64,
    /// The bytes of nodes that a checkpoint writes and that have no place yet.
    unplaced: u64,
    /// The bytes of clean nodes that a checkpoint moves and that have no place yet.
    promised: u64,
    /// The units of second copies after the last checkpoint.
    second_units: u64,
    run: Run,
    /// The bytes that may be rewritten for a better layout. See `tidy`.
    credit: u64,
    /// The leaves that the next checkpoint writes to adjacent places.
    gathered: Vec<Vec<NodeId>>,
    /// The end of the last of these.
    swept_to: u32,
    /// Whether more leaves could be gathered with a larger free extent.
    is_gap_wanted: bool,
}

impl State {
    /// The state after opening; `live` is the sum of all claims.
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
    /// Writes all dirty nodes, so that a restart replays no log. Cost: writes the dirty nodes and
    /// the map of nodes.
    ///
    /// Errors: `Device` if a request failed: nothing is lost, and the caller may try again. If the
    /// write of the superblock failed, the state is unknown, and all later calls return `Stopped`.
    pub fn checkpoint(&self) -> Result<()> {
        let mut durable = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.checkpoint_in_turn(&mut durable)
    }

    fn checkpoint_in_turn(&self, durable: &mut Durable) -> Result<()> {
        // Meanwhile other threads may earn credit for the next round.
        const MOST_ROUNDS: usize = 16;
        for _ in 0..MOST_ROUNDS {
            let most = self.core.credit();
            let tidied = self.core.tidy(most);
            let (start, moved) = self.core.checkpoint(durable, || self.log.cut(), most - most.min(tidied))?;
            self.log.trim(&start);
            self.log.witness(&start)?;
            self.core.spend(tidied + moved);
            // If little space is free, each round has space for some leaves only.
            if tidied == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Counts of reads and writes since the store was opened.
    pub fn figures(&self) -> Figures {
        self.core.counters.figures()
    }

    /// The superblock that could not be read when the store was opened, if any.
    pub fn torn(&self) -> Option<&UnreadableSuperblock> {
        self.torn.as_ref()
    }

    /// The UUID of the store.
    pub fn uuid(&self) -> [u8; 16] {
        self.core.uuid
    }

    /// The shape that the store was made with.
    pub fn shape(&self) -> Shape {
        self.core.shape
    }

    /// Makes a checkpoint, if one is due and no thread makes one. Syncs the log, if much of it
    /// waits in memory.
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

    /// The most dirty bytes at the arrival of a batch.
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

    /// Flushes the root, if that is due. Returns whether it was due and is done. Messages for an
    /// unreadable child stay, and an immediate retry is useless.
    fn settle(&self) -> Result<bool> {
        let mut tree = self.tree();
        let is_due = !tree.is_settled();
        tree.settle().map(|()| is_due && tree.is_settled())
    }

    /// Evicts nodes beyond the cache limit.
    fn trim(&self) {
        self.shared.lock().trim(self.limits.cache_bytes);
    }

    /// The UUID that nodes and maps carry; none in format version 1.
    fn identity(&self) -> Option<&[u8; 16]> {
        (self.version > OLDEST_VERSION).then_some(&self.uuid)
    }

    /// The bytes of dirty nodes, with one copy each: the measure of memory and of a checkpoint's
    /// time.
    fn dirty_bytes(&self) -> u64 {
        self.shared.lock().cache.dirty_room().once
    }

    fn fail(&self, error: &Error) {
        // A second error is ignored: the first one is reported.
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

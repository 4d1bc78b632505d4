//! Opening an aggregate, completely or with the parts that can still be read.

use std::sync::Arc;

use senesce_block::BlockDevice;
use senesce_fsapi::FsError;
use senesce_objects::ObjectStore;

use crate::{
    aggregate::Garden,
    error::{Error, Result},
    format::operation::Operation,
    log::{Accepted, LogDevices, LogLoss},
    store::{self, Gardening, Limits, Opened},
};

impl Garden {
    /// Opens an aggregate: its last consistency point, and the operations that were acknowledged
    /// after it.
    ///
    /// The drives may be in any order. One drive of each group with parity may be missing. Cold
    /// blocks in objects cannot be read.
    ///
    /// Errors: the devices belong to several aggregates or to none; damage.
    ///
    /// Cost: reads the log, and one block for each RAID group to find where to allocate.
    pub fn open(drives: &[Arc<dyn BlockDevice>], log: impl Into<LogDevices>, limits: Limits) -> Result<Self> {
        Self::open_with(drives, log, limits, None, Accepted::NOTHING)
    }

    /// Opens an aggregate with its object store, if there is one, and with the losses that are
    /// acceptable. Nothing is put or deleted in the store until a caller requests it.
    ///
    /// Errors: those of [`open`](Self::open); an operation of the log needs a cold block that
    /// cannot be read; a loss is not accepted. A [closed](Self::close) aggregate loses nothing with
    /// its log.
    pub fn open_with(
        drives: &[Arc<dyn BlockDevice>],
        log: impl Into<LogDevices>,
        limits: Limits,
        objects: Option<Arc<dyn ObjectStore>>,
        accepted: Accepted,
    ) -> Result<Self> {
        let Opened { mut store, found } = store::open(drives, &log.into(), limits, objects, accepted)?;
        let older = accepted.later_point;
        for (sequence, bytes) in &found.operations {
            let place = || format!("record {sequence} of the log");
            let operation = Operation::decode(bytes).map_err(|damage| Error::damaged(place(), damage))?;
            match store.apply(&operation) {
                // A later state of the aggregate deleted an object that this operation needs. This
                // operation and all later ones are lost too. This does not apply while the store is
                // away.
                Err(error) if older && !store.touched && wants_what_is_gone(&error) => break,
                done => done?,
            };
        }
        for space in store.spaces() {
            store.reap_orphans(space)?;
        }
        // Skips the numbers of unfinished consistency points, and the started lap of the log, for
        // good.
        if store.is_waiting() || found.unfinished.cp.is_some() || found.begun || !found.unsettled.is_empty() {
            store.consistency_point()?;
        }
        if !found.unsettled.is_empty() {
            // Only now, because until the consistency point the records exist nowhere else.
            store.log.settle(&found.unsettled)?;
            store.note_logs()?;
        }
        store.gardener.gardening = Gardening::of(&store.raid.geometry);
        Ok(Self::of(store))
    }

    /// The loss at the opening, if the log could not be read completely.
    pub fn log_loss(&self) -> Option<LogLoss> {
        self.shared.lock().opening.log_loss.clone()
    }
}

/// Whether an operation failed because the object with a cold block no longer exists.
fn wants_what_is_gone(error: &FsError) -> bool {
    let FsError::Io { source, .. } = error else { return false };
    source.downcast_ref().is_some_and(Error::is_absent)
}

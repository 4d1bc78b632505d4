//! Opening an aggregate, in full or with what can still be read.

use std::sync::Arc;

use senesce_block::BlockDevice;
use senesce_fsapi::FsError;
use senesce_objects::ObjectStore;

use crate::{
    engine::Garden,
    error::{Error, Result},
    format::operation::Operation,
    log::{Accepted, LogDevices, LogLoss},
    store::{self, Gardening, Limits, Opened},
};

impl Garden {
    /// Opens an aggregate: its last consistency point, and the operations that were acknowledged after it.
    ///
    /// The drives come in any order; one of each group with parity may be missing. Errors: devices of several aggregates or
    /// of none, damage. Cost: reads the log, and one block for each RAID group
    /// to know where to write.
    ///
    /// Cold blocks in objects cannot be read; all else is as ever.
    pub fn open(drives: &[Arc<dyn BlockDevice>], log: impl Into<LogDevices>, limits: Limits) -> Result<Self> {
        Self::open_with(drives, log, limits, None, Accepted::NOTHING)
    }

    /// The same with the store of its objects, if it is there, and with what may be lost. Nothing is put there or deleted unless it is asked
    /// for.
    ///
    /// Errors: also if an operation of the log has to read a cold block, and cannot; something is lost that is not accepted. A
    /// [closed](Self::close) aggregate loses nothing with its log.
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
                // A later state of it deleted an object that this one wants: what comes from here on is lost as well. Not so while the
                // store is away.
                Err(error) if older && !store.touched && wants_what_is_gone(&error) => break,
                done => done?,
            };
        }
        for space in store.spaces() {
            store.reap_orphans(space)?;
        }
        // Numbers of consistency points that did not end are left behind for good, and so is a lap of the log that was begun.
        if store.is_waiting() || found.unfinished.cp.is_some() || found.begun || !found.unsettled.is_empty() {
            store.consistency_point()?;
        }
        if !found.unsettled.is_empty() {
            // Not before: the records in there are nowhere else until then.
            store.log.settle(&found.unsettled)?;
            store.note_logs()?;
        }
        store.gardener.gardening = Gardening::of(&store.raid.geometry);
        Ok(Self::of(store))
    }

    /// What was lost with the log when it was opened.
    pub fn log_loss(&self) -> Option<LogLoss> {
        self.shared.lock().opening.log_loss.clone()
    }
}

/// Whether an operation failed because the object with a cold block is no longer there.
fn wants_what_is_gone(error: &FsError) -> bool {
    let FsError::Io { source, .. } = error else { return false };
    source.downcast_ref().is_some_and(Error::is_absent)
}

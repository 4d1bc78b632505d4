//! What a mount does beside serving and may wait for an object store: gardening by load, and
//! deleting objects. It is done by a thread of its own, so that what makes durable each second what
//! was acknowledged does not wait for it.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::Scope,
    time::{Duration, Instant},
};

use senesce_core::Clock;
use senesce_garden::{Error, Garden};
use senesce_service::Passes;

use super::{
    held_mounts::POLL_INTERVAL,
    load_sampling::{AdaptiveMaintenance, Machine},
};

/// A store of objects that is away is asked again for deletes after this time.
const AWAY: Duration = Duration::from_secs(60);

/// What is done.
pub struct BackgroundTasks<C, M> {
    /// Objects that nothing needs any more are deleted, from then on; a store that is away is left
    /// alone for a while.
    pub deletes: Option<Instant>,
    /// Gardening, if it goes by load.
    pub by_load: Option<AdaptiveMaintenance<C, M>>,
}

/// Says that a consistency point was made. With it the thread ends, as soon as it waits for
/// nothing.
pub struct CheckpointNotifier(Sender<()>);

impl CheckpointNotifier {
    pub fn notify_checkpoint(&self) {
        let _ = self.0.send(()); // if it failed it has said so, and is gone
    }
}

impl<C: Clock + Send + Sync + 'static, M: Machine + Send> BackgroundTasks<C, M> {
    /// Starts the work, if there is any. It continues until the returned value is dropped.
    /// Requests and gardening take turns.
    pub fn begin<'scope, 'env>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        garden: &'env Garden,
        passes: &'env Passes,
    ) -> Option<CheckpointNotifier>
    where
        Self: 'scope,
    {
        if self.deletes.is_none() && self.by_load.is_none() {
            return None;
        }
        let (sender, points) = channel();
        scope.spawn(move || self.work(garden, passes, &points));
        Some(CheckpointNotifier(sender))
    }

    /// A failure is reported once, and stops it.
    fn work(mut self, garden: &Garden, passes: &Passes, points: &Receiver<()>) {
        loop {
            // Deletes wait for a point; only gardening has something to do in between.
            let next = match self.by_load {
                Some(_) => points.recv_timeout(POLL_INTERVAL),
                None => points.recv().map_err(RecvTimeoutError::from),
            };
            match next {
                Ok(()) => {
                    // Those that were made while it waited are one.
                    while points.try_recv().is_ok() {}
                    self.delete_objects(garden);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if let Err(error) = self.by_load.as_mut().map_or(Ok(()), |by_load| by_load.do_some(garden, passes)) {
                eprintln!("senesce: {error}");
                return;
            }
        }
    }

    /// What is not deleted now is so later, by the next mount, or by `fs tier`.
    fn delete_objects(&mut self, garden: &Garden) {
        let now = Instant::now();
        if self.deletes.is_some_and(|from| now >= from)
            && let Err(error) = garden.delete_objects()
        {
            // The store was reported when it went away.
            if !matches!(error, Error::ColdStore { .. }) {
                eprintln!("senesce: {error}");
            }
            let is_foreign = matches!(error, Error::ForeignObjects { .. });
            self.deletes = (!is_foreign).then(|| Instant::now() + AWAY);
        }
    }
}

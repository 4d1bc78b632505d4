//! Dry runs: requests that are executed on a copy of the devices in memory.

use std::sync::Arc;

use senesce_objects::{ObjectStore, OverlayObjects};

use super::{Service, check::open_frozen};
use crate::{
    Passes, Request, Response, Result, Task,
    devices::KEPT_BYTES,
    error::While,
    task::{Relay, Step},
};

impl Service<'_> {
    /// Executes a request on the frozen devices, with the checks of a real one. Programs may use
    /// the garden at the same time.
    ///
    /// Errors: those of the request; the changes do not fit in memory.
    pub(super) fn dry_run(&self, of: &Request, task: &mut dyn Task) -> Result<Response> {
        if !of.changes() {
            return self.answer(of, task);
        }
        let cannot = || format!("cannot try this on a copy of {} in memory", self.place);
        let frozen = self.freeze(KEPT_BYTES)?;
        let store = self.store.map(|store| Arc::new(OverlayObjects::new(store.clone())) as Arc<dyn ObjectStore>);
        let (place, mounts, objects) = (self.place, self.mounts, self.objects);
        let work = |sender| {
            let garden = open_frozen(&frozen, store).when(cannot)?;
            let (read_only, live) = (false, false);
            // Passes on the copy and passes on the devices do not affect each other.
            let passes = &Passes::default();
            let copy = Service {
                garden: &garden,
                place,
                mounts,
                passes,
                read_only,
                objects,
                store: None,
                devices: None,
                live,
            };
            copy.answer(of, &mut Relay(sender))
        };
        let tell = |task: &mut dyn Task, step: Step| step.pass_on(task);
        frozen.attend(task, None, tell, work).when(cannot)?
    }
}

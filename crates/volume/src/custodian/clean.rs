//! Cleaning after a run that could not do it itself.

use std::path::Path;

use super::{
    CleanAction,
    journal::{Entry, Journal},
    keeper::remove_home,
    release::{abort_if_unserved, release},
};
use crate::{Error, Result, host::Host};

/// Removes what a killed run, whose journal is in `dir`, has left: mounts, loop devices, images, temporary files,
/// and nothing else. Everything is identified before it is touched.
///
/// Out: what was done, in order (the reverse of acquiring). Empty if there was nothing to do, such as the second
/// time. What failed stays in the journal and is tried again the next time.
///
/// Errors: the run still lives ([`Error::OwnerAlive`]); the journal is another user's; the journal is damaged other than at its end.
pub fn clean(host: &dyn Host, dir: &Path) -> Result<Vec<CleanAction>> {
    let Some((mut journal, state)) = Journal::open_existing(dir)? else { return Ok(Vec::new()) };
    if let Some(owner) = state.owner.as_ref().filter(|owner| host.is_alive(owner)) {
        return Err(Error::OwnerAlive { journal: journal.path().to_owned(), pid: owner.pid });
    }
    if state.owner.is_none() {
        // Not a whole line yet: nothing was acquired, and it may be no journal of ours.
        return Ok(Vec::new());
    }
    journal.cut_to(&state)?;
    let mut actions = Vec::new();
    for held in state.held.iter().rev() {
        abort_if_unserved(host, &held.resource, &state.held);
        let outcome = release(host, &held.resource, held.file, &state.token);
        let action = CleanAction { resource: held.resource.clone(), outcome };
        if !action.is_failure() {
            journal.append(&Entry::Release { id: held.id })?;
        }
        actions.push(action);
    }
    if state.home && !actions.iter().any(CleanAction::is_failure) {
        remove_home(dir);
    }
    Ok(actions)
}

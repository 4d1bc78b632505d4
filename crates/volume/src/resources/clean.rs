//! Removes the resources of a killed run.

use std::path::Path;

use super::{
    CleanAction,
    custodian::{remove_home, token_of},
    release::{abort_if_unserved, preview, release},
    resource_journal::{Entry, Held, Journal},
};
use crate::{Error, Result, host::Host};

/// Whether cleaning removes resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanMode {
    /// Removes each resource that is proved to be the run's.
    Act,
    /// Only reports each resource that it would remove. Changes nothing, not even the journal.
    DryRun,
}

/// Removes the resources of a killed run, whose journal is in `dir`: mounts, loop devices, images,
/// temporary files, processes. Removes nothing else. A journal can be forged, so it only helps to
/// find resources. Before each action, the machine itself must prove that a resource is the run's.
///
/// Returns the actions in order, which is the reverse of acquiring. Empty if there was nothing to
/// do, as in a second call. A resource that cannot be removed stays in the journal, and the next
/// call tries again.
///
/// Errors: the run is alive ([`Error::OwnerAlive`]); the journal is another user's; it is damaged
/// elsewhere than at its end; its token is not its owner's.
pub fn clean(host: &dyn Host, dir: &Path, mode: CleanMode) -> Result<Vec<CleanAction>> {
    let Some((mut journal, mut state)) = Journal::open_existing(dir)? else { return Ok(Vec::new()) };
    // Without a complete line nothing was acquired, and the file may not be a journal of senesce.
    let Some(owner) = state.owner.clone() else { return Ok(Vec::new()) };
    let token = token_of(&owner);
    if state.token != token {
        let problem = format!(
            "the token {:?} does not belong to its owner ({token}): senesce did not write this journal",
            state.token
        );
        return Err(Error::Journal { path: journal.path().to_owned(), line: 1, problem });
    }
    // The token is in every name that may be removed. A process and a boot that cannot exist would
    // let a forger choose it, such as that of `/usr/lib/modules/6.1.0-44-amd64`.
    let this_boot = host.this_process()?.boot_id;
    if owner.pid == 0 || (owner.boot_id != this_boot && !is_boot_id(&owner.boot_id)) {
        let problem = "its owner cannot be a process of any boot: senesce did not write this journal".to_owned();
        return Err(Error::Journal { path: journal.path().to_owned(), line: 1, problem });
    }
    if host.is_alive(&owner) {
        return Err(Error::OwnerAlive { journal: journal.path().to_owned(), pid: owner.pid });
    }
    if let Some(old) = &state.place {
        let new = std::fs::canonicalize(dir).map_err(Error::std("look up", dir))?;
        let moved = |held: Held| Held { resource: held.resource.moved(old, &new), ..held };
        state.held = state.held.into_iter().map(moved).collect();
    }
    // Numbers of devices belong to one boot. A guest has its own boot, and other numbers for the
    // host's files.
    if owner.boot_id != this_boot {
        for held in &mut state.held {
            if let (Some(file), Some(found)) = (&mut held.file, host.file_id(held.resource.path())?) {
                file.device = found.device;
            }
        }
    }
    if mode == CleanMode::DryRun {
        let look = |held: &Held| CleanAction {
            resource: held.resource.clone(),
            outcome: preview(host, &held.resource, held.file, &token),
        };
        return Ok(state.held.iter().rev().map(look).collect());
    }
    journal.cut_to(state.whole_bytes)?;
    let mut actions = Vec::new();
    for held in state.held.iter().rev() {
        abort_if_unserved(host, &held.resource, &state.held, &token);
        let outcome = release(host, &held.resource, held.file, &token);
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

/// Whether a text has the form of the kernel's boot id: a UUID in lower case.
fn is_boot_id(text: &str) -> bool {
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_ids_are_uuids() {
        assert!(is_boot_id("0a7b6a35-0a8c-4a7e-9a8f-bb5a7c3f0d11"));
        for forged in ["", "amd64", "0A7B6A35-0A8C-4A7E-9A8F-BB5A7C3F0D11", "0a7b6a3500a8c-4a7e-9a8f-bb5a7c3f0d11"] {
            assert!(!is_boot_id(forged), "{forged}");
        }
    }
}

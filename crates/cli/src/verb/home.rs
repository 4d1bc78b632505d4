//! The journal of a verb that has no directory of its own, so that `senesce clean` finds what a
//! kill leaves of it.

use std::sync::Arc;

use anyhow::Result;
use senesce_volume::{Custodian, LinuxHost, Registry};

use super::run::registry_dir;
use crate::progress::note_wait;

/// This machine. The host prints a line before a long wait for another process.
pub fn patient_host() -> LinuxHost {
    LinuxHost { on_wait: note_wait, ..LinuxHost::default() }
}

/// Acts with a journal in the registry, which is there as long as something is held. However `act`
/// ends, everything is given back then, and what would not go is said.
///
/// Errors: the registry cannot be written; those of `act`.
pub fn with_home<T>(act: impl FnOnce(&Custodian) -> Result<T>) -> Result<T> {
    with_home_kept_if(|_| false, act)
}

/// As [`with_home`], but if `is_kept` says so of what came out, everything stays until `senesce
/// clean`.
pub fn with_home_kept_if<T>(is_kept: impl FnOnce(&T) -> bool, act: impl FnOnce(&Custodian) -> Result<T>) -> Result<T> {
    let custodian = Registry::new(&registry_dir()?).open_home(Arc::new(patient_host()))?;
    let result = act(&custodian);
    if result.as_ref().is_ok_and(is_kept) {
        // The journal keeps it, not this process.
        std::mem::forget(custodian);
        return result;
    }
    for action in custodian.release_all().iter().filter(|action| action.is_failure()) {
        eprintln!("senesce: {action}\n  hint: run `senesce clean` when no program uses it any more");
    }
    result
}

//! The journal of a verb that has no directory of its own, so that `senesce clean` finds what a kill leaves of it.

use std::sync::Arc;

use anyhow::Result;
use senesce_volume::{Custodian, LinuxHost, Registry};

use super::run::registry_dir;

/// A journal in the registry, there as long as something is held.
pub fn open_home() -> Result<Custodian> {
    Ok(Registry::new(&registry_dir()).open_home(Arc::new(LinuxHost::default()))?)
}

/// Gives everything back, and says what would not go.
pub fn close_home(custodian: &Custodian) {
    for action in custodian.release_all().iter().filter(|action| action.is_failure()) {
        eprintln!("senesce: {action}\n  hint: run `senesce clean` when nobody uses it any more");
    }
}

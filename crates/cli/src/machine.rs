//! What the verbs ask of the machine.

use std::{env, num::NonZeroUsize, thread::available_parallelism};

use senesce_experiment::TrustedOwners;

/// The users whose repositories are read: root, the effective user and the user who ran sudo; all
/// users if `anyone`.
pub fn trusted_owners(anyone: bool) -> TrustedOwners {
    let sudo = env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    let owners = TrustedOwners::new(rustix::process::geteuid().as_raw(), sudo);
    if anyone { owners.trusting_anyone() } else { owners }
}

/// The number of threads: the requested number, else one for each processor.
pub fn count_threads(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| available_parallelism().ok()).map_or(1, usize::from)
}

//! Makes the synthetic history as a repository in the spool.

use std::path::Path;

use senesce_core::Seed;
use senesce_gitsource::import_synthetic_until;
use senesce_volume::interrupted;
use senesce_workload::synthetic::SyntheticParameters;

use crate::{
    Error,
    arm::check_signal,
    durable_files::{sync_entry, sync_tree},
    plan::Synthetic,
};

/// Makes the repository at `path`, unless it exists. The name appears only when the repository is
/// complete.
pub(super) fn make(synthetic: &Synthetic, seed: Seed, path: &Path) -> Result<(), Error> {
    if path.exists() {
        return Ok(());
    }
    let partial = path.with_extension("partial");
    if partial.exists() {
        std::fs::remove_dir_all(&partial).map_err(Error::io("remove", &partial))?;
    }
    let parameters = SyntheticParameters { seed, start_files: synthetic.files, commits: synthetic.commits };
    let made = import_synthetic_until(parameters, &partial, || interrupted().is_some());
    check_signal()?;
    made?;
    sync_tree(&partial)?;
    std::fs::rename(&partial, path).map_err(Error::io("rename", &partial))?;
    sync_entry(path)
}

//! Makes a synthetic history as a repository in the spool.

use std::path::Path;

use senesce_core::Seed;
use senesce_gitsource::import_synthetic_until;
use senesce_volume::interrupted;
use senesce_workload::synthetic::{HistoryModel, SyntheticHistory, SyntheticParameters};

use crate::{
    Error,
    arm::check_signal,
    description::read_description,
    durable_files::{sync_entry, sync_tree, write_durably},
    plan::Synthetic,
};

/// The history of a plan's table `history.synthetic`.
pub(super) fn linux_like(synthetic: &Synthetic, seed: Seed) -> Result<SyntheticHistory, Error> {
    let parameters = SyntheticParameters { seed, start_files: synthetic.files, commits: synthetic.commits };
    Ok(SyntheticHistory::new(parameters)?)
}

/// Reads the model file of the key `history.like`, and keeps it in the spool.
///
/// Later calls read the kept model. The repository in the spool follows that one, so a changed file
/// must not change the log of a run that continues.
pub(super) fn read_model(name: &str, spool: &Path) -> Result<HistoryModel, Error> {
    let kept = spool.join("history-model.toml");
    if kept.exists() {
        let text = read_description(&kept).map_err(Error::io("read the model", &kept))?;
        return Ok(HistoryModel::parse(&text, name)?);
    }
    let path = Path::new(name);
    let text = read_description(path).map_err(Error::io("read the model", path))?;
    let model = HistoryModel::parse(&text, name)?;
    std::fs::create_dir_all(spool).map_err(Error::io("create", spool))?;
    write_durably(&kept, text.as_bytes())?;
    Ok(model)
}

/// Makes the repository at `path`, unless it exists. The name appears only when the repository is
/// complete.
pub(super) fn make(history: SyntheticHistory, path: &Path) -> Result<(), Error> {
    if path.exists() {
        return Ok(());
    }
    let partial = path.with_extension("partial");
    if partial.exists() {
        std::fs::remove_dir_all(&partial).map_err(Error::io("remove", &partial))?;
    }
    let made = import_synthetic_until(history, &partial, || interrupted().is_some());
    check_signal()?;
    made?;
    sync_tree(&partial)?;
    std::fs::rename(&partial, path).map_err(Error::io("rename", &partial))?;
    sync_entry(path)
}

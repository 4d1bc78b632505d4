//! Hints about plans.

use senesce_core::Printable;
use senesce_experiment::plan::PlanError;
use senesce_oplog::LogError;

use crate::near::hint_for_missing_plan;

/// The hint for a plan that does not exist, or that was given as an operation log.
pub(super) fn hint_for_plan(error: &anyhow::Error) -> Option<String> {
    let missing = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(PlanError::Read { path, source }) if source.kind() == std::io::ErrorKind::NotFound => Some(path.clone()),
        _ => None,
    };
    if let Some(path) = error.chain().find_map(missing) {
        return Some(hint_for_missing_plan(&path));
    }
    let of_log = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(senesce_experiment::Error::Log(LogError::NotALog { path, .. })) => Some(path.clone()),
        _ => match cause.downcast_ref() {
            Some(LogError::NotALog { path, .. }) => Some(path.clone()),
            _ => None,
        },
    };
    let path = error.chain().find_map(of_log).filter(|path| path.extension().is_some_and(|name| name == "toml"))?;
    let path = Printable::new(&path).to_string();
    Some(format!("`senesce run {path}` runs a plan; the logs of a run are RUN/arms/ARM/oplog.senesce-log"))
}

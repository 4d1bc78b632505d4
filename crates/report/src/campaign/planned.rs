//! The planned tasks of a campaign, and those without a result.

use std::collections::BTreeSet;

use senesce_core::names::with_more;
use senesce_store::Results;

use crate::format::count;

/// The circumstance that has the number of a task.
pub(super) const TASK: &str = "campaign.task";

/// The circumstance that has the number of planned tasks.
const TASKS: &str = "campaign.tasks";

/// The planned tasks of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedTasks {
    /// The number of all tasks.
    pub all: u64,
    /// The tasks that the merged results lack.
    pub missing: Vec<MissingTask>,
}

/// A planned task that has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingTask {
    /// The task in words: `btrfs, mail, HDD 7.2K`.
    pub words: String,
    /// Its file system.
    pub file_system: String,
    /// Its workload.
    pub workload: String,
    /// Its kernel.
    pub kernel: String,
    /// The name of its device in the plan. Empty if the plan names none.
    pub device: String,
    /// The name of that device for readers.
    pub device_title: String,
}

/// The numbers of the tasks that merged results contain.
pub fn merged_tasks(results: &Results) -> BTreeSet<u64> {
    let numbers = results.circumstances.iter().filter(|row| row.key == TASK);
    numbers.filter_map(|row| row.value.parse().ok()).collect()
}

/// Names planned tasks without a result: `1 of 12 tasks has no result: btrfs, mail, HDD 7.2K`.
///
/// In: the first missing tasks, the number of missing ones, and that of all.
pub fn tell_missing_tasks(first: impl IntoIterator<Item = String>, missing: u64, all: u64) -> String {
    const NAMED: usize = 3;
    let names = with_more(first.into_iter().take(NAMED), missing as usize);
    format!("{} no result: {}", of_tasks(missing, all), names.join("; "))
}

/// The warning of a merged run that lacks tasks. `None` if it has all, or is no merged run.
pub(crate) fn warn_of_missing_tasks(results: &Results) -> Option<String> {
    let all = results.circumstances.iter().find(|row| row.arm.is_empty() && row.key == TASKS)?.value.parse().ok()?;
    let missing = u64::saturating_sub(all, merged_tasks(results).len() as u64);
    (missing > 0).then(|| {
        let tasks = of_tasks(missing, all);
        format!("{tasks} no result, and may have the largest slowdown: `senesce campaign status` lists such tasks.")
    })
}

/// `1 of 12 tasks has`, `2 of 12 tasks have`.
pub(super) fn of_tasks(tasks: u64, all: u64) -> String {
    format!("{} of {} tasks {}", count(tasks), count(all), if tasks == 1 { "has" } else { "have" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_the_first_missing_tasks() {
        let message = |missing: u64| tell_missing_tasks((0..missing).map(|task| task.to_string()), missing, 2_000);
        assert_eq!(message(1), "1 of 2,000 tasks has no result: 0");
        assert_eq!(message(3), "3 of 2,000 tasks have no result: 0; 1; 2");
        assert_eq!(message(1_003), "1,003 of 2,000 tasks have no result: 0; 1; 2; 1,000 more");
    }
}

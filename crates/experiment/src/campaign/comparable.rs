//! Circumstances that make the figures of tasks incomparable.

use std::collections::BTreeMap;

use senesce_store::{CircumstanceRow, Role};

use super::Task;

/// A comparison keeps at most this number of values of a circumstance.
const MOST_VALUES: usize = 8;
/// A message names at most this number of tasks for a value.
const MOST_NAMED: usize = 5;

/// The values that tasks recorded, and which tasks recorded them. Its size does not depend on the
/// number of tasks, except for synthetic histories: each seed has one of its own.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// By circumstance and the tasks that must agree in it.
    seen: BTreeMap<(&'static str, String), Values>,
}

#[derive(Debug, Default)]
struct Values {
    /// The tasks with each value.
    tasks: BTreeMap<String, Tasks>,
    /// Tasks with other values.
    others: u64,
}

#[derive(Debug, Default)]
struct Tasks {
    /// The first ones.
    named: Vec<u64>,
    count: u64,
    last: Option<u64>,
}

/// The tasks that must agree in a circumstance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Kernel,
    FileSystem,
    /// The tasks of one workload have one input.
    Workload,
}

/// Circumstances that change layout or the operations: the tasks of a scope must agree in them.
const BINDING: [(&str, Scope); 10] = [
    ("senesce.version", Scope::All),
    ("git.version", Scope::All),
    ("kernel_release", Scope::Kernel),
    ("kernel_version", Scope::Kernel),
    ("machine", Scope::Kernel),
    ("mkfs_version", Scope::FileSystem),
    ("history.first_commit", Scope::Workload),
    ("history.last_commit", Scope::Workload),
    ("history.trace_blake3", Scope::Workload),
    ("workload.replay.log_blake3", Scope::Workload),
];

/// Circumstances that change wall times only.
const OF_TIMES: [&str; 8] = [
    "cpu_model",
    "cpu_count",
    "cpu_governor",
    "memory_bytes",
    "virtual_machine",
    "kernel_parameters",
    "device_model",
    "device_scheduler",
];

impl Comparison {
    /// Adds the circumstances of a task.
    pub(super) fn add(&mut self, task: &Task, rows: &[CircumstanceRow]) {
        // The seed of the task makes it.
        let is_synthetic = rows.iter().any(|row| row.key == "history.origin" && row.value.starts_with("synthetic "));
        for row in rows {
            let key = without_role(&row.key);
            let binding = BINDING.iter().find(|(name, _)| *name == key).copied();
            let of_times = OF_TIMES.iter().find(|name| **name == key).map(|name| (*name, Scope::All));
            let Some((name, scope)) = binding.or(of_times) else { continue };
            let scope = match scope {
                Scope::All => String::new(),
                Scope::Kernel => format!("kernel {}", task.kernel.as_str()),
                Scope::Workload if is_synthetic => format!("workload {}, seed {}", task.workload, task.seed),
                Scope::Workload => format!("workload {}", task.workload),
                Scope::FileSystem => format!("{} on kernel {}", task.file_system, task.kernel.as_str()),
            };
            self.seen.entry((name, scope)).or_default().add(task.number, &row.value);
        }
    }

    /// Binding circumstances in which tasks differ, one sentence each.
    pub(super) fn conflicts(&self) -> Vec<String> {
        self.unlike(|name| BINDING.iter().any(|(binding, _)| *binding == name))
    }

    /// Circumstances that make wall times incomparable, one sentence each.
    pub(super) fn unlike_times(&self) -> Vec<String> {
        self.unlike(|name| OF_TIMES.contains(&name))
    }

    fn unlike(&self, is_kind: impl Fn(&str) -> bool) -> Vec<String> {
        let kind = self.seen.iter().filter(|((name, _), values)| is_kind(name) && values.tasks.len() > 1);
        kind.map(|((name, scope), values)| {
            let of = if scope.is_empty() { String::new() } else { format!(" ({scope})") };
            format!("{name}{of}: {}", values.text())
        })
        .collect()
    }
}

impl Values {
    fn add(&mut self, task: u64, value: &str) {
        if self.tasks.len() >= MOST_VALUES && !self.tasks.contains_key(value) {
            self.others += 1;
            return;
        }
        let tasks = self.tasks.entry(value.to_owned()).or_default();
        // A task records a circumstance for each volume.
        if tasks.last.replace(task) != Some(task) {
            tasks.count += 1;
            if tasks.named.len() < MOST_NAMED {
                tasks.named.push(task);
            }
        }
    }

    fn text(&self) -> String {
        let mut parts: Vec<String> = self
            .tasks
            .iter()
            .map(|(value, Tasks { named, count, last: _ })| {
                let mut list = named.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
                if *count > named.len() as u64 {
                    list.push_str(", …");
                }
                let plural = if *count == 1 { "" } else { "s" };
                format!("{value} in {count} task{plural} ({list})")
            })
            .collect();
        if self.others > 0 {
            parts.push(format!("other values {} times", self.others));
        }
        parts.join("; ")
    }
}

/// The key of a volume's circumstance without the role of the volume.
fn without_role(key: &str) -> &str {
    Role::ALL.iter().find_map(|role| key.strip_prefix(role.name())?.strip_prefix('.')).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::KernelName;

    fn task(number: u64, file_system: &str, kernel: KernelName) -> Task {
        let workload = "w".to_owned();
        let suffix = String::new();
        Task { number, workload, file_system: file_system.into(), kernel, device: None, seed: 1, suffix }
    }

    fn rows(pairs: &[(&str, &str)]) -> Vec<CircumstanceRow> {
        let row = |(key, value): &(&str, &str)| CircumstanceRow {
            arm: String::new(),
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        pairs.iter().map(row).collect()
    }

    #[test]
    fn another_kernel_conflicts_but_another_processor_does_not() {
        let mut comparison = Comparison::default();
        for number in 0..9 {
            let release = if number == 4 { "6.12" } else { "6.1" };
            let circumstances = rows(&[
                ("empty.kernel_release", release),
                ("unaged.kernel_release", release),
                ("empty.cpu_model", if number < 3 { "A" } else { "B" }),
                ("plan.seed", &number.to_string()),
            ]);
            comparison.add(&task(number, "ext4", KernelName::Host), &circumstances);
        }
        assert_eq!(
            comparison.conflicts(),
            ["kernel_release (kernel host): 6.1 in 8 tasks (0, 1, 2, 3, 5, …); 6.12 in 1 task (4)"]
        );
        assert_eq!(comparison.unlike_times(), ["cpu_model: A in 3 tasks (0, 1, 2); B in 6 tasks (3, 4, 5, 6, 7, …)"]);
    }

    #[test]
    fn kernels_and_tools_of_other_axes_may_differ() {
        let mut comparison = Comparison::default();
        let add = |comparison: &mut Comparison, number, file_system, kernel, release, mkfs| {
            let circumstances = rows(&[("full.kernel_release", release), ("full.mkfs_version", mkfs)]);
            comparison.add(&task(number, file_system, kernel), &circumstances);
        };
        add(&mut comparison, 0, "ext4", KernelName::Host, "6.1", "mke2fs 1.47");
        add(&mut comparison, 1, "xfs", KernelName::Host, "6.1", "mkfs.xfs 6.1");
        add(&mut comparison, 2, "ext4", KernelName::Uml, "6.6", "mke2fs 1.47");
        assert!(comparison.conflicts().is_empty(), "{:?}", comparison.conflicts());
        add(&mut comparison, 3, "xfs", KernelName::Host, "6.1", "mkfs.xfs 6.6");
        assert_eq!(comparison.conflicts().len(), 1);
        assert!(comparison.conflicts()[0].starts_with("mkfs_version (xfs on kernel host): "));
    }

    #[test]
    fn another_input_of_a_workload_is_a_conflict() {
        for key in ["history.first_commit", "history.last_commit", "history.trace_blake3", "workload.replay.log_blake3"]
        {
            let mut comparison = Comparison::default();
            let add = |comparison: &mut Comparison, number, workload: &str, seed, value| {
                let task = Task { workload: workload.into(), seed, ..task(number, "ext4", KernelName::Host) };
                comparison.add(&task, &rows(&[("history.origin", "/repo"), (key, value)]));
            };
            add(&mut comparison, 0, "one", 1, "a");
            add(&mut comparison, 1, "one", 2, "a");
            add(&mut comparison, 2, "two", 1, "b");
            assert!(comparison.conflicts().is_empty(), "{:?}", comparison.conflicts());
            add(&mut comparison, 3, "one", 3, "c");
            assert_eq!(comparison.conflicts(), [format!("{key} (workload one): a in 2 tasks (0, 1); c in 1 task (3)")]);
        }
    }

    #[test]
    fn a_synthetic_history_is_that_of_its_seed() {
        let mut comparison = Comparison::default();
        let mut add = |number, seed, commit| {
            let task = Task { seed, ..task(number, "ext4", KernelName::Host) };
            let origin = ("history.origin", "synthetic linux-like (5 files, 8 commits, seed 1)");
            comparison.add(&task, &rows(&[origin, ("history.first_commit", commit)]));
            comparison.conflicts()
        };
        assert!(add(0, 1, "a").is_empty() && add(1, 2, "b").is_empty() && add(2, 2, "b").is_empty());
        assert_eq!(add(3, 1, "c"), ["history.first_commit (workload w, seed 1): a in 1 task (0); c in 1 task (3)"]);
    }

    #[test]
    fn its_size_does_not_grow_with_the_tasks() {
        let mut comparison = Comparison::default();
        for number in 0..10_000 {
            let version = number.to_string();
            comparison.add(&task(number, "ext4", KernelName::Host), &rows(&[("senesce.version", &version)]));
        }
        let values = &comparison.seen[&("senesce.version", String::new())];
        assert_eq!((values.tasks.len(), values.others), (MOST_VALUES, 10_000 - MOST_VALUES as u64));
        assert!(comparison.conflicts()[0].ends_with("other values 9992 times"));
    }
}

//! Leaves control groups with a memory limit. In such a group, the server would wait for pages of
//! its writer, which waits for the server.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A control group on the path from the root of its hierarchy to a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLevel {
    /// Its directory.
    pub dir: PathBuf,
    /// Whether it limits memory.
    pub limited: bool,
}

/// Returns the target groups for a process in the last of `levels` (root first): those above every
/// limit, the nearest first. Empty if no level has a limit.
pub fn plan_group(levels: &[GroupLevel]) -> Vec<PathBuf> {
    match levels.iter().position(|level| level.limited) {
        Some(first) => levels[..first].iter().rev().map(|level| level.dir.clone()).collect(),
        None => Vec::new(),
    }
}

/// Moves this process out of memory-limited groups, if it may. Returns notes for the records.
pub(super) fn leave_limited_groups() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut notes = Vec::new();
    for (root, path) in hierarchies(&mounts, &groups) {
        let levels = collect_levels(&root, &path);
        let Some(own) = levels.last().filter(|_| levels.iter().any(|level| level.limited)) else { continue };
        let moved = plan_group(&levels).into_iter().find(|dir| fs::write(dir.join("cgroup.procs"), "0").is_ok());
        notes.push(match moved {
            Some(to) => format!("moved from memory-limited group {} to {}", own.dir.display(), to.display()),
            None => format!("STAYS in memory-limited group {}: could not be moved", own.dir.display()),
        });
    }
    if notes.is_empty() {
        notes.push("in no memory-limited group".to_owned());
    }
    notes
}

/// The mounted hierarchies that can limit memory (version 1's memory controller, version 2), and
/// this process's path in each.
fn hierarchies(mounts: &str, groups: &str) -> Vec<(PathBuf, PathBuf)> {
    let path_in = |is_it: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            is_it(controllers).then(|| parts.next()).flatten().map(str::to_owned)
        })
    };
    let mut found = Vec::new();
    for line in mounts.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let (Some(shown_root), Some(point)) = (left.get(3), left.get(4)) else { continue };
        let has_memory = |options: &str| options.split(',').any(|option| option == "memory");
        let path = match right.first() {
            Some(&"cgroup2") => path_in(&|controllers| controllers.is_empty()),
            Some(&"cgroup") if right.last().is_some_and(|options| has_memory(options)) => path_in(&has_memory),
            _ => None,
        };
        // In a container the mount may show only a part of the hierarchy.
        let below = path.as_deref().and_then(|path| Path::new(path).strip_prefix(shown_root).ok());
        found.extend(below.map(|below| (PathBuf::from(point), below.to_owned())));
    }
    found
}

fn collect_levels(root: &Path, below: &Path) -> Vec<GroupLevel> {
    let mut dir = root.to_owned();
    let mut levels = vec![GroupLevel { limited: is_limited(&dir), dir: dir.clone() }];
    for part in below.components() {
        dir.push(part);
        levels.push(GroupLevel { limited: is_limited(&dir), dir: dir.clone() });
    }
    levels
}

fn is_limited(dir: &Path) -> bool {
    let value = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
    ["memory.max", "memory.high", "memory.limit_in_bytes"].iter().any(|name| limits(&value(name)))
}

/// Without a limit, version 2 has `max`, and version 1 a number near 2^63.
fn limits(text: &str) -> bool {
    text.trim().parse::<u64>().is_ok_and(|bytes| bytes < 1 << 62)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(dir: &str, limited: bool) -> GroupLevel {
        GroupLevel { dir: dir.into(), limited }
    }

    #[test]
    fn the_nearest_group_above_every_limit_is_tried_first() {
        let levels = [level("/", false), level("/a", false), level("/a/b", true), level("/a/b/c", false)];
        assert_eq!(plan_group(&levels), [PathBuf::from("/a"), "/".into()]);
        assert!(plan_group(&levels[..2]).is_empty(), "without a limit it stays");
        assert!(plan_group(&[level("/", true)]).is_empty(), "above the root there is nothing");
    }

    #[test]
    fn limits_of_both_versions_are_parsed() {
        for none in ["max\n", "9223372036854771712\n", ""] {
            assert!(!limits(none), "{none:?}");
        }
        assert!(limits("67108864\n") && limits("0\n"));
    }

    #[test]
    fn hierarchies_are_found_at_their_mounts() {
        let mounts = "30 20 0:26 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
            31 20 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
            32 20 0:28 /box /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let groups = "4:memory:/user/x:y\n1:cpu:/\n0::/box/inner\n";
        let found = hierarchies(mounts, groups);
        assert_eq!(
            found,
            [
                (PathBuf::from("/sys/fs/cgroup/memory"), PathBuf::from("user/x:y")),
                ("/sys/fs/cgroup/unified".into(), "inner".into())
            ]
        );
    }
}

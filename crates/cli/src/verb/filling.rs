//! Workloads that fill the file system of a directory: what they would write, and when they may.

use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, StatVfs, StatxAttributes, StatxFlags, statvfs, statx};
use senesce_core::{Bytes, Printable};
use senesce_experiment::plan::{Plan, WorkloadKind};

use crate::{args::AgeArgs, exit::usage};

/// The settings that name a fullness.
const FULLNESS_KEYS: [&str; 2] = ["fill_percent", "fullness_percent"];

/// The share of its file system that a workload fills, in percent. `None` if the workload has a
/// size of its own.
pub fn fill_percent(plan: &Plan) -> Option<f64> {
    let workload = &plan.workload;
    match workload.kind {
        WorkloadKind::Fsfb => Some(workload.fsfb.clone().unwrap_or_default().fill_percent as f64),
        WorkloadKind::Profile => Some(workload.profile.clone().unwrap_or_default().fullness_percent),
        WorkloadKind::Overwrite => workload.overwrite.as_ref()?.fill_percent.map(|percent| percent as f64),
        _ => None,
    }
}

/// Describes what a workload writes that fills the file system of `dir`. `None` if the workload has
/// a size of its own.
///
/// Errors: other files share this file system, and the caller named no fullness; its space cannot
/// be read.
pub fn check_filling(args: &AgeArgs, plan: &Plan, dir: &Path) -> Result<Option<String>> {
    let Some(percent) = fill_percent(plan) else { return Ok(None) };
    let space = statvfs(dir).map_err(std::io::Error::from);
    let space = space.with_context(|| format!("cannot read the space of {}", dir.display()))?;
    let place = describe_place(dir);
    let said = describe_filling(&place, percent, &space);
    let is_named = args.until.unwrap_or_default().fullness.is_some()
        || args.set.iter().any(|set| FULLNESS_KEYS.iter().any(|key| set.name.ends_with(key)));
    if is_named || args.force || place.is_own {
        return Ok(Some(format!("{} {said}", args.workload)));
    }
    let message = format!(
        "{} {said}; {} is no file system of its own, and other files share this space",
        args.workload,
        Printable::new(&dir)
    );
    Err(usage(message, Some("name a fullness with --until fullness=PERCENT%, or repeat with --force")))
}

/// The file system of a directory.
struct Place {
    /// Its mount point.
    root: String,
    /// Whether the directory is the mount point, and not that of the system.
    is_own: bool,
}

fn describe_place(dir: &Path) -> Place {
    let dir = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let root = dir.ancestors().find(|dir| is_mount_point(dir)).unwrap_or(&dir);
    Place { root: Printable::new(&root).to_string(), is_own: root == dir && root != Path::new("/") }
}

/// Whether the kernel reports the directory as the root of a mount. A kernel before Linux 5.8 never
/// does.
fn is_mount_point(dir: &Path) -> bool {
    statx(CWD, dir, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty())
        .is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

fn describe_filling(place: &Place, percent: f64, space: &StatVfs) -> String {
    let capacity = space.f_blocks * space.f_frsize;
    let free = space.f_bavail * space.f_frsize;
    let wanted = (capacity as f64 * percent / 100.0) as u64;
    let most = wanted.saturating_sub(capacity.saturating_sub(free));
    format!(
        "would fill the file system of {} to {percent}%: writes up to {} of its {} of free space",
        place.root,
        Bytes(most),
        Bytes(free)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_counts_what_is_used_already() {
        let mut space = statvfs("/").unwrap();
        (space.f_frsize, space.f_blocks, space.f_bavail) = (1 << 20, 1000, 300);
        let place = Place { root: "/srv".to_owned(), is_own: true };
        let said = describe_filling(&place, 95.0, &space);
        assert_eq!(
            said,
            "would fill the file system of /srv to 95%: writes up to 250.00 MiB of its 300.00 MiB of free space"
        );
        assert!(describe_filling(&place, 50.0, &space).contains("writes up to 0 B of"));
    }

    #[test]
    fn root_of_the_system_is_never_its_own() {
        let place = describe_place(Path::new("/"));
        assert_eq!((place.root.as_str(), place.is_own), ("/", false));
        assert!(describe_place(Path::new("/proc")).is_own);
        assert_eq!(describe_place(Path::new("/proc/self")).root, "/proc");
    }
}

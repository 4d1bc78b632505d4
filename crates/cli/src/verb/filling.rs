//! Describes workloads that fill the file system of a directory, and refuses those that would fill
//! a shared one.

use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, StatVfs, StatxAttributes, StatxFlags, statvfs, statx};
use senesce_core::{Bytes, Printable};
use senesce_experiment::plan::{Edition, Plan, WorkloadKind};

use crate::{args::AgeArgs, exit::usage};

/// The settings that name a fullness.
const FULLNESS_KEYS: [&str; 2] = ["fill_percent", "fullness_percent"];

/// The share of its file system that a workload fills at most, in percent. `None` if the workload
/// has a size of its own.
pub fn fill_percent(plan: &Plan) -> Option<f64> {
    let workload = &plan.workload;
    match workload.kind {
        WorkloadKind::Fsfb => Some(workload.fsfb.clone().unwrap_or_default().fill_percent as f64),
        WorkloadKind::Profile => Some(workload.profile.clone().unwrap_or_default().fullness_percent),
        WorkloadKind::Overwrite => workload.overwrite.as_ref()?.fill_percent.map(|percent| percent as f64),
        WorkloadKind::History if plan.fills_volume() => Some(match workload.edition {
            // Its copies end at a number of them or at a full volume. It frees space only then.
            Edition::FullDiskCode => 100.0,
            _ => workload.fill_percent as f64,
        }),
        _ => None,
    }
}

/// Whether `--until fullness` allows the share that a workload fills. Workloads of plans and
/// histories do not take their fullness from it. The others round it up to a whole percent.
fn allows(fullness: f64, percent: f64) -> bool {
    percent <= (fullness * 100.0).ceil()
}

/// Describes the writes of a workload that fills the file system of `dir`. `None` if the workload
/// has a size of its own.
///
/// Errors: other files share this file system, and the caller named no fullness; the space of the
/// file system cannot be read.
pub fn check_filling(args: &AgeArgs, plan: &Plan, dir: &Path) -> Result<Option<String>> {
    let Some(percent) = fill_percent(plan) else { return Ok(None) };
    let space = statvfs(dir).map_err(std::io::Error::from);
    let space = space.with_context(|| format!("cannot read the space of {}", dir.display()))?;
    let place = describe_place(dir, is_mount_point);
    let said = describe_filling(&place, percent, &space);
    let fullness = args.until.unwrap_or_default().fullness;
    let is_named = fullness.is_some_and(|fullness| allows(fullness, percent))
        || args.set.iter().any(|set| FULLNESS_KEYS.iter().any(|key| set.name.ends_with(key)));
    if is_named || args.force || place.is_own {
        return Ok(Some(format!("{} {said}", args.workload)));
    }
    let message = format!(
        "{} {said}; {} is no file system of its own, and other files share this space",
        args.workload,
        Printable::new(&dir)
    );
    // Naming a lower one again would not help.
    let hint = match fullness {
        None => "name a fullness with --until fullness=PERCENT%, or repeat with --force",
        Some(_) => "this workload fills more than --until fullness: name a higher one, or repeat with --force",
    };
    Err(usage(message, Some(hint)))
}

/// The file system of a directory.
struct Place {
    /// Its mount point, or the directory itself if the kernel does not report one.
    root: String,
    /// Whether the directory is the mount point, and not `/`.
    is_own: bool,
}

/// Without a known mount point (before Linux 5.8, in a chroot) a directory has no file system of
/// its own.
fn describe_place(dir: &Path, is_mount_point: impl Fn(&Path) -> bool) -> Place {
    let dir = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let root = dir.ancestors().find(|dir| is_mount_point(dir));
    let is_own = root == Some(&*dir) && dir != Path::new("/");
    Place { root: Printable::new(&root.unwrap_or(&dir)).to_string(), is_own }
}

/// Whether the kernel reports the directory as the root of a mount. A kernel before Linux 5.8 never
/// does.
fn is_mount_point(dir: &Path) -> bool {
    statx(CWD, dir, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty())
        .is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

fn describe_filling(place: &Place, percent: f64, space: &StatVfs) -> String {
    let capacity = space.f_blocks.saturating_mul(space.f_frsize);
    let free = space.f_bavail.saturating_mul(space.f_frsize);
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
            "would fill the file system of /srv to 95%: writes up to 250 MiB of its 300 MiB of free space"
        );
        assert!(describe_filling(&place, 50.0, &space).contains("writes up to 0 B of"));
    }

    #[test]
    fn root_directory_counts_as_shared() {
        let describe = |dir: &str| describe_place(Path::new(dir), is_mount_point);
        assert_eq!((describe("/").root.as_str(), describe("/").is_own), ("/", false));
        assert!(describe("/proc").is_own);
        assert_eq!(describe("/proc/self").root, "/proc");
    }

    #[test]
    fn directory_without_a_known_mount_point_is_not_its_own() {
        let place = describe_place(Path::new("/proc"), |_| false);
        assert_eq!((place.root.as_str(), place.is_own), ("/proc", false));
    }

    #[test]
    fn lower_fullness_does_not_allow_a_filling() {
        assert!(allows(0.95, 95.0) && allows(0.505, 51.0) && allows(0.29, 29.0));
        assert!(!allows(0.5, 95.0) && !allows(0.99, 100.0));
    }

    #[test]
    fn space_of_a_reported_size_never_overflows() {
        let mut space = statvfs("/").unwrap();
        (space.f_frsize, space.f_blocks, space.f_bavail) = (1 << 20, u64::MAX, u64::MAX);
        let place = Place { root: "/srv".to_owned(), is_own: true };
        assert!(describe_filling(&place, 50.0, &space).contains("to 50%"));
    }
}

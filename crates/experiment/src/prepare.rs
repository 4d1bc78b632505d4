//! Checks that a run makes before its first volume. A dry run makes the same checks.

use std::{io, os::unix::fs::FileTypeExt, path::Path};

use senesce_device::DeviceSpec;
use senesce_store::Role;
use senesce_volume::{Error as VolumeError, FileSystemKind, Host, VirtualDevice};

use crate::{
    Error, World,
    journal::Entry,
    plan::{Backend, CureAt, FileSystemName, Plan, PlanError, VolumePlan},
    sizing::Sizes,
    source::Source,
    volumes::{check_device_sizes, check_devices, check_tracing, image_dir, kind, try_mkfs_words, virtual_device},
};

/// The places and settings of a planned run.
pub(crate) struct Place<'a> {
    /// The plan's path, for messages.
    pub plan: &'a Path,
    /// The directory of images, unless the plan names another one.
    pub volumes: &'a Path,
    /// The directory of clones and synthetic histories.
    pub spool: &'a Path,
    /// The state of the run so far.
    pub entries: &'a [Entry],
    /// Whether a device that is not empty may be formatted.
    pub force: bool,
}

/// The checked result of a plan.
pub(crate) struct Prepared {
    /// The devices to model.
    pub devices: Vec<DeviceSpec>,
    /// The device that the volumes imitate, if they are disks in virtual time.
    pub virtual_device: Option<VirtualDevice>,
    /// The source of the steps.
    pub source: Source,
    /// Sizes of the volumes.
    pub sizes: Sizes,
    /// File systems whose arguments of mkfs were not tried.
    pub untried_mkfs: Vec<FileSystemKind>,
}

/// Refuses a plan that cannot run here, and opens its sources.
///
/// Checks: the devices of models, the profile or log or history, tools and kernel, directories and
/// devices of volumes, their sizes, free space, tracing, and the arguments of mkfs. Errors: the
/// first check that fails. Only root can inspect devices. For other users it checks that a device
/// exists, so that a dry run needs no root.
pub(crate) fn prepare(plan: &Plan, place: &Place<'_>, world: &World) -> Result<Prepared, Error> {
    let host = &*world.host;
    let devices = plan.devices(place.plan)?;
    let virtual_device = virtual_device(plan, place.plan)?;
    check_file_systems(plan, host)?;
    check_cure_tools(plan, host)?;
    check_places(plan, host, place)?;
    if host.is_root() {
        check_tracing(plan)?;
    }
    let source = Source::open(plan, place.spool, &world.owners)?;
    check_checkpoints(plan, source.pulls(plan), place.plan)?;
    check_cure_steps(plan, source.pulls(plan), place.plan)?;
    let sizes = Sizes::plan(plan, &source)?;
    if host.is_root() {
        check_device_sizes(plan, &sizes, host)?;
    }
    check_space(plan, &sizes, host, place)?;
    let untried_mkfs = try_mkfs_words(plan, &sizes, host, place.plan)?;
    Ok(Prepared { devices, virtual_device, source, sizes, untried_mkfs })
}

/// The maximum of checkpoints of an arm. Each one reads every volume, so 10,000 need more than a
/// day on the smallest volumes.
const MAX_CHECKPOINTS: u64 = 10_000;

/// Refuses a plan with too many checkpoints: their list alone could fill the memory.
fn check_checkpoints(plan: &Plan, pulls: u64, path: &Path) -> Result<(), Error> {
    let checkpoints = (pulls / plan.measure.every.max(1)).saturating_add(1);
    if checkpoints <= MAX_CHECKPOINTS {
        return Ok(());
    }
    let problem = format!(
        "{} makes {checkpoints} checkpoints of {pulls} steps; at most {MAX_CHECKPOINTS} are possible: raise it, or make fewer steps",
        plan.measure.every
    );
    Err(PlanError::Contradiction { path: path.to_owned(), key: "measure.every".into(), problem }.into())
}

/// Refuses a plan if none of its file systems can be made, because the tool is missing or the
/// kernel does not know it. If only some of them cannot be made, their arms fail and the others
/// run.
fn check_file_systems(plan: &Plan, host: &dyn Host) -> Result<(), Error> {
    let formatted = plan.file_systems.iter().filter(|fs| fs.kind != FileSystemName::Host);
    let problems: Vec<_> = formatted.map(|fs| check_file_system(kind(fs.kind), host)).collect();
    if problems.iter().any(Result::is_ok) {
        return Ok(());
    }
    problems.into_iter().find(Result::is_err).unwrap_or(Ok(()))
}

fn check_file_system(kind: FileSystemKind, host: &dyn Host) -> Result<(), Error> {
    if kind.is_engine() {
        return Ok(());
    }
    if host.find_tool(kind.mkfs_tool()).is_none() {
        let (tool, package) = (kind.mkfs_tool().to_owned(), kind.debian_package());
        return Err(VolumeError::ToolMissing { tool, package }.into());
    }
    if !host.kernel_knows(kind)? {
        return Err(VolumeError::FileSystemNotInKernel { file_system: kind }.into());
    }
    Ok(())
}

/// Refuses a cure whose tool is not installed.
fn check_cure_tools(plan: &Plan, host: &dyn Host) -> Result<(), Error> {
    let cures = plan.file_systems.iter().filter_map(|fs| fs.cure.as_ref());
    let missing = cures.filter(|cure| cure.by.program().is_some_and(|program| host.find_tool(program).is_none()));
    missing.take(1).try_for_each(|cure| {
        let (tool, package) = (cure.by.name().to_owned(), cure.by.debian_package());
        Err(VolumeError::ToolMissing { tool, package }.into())
    })
}

/// Refuses a cure after a step that the plan does not reach, and too many cures.
fn check_cure_steps(plan: &Plan, pulls: u64, path: &Path) -> Result<(), Error> {
    for cure in plan.file_systems.iter().filter_map(|fs| fs.cure.as_ref()) {
        let problem = match (cure.at, cure.every) {
            (Some(CureAt::Step(at)), _) if at > pulls => ("at", format!("is {at}, and the plan has {pulls} steps")),
            (_, Some(every)) if every > pulls => ("every", format!("is {every}, and the plan has {pulls} steps")),
            (_, Some(every)) if pulls / every > MAX_CHECKPOINTS => {
                ("every", format!("is {every}: more than {MAX_CHECKPOINTS} cures of {pulls} steps"))
            }
            _ => continue,
        };
        let (key, problem) = (format!("file_system.cure.{}", problem.0), problem.1);
        return Err(PlanError::Contradiction { path: path.to_owned(), key, problem }.into());
    }
    Ok(())
}

/// Refuses directories and devices that do not exist, and devices that must not be formatted.
fn check_places(plan: &Plan, host: &dyn Host, place: &Place<'_>) -> Result<(), Error> {
    for &role in plan.roles() {
        let VolumePlan::Place(named) = plan.volume(role) else { continue };
        let key = format!("volumes.{}", role.name());
        if let Some(directory) = &named.directory {
            check_directory(place.plan, &key, Path::new(directory))?;
        }
        if let Some(device) = &named.device {
            let wrong = |error| cannot_use(place.plan, &key, device, &error);
            let found = std::fs::metadata(device).map_err(wrong)?;
            if !found.file_type().is_block_device() {
                return Err(VolumeError::NotABlockDevice { path: device.into() }.into());
            }
        }
    }
    match host.is_root() {
        true => check_devices(plan, host, place.entries, place.force),
        false => Ok(()),
    }
}

fn check_directory(plan: &Path, key: &str, directory: &Path) -> Result<(), Error> {
    let wrong = |error| cannot_use(plan, key, &directory.to_string_lossy(), &error);
    match std::fs::metadata(directory).map_err(wrong)?.is_dir() {
        true => Ok(()),
        false => Err(wrong(io::ErrorKind::NotADirectory.into())),
    }
}

fn cannot_use(plan: &Path, key: &str, named: &str, error: &io::Error) -> Error {
    let problem = format!("names {named:?}, which cannot be used: {error}");
    PlanError::Contradiction { path: plan.to_owned(), key: key.to_owned(), problem }.into()
}

/// Refuses a plan whose images cannot be stored in the plan's directory, or do not fit there. A
/// resumed run already has images there. Its volumes are checked one by one.
fn check_space(plan: &Plan, sizes: &Sizes, host: &dyn Host, place: &Place<'_>) -> Result<(), Error> {
    let is_image = |role: &Role| matches!(plan.volume(*role), VolumePlan::Size(_));
    let needed = plan.roles().iter().copied().filter(is_image).map(|role| sizes.needed(role)).max();
    let is_new = place.entries.iter().all(|entry| matches!(entry, Entry::RunStarted { .. }));
    let Some(needed) = needed.filter(|_| is_new) else { return Ok(()) };
    let dir = image_dir(plan, place.volumes);
    if let Some(named) = &plan.volumes.dir {
        check_directory(place.plan, "volumes.dir", Path::new(named))?;
    }
    // The directory of a dry run does not exist.
    let dir = dir.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."));
    match (plan.volumes.backend, host.is_in_memory(dir)?) {
        (Backend::Memory, false) => return Err(VolumeError::NotInMemory { dir: dir.to_owned() }.into()),
        // The pages of a tmpfs are the file itself. A disk in virtual time has its own cache
        // instead.
        (Backend::Image, true) if plan.volumes.device.is_none() => {
            return Err(VolumeError::InMemory { dir: dir.to_owned() }.into());
        }
        _ => {}
    }
    let available = host.free_bytes(dir)?;
    if available < needed {
        return Err(VolumeError::NotEnoughSpace { dir: dir.to_owned(), available, needed }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cure_after_the_last_step_is_refused() {
        for (cure, pulls, key) in [
            ("at = 40", 40, None),
            ("at = 41", 40, Some("file_system.cure.at")),
            ("every = 40", 40, None),
            ("every = 41", 40, Some("file_system.cure.every")),
            ("every = 1", u64::MAX, Some("file_system.cure.every")),
        ] {
            let text = format!(
                "format = \"senesce-plan/1\"\nname = \"t\"\n[history]\nrepo = \"/r\"\n[[file_system]]\n\
                 kind = \"ext4\"\ncure = {{ by = \"senesce\", {cure} }}\n"
            );
            let plan = Plan::parse(Path::new("p"), &text).unwrap();
            let said = check_cure_steps(&plan, pulls, Path::new("p")).err().map(|error| error.to_string());
            assert_eq!(said.is_some(), key.is_some(), "{cure}: {said:?}");
            assert!(key.is_none_or(|key| said.unwrap().contains(&format!(": {key}: "))), "{cure}");
        }
    }

    #[test]
    fn more_checkpoints_than_memory_are_refused() {
        let text = "format = \"senesce-plan/1\"\nname = \"t\"\n[history]\nrepo = \"/r\"\n[measure]\nevery = 10\n\
                    [[file_system]]\nkind = \"ext4\"\n";
        let plan = Plan::parse(Path::new("p"), text).unwrap();
        for (pulls, fits) in [(0, true), (99_999, true), (100_000, false), (u64::MAX, false)] {
            let checked = check_checkpoints(&plan, pulls, Path::new("p"));
            assert_eq!(checked.is_ok(), fits, "{pulls}: {checked:?}");
        }
    }
}

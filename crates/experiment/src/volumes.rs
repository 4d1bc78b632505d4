//! Makes the volumes of a plan with the crate `volume`.

use std::path::{Path, PathBuf};

use senesce_core::{Bytes, Seed};
use senesce_probe::collect::{check_block_tracing, clean_stale_trace_instances, collect_trace_device};
use senesce_store::Role;
use senesce_volume::{
    Backend, Custodian, FileSystemKind, Host, MkfsTrial, Pace, SCAN_BYTES, Slot, Uuid, VirtualDevice, Volume,
    VolumeSpec, check_device, check_mkfs_words, check_room, check_size, parse_mount_options, read_superblock,
    settled_mount_option,
};

use crate::{
    Error,
    arm::ArmContext,
    journal::Entry,
    plan::{self, Arm, FileSystem, FileSystemName, Plan, PlanError, VolumePlan},
    sizing::Sizes,
};

/// The volume of a role, and its place in the run. `instance` distinguishes the unaged twins of an
/// arm.
pub(crate) fn spec_and_slot(context: &ArmContext<'_>, role: Role, instance: u64) -> (VolumeSpec, Slot) {
    let mut spec = arm_spec(context.arm, backend(context, role));
    let kind = spec.file_system;
    spec.read_ahead_kib = context.plan.volumes.read_ahead_kib;
    spec.settles = context.plan.workload.settle().is_some();
    if spec.settles {
        let parts = [spec.mount_options.as_str(), settled_mount_option(kind)];
        spec.mount_options = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",");
    }
    spec.force = context.force || carries_our_mark(&*context.world.host, context.journal.entries(), &spec.backend);
    let name = format!("{}-{}", context.arm.name, role.name());
    let seed = context.plan.seed.derive(&format!("volume {name} {instance}"));
    spec.hash_seed = Some(hash_seed(context.plan.seed, role.name()));
    let slot = Slot {
        name,
        uuid: free_uuid(seed, kind),
        mount_dir: context.paths.volumes(),
        needed: context.sizes.needed(role),
    };
    (spec, slot)
}

/// The hash seed of the volumes of one use in a plan, such as a role. The arms share it: else two
/// arms would have directories in different orders, and different costs. A fresh copy has another
/// one than the volume that it is copied from, as any copy to a new file system has. Else its files
/// would be in the order in which they are read.
pub(crate) fn hash_seed(seed: Seed, used_as: &str) -> Uuid {
    Uuid::from_seed(seed.derive(&format!("hash of directories, {used_as}")))
}

/// The arm's file system with its options, on a backend.
fn arm_spec(arm: &Arm, backend: Backend) -> VolumeSpec {
    let file_system = &arm.file_system;
    let mut spec = VolumeSpec::new(backend, kind(file_system.kind));
    spec.mkfs_options.clone_from(&file_system.mkfs);
    if let Some(options) = &file_system.mount {
        spec.mount_options.clone_from(options);
    }
    if file_system.gardening != plan::GardeningName::Off {
        spec.mount_options.push_str(&format!(",gardening={}", file_system.gardening.as_str()));
    }
    spec
}

/// Lets mkfs check its arguments in the plan, for the volumes of all arms. Only root can read the
/// size of a device, so for other users only images are tried. Returns the file systems whose mkfs
/// cannot be tried.
///
/// Errors: mkfs refuses them. `path` is the plan's, for the message.
pub(crate) fn try_mkfs_words(
    plan: &Plan,
    sizes: &Sizes,
    host: &dyn Host,
    path: &Path,
) -> Result<Vec<FileSystemKind>, Error> {
    let mut untried = Vec::new();
    for arm in plan.arms().iter().filter(|arm| !arm.file_system.mkfs.is_empty()) {
        for &role in plan.roles() {
            let size = match plan.volume(role) {
                VolumePlan::Size(_) => sizes.size(role),
                VolumePlan::Place(plan::Place { device: Some(device), .. }) if host.is_root() => {
                    host.device_size(Path::new(device))?
                }
                _ => continue,
            };
            let spec = arm_spec(arm, Backend::Image { dir: PathBuf::new(), size, memory: false });
            match senesce_volume::try_mkfs(host, &spec, size)? {
                // The arm of a missing tool fails in the run, which says so.
                MkfsTrial::Accepted | MkfsTrial::ToolMissing => {}
                MkfsTrial::NotTried if untried.contains(&spec.file_system) => {}
                MkfsTrial::NotTried => untried.push(spec.file_system),
                MkfsTrial::Refused(said) => {
                    let tool = spec.file_system.mkfs_tool();
                    let words = spec.mkfs_options.join(" ");
                    let role = role.name();
                    let problem =
                        format!("{tool} refuses `{words}` for the {role} volume of {} ({size}): {said}", arm.name);
                    let (path, key) = (path.to_owned(), "file_system.mkfs".to_owned());
                    return Err(PlanError::Contradiction { path, key, problem }.into());
                }
            }
        }
    }
    Ok(untried)
}

/// Refuses words for mkfs and mount that could affect anything but the volume. The error is the key
/// and the problem.
pub(crate) fn check_words(file_system: &FileSystem) -> Result<(), (&'static str, String)> {
    if file_system.kind == FileSystemName::Host {
        return Ok(());
    }
    let kind = kind(file_system.kind);
    let wrong = |key: &'static str| {
        move |error: senesce_volume::Error| {
            let hint = error.hint().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
            (key, format!("{error}{hint}"))
        }
    };
    check_mkfs_words(kind, &file_system.mkfs).map_err(wrong("file_system.mkfs"))?;
    // The plan has its own list of options for engines.
    let options = file_system.mount.as_deref().filter(|_| !kind.is_engine()).unwrap_or_default();
    parse_mount_options(options).map(drop).map_err(wrong("file_system.mount"))
}

/// Refuses, before any work, images that are too small for their file system or for the first
/// state.
pub(crate) fn check_images(plan: &Plan, sizes: &Sizes) -> Result<(), Error> {
    check_each_volume(plan, |arm, role| {
        let VolumePlan::Size(_) = plan.volume(role) else { return Ok(()) };
        let (dir, size, memory) = (PathBuf::new(), sizes.size(role), false);
        let spec = arm_spec(arm, Backend::Image { dir, size, memory });
        check_size(&spec, Path::new("it"), size, held(plan, sizes, role))
    })
}

/// As [`check_images`], for named devices. Their sizes come from the host.
pub(crate) fn check_device_sizes(plan: &Plan, sizes: &Sizes, host: &dyn Host) -> Result<(), Error> {
    check_each_volume(plan, |arm, role| {
        let VolumePlan::Place(plan::Place { device: Some(device), .. }) = plan.volume(role) else { return Ok(()) };
        let spec = arm_spec(arm, Backend::Device { path: device.into(), size: None });
        check_room(host, &spec, held(plan, sizes, role))
    })
}

/// The bytes that a volume must hold. The twin of a replayed log never has the log's peak.
fn held(plan: &Plan, sizes: &Sizes, role: Role) -> Bytes {
    let is_spared = role == Role::Unaged && plan.workload.kind == plan::WorkloadKind::Replay;
    Bytes(if is_spared { 0 } else { sizes.content_bytes })
}

fn check_each_volume(
    plan: &Plan,
    check: impl Fn(&Arm, Role) -> Result<(), senesce_volume::Error>,
) -> Result<(), Error> {
    for arm in plan.arms() {
        for &role in plan.roles() {
            let place = |source| Error::PlannedVolume { role: role.name(), arm: arm.name.clone(), source };
            check(&arm, role).map_err(place)?;
        }
    }
    Ok(())
}

/// The UUID that follows from the seed, or the next one if another run of the same plan has it
/// mounted. Btrfs refuses two file systems of one UUID.
fn free_uuid(seed: Seed, kind: FileSystemKind) -> Uuid {
    let is_mounted =
        |uuid: &Uuid| kind == FileSystemKind::Btrfs && Path::new("/sys/fs/btrfs").join(uuid.to_string()).exists();
    let mut uuid = Uuid::from_seed(seed);
    let mut next = seed;
    while is_mounted(&uuid) {
        next = next.derive("another identity");
        uuid = Uuid::from_seed(next);
    }
    uuid
}

/// Makes the volume of a role. The journal has the UUID for a named device before the device is
/// formatted.
///
/// mkfs.btrfs refuses a UUID that it finds on any device. A loop device of the previous process may
/// be visible for a moment after its release. Then the next UUID is used.
pub(crate) fn create(context: &mut ArmContext<'_>, role: Role, instance: u64) -> Result<Volume, Error> {
    const TRIES: u32 = 10;
    let (spec, mut slot) = spec_and_slot(context, role, instance);
    let mut tried = 0;
    loop {
        if let Backend::Device { path, .. } = &spec.backend {
            let device = path.to_string_lossy().into_owned();
            let formatting = Entry::Formatting { device, uuid: slot.uuid.to_string() };
            context.journal.append(formatting).map_err(Error::io("write", context.paths.journal()))?;
        }
        tried += 1;
        match Volume::create(context.custodian, &spec, &slot) {
            Err(error) if error.is_taken_uuid() && tried < TRIES => {
                let seed = context.plan.seed.derive(&format!("volume {} {instance} another {tried}", slot.name));
                slot.uuid = free_uuid(seed, spec.file_system);
            }
            result => return Ok(result?),
        }
    }
}

/// Whether a named device has a file system that this run made, by its UUID. Only such a device may
/// be formatted again without `force`.
fn carries_our_mark(host: &dyn Host, entries: &[Entry], backend: &Backend) -> bool {
    let Backend::Device { path, .. } = backend else { return false };
    let start = host.read_device(path, 0, SCAN_BYTES);
    let Some(found) = start.ok().and_then(|start| read_superblock(&start)) else { return false };
    let (device, uuid) = (path.to_string_lossy(), found.uuid.to_string());
    entries.iter().any(|entry| matches!(entry, Entry::Formatting { device: d, uuid: u } if *d == device && *u == uuid))
}

/// Refuses, before any work, a plan that names a device in use, or a device with data that this run
/// did not write.
pub(crate) fn check_devices(plan: &Plan, host: &dyn Host, entries: &[Entry], force: bool) -> Result<(), Error> {
    for &role in plan.roles() {
        let VolumePlan::Place(place) = plan.volume(role) else { continue };
        let Some(device) = &place.device else { continue };
        let backend = Backend::Device { path: device.into(), size: None };
        check_device(host, Path::new(device), force || carries_our_mark(host, entries, &backend))?;
    }
    Ok(())
}

/// Refuses, before any work, a plan whose traces cannot be recorded: no right to trace, or a named
/// device that passes its requests to other devices. Removes the instances of killed traces. Disks
/// in virtual time have their own logs.
pub(crate) fn check_tracing(plan: &Plan) -> Result<(), Error> {
    if !plan.measure.trace || plan.volumes.device.is_some() {
        return Ok(());
    }
    let refuse = |source| Error::NoTracing { source };
    clean_stale_trace_instances().map_err(refuse)?;
    check_block_tracing().map_err(refuse)?;
    for &role in plan.roles() {
        if let VolumePlan::Place(plan::Place { device: Some(device), .. }) = plan.volume(role) {
            collect_trace_device(Path::new(device)).map_err(refuse)?;
        }
    }
    Ok(())
}

/// The device that the volumes imitate, if they are disks in virtual time.
///
/// Errors: no such device, or its description cannot be read.
pub(crate) fn virtual_device(plan: &Plan, path: &Path) -> Result<Option<VirtualDevice>, Error> {
    let Some(spec) = plan.virtual_device(path)? else { return Ok(None) };
    // The complete description, so that every volume of the run has the same device even if the
    // file changes.
    let device = spec.render().map_err(|error| Error::Unverified {
        what: "the description of volumes.device".into(),
        problem: error.to_string(),
    })?;
    let pace = if plan.volumes.real_time { Pace::RealTime } else { Pace::Device };
    Ok(Some(VirtualDevice { device, pace }))
}

/// The directory of volumes in memory.
pub(crate) const MEMORY_DIR: &str = "/dev/shm";

/// The directory of the plan's images. `volumes` is that of the run.
pub(crate) fn image_dir(plan: &Plan, volumes: &Path) -> PathBuf {
    let memory = plan.volumes.backend == plan::Backend::Memory;
    let default = if memory { Path::new(MEMORY_DIR) } else { volumes };
    plan.volumes.dir.as_ref().map_or(default, Path::new).to_owned()
}

fn backend(context: &ArmContext<'_>, role: Role) -> Backend {
    let plan = context.plan;
    match plan.volume(role) {
        VolumePlan::Size(_) => {
            let memory = plan.volumes.backend == plan::Backend::Memory;
            let dir = image_dir(plan, &context.paths.volumes());
            let size = context.sizes.size(role);
            match context.virtual_device {
                Some(device) => Backend::Virtual { dir, size, memory, device: device.clone() },
                None => Backend::Image { dir, size, memory },
            }
        }
        VolumePlan::Place(place) => match (&place.device, &place.directory) {
            (Some(device), _) => Backend::Device { path: device.into(), size: None },
            (None, Some(directory)) => Backend::Directory { path: directory.into() },
            (None, None) => unreachable!("a plan is checked when it is read"),
        },
        VolumePlan::Absent(_) => unreachable!("a role that is left out is no role"),
    }
}

/// Makes a volume. If the UUID of the slot is in use, which Btrfs refuses, uses another one.
///
/// Errors: as [`Volume::create`].
pub fn create_untaken(
    custodian: &Custodian,
    spec: &VolumeSpec,
    mut slot: Slot,
) -> Result<Volume, senesce_volume::Error> {
    const TRIES: u64 = 10;
    for tried in 1..TRIES {
        match Volume::create(custodian, spec, &slot) {
            Err(error) if error.is_taken_uuid() => {
                slot.uuid = Uuid::from_seed(Seed(tried).derive(&slot.uuid.to_string()));
            }
            result => return result,
        }
    }
    Volume::create(custodian, spec, &slot)
}

/// Converts to the type of the crate `volume`.
pub fn kind(name: FileSystemName) -> FileSystemKind {
    match name {
        FileSystemName::Ext4 => FileSystemKind::Ext4,
        FileSystemName::Xfs => FileSystemKind::Xfs,
        FileSystemName::Btrfs => FileSystemKind::Btrfs,
        FileSystemName::F2fs => FileSystemKind::F2fs,
        FileSystemName::Nilfs2 => FileSystemKind::Nilfs2,
        FileSystemName::Jfs => FileSystemKind::Jfs,
        FileSystemName::Reiserfs => FileSystemKind::Reiserfs,
        FileSystemName::Garden => FileSystemKind::Garden,
        FileSystemName::Evergreen => FileSystemKind::Evergreen,
        // A directory is neither formatted nor mounted, so this value is not used.
        FileSystemName::Host => FileSystemKind::Ext4,
    }
}

/// The smallest volume that every file system of the plan can be made on.
pub(crate) fn minimum_size(plan: &Plan) -> Bytes {
    plan.file_systems.iter().map(|fs| kind(fs.kind).minimum_size()).max().unwrap_or_default()
}

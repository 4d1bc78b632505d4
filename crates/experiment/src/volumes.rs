//! From a plan's words to the volumes that the room `volume` makes.

use std::path::PathBuf;

use senesce_core::Bytes;
use senesce_store::Role;
use senesce_volume::{Backend, FileSystemKind, Slot, Uuid, VolumeSpec};

use crate::{
    arm::ArmContext,
    plan::{self, FileSystemName, Plan, VolumePlan},
    sizing::Sizes,
};

/// The volume of a role, and its place in the run. `instance` tells the many unaged twins of an arm apart.
pub(crate) fn spec_and_slot(context: &ArmContext<'_>, role: Role, instance: u64) -> (VolumeSpec, Slot) {
    let file_system = &context.arm.file_system;
    let kind = kind(file_system.kind);
    let mut spec = VolumeSpec::new(backend(context.plan, context.sizes, role, context.paths.volumes()), kind);
    spec.mkfs_options.clone_from(&file_system.mkfs);
    if let Some(options) = &file_system.mount {
        spec.mount_options.clone_from(options);
    }
    spec.read_ahead_kib = context.plan.volumes.read_ahead_kib;
    // Once the run has made it, a named device carries our own signature: the twins and a begun-again arm may format it.
    let ours =
        context.journal.entries().iter().any(|entry| matches!(entry, crate::journal::Entry::CheckpointDone { .. }));
    spec.force = context.force || (ours && matches!(spec.backend, Backend::Device { .. }));
    let name = format!("{}-{}", context.arm.name, role.name());
    let seed = context.plan.seed.derive(&format!("volume {name} {instance}"));
    let slot = Slot {
        name,
        uuid: Uuid::from_seed(seed),
        mount_dir: context.paths.volumes(),
        needed: context.sizes.needed(role),
    };
    (spec, slot)
}

fn backend(plan: &Plan, sizes: &Sizes, role: Role, run_volumes: PathBuf) -> Backend {
    match volume_plan(plan, role) {
        VolumePlan::Size(_) => {
            let memory = plan.volumes.backend == plan::Backend::Memory;
            let default = if memory { PathBuf::from("/dev/shm") } else { run_volumes };
            let dir = plan.volumes.dir.as_ref().map_or(default, PathBuf::from);
            Backend::Image { dir, size: sizes.size(role), memory }
        }
        VolumePlan::Place(place) => match (&place.device, &place.directory) {
            (Some(device), _) => Backend::Device { path: device.into(), size: None },
            (None, Some(directory)) => Backend::Directory { path: directory.into() },
            (None, None) => unreachable!("a plan is checked when it is read"),
        },
    }
}

/// What the plan says of a role's volume.
pub(crate) fn volume_plan(plan: &Plan, role: Role) -> &VolumePlan {
    match role {
        Role::Full => &plan.volumes.full,
        Role::Empty => &plan.volumes.empty,
        Role::Unaged => &plan.volumes.unaged,
    }
}

/// The file system in the words of the room `volume`.
pub fn kind(name: FileSystemName) -> FileSystemKind {
    match name {
        FileSystemName::Ext4 => FileSystemKind::Ext4,
        FileSystemName::Xfs => FileSystemKind::Xfs,
        FileSystemName::Btrfs => FileSystemKind::Btrfs,
    }
}

/// The smallest volume that every file system of the plan can be made on.
pub(crate) fn minimum_size(plan: &Plan) -> Bytes {
    plan.file_systems.iter().map(|fs| kind(fs.kind).minimum_size()).max().unwrap_or_default()
}

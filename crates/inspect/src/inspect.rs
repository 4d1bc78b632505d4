//! The inspection: reads the entries of a tree in one of three ways, and hands all to the same
//! pass.

use std::path::{Path, PathBuf};

use senesce_core::{Clock, Space};
use senesce_device::{DeviceSpec, ReadExperiment, compute_bandwidth_curve, compute_natural_transfer_size};
use senesce_probe::collect::{collect_space, collect_survey};
use senesce_volume::{FileSystemKind, Host, ReadOnlyMount};

use crate::{
    Error, Inspection,
    adder::Adder,
    drives::Modelled,
    figures::TargetFigures,
    finish::finish,
    free::{self, Circumstances},
    gaps::{Mounted, Stale, past_mount},
    judge::Judge,
    metadata::MetadataReader,
    offline::read_offline,
    target::{MountedTarget, Target},
};

/// The options of an inspection.
pub struct InspectOptions<'a> {
    /// The devices to model, at least one. The first one ranks files and directories by loss.
    pub devices: Vec<DeviceSpec>,
    /// The device of the verdict. Its models are the first of `devices`.
    pub judge: Judge,
    /// The number of threads that query the kernel or scan the device.
    pub threads: usize,
    /// The readahead to model, KiB. The default is the one of the kernel, the same for mounts,
    /// devices and images.
    pub read_ahead_kib: Option<u32>,
    /// The binary logarithm of the cells on each side of the map.
    pub map_order: u32,
    /// The number of the worst files, and of the worst directories, to list.
    pub top: usize,
    /// Receives the number of entries from time to time. Returns `false` to stop the inspection.
    pub progress: &'a mut dyn FnMut(u64) -> bool,
}

/// The default readahead of the kernel, KiB.
pub const DEFAULT_READ_AHEAD_KIB: u32 = 128;
/// The default readahead of Btrfs, KiB, whatever the device has.
const DEFAULT_BTRFS_READ_AHEAD_KIB: u32 = 4096;

/// Entries between two reports of progress.
pub(crate) const PROGRESS_EVERY: u64 = 1024;

/// Inspects a target. Causes no write to it.
///
/// Errors: the target cannot be listed or mounted; the kernel does not report the places of its
/// files; an ext4 is damaged although no process writes it; the caller stopped the inspection. The
/// warnings count single entries that cannot be read. Cost: for a mount, one open, `statx` and
/// FIEMAP for each entry, and about 100 bytes of memory. For an ext4 on its device see
/// [`crate::Target::Ext4`].
pub fn inspect(
    target: &Target,
    options: InspectOptions<'_>,
    host: &dyn Host,
    clock: &dyn Clock,
) -> Result<Inspection, Error> {
    match target {
        Target::Mounted(mounted) => inspect_mounted(mounted, (None, None), options, host, clock),
        Target::Ext4 { path, mounted } => inspect_offline(path, mounted.as_ref(), options, host, clock),
        Target::Unmounted { path, file_system } => {
            let found = crate::source::examine(path, *file_system, host)?;
            let mount = ReadOnlyMount::open(path, *file_system).map_err(|error| found.refused(error))?;
            let mounted = MountedTarget {
                root: mount.root().to_owned(),
                mount_point: mount.root().to_owned(),
                file_system: *file_system,
                device: Ok(path.clone()),
                options: mount.options().to_owned(),
                warnings: found.stale.and_then(Stale::warning).map(str::to_owned).into_iter().collect(),
            };
            inspect_mounted(&mounted, (Some(path), found.stale), options, host, clock)
        }
    }
}

/// Inspects through a mount. `shown` is the path to show if the inspection itself made the mount,
/// and `stale` is why the last changes are missing in that mount.
fn inspect_mounted(
    target: &MountedTarget,
    (shown, stale): (Option<&PathBuf>, Option<Stale>),
    options: InspectOptions<'_>,
    host: &dyn Host,
    clock: &dyn Clock,
) -> Result<Inspection, Error> {
    let MountedTarget { root, mount_point, file_system, .. } = target;
    let space = rustix::fs::statvfs(mount_point)
        .map_err(|errno| Error::io("read the free space of", mount_point)(errno.into()))?;
    let capacity_bytes = space.f_blocks * space.f_frsize;
    let device = target.device.as_ref().ok();
    let figures = TargetFigures {
        path: shown.unwrap_or(root).display().to_string(),
        file_system: file_system.name().to_owned(),
        device: device.filter(|_| shown.is_none()).map(|device| device.display().to_string()),
        read: match shown {
            None => "through its mount".to_owned(),
            Some(_) if senesce_volume::is_guest() => {
                "mounted read-only in a guest kernel for the inspection".to_owned()
            }
            Some(_) => "mounted read-only for the inspection".to_owned(),
        },
        mount_options: Some(target.options.clone()),
        mount_point: shown.is_none().then(|| mount_point.display().to_string()),
        capacity_bytes,
        used_bytes: capacity_bytes - space.f_bfree * space.f_frsize,
        read_ahead_kib: options.read_ahead_kib.unwrap_or(match file_system {
            FileSystemKind::Btrfs => DEFAULT_BTRFS_READ_AHEAD_KIB,
            _ => DEFAULT_READ_AHEAD_KIB,
        }),
        read_ahead_asked_for: options.read_ahead_kib.is_some(),
        device_read_ahead_kib: device.and_then(|device| host.read_ahead(device).ok()),
        inspected_unix_seconds: clock.unix_seconds(),
        kernel: kernel(),
    };
    let volume_bytes = device.and_then(|device| length_bytes(device, host)).unwrap_or(capacity_bytes);
    let metadata = match &target.device {
        Ok(device) => MetadataReader::new(*file_system, Some(device), root, options.threads),
        Err(problem) => MetadataReader::told(problem),
    };
    let natural_transfer_bytes = natural_transfer_bytes(&options.devices);
    let mut adder = Adder::new(
        collect_space(root)?,
        Modelled::one(&options.devices),
        figures.read_ahead_kib,
        (volume_bytes, options.map_order),
        natural_transfer_bytes,
        metadata,
    )?;
    let (progress, threads) = (options.progress, options.threads);
    let mut stopped = false;
    let mut entries = 0u64;
    let survey = collect_survey(root, threads, &mut |entry| {
        adder.add(entry);
        entries += 1;
        stopped = entries.is_multiple_of(PROGRESS_EVERY) && !progress(entries);
        !stopped
    })?;
    if stopped {
        return Err(Error::Stopped);
    }
    // The other file systems make inodes as long as there is space.
    let has_fixed_inodes = *file_system == FileSystemKind::Ext4;
    let circumstances = Circumstances {
        capacity_bytes,
        inodes: if has_fixed_inodes { (space.f_ffree, space.f_files) } else { (0, 0) },
        natural_transfer_bytes,
    };
    let free = free::collect_mounted(*file_system, mount_point, &circumstances);
    let warnings = (target.warnings.clone(), stale);
    finish(adder, figures, *file_system == FileSystemKind::Ext4, &survey, free, warnings, (options.judge, options.top))
}

/// Inspects an ext4 straight from its device. `mounted` says where and how it is mounted, if it is.
fn inspect_offline(
    path: &Path,
    mounted: Option<&Mounted>,
    options: InspectOptions<'_>,
    host: &dyn Host,
    clock: &dyn Clock,
) -> Result<Inspection, Error> {
    let is_device = matches!(host.device_number(path), Ok(Some(_)));
    let read_ahead_kib = options.read_ahead_kib.unwrap_or(DEFAULT_READ_AHEAD_KIB);
    let (progress, threads) = (options.progress, options.threads);
    let (offline, metadata) = read_offline(path, threads, progress)?;
    let mut warnings: Vec<String> = Vec::new();
    warnings.extend(mounted.map(|mounted| past_mount(path, mounted)));
    let stale = mounted.filter(|mounted| mounted.is_writable).map(|_| Stale::MountedForWriting);
    warnings.extend(offline.warnings());
    let superblock = offline.fs.superblock().clone();
    let cluster_bytes = superblock.block_bytes * superblock.cluster_blocks;
    // Like `statfs`: without the structures of the file system itself.
    let capacity_bytes = (superblock.blocks * superblock.block_bytes)
        .saturating_sub(superblock.overhead_clusters.saturating_mul(cluster_bytes));
    let natural_transfer_bytes = natural_transfer_bytes(&options.devices);
    let circumstances = Circumstances {
        capacity_bytes,
        inodes: (u64::from(superblock.free_inodes), u64::from(superblock.inodes)),
        natural_transfer_bytes,
    };
    let free = free::collect_offline(&offline.fs, &circumstances).map(|(free, said)| {
        warnings.extend(said.into_iter().filter(|said| !warnings.contains(said)).collect::<Vec<_>>());
        free
    });
    let free_bytes =
        free.as_ref().map_or(superblock.free_blocks * superblock.block_bytes, |free| free.figures.figures.bytes);
    let figures = TargetFigures {
        path: path.display().to_string(),
        file_system: FileSystemKind::Ext4.name().to_owned(),
        device: is_device.then(|| path.display().to_string()),
        read: if is_device { "straight from the device" } else { "straight from the image" }.to_owned(),
        mount_options: None,
        mount_point: None,
        capacity_bytes,
        used_bytes: capacity_bytes.saturating_sub(free_bytes),
        read_ahead_kib,
        read_ahead_asked_for: options.read_ahead_kib.is_some(),
        device_read_ahead_kib: is_device.then(|| host.read_ahead(path).ok()).flatten(),
        inspected_unix_seconds: clock.unix_seconds(),
        kernel: kernel(),
    };
    let volume_bytes = length_bytes(path, host).unwrap_or(capacity_bytes);
    let mut adder = Adder::new(
        Space::Device,
        Modelled::one(&options.devices),
        read_ahead_kib,
        (volume_bytes, options.map_order),
        natural_transfer_bytes,
        MetadataReader::of(Box::new(metadata), None),
    )?;
    let mut stopped = false;
    let mut entries = 0u64;
    let survey = offline.survey(&mut |entry| {
        adder.add(entry);
        entries += 1;
        stopped = entries.is_multiple_of(PROGRESS_EVERY) && !progress(entries);
        !stopped
    });
    if stopped {
        return Err(Error::Stopped);
    }
    finish(adder, figures, true, &survey, free, (warnings, stale), (options.judge, options.top))
}

/// The length of a device or image.
fn length_bytes(path: &Path, host: &dyn Host) -> Option<u64> {
    match host.device_number(path) {
        Ok(Some(_)) => host.device_size(path).ok().map(|bytes| bytes.0),
        _ => std::fs::metadata(path).ok().map(|metadata| metadata.len()),
    }
}

pub(crate) fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// The natural transfer size of the first device: the smallest read that reaches nine tenths of its
/// peak bandwidth. `None` if the model cannot compute it.
pub(crate) fn natural_transfer_bytes(devices: &[DeviceSpec]) -> Option<u64> {
    /// From a block to 64 MiB, in powers of two.
    const POWERS: std::ops::RangeInclusive<u32> = 12..=26;
    const READS: u32 = 100;
    let spec = devices.first()?;
    let experiment = ReadExperiment { reads: READS, ..ReadExperiment::whole(spec, senesce_core::Seed(1)) };
    let curve = compute_bandwidth_curve(spec, POWERS.map(|power| 1u64 << power), &experiment).ok()?;
    compute_natural_transfer_size(&curve, 0.9).ok()
}

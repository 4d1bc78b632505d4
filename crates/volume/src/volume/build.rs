//! The steps from a specification to a mounted volume. Each step is verified.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Duration,
};

use senesce_core::Bytes;
use senesce_vdisk::{BackingSpec, Footprint, ServeConfig};

use super::lifecycle::{EngineMount, MkfsRecord, Place, Volume};
use crate::{
    Backend, Custodian, EngineConfig, EngineServer, EngineSource, Error, FileId, FileSystemKind, HeldDevice, Host,
    LoopDevice, Resource, Result, SCAN_BYTES, Slot, SuperblockIdentity, Uuid, VirtualDevice, VolumeSpec,
    check_mkfs_words, check_place, check_room,
    mkfs_trial::messages,
    parse_mount_options, plan_mkfs, read_superblock,
    resources::{ENGINE_SOURCE, Lease, SharedEngine, SharedServer, disk_mark, hash},
    settle::{first_mount_options, settle_mount},
    spec::ImageSpec,
};

pub(super) fn create(custodian: &Custodian, spec: &VolumeSpec, slot: &Slot) -> Result<Volume> {
    let host = &**custodian.host();
    check_name(slot)?;
    if let Backend::Directory { path } = &spec.backend {
        return create_in_directory(custodian, spec, slot, path);
    }
    check_machine(host, spec)?;
    let tool = find_mkfs(host, spec.file_system)?;
    if spec.file_system.is_engine() && matches!(spec.backend, Backend::Device { size: Some(_), .. }) {
        let why = "a garden or evergreen uses its whole device; leave out the size";
        return Err(Error::NotPossible { operation: "make a part of", path: slot.name.clone().into(), why });
    }
    let mut lease = Lease::new(custodian);
    // Open until the mount, so that no other device can get its number.
    let mut held: Option<Box<dyn HeldDevice>> = None;
    let (place, device, size, force) = match (&spec.backend, spec.backend.image()) {
        (_, Some(image)) => {
            check_image_dir(host, image.dir, image.memory, slot.needed)?;
            check_room(host, spec, Bytes(0))?;
            let (path, file) = acquire_image(custodian, &mut lease, &image, &slot.name)?;
            let (place, node) = attach(custodian, &mut lease, &image, slot, path, file)?;
            // The image is ours from its first byte.
            (place, node, None, true)
        }
        (Backend::Device { path, size }, None) => {
            let device = host.hold_device(path)?;
            device.check_content(spec.force)?;
            check_room(host, spec, Bytes(0))?;
            let path = device.node().to_owned();
            held = Some(device);
            (Place::Device { path: path.clone() }, path, *size, spec.force)
        }
        (_, None) => unreachable!("a directory is handled above, and all others have an image"),
    };
    let target = Target { device: &device, held: held.as_deref_mut(), force, size };
    let made = make(host, &tool, spec, slot.uuid, target)?;
    finish(custodian, spec, slot, lease, place, Some(made))
}

/// Turns a device with a file system into a mounted volume.
pub(super) fn finish(
    custodian: &Custodian,
    spec: &VolumeSpec,
    slot: &Slot,
    mut lease: Lease,
    place: Place,
    made: Option<MkfsRecord>,
) -> Result<Volume> {
    let host = &**custodian.host();
    let device = match &place {
        Place::Image { device, .. } | Place::Disk { device, .. } => device.path.clone(),
        Place::Device { path } => path.clone(),
        Place::Directory => unreachable!("a directory is not mounted"),
    };
    if let Place::Device { path } = &place
        && let Some(number) = host.device_number(path)?
    {
        // The disk outlives the volume, and its setting must be restored.
        let kib = host.read_ahead(path)?;
        let resource = Resource::ReadAhead { device: path.clone(), number, kib };
        lease.push(custodian.acquire(resource, |_| Ok(()))?.0);
    }
    let read_ahead_kib = host.set_read_ahead(&device, spec.read_ahead_kib)?;
    if read_ahead_kib != spec.read_ahead_kib {
        let detail = format!("requested {} KiB, the kernel set {read_ahead_kib} KiB", spec.read_ahead_kib);
        return Err(Error::Unverified { operation: "setting the read-ahead", path: device, detail });
    }
    let mount_dir = std::fs::canonicalize(&slot.mount_dir).map_err(Error::std("look up", &slot.mount_dir))?;
    let root = mount_dir.join(format!("{}.{}", slot.name, custodian.token()));
    let resource = Resource::Directory { path: root.clone() };
    let (id, _) = custodian.acquire_file(resource, |host| host.create_dir(&root))?;
    lease.push(id);
    let mut engine = None;
    if spec.file_system.is_engine() {
        let name = format!("{ENGINE_SOURCE}{}.{}", slot.name, custodian.token());
        let server = SharedEngine::default();
        lease.keep_engine(server.clone());
        let resource = Resource::Engine { point: root.clone(), name: name.clone(), server: None };
        let (id, started) = custodian.acquire(resource, |host| serve(host, &name, &device, &root, spec))?;
        lease.push(id);
        let mount = EngineMount { id, name, server };
        note_engine(custodian, &mount, &root, started)?;
        engine = Some(mount);
    } else if let Some(resource) = Volume::mount_resource(&place, host, &root)? {
        let (id, ()) = custodian.acquire(resource, |host| mount_verified(host, &device, &root, spec))?;
        lease.push(id);
    }
    Ok(Volume {
        spec: spec.clone(),
        name: slot.name.clone(),
        root,
        place,
        mounted: true,
        is_releasing: false,
        made,
        custodian: custodian.clone(),
        engine,
        lease,
    })
}

/// Mounts an engine again.
pub(super) fn start_engine(
    custodian: &Custodian,
    engine: &EngineMount,
    device: &Path,
    root: &Path,
    spec: &VolumeSpec,
) -> Result<()> {
    let started = serve(&**custodian.host(), &engine.name, device, root, spec)?;
    note_engine(custodian, engine, root, started)
}

/// Starts the server, and checks its mount in the kernel's list.
fn serve(host: &dyn Host, name: &str, device: &Path, root: &Path, spec: &VolumeSpec) -> Result<Box<dyn EngineServer>> {
    let what = EngineSource::OnDevice { device: device.to_owned(), options: spec.mount_options.clone() };
    let server = host.start_engine(&EngineConfig { source: name.to_owned(), point: root.to_owned(), what })?;
    match host.mounts()?.iter().rev().find(|mount| mount.point == root) {
        Some(mount) if mount.source == Path::new(name) => Ok(server),
        other => {
            let there = other.map_or("nothing".to_owned(), |mount| mount.source.display().to_string());
            let detail = format!("{there} is mounted there");
            Err(Error::Unverified { operation: "mounting", path: root.to_owned(), detail })
        }
    }
}

/// Records the process that serves the mount.
fn note_engine(custodian: &Custodian, engine: &EngineMount, root: &Path, started: Box<dyn EngineServer>) -> Result<()> {
    let (point, name, server) = (root.to_owned(), engine.name.clone(), Some(started.process().clone()));
    *engine.server.lock() = Some(started);
    custodian.amend(engine.id, Resource::Engine { point, name, server })
}

fn create_in_directory(custodian: &Custodian, spec: &VolumeSpec, slot: &Slot, path: &Path) -> Result<Volume> {
    let dir = std::fs::canonicalize(path).map_err(Error::std("look up", path))?;
    check_space(&**custodian.host(), &dir, slot.needed)?;
    let root = dir.join(format!("{}.{}", slot.name, custodian.token()));
    let mut lease = Lease::new(custodian);
    let resource = Resource::Tree { path: root.clone() };
    let (id, _) = custodian.acquire_file(resource, |host| host.create_dir(&root))?;
    lease.push(id);
    Ok(Volume {
        spec: spec.clone(),
        name: slot.name.clone(),
        root,
        place: Place::Directory,
        mounted: true,
        is_releasing: false,
        made: None,
        custodian: custodian.clone(),
        engine: None,
        lease,
    })
}

pub(super) fn check_name(slot: &Slot) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !slot.name.is_empty() && !slot.name.starts_with('.') && slot.name.bytes().all(allowed) {
        return Ok(());
    }
    let why = "a volume's name has only letters, digits, \"-\", \"_\" and \".\"";
    Err(Error::NotPossible { operation: "name a volume", path: slot.name.clone().into(), why })
}

pub(super) fn check_machine(host: &dyn Host, spec: &VolumeSpec) -> Result<()> {
    if !host.is_root() {
        return Err(Error::NotRoot { operation: "make and mount file systems" });
    }
    parse_mount_options(&spec.mount_options)?;
    check_mkfs_words(spec.file_system, &spec.mkfs_options)?;
    if !host.kernel_knows(spec.file_system)? {
        return Err(Error::FileSystemNotInKernel { file_system: spec.file_system });
    }
    Ok(())
}

fn find_mkfs(host: &dyn Host, kind: FileSystemKind) -> Result<PathBuf> {
    if kind.is_engine() {
        return Ok(host.engine_program());
    }
    let missing = || Error::ToolMissing { tool: kind.mkfs_tool().to_owned(), package: kind.debian_package() };
    host.find_tool(kind.mkfs_tool()).ok_or_else(missing)
}

pub(super) fn check_image_dir(host: &dyn Host, dir: &Path, memory: bool, needed: Bytes) -> Result<()> {
    if memory && !host.is_in_memory(dir)? {
        return Err(Error::NotInMemory { dir: dir.to_owned() });
    }
    check_space(host, dir, needed)
}

fn check_space(host: &dyn Host, dir: &Path, needed: Bytes) -> Result<()> {
    let available = host.free_bytes(dir)?;
    if available < needed {
        return Err(Error::NotEnoughSpace { dir: dir.to_owned(), available, needed });
    }
    Ok(())
}

/// Refuses a device that is in use. Refuses a device that is not empty, unless `force`. A run calls
/// it at its start, to fail before any work. [`Volume::create`] repeats the checks through the
/// descriptor that it then uses.
///
/// Errors: no such file, no block device, in use, data on it. Cost: two reads of the device, and
/// one program.
pub fn check_device(host: &dyn Host, device: &Path, force: bool) -> Result<()> {
    host.hold_device(device)?.check_content(force)
}

pub(super) fn acquire_image(
    custodian: &Custodian,
    lease: &mut Lease,
    image: &ImageSpec<'_>,
    name: &str,
) -> Result<(PathBuf, FileId)> {
    check_place(image.dir)?;
    let dir = std::fs::canonicalize(image.dir).map_err(Error::std("look up", image.dir))?;
    let path = dir.join(format!("{name}.{}.img", custodian.token()));
    let resource = Resource::File { path: path.clone() };
    let (id, file) = custodian.acquire_file(resource, |host| host.create_file(&path, image.size))?;
    lease.push(id);
    Ok((path, file))
}

/// Makes an image a block device, by a loop device on the image or on the disk in virtual time that
/// serves it.
pub(super) fn attach(
    custodian: &Custodian,
    lease: &mut Lease,
    image: &ImageSpec<'_>,
    slot: &Slot,
    path: PathBuf,
    file: FileId,
) -> Result<(Place, PathBuf)> {
    let place = match image.device {
        None => {
            let device = acquire_loop(custodian, lease, &path, file)?;
            Place::Image { path, file, device }
        }
        Some(device) => acquire_disk(custodian, lease, image.size, device, slot, path)?,
    };
    let node = match &place {
        Place::Image { device, .. } | Place::Disk { device, .. } => device.path.clone(),
        Place::Device { .. } | Place::Directory => unreachable!("made above"),
    };
    Ok((place, node))
}

/// Makes the mount point, the server and the loop device of a disk in virtual time, in this order.
fn acquire_disk(
    custodian: &Custodian,
    lease: &mut Lease,
    size: Bytes,
    device: &VirtualDevice,
    slot: &Slot,
    image: PathBuf,
) -> Result<Place> {
    let dir = std::fs::canonicalize(&slot.mount_dir).map_err(Error::std("look up", &slot.mount_dir))?;
    // Unique on the machine: the process of the token may have runs in several directories.
    let place = hash(dir.as_os_str().as_bytes()) as u32;
    let name = format!("{}.{}-{place:08x}", slot.name, custodian.token());
    let point = dir.join(format!("{}.{}.disk", slot.name, custodian.token()));
    let resource = Resource::Directory { path: point.clone() };
    let (id, _) = custodian.acquire_file(resource, |host| host.create_dir(&point))?;
    lease.push(id);
    let backing = BackingSpec::File { path: image.clone() };
    let mut config = ServeConfig::new(&name, point, size.0, backing, &device.device);
    config.pace = device.pace;
    let disk = config.disk_path();
    let resource = Resource::VirtualDisk { footprint: Footprint::planned(&config) };
    let (id, server) = custodian.acquire(resource, |host| host.start_disk(config))?;
    lease.push(id);
    let footprint = server.footprint().clone();
    let server = SharedServer::new(server);
    lease.keep(server.clone());
    custodian.amend(id, Resource::VirtualDisk { footprint })?;
    let mark = disk_mark(&name);
    let resource = Resource::DiskLoop { path: disk.clone(), mark: mark.clone() };
    let (id, device) = custodian.acquire(resource, |host| host.attach_disk(&disk, &mark))?;
    lease.push(id);
    let found = custodian.host().loop_mark(&device.path)?;
    if found.as_ref() != Some(&mark) {
        let detail = format!("the device carries {found:?}, not {mark:?}");
        return Err(Error::Unverified { operation: "attaching", path: device.path, detail });
    }
    Ok(Place::Disk { image, disk, mark, device, server })
}

fn acquire_loop(custodian: &Custodian, lease: &mut Lease, image: &Path, file: FileId) -> Result<LoopDevice> {
    let resource = Resource::Loop { image: image.to_owned(), file };
    let (id, device) = custodian.acquire(resource, |host| host.attach_loop(image))?;
    lease.push(id);
    let backing = custodian.host().loop_backing(&device.path)?;
    if backing != Some(file) {
        let detail = format!("the backing file of the device is {backing:?}, not {file:?}");
        return Err(Error::Unverified { operation: "attaching", path: device.path, detail });
    }
    Ok(device)
}

/// The device on which mkfs makes a file system.
struct Target<'a> {
    device: &'a Path,
    /// The open device. `None` for an image that this program made.
    held: Option<&'a mut (dyn HeldDevice + 'static)>,
    force: bool,
    /// The size of the file system, if it uses a part of the device.
    size: Option<Bytes>,
}

impl Target<'_> {
    fn read_identity(&self, host: &dyn Host) -> Result<Option<SuperblockIdentity>> {
        let start = match &self.held {
            Some(held) => held.read(0, SCAN_BYTES)?,
            None => host.read_device(self.device, 0, SCAN_BYTES)?,
        };
        Ok(read_superblock(&start))
    }

    /// An old superblock could have the UUID that mkfs will write. Then it would prove nothing.
    fn remove_identity(&self, host: &dyn Host) -> Result<()> {
        let Some(old) = self.read_identity(host)? else { return Ok(()) };
        let still_there = || {
            let detail = format!("{} {} is still there", old.file_system, old.uuid);
            Error::Unverified { operation: "wiping", path: self.device.to_owned(), detail }
        };
        // A new image holds zeros. A device was checked before, unless the user forced it.
        let held = self.held.as_ref().ok_or_else(still_there)?;
        if !self.force {
            return Err(Error::HasSignature { device: self.device.to_owned(), found: "a file system".to_owned() });
        }
        held.wipe(0, SCAN_BYTES)?;
        if self.read_identity(host)?.is_some() { Err(still_there()) } else { Ok(()) }
    }
}

/// Runs mkfs. Proves by the superblock that this mkfs, and not an earlier one, made the file
/// system.
fn make(host: &dyn Host, tool: &Path, spec: &VolumeSpec, uuid: Uuid, mut target: Target<'_>) -> Result<MkfsRecord> {
    let kind = spec.file_system;
    let (device, size) = (target.device, target.size);
    target.remove_identity(host)?;
    host.forget_device(device, kind)?;
    if let Some(held) = &mut target.held {
        held.share()?;
    }
    let mut arguments = plan_mkfs(spec, device, uuid, size);
    if kind.is_engine() && spec.backend.image().is_some() {
        // A new sparse file holds zeros, and writing zeros would fill it.
        arguments.push("--zeroed".to_owned());
    }
    let command = format!("{} {}", kind.mkfs_tool(), arguments.join(" "));
    let find = |name: &str| {
        let missing = || Error::ToolMissing { tool: name.to_owned(), package: kind.debian_package() };
        host.find_tool(name).ok_or_else(missing)
    };
    // Before mkfs: without it, the device would be formatted in vain.
    let uuid_tool = match kind.uuid_tool() {
        Some((name, options)) => Some((name, find(name)?, options)),
        None => None,
    };
    run(host, tool, &arguments, &command)?;
    if let Some((name, tool, options)) = uuid_tool {
        let mut arguments: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        arguments.extend([uuid.to_string(), device.to_string_lossy().into_owned()]);
        run(host, &tool, &arguments, &format!("{name} {}", arguments.join(" ")))?;
    }
    host.flush_device(device)?;
    match target.read_identity(host)? {
        Some(found) if found.file_system == kind && found.uuid == uuid => {}
        found => {
            let seen = found.map_or("no file system".to_owned(), |id| format!("{} {}", id.file_system, id.uuid));
            let detail = format!("the superblock shows {seen}, not {kind} {uuid}");
            return Err(Error::Unverified { operation: "mkfs", path: device.to_owned(), detail });
        }
    }
    Ok(MkfsRecord { command, tool_version: tool_version(host, tool) })
}

fn run(host: &dyn Host, tool: &Path, arguments: &[String], command: &str) -> Result<()> {
    let output = host.run_tool(tool, arguments)?;
    if output.success {
        return Ok(());
    }
    let stderr = head(output.errors());
    Err(Error::ToolFailed { command: command.to_owned(), status: output.status, stderr })
}

/// The first line of a tool's version. mke2fs prints it to standard error.
fn tool_version(host: &dyn Host, tool: &Path) -> String {
    let output = host.run_tool(tool, &["-V".to_owned()]);
    let line = |text: &str| text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
    output.ok().and_then(|output| line(&output.stdout).or_else(|| line(&output.stderr))).unwrap_or_default()
}

/// The first messages of a tool, on one line. Its usage may follow them, and is left out.
fn head(text: &str) -> String {
    messages(text).into_iter().take(4).collect::<Vec<_>>().join("; ")
}

/// XFS refuses a second file system of one identity, and two runs of one seed make the same one.
/// The mounted device is verified, so no volume is mistaken for another. Unlike another UUID, the
/// option changes nothing on the disk.
fn mount_options(spec: &VolumeSpec) -> String {
    let given = &spec.mount_options;
    match spec.file_system {
        FileSystemKind::Xfs if !given.split(',').any(|option| option == "nouuid") => {
            [given, "nouuid"].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",")
        }
        _ => given.clone(),
    }
}

/// Mounts, and checks the mount in the kernel's list.
pub(super) fn mount_verified(host: &dyn Host, device: &Path, root: &Path, spec: &VolumeSpec) -> Result<()> {
    let options = mount_options(spec);
    let first = if spec.settles { first_mount_options(spec.file_system, options.clone()) } else { options.clone() };
    host.mount(device, root, spec.file_system, &first)?;
    let wrong = match host.mounts() {
        Err(error) => Some(error),
        Ok(mounts) => match mounts.iter().rev().find(|mount| mount.point == root) {
            Some(mount) if mount.source == device && mount.file_system == spec.file_system.name() => None,
            other => {
                let detail = match other {
                    Some(mount) => format!("{} ({}) is there", mount.source.display(), mount.file_system),
                    None => "nothing is mounted there".to_owned(),
                };
                Some(Error::Unverified { operation: "mounting", path: root.to_owned(), detail })
            }
        },
    };
    let wrong = wrong.or_else(|| spec.settles.then(|| settle_mount(root, spec.file_system, &options).err()).flatten());
    match wrong {
        None => Ok(()),
        Some(error) => {
            // A failed acquire must leave nothing.
            let _ = host.unmount(root, false);
            Err(error)
        }
    }
}

/// Unmounts. Waits up to 5 s for processes that use the mount only for a moment.
pub(super) fn unmount_patiently(host: &dyn Host, root: &Path) -> Result<()> {
    const TRIES: u32 = 50;
    for _ in 1..TRIES {
        match host.unmount(root, false) {
            Err(error) if error.is_busy() => host.pause(Duration::from_millis(100)),
            result => return result,
        }
    }
    host.unmount(root, false)
}

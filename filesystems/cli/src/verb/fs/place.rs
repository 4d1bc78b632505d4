//! The place of an aggregate: a directory with an image for each drive and one for the log, one
//! file or device with a drive and the log, or drives that are named.

use std::{
    ffi::OsStr,
    fmt, fs,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use senesce_block::{BlockDevice, FileDevice, FileOptions, MemoryDevice, OverlayDevice, SliceDevice};
use senesce_core::Bytes;
use senesce_experiment::ErrorKind;
use senesce_garden::{Accepted, Garden, Limits, LogDevices};
use senesce_objects::ObjectStore;
use senesce_service::Devices as Freezable;
use senesce_volume::{SCAN_BYTES, find_signatures};

use super::{
    claim,
    evergreen::Place as EvergreenPlace,
    send_request::{FoundMount, find_mount},
};
use crate::{
    args::FsPlaceArgs,
    exit::{Failure, usage},
};

/// The copies of the log.
const LOGS: [&str; 2] = ["log.img", "log-2.img"];
/// What a block holds.
pub const BLOCK_BYTES: u64 = 4096;

/// The devices of an aggregate.
pub struct Devices {
    pub drives: Vec<Arc<dyn BlockDevice>>,
    pub log: LogDevices,
}

/// The place of an aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a directory: drive-*.img, log.img and log-2.img.
    Directory(PathBuf),
    /// On one file or device: a drive, and after it the log.
    One(PathBuf),
    /// On files and devices that the command names.
    Named { drives: Vec<PathBuf>, logs: Vec<PathBuf> },
}

impl Devices {
    /// The same devices, which a check can read as they are at one moment while the garden is open
    /// on them.
    pub fn freezable(self) -> (Self, Freezable) {
        let freezable = Freezable::new(self.drives, self.log);
        (Self { drives: freezable.drives(), log: freezable.log().clone() }, freezable)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) | Self::One(path) => write!(f, "{}", path.display()),
            Self::Named { drives, .. } => {
                let names: Vec<_> = drives.iter().map(|path| path.display().to_string()).collect();
                write!(f, "{}", names.join(" + "))
            }
        }
    }
}

impl Place {
    /// The one that a command names. Errors: none.
    pub fn of(args: &FsPlaceArgs) -> Result<Self> {
        match (&args.place, args.log.len()) {
            (Some(path), _) => Ok(Self::at(path)),
            (None, 1..=2) => Ok(Self::Named { drives: args.drive.clone(), logs: args.log.clone() }),
            (None, 0) => {
                Err(usage("no garden is named", Some("name its directory, or its devices with --drive and --log")))
            }
            (None, more) => {
                Err(usage(format!("{more} logs are named with --log"), Some("a log has one or two copies")))
            }
        }
    }

    /// The one at a path: in a directory, or on a file or device.
    pub fn at(path: &Path) -> Self {
        if let Some(rest) = path.as_os_str().as_bytes().strip_prefix(b"evergreen:") {
            return Self::One(PathBuf::from(OsStr::from_bytes(rest))); // for the process that serves it
        }
        let path = directory(path).to_owned();
        let is_one = fs::metadata(&path).is_ok_and(|found| !found.is_dir());
        if is_one { Self::One(path) } else { Self::Directory(path) }
    }

    /// Opens the devices to use them. No other program may have them open.
    pub fn open(&self) -> Result<Devices> {
        self.open_without(None)
    }

    /// The same, without a drive that is to be a new one.
    pub fn open_without(&self, new: Option<&Path>) -> Result<Devices> {
        let is_other = |path: &Path| new.is_none_or(|new| !is_same(path, new));
        let make = |path: &Path, bytes| -> Result<Arc<dyn BlockDevice>> {
            Ok(Arc::new(FileDevice::create(path, bytes, FileOptions::default())?))
        };
        self.open_as(is_other, |path| Ok(Arc::new(claim::open_existing(path)?)), make)
    }

    /// Opens the devices to look at them: what is written stays in memory. Others may look, too.
    pub fn look(&self) -> Result<Devices> {
        self.look_without(None, Bytes(u64::MAX))
    }

    /// The same, without a drive that is to be a new one, and with at most `most_changes` bytes of
    /// changes to each device.
    pub fn look_without(&self, new: Option<&Path>, most_changes: Bytes) -> Result<Devices> {
        let is_other = |path: &Path| new.is_none_or(|new| !is_same(path, new));
        let options = FileOptions { read_only: true, ..FileOptions::default() };
        let open = |path: &Path| -> Result<Arc<dyn BlockDevice>> {
            Ok(Arc::new(OverlayDevice::within(FileDevice::open(path, Bytes(0), options)?, most_changes)))
        };
        let make = |path: &Path, bytes| -> Result<Arc<dyn BlockDevice>> {
            Ok(Arc::new(MemoryDevice::new(path.display().to_string(), bytes)))
        };
        self.open_as(is_other, open, make)
    }

    /// Opens the aggregate on its devices, with what its log holds.
    pub fn garden(&self, devices: &Devices) -> Result<Garden> {
        self.garden_within(devices, Limits::default())
    }

    /// The same, with this limit of memory.
    pub fn garden_within(&self, devices: &Devices, limits: Limits) -> Result<Garden> {
        self.garden_with(devices, limits, None, Accepted::NOTHING)
    }

    /// The same, with the store of its objects, and with what may be lost. Where operations may be,
    /// the devices of the log may be overwritten.
    pub fn garden_with(
        &self,
        devices: &Devices,
        limits: Limits,
        objects: Option<Arc<dyn ObjectStore>>,
        accepted: Accepted,
    ) -> Result<Garden> {
        let log = match accepted {
            Accepted::OPERATIONS => devices.log.clone().spare(),
            _ => devices.log.clone(),
        };
        let opened = Garden::open_with(&devices.drives, log, limits, objects, accepted);
        opened.with_context(|| format!("cannot open {self}"))
    }

    /// Before the log is made again where it cannot be read. Errors: a device that is named as a
    /// log, or that a link in the directory leads to, holds something else, unless `force`.
    pub fn check_logs(&self, force: bool) -> Result<()> {
        let logs = match self {
            Self::One(_) => Vec::new(),
            Self::Directory(dir) => LOGS.iter().map(|name| dir.join(name)).filter(|path| path.is_symlink()).collect(),
            Self::Named { logs, .. } => logs.clone(),
        };
        logs.iter().filter(|path| path.exists()).try_for_each(|path| claim::check_log(path, force))
    }

    /// The files and devices that it may be on. Some may not exist.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            // A directory without images is no garden, and no process serves it.
            Self::Directory(dir) => {
                let logs = LOGS.iter().map(|name| dir.join(name));
                find_images(dir).unwrap_or_default().into_iter().chain(logs).collect()
            }
            Self::One(path) => vec![path.clone()],
            Self::Named { drives, logs } => drives.iter().chain(logs).cloned().collect(),
        }
    }

    /// Where a drive's image is, or is to be made; none if the drives are named.
    pub fn image(&self, drive: u32) -> Option<PathBuf> {
        match self {
            Self::Directory(dir) => Some(dir.join(drive_name(drive))),
            Self::One(_) | Self::Named { .. } => None,
        }
    }

    fn open_as(
        &self,
        wanted: impl Fn(&Path) -> bool,
        open: impl Fn(&Path) -> Result<Arc<dyn BlockDevice>>,
        make: impl Fn(&Path, Bytes) -> Result<Arc<dyn BlockDevice>>,
    ) -> Result<Devices> {
        if let Some(FoundMount { point, .. }) = find_mount(self)? {
            return Err(Failure {
                kind: ErrorKind::Environment,
                message: format!("{} is a mount point, and the file system is in use", point.display()),
                hint: Some("unmount it, and name the device or the directory of the file system".to_owned()),
            }
            .into());
        }
        let (drives, logs) = match self {
            Self::One(path) if EvergreenPlace::find_at(path).is_some() => {
                return Err(usage(format!("{self} is an evergreen, and this command works on a garden"), None));
            }
            Self::One(path) => return part(open(path)?).map_err(|error| foreign(path).unwrap_or(error)),
            Self::Directory(dir) => (find_images(dir)?, None),
            Self::Named { drives, logs } => (drives.clone(), Some(logs)),
        };
        let drives: Vec<_> = drives.iter().filter(|path| wanted(path)).map(|path| open(path)).collect::<Result<_>>()?;
        let log = match (logs, self) {
            (Some(logs), _) => LogDevices::from(logs.iter().map(|path| open(path)).collect::<Result<Vec<_>>>()?),
            (None, Self::Directory(dir)) => open_logs(dir, &drives, open, make)?,
            (None, _) => LogDevices::none(),
        };
        Ok(Devices { drives, log })
    }
}

/// The copies of the log in a directory. Images of copies that are gone are made: the directory is
/// the garden's, and so are they.
fn open_logs(
    dir: &Path,
    drives: &[Arc<dyn BlockDevice>],
    open: impl Fn(&Path) -> Result<Arc<dyn BlockDevice>>,
    make: impl Fn(&Path, Bytes) -> Result<Arc<dyn BlockDevice>>,
) -> Result<LogDevices> {
    let places = Garden::log_places(drives);
    let copies = places.map_or(LOGS.len(), |places| if places.is_shared { 1 } else { places.copies as usize });
    // A link may lead to a device that holds something else now: that is never overwritten.
    let (mut linked, mut spare) = (Vec::new(), Vec::new());
    for path in LOGS.iter().take(copies).map(|name| dir.join(name)) {
        match (fs::symlink_metadata(&path), places) {
            (Ok(found), _) if found.is_symlink() => {
                // Without its device, the copy is lost.
                if path.exists() {
                    linked.push(open(&path)?);
                }
            }
            // Cut off: what is left of it is no copy, and what is written to it would not fit.
            (Ok(_), Some(places)) if is_shorter(&path, places.bytes) => {}
            (Ok(_), _) => spare.push(open(&path)?),
            (Err(_), Some(places)) => spare.push(make(&path, places.bytes)?),
            (Err(_), None) => {}
        }
    }
    Ok(spare.into_iter().fold(LogDevices::from(linked), LogDevices::with_spare))
}

fn is_shorter(path: &Path, bytes: Bytes) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() < bytes.0)
}

/// One device, parted as its label says.
fn part(whole: Arc<dyn BlockDevice>) -> Result<Devices> {
    let drive = Garden::drive_length(&whole)?;
    let (drive, log) = split(whole, drive)?;
    // No other file system's bytes are there.
    Ok(Devices { drives: vec![drive], log: LogDevices::none().with_spare(log) })
}

/// The error for a file or device that holds something of another program. `None` if nothing is
/// known of it.
fn foreign(path: &Path) -> Option<anyhow::Error> {
    let mut start = Vec::new();
    fs::File::open(path).ok()?.take(SCAN_BYTES as u64).read_to_end(&mut start).ok()?;
    // The mark of a boot sector has two bytes, which damage can make.
    let found = find_signatures(&start, &[]).into_iter().find(|found| !found.holds.contains("boot sector"))?;
    if found.holds.contains("senesce") {
        return None;
    }
    let shown = path.display();
    let message = format!("{shown} holds {}, not a garden or an evergreen", found.holds);
    let hint = format!(
        "`senesce fs` works on what `senesce fs mkfs` made; the kernel mounts others: mount -o loop {shown} DIRECTORY"
    );
    Some(usage(message, Some(&hint)))
}

/// One device, parted: `bytes` for the drive, and the rest, from the next block on, for both copies
/// of the log.
pub fn split(whole: Arc<dyn BlockDevice>, drive: Bytes) -> Result<(Arc<dyn BlockDevice>, Arc<dyn BlockDevice>)> {
    let log = drive.0.next_multiple_of(BLOCK_BYTES);
    let rest = whole.size().0.saturating_sub(log);
    let drive = SliceDevice::new(whole.clone(), 0, drive)?;
    Ok((Arc::new(drive), Arc::new(SliceDevice::new(whole, log, Bytes(rest))?)))
}

/// Whether two paths lead to the same file.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path| fs::canonicalize(path).ok();
    real(one).is_some_and(|one| real(other) == Some(one))
}

/// Without the `garden:` that verbs of other places need.
pub fn directory(given: &Path) -> &Path {
    let bytes = given.as_os_str().as_bytes();
    bytes.strip_prefix(b"garden:").map_or(given, |rest| Path::new(OsStr::from_bytes(rest)))
}

/// The name of a drive's image.
fn drive_name(drive: u32) -> String {
    format!("drive-{drive:02}.img")
}

/// Makes images that hold zeros, in a new directory: a drive of each of these sizes, and both
/// copies of a log.
pub fn create(dir: &Path, drives: &[Bytes], log_bytes: Bytes) -> Result<Devices> {
    check_free(dir)?;
    fs::create_dir(dir).with_context(|| format!("cannot make the directory {}", dir.display()))?;
    let make = |name: &str, bytes| -> Result<Arc<dyn BlockDevice>> {
        Ok(Arc::new(FileDevice::create(&dir.join(name), bytes, FileOptions::default())?))
    };
    let drives = (0..).zip(drives).map(|(drive, &bytes)| make(&drive_name(drive), bytes)).collect::<Result<_>>()?;
    let logs = LOGS.iter().map(|name| make(name, log_bytes)).collect::<Result<Vec<_>>>()?;
    Ok(Devices { drives, log: logs.into() })
}

/// Errors: the name of a new directory is in use.
pub fn check_free(dir: &Path) -> Result<()> {
    match dir.symlink_metadata() {
        Ok(_) => Err(usage(format!("{} exists already", dir.display()), Some("give another name"))),
        Err(_) => Ok(()),
    }
}

/// The images of the drives in a directory.
fn find_images(dir: &Path) -> Result<Vec<PathBuf>> {
    const MAKE: &str = "`senesce fs mkfs garden DIRECTORY` makes one";
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let message = format!("there is no file system of senesce at {}: it does not exist", dir.display());
            return Err(usage(message, Some(&format!("check the name; {MAKE}"))));
        }
        entries => entries.with_context(|| format!("cannot list {}", dir.display()))?,
    };
    let mut drives: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot list {}", dir.display()))?.path();
        // A link to a device that is gone is a drive that is missing.
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("drive-")) && path.exists() {
            drives.push(path);
        }
    }
    drives.sort();
    if drives.is_empty() {
        let message = format!("{} holds no file system of senesce: no drive-*.img", dir.display());
        return Err(usage(message, Some(MAKE)));
    }
    Ok(drives)
}

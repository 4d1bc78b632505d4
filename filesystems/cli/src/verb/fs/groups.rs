//! The RAID groups that `senesce fs mkfs` makes: all alike, or disks and before them one of flash.

use std::{fmt, fs, os::unix::fs::FileTypeExt, path::Path};

use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_garden::Medium;
use senesce_volume::{Host, LinuxHost};

use crate::{
    args::{FsMkfsArgs, MediumArg},
    exit::usage,
};

/// A block with its trailer, on a drive.
const SLOT_BYTES: u64 = 4096 + 64;
/// Slots at fixed places of each drive: its two labels and two superblocks.
const FIXED_SLOTS: u64 = 4;
const LEAST_SIZE: Bytes = Bytes(8 << 20);
pub const LEAST_LOG: Bytes = Bytes(1 << 20);
pub const USUAL_LOG: Bytes = Bytes(32 << 20);
/// The log's part of one file or device with both.
const LOG_PART: u64 = 16;
/// What drives that are made hold together, and how many hold data, if nothing is said.
const USUAL_SIZE: Bytes = Bytes(1 << 30);
const USUAL_DATA_DRIVES: u16 = 4;

/// Stripes of an allocation area of disks: 4 MiB of each, which a head passes without a seek worth
/// speaking of.
const DISK_AREA_STRIPES: u64 = 1024;
/// Of flash: 16 MiB of each drive, several of the pieces that it erases at once.
const FLASH_AREA_STRIPES: u64 = 4096;

/// All RAID groups of an aggregate that is to be made.
#[derive(Clone, Copy)]
pub struct Pool {
    /// Groups of one medium.
    first: Shape,
    medium: Medium,
    /// The group of flash that comes after these, if they are disks.
    flash: Option<Shape>,
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        match self.flash {
            Some(flash) => write!(f, ", and of flash {flash},"),
            None => Ok(()),
        }
    }
}

impl Pool {
    /// Groups of the medium that `--medium` names.
    pub fn of(args: &FsMkfsArgs, first: Shape) -> Self {
        let medium = match args.medium {
            MediumArg::Hdd => Medium::Hdd,
            MediumArg::Ssd => Medium::Ssd,
        };
        Self { first, medium, flash: None }
    }

    /// The same with a group of flash that is made, if `--flash-size` says so: of as many drives as
    /// the others.
    pub fn of_size(args: &FsMkfsArgs, first: Shape) -> Result<Self> {
        let flash = args.flash_size.map(|size| first.sized(size, "--flash-size")).transpose()?;
        Ok(Self { flash, ..Self::of(args, first) })
    }

    /// The same with a group of the drives that `--flash-drive` names, if any.
    pub fn of_named(args: &FsMkfsArgs, first: Shape) -> Result<Self> {
        let drives = args.flash_drive.len();
        if drives == 0 && args.flash_size.is_none() {
            return Ok(Self::of(args, first));
        }
        let data_drives = u16::try_from(drives.saturating_sub(usize::from(first.parity))).unwrap_or(u16::MAX);
        if data_drives == 0 || data_drives > 64 {
            let message = format!("{drives} SSDs make no RAID group: it has {}", {
                if first.parity { "1 to 64 data drives and one parity drive" } else { "1 to 64 data drives" }
            });
            return Err(usage(message, Some("name each with --flash-drive")));
        }
        let flash = Shape { groups: 1, data_drives, ..first };
        let flash = flash.on(args.flash_drive.iter().map(|path| &**path), args.flash_size, "--flash-size")?;
        Ok(Self { flash: Some(flash), ..Self::of(args, first) })
    }

    /// Each group's shape (with others like it) and medium, in the order of the drives.
    pub fn groups(&self) -> Vec<(Shape, Medium)> {
        let mut groups = vec![(self.first, self.medium); self.first.groups];
        groups.extend(self.flash.map(|flash| (flash, Medium::Ssd)));
        groups
    }

    /// The stripes of an allocation area of each group: those of its medium, or an eighth of its
    /// drives if these are small.
    pub fn area_stripes(&self) -> Vec<u32> {
        let stripes = |(shape, medium): (Shape, Medium)| {
            let most = match medium {
                Medium::Hdd => DISK_AREA_STRIPES,
                Medium::Ssd => FLASH_AREA_STRIPES,
            };
            (shape.stripes / 8).clamp(1, most) as u32
        };
        self.groups().into_iter().map(stripes).collect()
    }

    /// The bytes of each drive.
    pub fn drive_bytes(&self) -> Vec<Bytes> {
        let all = [Some(self.first), self.flash].into_iter().flatten();
        all.flat_map(|shape| vec![shape.drive_bytes(); shape.drives()]).collect()
    }
}

/// RAID groups that are to be made, all alike.
#[derive(Clone, Copy)]
pub struct Shape {
    groups: usize,
    pub data_drives: u16,
    pub parity: bool,
    stripes: u64,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} drive{}", self.drives(), if self.drives() == 1 { "" } else { "s" })?;
        match (self.parity, self.groups) {
            (false, 1) => write!(f, " without parity"),
            (false, groups) => write!(f, " in {groups} RAID groups without parity"),
            (true, 1) => write!(f, ", one of them parity"),
            (true, groups) => write!(f, " in {groups} RAID groups, one of each parity"),
        }
    }
}

impl Shape {
    /// A group of drives that are made.
    pub fn of_size(args: &FsMkfsArgs) -> Result<Self> {
        let data_drives = args.data_drives.unwrap_or(USUAL_DATA_DRIVES);
        let shape = Self { groups: 1, data_drives, parity: !args.no_parity, stripes: 0 };
        shape.sized(args.size.unwrap_or(USUAL_SIZE), "--size")
    }

    /// One drive without parity, beside the log on the same file or device.
    pub fn of_one(args: &FsMkfsArgs, path: &Path) -> Result<Self> {
        if args.size.is_some() || args.data_drives.is_some_and(|drives| drives > 1) {
            return Err(usage(
                format!("{} becomes one drive and a log, as large as it is", path.display()),
                Some("leave --size and --data-drives out, or name a new directory, or several drives with --drive"),
            ));
        }
        let whole = size_of(path)?;
        let usual = Bytes((whole.0 / LOG_PART).clamp(LEAST_LOG.0, USUAL_LOG.0));
        let drive = whole.0.saturating_sub(args.log_size.unwrap_or(usual).0.next_multiple_of(4096));
        // The log begins with a block of its own.
        let stripes = (drive.saturating_sub(4096) / SLOT_BYTES).saturating_sub(FIXED_SLOTS);
        Self { groups: 1, data_drives: 1, parity: false, stripes }.checked("what it holds,", Bytes(stripes * 4096))
    }

    /// Drives that are named: as large as the smallest of them, or as `--size` says if some are
    /// still to be made.
    pub fn of_named<'a>(args: &FsMkfsArgs, drives: impl Iterator<Item = &'a Path> + Clone) -> Result<Self> {
        let parity = !args.no_parity;
        let all = drives.clone().count();
        let one_group = u16::try_from(all).unwrap_or(u16::MAX).saturating_sub(u16::from(parity));
        let data_drives = args.data_drives.unwrap_or(one_group);
        let group = usize::from(data_drives) + usize::from(parity);
        if data_drives == 0 || !all.is_multiple_of(group) {
            let message =
                format!("{all} drive(s) do not fill RAID groups of {} data drive(s){}", data_drives.max(1), {
                    if parity { " and one parity drive" } else { "" }
                });
            return Err(usage(message, Some("name more with --drive, or set --data-drives N or --no-parity")));
        }
        if data_drives > 64 {
            let message = format!("{data_drives} data drives are too many for one RAID group: 64 are possible");
            return Err(usage(message, Some("--data-drives N makes several groups")));
        }
        let groups = all / group;
        Self { groups, data_drives, parity, stripes: 0 }.on(drives, args.size, "--size")
    }

    /// The same on drives that are named: as large as the smallest of them, or as an option says if
    /// some are still to be made.
    fn on<'a>(self, drives: impl Iterator<Item = &'a Path> + Clone, size: Option<Bytes>, option: &str) -> Result<Self> {
        if let Some(new) = drives.clone().find(|path| !path.exists()) {
            let Some(size) = size else {
                let message = format!("{} does not exist, and its size is not known", new.display());
                let hint = format!("name the size of all drives together, without parity, with {option}");
                return Err(usage(message, Some(&hint)));
            };
            return self.sized(size, option);
        }
        if size.is_some() {
            return Err(usage(format!("{option} is the size of new drives, and all of these exist"), None));
        }
        let mut smallest = u64::MAX;
        for path in drives {
            smallest = smallest.min(size_of(path)?.0);
        }
        let stripes = (smallest / SLOT_BYTES).saturating_sub(FIXED_SLOTS);
        let size = Bytes(stripes * 4096 * self.groups as u64 * u64::from(self.data_drives));
        Self { stripes, ..self }.checked("what the drives hold,", size)
    }

    /// The same with drives of this total size.
    fn sized(self, size: Bytes, option: &str) -> Result<Self> {
        let stripes = (size.0 / 4096).div_ceil(self.groups as u64 * u64::from(self.data_drives));
        Self { stripes, ..self }.checked(option, size)
    }

    fn checked(self, what: &str, size: Bytes) -> Result<Self> {
        if size < LEAST_SIZE { Err(too_small(what, size)) } else { Ok(self) }
    }

    fn drives(&self) -> usize {
        self.groups * (usize::from(self.data_drives) + usize::from(self.parity))
    }

    fn drive_bytes(&self) -> Bytes {
        Bytes((self.stripes + FIXED_SLOTS) * SLOT_BYTES)
    }
}

pub fn too_small(what: &str, size: Bytes) -> anyhow::Error {
    let hint = format!("write at least {LEAST_SIZE} for the garden and {LEAST_LOG} for its log");
    usage(format!("{what} of {size} is too small"), Some(&hint))
}

/// The size of a file or block device.
pub(super) fn size_of(path: &Path) -> Result<Bytes> {
    let found = fs::metadata(path).with_context(|| format!("cannot look up {}", path.display()))?;
    if found.file_type().is_block_device() {
        return Ok(LinuxHost::default().device_size(path)?);
    }
    Ok(Bytes(found.len()))
}

//! `senesce fs mkfs`.

use std::{fs, os::unix::fs::FileTypeExt, path::Path};

use anyhow::{Context, Result};
use senesce_core::{Bytes, Clock, Rng, Seed};
use senesce_garden::{FormatOptions, Garden, Limits, Packing, VolumeOptions};
use senesce_volume::{Host, LinuxHost, install_signal_cleanup};

use super::{
    claim,
    place::{self, Devices, Place},
    recompact::packing,
};
use crate::{
    args::{EngineKind, FsMkfsArgs},
    clock::SystemClock,
    exit::usage,
    progress::Stretch,
};

/// A block with its trailer, on a drive.
const SLOT_BYTES: u64 = 4096 + 64;
/// Slots of each drive for what lies at fixed places: its label and two superblocks.
const FIXED_SLOTS: u64 = 3;
const LEAST_SIZE: Bytes = Bytes(8 << 20);
const LEAST_LOG: Bytes = Bytes(1 << 20);
const USUAL_LOG: Bytes = Bytes(32 << 20);
/// The log's part of one file or device with both.
const LOG_PART: u64 = 16;
/// What drives that are made hold together, and how many hold data, if nothing is said.
const USUAL_SIZE: Bytes = Bytes(1 << 30);
const USUAL_DATA_DRIVES: u16 = 4;
/// An allocation area has so many stripes, unless the drives are small: then an eighth of them.
const AREA_STRIPES: u64 = 1024;

/// Makes an aggregate with one volume.
pub fn mkfs(args: &FsMkfsArgs, quiet: bool) -> Result<()> {
    let EngineKind::Garden = args.engine;
    packing(args.pack.compress)?;
    let place = Place::of(&args.place)?;
    check_words(args, &place)?;
    let log_size = args.log_size.unwrap_or(USUAL_LOG);
    if log_size < LEAST_LOG {
        return Err(too_small("--log-size", log_size));
    }
    let (shape, devices) = match &place {
        Place::Directory(dir) => {
            let shape = Shape::of_size(args, 1, args.data_drives.unwrap_or(USUAL_DATA_DRIVES))?;
            (shape, place::create(dir, shape.drives() as u32, shape.drive_bytes(), log_size)?)
        }
        Place::One(path) => {
            install_signal_cleanup().context("cannot handle signals")?;
            claim::check(path, args.force)?;
            let shape = Shape::of_one(args, path)?;
            let zeroed = Bytes(if args.zeroed { 0 } else { u64::MAX });
            let claim = claim::open(path, Bytes(0), Bytes(0), zeroed)?;
            let mut bar = Stretch::for_stderr(quiet, "writing zeros", "bytes", claim.to_zero());
            (shape, place::split(claim.wipe(&mut bar)?, shape.drive_bytes())?)
        }
        Place::Named { drives, log } => {
            install_signal_cleanup().context("cannot handle signals")?;
            let named: Vec<&Path> = drives.iter().chain([log]).map(|path| &**path).collect();
            claim::check_distinct(&named)?;
            named.iter().try_for_each(|path| claim::check(path, args.force))?;
            let shape = Shape::of_named(args, drives.iter().map(|path| &**path))?;
            (shape, claim_named(args, &shape, drives.iter().map(|path| &**path), log, quiet)?)
        }
    };
    let given = args.uuid.as_deref().map(parse_uuid).transpose()?;
    // Of one identity, the same bytes.
    let of_uuid = given.map(|uuid| Seed(0).derive(&u128::from_be_bytes(uuid).to_string()));
    let seed = args.seed.map(Seed).or(of_uuid).unwrap_or_else(seed_of_now);
    let uuid = given.unwrap_or_else(|| {
        let mut uuid = [0; 16];
        Rng::for_purpose(seed, "identity of an aggregate").fill(&mut uuid);
        uuid
    });
    let options = FormatOptions {
        uuid,
        groups: vec![(shape.data_drives, shape.parity); shape.groups],
        media: vec![],
        aa_stripes: (shape.stripes / 8).clamp(1, AREA_STRIPES) as u32,
        tetris_stripes: 64,
        zeroed: true,
    };
    let log_bytes = devices.log.size();
    let blocks = fill(args, &options, devices, seed.derive("order of names")).with_context(|| match &place {
        Place::Directory(dir) => format!("cannot make a garden in {}; remove the directory", dir.display()),
        Place::One(_) | Place::Named { .. } => format!("cannot make a garden on {place}"),
    })?;
    println!("{place}: {} in {shape} and a log of {log_bytes}; volume {}", Bytes(blocks * 4096), args.volume);
    Ok(())
}

/// Errors: what is said means nothing for this place.
fn check_words(args: &FsMkfsArgs, place: &Place) -> Result<()> {
    match place {
        Place::Directory(_) if args.force => {
            Err(usage("--force is about drives that are there, and a directory is made", None))
        }
        Place::Directory(_) | Place::Named { .. } if args.zeroed => Err(usage(
            "--zeroed is about one file or device that is there; a directory is made, and drives that are named are looked at",
            None,
        )),
        _ => Ok(()),
    }
}

/// The RAID groups of an aggregate that is to be made, all alike.
#[derive(Clone, Copy)]
struct Shape {
    groups: usize,
    data_drives: u16,
    parity: bool,
    stripes: u64,
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
    /// Drives of one size that hold together what `--size` says.
    fn of_size(args: &FsMkfsArgs, groups: usize, data_drives: u16) -> Result<Self> {
        let size = args.size.unwrap_or(USUAL_SIZE);
        let stripes = (size.0 / 4096).div_ceil(groups as u64 * u64::from(data_drives));
        Self { groups, data_drives, parity: !args.no_parity, stripes }.checked("--size", size)
    }

    /// One drive without parity, beside the log on the same file or device.
    fn of_one(args: &FsMkfsArgs, path: &Path) -> Result<Self> {
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

    /// Drives that are named: as large as the smallest of them, or as `--size` says if some are still to be made.
    fn of_named<'a>(args: &FsMkfsArgs, drives: impl Iterator<Item = &'a Path> + Clone) -> Result<Self> {
        let parity = !args.no_parity;
        let all = drives.clone().count();
        let one_group = u16::try_from(all).unwrap_or(u16::MAX).saturating_sub(u16::from(parity));
        let data_drives = args.data_drives.unwrap_or(one_group);
        let group = usize::from(data_drives) + usize::from(parity);
        if data_drives == 0 || !all.is_multiple_of(group) {
            let message = format!("{all} drive(s) make no RAID groups of {} of data{}", data_drives.max(1), {
                if parity { " and one of parity" } else { "" }
            });
            return Err(usage(message, Some("name more with --drive, or say --data-drives N or --no-parity")));
        }
        if data_drives > 64 {
            let message = format!("{data_drives} drives of data in one RAID group; 64 at most");
            return Err(usage(message, Some("--data-drives N makes several groups")));
        }
        let groups = all / group;
        if let Some(new) = drives.clone().find(|path| !path.exists()) {
            if args.size.is_none() {
                let message = format!("{} is not there, and no size is given", new.display());
                return Err(usage(message, Some("--size says what all drives are to hold together, without parity")));
            }
            return Self::of_size(args, groups, data_drives);
        }
        if args.size.is_some() {
            return Err(usage("--size is about drives that are made, and all of these are there", None));
        }
        let mut smallest = u64::MAX;
        for path in drives {
            smallest = smallest.min(size_of(path)?.0);
        }
        let stripes = (smallest / SLOT_BYTES).saturating_sub(FIXED_SLOTS);
        let size = Bytes(stripes * 4096 * groups as u64 * u64::from(data_drives));
        Self { groups, data_drives, parity, stripes }.checked("what the drives hold,", size)
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

fn too_small(what: &str, size: Bytes) -> anyhow::Error {
    let hint = format!("a garden holds {LEAST_SIZE} and has a log of {LEAST_LOG} at least");
    usage(format!("{what} {size} is too small"), Some(&hint))
}

/// The size of a file or block device.
fn size_of(path: &Path) -> Result<Bytes> {
    let found = fs::metadata(path).with_context(|| format!("cannot look up {}", path.display()))?;
    if found.file_type().is_block_device() {
        return Ok(LinuxHost::default().device_size(path)?);
    }
    Ok(Bytes(found.len()))
}

/// An identity as people write it; hyphens mean nothing.
fn parse_uuid(text: &str) -> Result<[u8; 16]> {
    let digits: String = text.chars().filter(|&letter| letter != '-').collect();
    let is_whole = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match u128::from_str_radix(&digits, 16) {
        Ok(number) if is_whole => Ok(number.to_be_bytes()),
        _ => Err(usage(format!("{text:?} is no identity: it has 32 hexadecimal digits"), None)),
    }
}

/// Opens the drives and the log, or makes them; they hold zeros then.
fn claim_named<'a>(
    args: &FsMkfsArgs,
    shape: &Shape,
    drives: impl Iterator<Item = &'a Path> + Clone,
    log: &Path,
    quiet: bool,
) -> Result<Devices> {
    let bytes = shape.drive_bytes();
    // All are opened before anything is written: what is too small or in use is told in time.
    let log = claim::open(log, args.log_size.unwrap_or(USUAL_LOG), LEAST_LOG, Bytes(u64::MAX))?;
    let drives: Vec<_> = drives.map(|path| claim::open(path, bytes, bytes, bytes)).collect::<Result<_>>()?;
    let zeros = drives.iter().map(claim::Claim::to_zero).sum();
    let mut bar = Stretch::for_stderr(quiet, "writing zeros", "bytes", zeros);
    let log = log.wipe(&mut bar)?;
    Ok(Devices { drives: drives.into_iter().map(|drive| drive.wipe(&mut bar)).collect::<Result<_>>()?, log })
}

/// Out: the blocks of the aggregate.
fn fill(args: &FsMkfsArgs, options: &FormatOptions, devices: Devices, names: Seed) -> Result<u64> {
    Garden::format(options, devices.drives.clone(), devices.log.clone())?;
    let garden = Garden::open(&devices.drives, devices.log, Limits::default())?;
    let blocks = garden.report().blocks;
    let volume = VolumeOptions { blocks, inodes: (blocks / 2).max(1024), seed: names.0 };
    garden.create_volume(args.volume.as_bytes(), &volume)?;
    if let packing @ Packing { compaction: true, .. } = packing(args.pack.compress)? {
        garden.set_packing(args.volume.as_bytes(), packing)?;
    }
    Ok(blocks)
}

/// Another one for every call.
fn seed_of_now() -> Seed {
    let clock = SystemClock::start();
    let process = u64::from(std::process::id());
    Seed(SystemClock::unix_time().nanoseconds.into()).derive(&format!("{} {process}", clock.unix_seconds()))
}

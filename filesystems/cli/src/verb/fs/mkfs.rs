//! `senesce fs mkfs`.

use std::path::Path;

use anyhow::{Context, Result};
use senesce_core::{Bytes, Clock, Rng, Seed};
use senesce_garden::{FormatOptions, Garden, Limits, LogDevices, Packing, VolumeOptions};
use senesce_volume::install_signal_cleanup;

use super::{
    claim,
    groups::{LEAST_LOG, Pool, Shape, USUAL_LOG, too_small},
    place::{self, Devices, Place},
    send_request::fault,
};
use crate::{
    args::{FsMkfsArgs, MediumArg},
    clock::SystemClock,
    exit::usage,
    progress::Stretch,
};

/// The volume that is meant if none is named.
pub(super) const USUAL_VOLUME: &str = "main";

/// Makes an aggregate with one volume.
pub fn mkfs(args: &FsMkfsArgs, quiet: bool) -> Result<()> {
    packing(args)?;
    let place = Place::of(&args.place)?;
    check_words(args, &place)?;
    let log_size = args.log_size.unwrap_or(USUAL_LOG);
    if log_size < LEAST_LOG {
        return Err(too_small("--log-size", log_size));
    }
    let (pool, devices) = match &place {
        Place::Directory(dir) => {
            let pool = Pool::of_size(args, Shape::of_size(args)?)?;
            if args.dry_run {
                place::check_free(dir)?;
                return preview(args, &place, &pool);
            }
            (pool, place::create(dir, &pool.drive_bytes(), log_size)?)
        }
        Place::One(path) => {
            install_signal_cleanup().context("cannot handle signals")?;
            let held = claim::hold(path, args.force)?;
            let shape = Shape::of_one(args, path)?;
            if args.dry_run {
                return preview(args, &place, &Pool::of(args, shape));
            }
            let zeroed = Bytes(if args.zeroed { 0 } else { u64::MAX });
            let claim = held.open(Bytes(0), Bytes(0), zeroed)?;
            let mut bar = Stretch::for_stderr(quiet, "writing zeros", "bytes", claim.to_zero());
            let pool = Pool::of(args, shape);
            let (drive, log) = place::split(claim.wipe(&mut bar)?, pool.drive_bytes()[0])?;
            (pool, Devices { drives: vec![drive], log: LogDevices::twice(log) })
        }
        Place::Named { drives, logs } => {
            install_signal_cleanup().context("cannot handle signals")?;
            let named: Vec<&Path> = drives.iter().chain(&args.flash_drive).chain(logs).map(|path| &**path).collect();
            claim::check_distinct(&named)?;
            // All are held before the first write: if one is too small or in use, the others stay
            // unchanged.
            let mut held: Vec<_> = named.iter().map(|path| claim::hold(path, args.force)).collect::<Result<_>>()?;
            let shape = Shape::of_named(args, drives.iter().map(|path| &**path))?;
            let pool = Pool::of_named(args, shape)?;
            if args.dry_run {
                return preview(args, &place, &pool);
            }
            let logs = held.split_off(held.len() - logs.len());
            (pool, open_named(args, &pool.drive_bytes(), held, logs, quiet)?)
        }
    };
    let (seed, uuid) = identity(args, "identity of an aggregate")?;
    let options = FormatOptions {
        uuid,
        groups: pool.groups().iter().map(|(shape, _)| (shape.data_drives, shape.parity)).collect(),
        media: pool.groups().iter().map(|(_, medium)| *medium).collect(),
        aa_stripes: pool.area_stripes(),
        tetris_stripes: 64,
        zeroed: true,
    };
    let logs: Vec<String> = devices.log.devices().iter().map(|device| device.size().to_string()).collect();
    let logs = match &logs[..] {
        [both] => format!("both on one device of {both}"),
        each => each.join(" and "),
    };
    let blocks = fill(args, &options, devices, seed.derive("order of names")).with_context(|| match &place {
        Place::Directory(dir) => {
            format!("cannot make a garden in {}; the directory is incomplete: remove it", dir.display())
        }
        Place::One(_) | Place::Named { .. } => format!("cannot make a garden on {place}"),
    })?;
    println!("{place}: {} in {pool}; two copies of the log: {logs}; volume {}", Bytes(blocks * 4096), volume(args));
    Ok(())
}

/// Prints what would be made at a place that was checked.
fn preview(args: &FsMkfsArgs, place: &Place, pool: &Pool) -> Result<()> {
    println!("{place}: a garden in {pool} with volume {} would be made; nothing was written", volume(args));
    Ok(())
}

/// Errors: what is said means nothing for this place.
fn check_words(args: &FsMkfsArgs, place: &Place) -> Result<()> {
    let is_pool = args.flash_size.is_some() || !args.flash_drive.is_empty();
    match place {
        _ if args.tree.is_given() => Err(usage(
            "these options are of an evergreen, and the file system is a garden",
            Some("`senesce fs mkfs -h` lists them under `Of an evergreen`"),
        )),
        _ if is_pool && args.medium == MediumArg::Ssd => {
            Err(usage("--flash adds SSDs to disks, and --medium says that all drives are SSDs", None))
        }
        Place::One(_) if is_pool => {
            Err(usage("--flash needs a directory or several drives: one file or device is one drive", None))
        }
        Place::Directory(_) if args.force => {
            Err(usage("--force applies to existing drives, and mkfs makes a new directory", None))
        }
        Place::Directory(_) | Place::Named { .. } if args.zeroed => Err(usage(
            "--zeroed applies to one existing file or device; mkfs makes a new directory, and reads named drives",
            None,
        )),
        _ => Ok(()),
    }
}

/// An identity as people write it; hyphens mean nothing.
fn parse_uuid(text: &str) -> Result<[u8; 16]> {
    let digits: String = text.chars().filter(|&letter| letter != '-').collect();
    let is_whole = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match u128::from_str_radix(&digits, 16) {
        Ok(number) if is_whole => Ok(number.to_be_bytes()),
        _ => Err(usage(format!("{text:?} is no identity; write 32 hexadecimal digits"), None)),
    }
}

/// Opens the drives and the log, or makes them; they hold zeros then.
fn open_named(
    args: &FsMkfsArgs,
    sizes: &[Bytes],
    drives: Vec<claim::Held>,
    logs: Vec<claim::Held>,
    quiet: bool,
) -> Result<Devices> {
    let size = args.log_size.unwrap_or(USUAL_LOG);
    let logs: Vec<_> =
        logs.into_iter().map(|held| held.open(size, LEAST_LOG, Bytes(u64::MAX))).collect::<Result<_>>()?;
    let open = |(held, &bytes): (claim::Held, &Bytes)| held.open(bytes, bytes, bytes);
    let drives: Vec<_> = drives.into_iter().zip(sizes).map(open).collect::<Result<_>>()?;
    let zeros = drives.iter().map(claim::Claim::to_zero).sum();
    let mut bar = Stretch::for_stderr(quiet, "writing zeros", "bytes", zeros);
    let mut logs: Vec<_> = logs.into_iter().map(|log| log.wipe(&mut bar)).collect::<Result<_>>()?;
    let log = match logs.len() {
        1 => LogDevices::twice(logs.remove(0)),
        _ => logs.into(),
    };
    Ok(Devices { drives: drives.into_iter().map(|drive| drive.wipe(&mut bar)).collect::<Result<_>>()?, log })
}

/// Out: the blocks of the aggregate.
fn fill(args: &FsMkfsArgs, options: &FormatOptions, devices: Devices, names: Seed) -> Result<u64> {
    Garden::format(options, devices.drives.clone(), &devices.log)?;
    let garden = Garden::open(&devices.drives, &devices.log, Limits::default())?;
    let blocks = garden.report().blocks;
    let volume = VolumeOptions { blocks, inodes: (blocks / 2).max(1024), seed: names.0 };
    garden.create_volume(self::volume(args).as_bytes(), &volume)?;
    if let packing @ Packing { compaction: true, .. } = packing(args)? {
        garden.set_packing(self::volume(args).as_bytes(), packing)?;
    }
    garden.close()?;
    Ok(blocks)
}

/// The name of the volume that is made.
fn volume(args: &FsMkfsArgs) -> &str {
    args.volume.as_deref().unwrap_or(USUAL_VOLUME)
}

/// The seed of what is made, and its identity: of one identity, the same bytes.
pub(super) fn identity(args: &FsMkfsArgs, purpose: &str) -> Result<(Seed, [u8; 16])> {
    let given = args.uuid.as_deref().map(parse_uuid).transpose()?;
    let of_uuid = given.map(|uuid| Seed(0).derive(&u128::from_be_bytes(uuid).to_string()));
    let seed = args.seed.map(Seed).or(of_uuid).unwrap_or_else(seed_of_now);
    let uuid = given.unwrap_or_else(|| {
        let mut uuid = [0; 16];
        Rng::for_purpose(seed, purpose).fill(&mut uuid);
        uuid
    });
    Ok((seed, uuid))
}

/// Another one for every call.
fn seed_of_now() -> Seed {
    let clock = SystemClock::start();
    let process = u64::from(std::process::id());
    Seed(SystemClock::unix_time().nanoseconds.into()).derive(&format!("{} {process}", clock.unix_seconds()))
}

fn packing(args: &FsMkfsArgs) -> Result<Packing> {
    senesce_service::garden::packing(args.pack.compress.map_or(0, |size| size.0)).map_err(fault)
}

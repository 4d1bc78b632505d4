//! `senesce fs mkfs`.

use anyhow::{Context, Result};
use senesce_core::{Bytes, Clock, Rng, Seed};
use senesce_garden::{FormatOptions, Garden, Limits, VolumeOptions};

use super::place::{self, Devices};
use crate::{
    args::{EngineKind, FsMkfsArgs},
    clock::SystemClock,
    exit::usage,
};

/// A block with its trailer, on a drive.
const SLOT_BYTES: u64 = 4096 + 64;
/// Slots of each drive for what lies at fixed places: its label and two superblocks.
const FIXED_SLOTS: u64 = 3;
const LEAST_SIZE: Bytes = Bytes(8 << 20);
const LEAST_LOG: Bytes = Bytes(1 << 20);
/// An allocation area has so many stripes, unless the drives are small: then an eighth of them.
const AREA_STRIPES: u64 = 1024;

/// Makes an aggregate with one volume.
pub fn mkfs(args: &FsMkfsArgs) -> Result<()> {
    let EngineKind::Garden = args.engine;
    if args.size < LEAST_SIZE || args.log_size < LEAST_LOG {
        let message = format!("--size {} and --log-size {} are too small", args.size, args.log_size);
        return Err(usage(message, Some(&format!("give {LEAST_SIZE} and {LEAST_LOG} at least"))));
    }
    let stripes = (args.size.0 / 4096).div_ceil(args.data_drives.into());
    let drive_bytes = Bytes((stripes + FIXED_SLOTS) * SLOT_BYTES);
    let drives = usize::from(args.data_drives) + usize::from(!args.no_parity);
    let seed = args.seed.map_or_else(seed_of_now, Seed);
    let mut uuid = [0; 16];
    Rng::for_purpose(seed, "identity of an aggregate").fill(&mut uuid);
    let options = FormatOptions {
        uuid,
        groups: vec![(args.data_drives, !args.no_parity)],
        aa_stripes: (stripes / 8).clamp(1, AREA_STRIPES) as u32,
        tetris_stripes: 64,
        zeroed: true,
    };
    let place = &args.place;
    let devices = place::create(place, drives, drive_bytes, args.log_size)?;
    let made = fill(args, &options, devices, seed.derive("order of names"));
    let blocks = made.with_context(|| format!("cannot make a garden in {}; remove the directory", place.display()))?;
    println!(
        "{}: {} in {} and a log of {}; volume {}",
        place.display(),
        Bytes(blocks * 4096),
        if args.no_parity {
            format!("{drives} drives without parity")
        } else {
            format!("{drives} drives, one of them parity")
        },
        args.log_size,
        args.volume
    );
    Ok(())
}

/// Out: the blocks of the aggregate.
fn fill(args: &FsMkfsArgs, options: &FormatOptions, devices: Devices, names: Seed) -> Result<u64> {
    Garden::format(options, devices.drives.clone(), devices.log.clone())?;
    let garden = Garden::open(&devices.drives, devices.log, Limits::default())?;
    let blocks = garden.report().blocks;
    let volume = VolumeOptions { blocks, inodes: (blocks / 2).max(1024), seed: names.0 };
    garden.create_volume(args.volume.as_bytes(), &volume)?;
    Ok(blocks)
}

/// Another one for every call.
fn seed_of_now() -> Seed {
    let clock = SystemClock::start();
    let process = u64::from(std::process::id());
    Seed(SystemClock::unix_time().nanoseconds.into()).derive(&format!("{} {process}", clock.unix_seconds()))
}

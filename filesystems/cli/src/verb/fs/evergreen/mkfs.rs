//! Making an evergreen.

use std::path::Path;

use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_evergreen::{
    Evergreen, EvergreenFs, FsOptions, Limits, MakeOptions,
    disk::{Copies, Geometry, KeyOrder, Shape},
};
use senesce_volume::{SCAN_BYTES, install_signal_cleanup};

use super::super::{claim, groups::size_of, mkfs::identity};
use super::Place;
use crate::{
    args::{FsMkfsArgs, FsTreeArgs, KeyOrderArg, MediumArg},
    exit::usage,
    progress::Stretch,
};

const USUAL_SIZE: Bytes = Bytes(1 << 30);

/// Makes one on a file or device, or in a new file.
pub fn mkfs(args: &FsMkfsArgs, quiet: bool) -> Result<()> {
    check_words(args)?;
    let Some(given) = &args.place.place else {
        return Err(usage("an evergreen is on one file or device", Some("senesce fs mkfs evergreen FILE|DEVICE")));
    };
    let place = Place::named(given).unwrap_or_else(|| Place(given.clone()));
    install_signal_cleanup().context("cannot handle signals")?;
    let held = claim::hold(place.path(), args.force)?;
    let size = size(args, place.path())?;
    let (options, keys) = options(args, if place.path().exists() { size_of(place.path())? } else { size })?;
    let zeroed = zeroed(args, place.path(), &options)?;
    if args.dry_run {
        println!("{place}: an evergreen would be made; nothing was written");
        return Ok(());
    }
    let claim = held.open(size, Bytes(0), zeroed)?;
    let mut bar = Stretch::for_stderr(quiet, "writing zeros", "bytes", claim.to_zero());
    let device = claim.wipe(&mut bar)?;
    let geometry = Geometry::plan(device.size().0, options.unit_bytes, options.log_bytes)?;
    let cannot = || format!("cannot make an evergreen on {place}");
    Evergreen::make(device.clone(), &options).with_context(cannot)?;
    let store = Evergreen::open(device, Limits::default()).with_context(cannot)?;
    EvergreenFs::format(&store, FsOptions { keys }).with_context(cannot)?;
    store.checkpoint().with_context(cannot)?;
    let Shape { node_bytes, fanout, .. } = options.shape;
    println!(
        "{place}: {} in units of {}, nodes of {} with {fanout} children, and a log of {}",
        Bytes(geometry.data_bytes()),
        Bytes(options.unit_bytes.into()),
        Bytes(node_bytes.into()),
        Bytes(geometry.log_bytes),
    );
    Ok(())
}

/// Errors: words about a garden.
fn check_words(args: &FsMkfsArgs) -> Result<()> {
    let of_garden = [
        ("--drive", !args.place.drive.is_empty()),
        ("--data-drives", args.data_drives.is_some()),
        ("--no-parity", args.no_parity),
        ("--volume", args.volume.is_some()),
        ("--compress", args.pack.compress.is_some()),
        ("--flash-size", args.flash_size.is_some()),
        ("--flash-drive", !args.flash_drive.is_empty()),
        ("--medium", args.medium != MediumArg::Hdd),
    ];
    match of_garden.iter().find(|(_, is_given)| *is_given) {
        Some((word, _)) => Err(usage(format!("{word} is an option of a garden, and an evergreen was requested"), None)),
        None => Ok(()),
    }
}

/// How large a new file is to be; what is there is as large as it is.
fn size(args: &FsMkfsArgs, path: &Path) -> Result<Bytes> {
    match (path.exists(), args.size) {
        (true, Some(_)) => Err(usage(format!("--size is the size of a new file, and {} exists", path.display()), None)),
        (_, size) => Ok(size.unwrap_or(USUAL_SIZE)),
    }
}

/// How much of what is there is written over with zeros: where other file systems have marks; and
/// the log, if another evergreen of the same identity may have been there, whose log would be
/// believed.
fn zeroed(args: &FsMkfsArgs, path: &Path, options: &MakeOptions) -> Result<Bytes> {
    if args.zeroed {
        return Ok(Bytes(0));
    }
    if !path.exists() || (args.uuid.is_none() && args.seed.is_none()) {
        return Ok(Bytes(SCAN_BYTES as u64));
    }
    Ok(Bytes(Geometry::plan(size_of(path)?.0, options.unit_bytes, options.log_bytes)?.data_at))
}

/// The shape that the options describe, for a place of this size. Errors: an impossible shape.
fn options(args: &FsMkfsArgs, size: Bytes) -> Result<(MakeOptions, KeyOrder)> {
    let FsTreeArgs { node_size, basement_size, fanout, unit_size, key_order, metadata_copies } = &args.tree;
    let bytes = |word: &str, size: Bytes| {
        u32::try_from(size.0).map_err(|_| usage(format!("{word} {size} is too large: write less than 4 GiB"), None))
    };
    let (_, uuid) = identity(args, "identity of an evergreen")?;
    let suited = match node_size {
        Some(size) => MakeOptions::with_nodes(uuid, bytes("--node-size", *size)?),
        None => MakeOptions::suited(uuid, size.0),
    };
    let Shape { node_bytes, basement_bytes: usual_basement, fanout: usual_fanout, .. } = suited.shape;
    let basement_bytes = basement_size.map_or(Ok(usual_basement), |size| bytes("--basement-size", size))?;
    let keys = match key_order {
        None | Some(KeyOrderArg::BirthPath) => KeyOrder::BirthPath,
        Some(KeyOrderArg::InodeNumber) => KeyOrder::InodeNumber,
    };
    let shape = Shape { node_bytes, basement_bytes, fanout: fanout.unwrap_or(usual_fanout), key_order: keys };
    shape
        .validate()
        .map_err(|damage| usage(format!("{} {}: {} is possible", damage.field, damage.found, damage.expected), None))?;
    let mut options = MakeOptions { shape, ..suited };
    if let Some(size) = unit_size {
        options.unit_bytes = bytes("--unit-size", *size)?;
    }
    if options.unit_bytes > node_bytes / 4 {
        let (unit, node) = (Bytes(options.unit_bytes.into()), Bytes(node_bytes.into()));
        return Err(usage(
            format!("a unit of {unit} is too large for nodes of {node}"),
            Some("write a unit of at most a quarter of a node"),
        ));
    }
    options.log_bytes = args.log_size.map(|size| size.0);
    options.copies = if *metadata_copies == Some(1) { Copies::One } else { Copies::Two };
    Ok((options, keys))
}

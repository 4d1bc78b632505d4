//! `senesce replay`: an operation log onto any place.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use senesce_core::{Bytes, Printable, Seed};
use senesce_experiment::{Against, Onto, ReplayOptions, collect_peak, replay_log};
use senesce_oplog::Ended;
use senesce_volume::{
    Backend, Custodian, FileSystemKind, Slot, Uuid, Volume, VolumeSpec, check_room, install_signal_cleanup,
};

use super::{
    fs::{with_engine, with_evergreen},
    home::with_home_kept_if,
};
use crate::{
    args::{FsArg, ReplayArgs},
    clock::SystemClock,
    exit::{failed, usage},
    machine::{count_threads, trusted_owners},
};

/// Replays, compares, and says so; differences are a failure.
pub fn replay(args: ReplayArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let kept = with_home_kept_if(Option::is_some, |custodian| {
        let (_, scratch) = custodian.acquire_tree(&args.dir, "senesce-replay")?;
        let kept = replay_in(&args, custodian, &scratch, quiet)?;
        Ok(kept.map(|volume| (volume, custodian.dir().to_owned())))
    })?;
    if let Some((volume, home)) = kept {
        let (root, home) = (Printable::new(volume.root()), Printable::new(&home));
        println!("kept mounted at {root} (`senesce clean {home}` removes it)");
        // The journal keeps it, not this process: that is what `keep` means.
        std::mem::forget(volume);
    }
    Ok(())
}

/// Gives the volume that is to be kept.
fn replay_in(args: &ReplayArgs, custodian: &Custodian, scratch: &Path, quiet: bool) -> Result<Option<Volume>> {
    let existing = Path::new(&args.on);
    if existing.is_dir() {
        if fs::read_dir(existing).context("cannot list the directory to replay into")?.next().is_some() {
            return Err(usage(format!("{} is not empty", args.on), Some("give an empty directory")));
        }
        return replay_into(args, Onto::Directory(existing), scratch, quiet).map(|()| None);
    }
    if let Some(place) = args.on.strip_prefix("garden:") {
        if args.keep || args.force || args.fs.is_some() {
            return Err(usage("--keep, --force and --fs are about volumes that are made; --on names a garden", None));
        }
        let replay = |target: &_, _: &_| replay_into(args, Onto::Engine(target), scratch, quiet);
        return with_engine(Path::new(place), replay).map(|()| None);
    }
    if let Some(place) = args.on.strip_prefix("evergreen:") {
        if args.keep || args.force || args.fs.is_some() {
            return Err(usage(
                "--keep, --force and --fs are about volumes that are made; --on names an evergreen",
                None,
            ));
        }
        let replay = |target: &_| replay_into(args, Onto::Engine(target), scratch, quiet);
        return with_evergreen(Path::new(place), replay).map(|()| None);
    }
    let (spec, slot) = spec(args, scratch)?;
    let host = &**custodian.host();
    // Reading a log takes time: quick checks come first.
    check_room(host, &spec, Bytes(0))?;
    check_room(host, &spec, collect_peak(&args.log)?)?;
    let volume = Volume::create(custodian, &spec, &slot)?;
    replay_into(args, Onto::Directory(volume.root()), scratch, quiet)?;
    if args.keep {
        return Ok(Some(volume));
    }
    volume.destroy()?;
    Ok(None)
}

fn spec(args: &ReplayArgs, scratch: &Path) -> Result<(VolumeSpec, Slot)> {
    let file_system = match args.fs {
        Some(FsArg::Ext4) => FileSystemKind::Ext4,
        Some(FsArg::Xfs) => FileSystemKind::Xfs,
        Some(FsArg::Btrfs) => FileSystemKind::Btrfs,
        Some(FsArg::F2fs) => FileSystemKind::F2fs,
        None => return Err(usage("--on names an image or a device", Some("say which file system with --fs"))),
    };
    let (backend, needed) = match args.on.strip_prefix("image:") {
        Some(size) => {
            let size: Bytes = size.parse().map_err(|error| usage(format!("--on: {error}"), None))?;
            (Backend::Image { dir: scratch.to_owned(), size, memory: false }, Bytes(0))
        }
        None => (Backend::Device { path: PathBuf::from(&args.on), size: None }, Bytes(0)),
    };
    let mut spec = VolumeSpec::new(backend, file_system);
    spec.force = args.force;
    let uuid = Uuid::from_seed(Seed(u64::from(std::process::id())).derive("replay"));
    Ok((spec, Slot { name: "replay".into(), uuid, mount_dir: scratch.to_owned(), needed }))
}

fn replay_into(args: &ReplayArgs, onto: Onto<'_>, scratch: &Path, quiet: bool) -> Result<()> {
    let against = match args.against.as_str() {
        "model" => Against::Model,
        directory => Against::Directory(Path::new(directory)),
    };
    let clock = SystemClock::start();
    let mut each = |step: u64| {
        if !quiet && step % 1000 == 999 {
            eprintln!("{} steps", step + 1);
        }
    };
    let options = ReplayOptions {
        log: &args.log,
        onto,
        repo: args.repo.as_deref(),
        owners: &trusted_owners(args.trust_repo),
        spool: &scratch.join("spool"),
        against,
        threads: usize::from(args.threads.get()),
        pace: args.pace.0,
        clock: &clock,
        hash_threads: count_threads(None),
        trust_log: args.trust_log,
    };
    let end = replay_log(&options, &mut each)?;
    println!("{} steps replayed ({}); {} files; tree {}", end.steps, end.ended, end.files, end.tree_hash);
    if !end.withheld.is_nothing() {
        println!("not replayed as recorded: {} (--trust-log replays them)", end.withheld);
    }
    if let Ended::Truncated { .. } = end.ended {
        return Err(failed(format!("the log is {}: only its whole frames were replayed", end.ended)));
    }
    if end.differences.is_empty() {
        println!("the tree equals that of {}", args.against);
        return Ok(());
    }
    Err(failed(format!("the tree differs from that of {}:\n  {}", args.against, end.differences.join("\n  "))))
}

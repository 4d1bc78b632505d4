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
    Backend, Custodian, FileSystemKind, Slot, Uuid, Volume, VolumeSpec, check_device, check_room,
    install_signal_cleanup,
};

use super::{
    home::with_home_kept_if,
    keep::{keep_image, name_place},
    place::{check_new_files, check_place, image_size},
    shell::shell_word,
};
use crate::{
    args::{FsArg, ReplayArgs},
    clock::SystemClock,
    engines::{engines, is_engine_place},
    exit::{failed, failed_with, usage},
    machine::{count_threads, trusted_owners},
};

/// Replays, compares, and says so; differences are a failure.
pub fn replay(args: ReplayArgs, quiet: bool) -> Result<()> {
    if is_engine_place(&args.on) {
        engines().hand_over()?;
    }
    install_signal_cleanup().context("cannot handle signals")?;
    let kept = with_home_kept_if(Option::is_some, |custodian| {
        let (_, scratch) = custodian.acquire_tree(&args.dir, "senesce-replay")?;
        let kept = replay_in(&args, custodian, &scratch, quiet)?;
        Ok(kept.map(|volume| (volume, custodian.dir().to_owned())))
    })?;
    if let Some((volume, home)) = kept {
        let (root, home) = (Printable::new(volume.root()), Printable::new(&home));
        println!("kept mounted at {root} (`senesce clean {home}` removes it)");
        println!("next: senesce inspect {root}");
        // The journal keeps it, not this process: that is what `keep` means.
        std::mem::forget(volume);
    }
    Ok(())
}

/// Writes all changes of a file system to its device.
fn sync(root: &Path) -> Result<()> {
    let opened = fs::File::open(root).and_then(|dir| Ok(rustix::fs::syncfs(&dir)?));
    opened.with_context(|| format!("cannot write the changes of {} to the device", root.display()))
}

/// Returns the volume that stays mounted.
fn replay_in(args: &ReplayArgs, custodian: &Custodian, scratch: &Path, quiet: bool) -> Result<Option<Volume>> {
    check_against(args)?;
    check_new_files([&args.image])?;
    let existing = Path::new(&args.on);
    if existing.is_dir() {
        refuse_options_of_made_volumes(args, "a directory")?;
        if fs::read_dir(existing).context("cannot list the directory to replay into")?.next().is_some() {
            return Err(usage(format!("{} is not empty", args.on), Some("give an empty directory")));
        }
        if args.dry_run {
            rustix::fs::access(existing, rustix::fs::Access::WRITE_OK)
                .map_err(std::io::Error::from)
                .with_context(|| format!("cannot write to {}", existing.display()))?;
            return print_preview(args).map(|()| None);
        }
        return replay_into(args, Onto::Directory(existing), scratch, quiet).map(|()| None);
    }
    if let Some(place) = args.on.strip_prefix("garden:") {
        refuse_options_of_made_volumes(args, "a garden")?;
        if args.dry_run {
            engines().survey(Path::new(place), None, &|| true)?;
            return print_preview(args).map(|()| None);
        }
        return replay_onto_engine(args, scratch, quiet).map(|()| None);
    }
    if args.on.starts_with("evergreen:") {
        refuse_options_of_made_volumes(args, "an evergreen")?;
        if args.dry_run {
            engines().survey(Path::new(&args.on), None, &|| true)?;
            return print_preview(args).map(|()| None);
        }
        return replay_onto_engine(args, scratch, quiet).map(|()| None);
    }
    check_place(&args.on)?;
    let (spec, slot) = spec(args, scratch)?;
    let host = &**custodian.host();
    if let Backend::Device { path, .. } = &spec.backend {
        check_device(host, path, args.force)?;
    }
    // Reading a log takes time: quick checks come first.
    let named = |error| name_place(error, scratch, (&args.on, &args.dir));
    check_room(host, &spec, Bytes(0)).map_err(named)?;
    check_room(host, &spec, collect_peak(&args.log)?).map_err(named)?;
    if args.dry_run {
        return print_preview(args).map(|()| None);
    }
    let mut volume = Volume::create(custodian, &spec, &slot)?;
    replay_into(args, Onto::Directory(volume.root()), scratch, quiet)?;
    if let Some(path) = &args.image {
        let path = keep_image(&mut volume, path)?;
        let path = Printable::new(&path);
        println!("kept as the image {path}\nnext: senesce inspect {path}");
    }
    if args.keep {
        // Extents without a place on the device would make the layout look partial.
        sync(volume.root())?;
        return Ok(Some(volume));
    }
    volume.destroy()?;
    Ok(None)
}

fn replay_onto_engine(args: &ReplayArgs, scratch: &Path, quiet: bool) -> Result<()> {
    let act = &mut |target: &_| replay_into(args, Onto::Engine(target), scratch, quiet);
    engines().drive(&args.on, None, act).map(drop)
}

/// Errors: an option that is about volumes that are made, although `--on` names `place`.
fn refuse_options_of_made_volumes(args: &ReplayArgs, place: &str) -> Result<()> {
    if args.keep || args.image.is_some() || args.force || args.fs.is_some() {
        let message =
            format!("--keep, --image, --force and --fs apply to a volume that senesce formats; --on names {place}");
        return Err(usage(message, None));
    }
    Ok(())
}

/// Reads the log, and prints what a replay would do. Writes nothing.
fn print_preview(args: &ReplayArgs) -> Result<()> {
    let peak = collect_peak(&args.log)?.rounded_up();
    let (log, on) = (args.log.display(), &args.on);
    println!("{log} would be replayed onto {on}, which needs {peak} at most; nothing was written");
    args.image.iter().for_each(|image| println!("the image would be kept as {}", image.display()));
    Ok(())
}

/// Errors: the directory to compare with does not exist.
fn check_against(args: &ReplayArgs) -> Result<()> {
    if args.against == "model" || Path::new(&args.against).is_dir() {
        return Ok(());
    }
    let hint = Some("name the directory that the log was recorded from, or model");
    Err(usage(format!("--against: {} is no directory", args.against), hint))
}

fn spec(args: &ReplayArgs, scratch: &Path) -> Result<(VolumeSpec, Slot)> {
    let size = image_size(&args.on, || {
        let file_system = args.fs.map_or(FileSystemKind::Ext4, FsArg::kind);
        format!("senesce replay {} --on image:4GiB --fs {file_system}", shell_word(&args.log))
    })?;
    let Some(file_system) = args.fs.map(FsArg::kind) else {
        let message = format!("--on {} needs a file system", args.on);
        return Err(usage(message, Some(&format!("name one: --fs {}", FsArg::NAMES))));
    };
    let backend = match size {
        Some(size) => Backend::Image { dir: scratch.to_owned(), size, memory: false },
        None if args.image.is_some() => {
            let hint = Some("use --on image:SIZE, or use --keep to leave a device as it is");
            return Err(usage(format!("--image needs --on image:SIZE; --on names the device {}", args.on), hint));
        }
        None => Backend::Device { path: PathBuf::from(&args.on), size: None },
    };
    let mut spec = VolumeSpec::new(backend, file_system);
    spec.force = args.force;
    let uuid = Uuid::from_seed(Seed(u64::from(std::process::id())).derive("replay"));
    Ok((spec, Slot { name: "replay".into(), uuid, mount_dir: scratch.to_owned(), needed: Bytes(0) }))
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
    let against = match args.against.as_str() {
        "model" => "the one that the log describes".to_owned(),
        directory => format!("that of {directory}"),
    };
    if end.differences.is_empty() {
        println!("the tree equals {against}");
        return Ok(());
    }
    let differences = end.differences.join("\n  ");
    let message = format!("the tree differs from {against}:\n  {differences}");
    let is_content = args.against != "model" && differences.contains("other content");
    let hint = "a log keeps only the lengths of writes, unless it was recorded with `senesce record --keep-contents`";
    Err(failed_with(message, is_content.then_some(hint)))
}

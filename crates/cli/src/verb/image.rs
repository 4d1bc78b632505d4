//! `senesce image`: containers of aged volumes.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use senesce_core::{Bytes, Clock};
use senesce_image::{
    Container, Description, RestoreOptions, SaveOptions, SaveReport, restore, save, temporary_path, verify,
};
use senesce_volume::{
    Backend, Custodian, FileSystemKind, Host, LinuxHost, Resource, SCAN_BYTES, Slot, Volume, VolumeSpec, check_device,
    check_interrupted, find_mounted_twin, install_signal_cleanup, interrupted, read_superblock, read_used_bytes,
};

use super::home::with_home;
use crate::{
    args::{ImageArgs, ImageRestoreArgs, ImageSaveArgs, ImageVerb},
    clock::SystemClock,
    exit::{failed, usage},
    machine::count_threads,
};

/// Saves, restores, lists or verifies.
pub fn image(args: ImageArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    match args.verb {
        ImageVerb::Save(args) => save_image(&args, quiet),
        ImageVerb::Restore(args) => restore_image(&args, quiet),
        ImageVerb::List { paths, json } => list(&paths, json),
        ImageVerb::Verify { containers, threads } => {
            for container in &containers {
                let clock = SystemClock::start();
                let options =
                    RestoreOptions { threads: count_threads(threads), stop: is_interrupted, ..Default::default() };
                let report = verify(container, &options).map_err(explain)?;
                println!(
                    "{}: good, {} of data, {}",
                    container.display(),
                    Bytes(report.data_bytes),
                    report.content_hash
                );
                tell_speed(quiet, "checked", report.data_bytes, &clock);
            }
            Ok(())
        }
    }
}

fn tell_speed(quiet: bool, what: &str, bytes: u64, clock: &SystemClock) {
    if !quiet {
        let seconds = clock.now().as_secs_f64();
        let rate = Bytes((bytes as f64 / seconds.max(1e-9)) as u64);
        eprintln!("{} {what} in {seconds:.2} s, {rate}/s", Bytes(bytes));
    }
}

fn save_image(args: &ImageSaveArgs, quiet: bool) -> Result<()> {
    if args.container.symlink_metadata().is_ok() {
        return Err(usage(format!("{} exists already", args.container.display()), Some("give another name")));
    }
    let clock = SystemClock::start();
    let file_system = check_source(&args.source)?;
    with_home(|custodian| save_in(custodian, args, file_system, &clock, quiet))
}

fn save_in(
    custodian: &Custodian,
    args: &ImageSaveArgs,
    file_system: Option<String>,
    clock: &SystemClock,
    quiet: bool,
) -> Result<()> {
    let trimmed = if args.trim { Some(trim_copy(custodian, args)?) } else { None };
    let source = trimmed.as_ref().and_then(Volume::image).unwrap_or(&args.source);
    let mut circumstances: BTreeMap<String, String> = LinuxHost::default().circumstances(None).into_iter().collect();
    if trimmed.is_some() {
        circumstances.insert("trimmed".to_owned(), "true".to_owned());
    }
    circumstances.extend(args.set.iter().map(|set| (set.name.clone(), set.value.clone())));
    let description = Description { file_system, circumstances };
    let options = SaveOptions { threads: count_threads(args.threads), level: args.level, ..SaveOptions::default() };
    let report = save_listed(custodian, source, &args.container, &description, options)?;
    println!(
        "{}: {} volume, {} of data in {}, {}",
        args.container.display(),
        Bytes(report.volume_bytes),
        Bytes(report.data_bytes),
        Bytes(report.stored_bytes),
        report.content_hash
    );
    tell_speed(quiet, "saved", report.data_bytes, clock);
    if !quiet && trimmed.is_none() {
        note_deleted(source, &report);
    }
    Ok(())
}

/// Says what deleted files left in free space, if it is much. What is used and zero hides some of it.
fn note_deleted(source: &Path, report: &SaveReport) {
    // It is saved: that its use cannot be told is no failure.
    let Some(used) = read_start(source).ok().and_then(|start| read_used_bytes(&start)) else { return };
    let beyond = report.nonzero_bytes.saturating_sub(used);
    if beyond > TOLD_BYTES && beyond > report.nonzero_bytes / 20 {
        let beyond = Bytes(beyond);
        eprintln!("note: some {beyond} of the data are what deleted files left in free space; --trim leaves them out");
    }
}

/// Data in free space that is worth a word; and more than a twentieth of all.
const TOLD_BYTES: u64 = 16 << 20;

/// A copy of the image whose free space is trimmed. The image itself stays as it is: a mount writes.
fn trim_copy(custodian: &Custodian, args: &ImageSaveArgs) -> Result<Volume> {
    let host = custodian.host();
    let found = fs::metadata(&args.source).with_context(|| format!("cannot look at {}", args.source.display()))?;
    let identity = read_superblock(&read_start(&args.source)?);
    let (Some(identity), true) = (identity, found.is_file()) else {
        let message = format!("{} is no image of ext4, XFS or Btrfs: only those are trimmed", args.source.display());
        return Err(usage(message, Some("mount a device, fstrim it, and unmount it before it is saved")));
    };
    let fstrim = host.find_tool("fstrim");
    let fstrim = fstrim.ok_or(senesce_volume::Error::ToolMissing { tool: "fstrim".into(), package: "util-linux" })?;
    let beside = args.container.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (_, scratch) = custodian.acquire_tree(beside, "senesce-trim")?;
    let memory = host.is_in_memory(&scratch)?;
    let backend = Backend::Image { dir: scratch.clone(), size: Bytes(found.len()), memory };
    let needed = Bytes(found.blocks() * 512);
    let slot = Slot { name: "trim".into(), uuid: identity.uuid, mount_dir: scratch, needed };
    let spec = VolumeSpec::new(backend, identity.file_system);
    let (mut volume, _) = Volume::restore(custodian, &spec, &slot, &args.source, &SystemClock::start())?;
    let output = host.run_tool(&fstrim, &[volume.root().to_string_lossy().into_owned()])?;
    if !output.success {
        return Err(failed(format!("fstrim failed on a copy of {}: {}", args.source.display(), output.stderr.trim())));
    }
    volume.unmount()?;
    Ok(volume)
}

/// The beginning of an image or device, where superblocks are.
pub fn read_start(path: &Path) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.take(SCAN_BYTES as u64).read_to_end(&mut start).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(start)
}

/// Saves, with what is not whole yet in the journal.
pub fn save_listed(
    custodian: &Custodian,
    source: &Path,
    to: &Path,
    description: &Description,
    options: SaveOptions<'_>,
) -> Result<SaveReport> {
    let mark = custodian.token();
    let options = SaveOptions { mark, stop: is_interrupted, ..options };
    listed(custodian, to, mark, || save(source, to, description, &options))
}

/// Lists the file that is to become `to` in the journal while `act` makes it.
fn listed<T>(
    custodian: &Custodian,
    to: &Path,
    mark: &str,
    act: impl FnOnce() -> senesce_image::Result<T>,
) -> Result<T> {
    // Its directory must be there for the journal to name it from anywhere.
    let dir = to.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let dir = fs::canonicalize(dir).with_context(|| format!("cannot look up {}", dir.display()))?;
    let path = temporary_path(&dir.join(to.file_name().unwrap_or_default()), mark);
    let (id, made) = custodian.acquire(Resource::File { path }, |_| Ok(act()))?;
    // It has its own name now, or is gone: this only closes the entry.
    custodian.release(id)?;
    made.map_err(explain)
}

/// Refuses what is in use, whose bytes would be of several moments; gives the name of the file system.
pub fn check_source(path: &Path) -> Result<Option<String>> {
    let host = LinuxHost::default();
    let kind = fs::metadata(path).with_context(|| format!("cannot look at {}", path.display()))?.file_type();
    let users = if kind.is_block_device() {
        host.device_users(&fs::canonicalize(path)?)?
    } else if kind.is_file() {
        let id = host.file_id(&fs::canonicalize(path)?)?;
        let loops = id.map_or(Ok(Vec::new()), |id| host.loops_backed_by(id))?;
        loops.iter().map(|device| device.display().to_string()).collect()
    } else {
        let hint = "give the image or the device that the file system lies on, not where it is mounted";
        return Err(usage(format!("{} is neither an image nor a device", path.display()), Some(hint)));
    };
    if !users.is_empty() {
        let hint = "unmount it first, and detach the loop device of an image: what is in use fits no moment";
        return Err(usage(format!("{} is in use by {}", path.display(), users.join(", ")), Some(hint)));
    }
    Ok(read_superblock(&read_start(path)?).map(|found| found.file_system.name().to_owned()))
}

fn restore_image(args: &ImageRestoreArgs, quiet: bool) -> Result<()> {
    let clock = SystemClock::start();
    let host = LinuxHost::default();
    if let Ok(found) = fs::metadata(&args.to) {
        if found.file_type().is_block_device() {
            check_device(&host, &args.to, args.force)?;
        } else if args.force {
            check_source(&args.to)?;
        }
    }
    let report = with_home(|custodian| {
        let mark = custodian.token();
        let options = RestoreOptions {
            mark,
            threads: count_threads(args.threads),
            replace: args.force,
            sync: !args.no_sync,
            stop: is_interrupted,
        };
        listed(custodian, &args.to, mark, || restore(&args.container, &args.to, &options))
    })?;
    println!(
        "{}: {} volume, {} written, {}",
        args.to.display(),
        Bytes(report.volume_bytes),
        Bytes(report.written_bytes),
        report.content_hash
    );
    tell_speed(quiet, "restored", report.data_bytes, &clock);
    if !quiet {
        note_twin(&host, &args.to);
    }
    Ok(())
}

/// Says what stands in the way of mounting what was restored.
fn note_twin(host: &LinuxHost, restored: &Path) {
    // It is restored: that its twins cannot be looked for is no failure.
    let Some(identity) = read_start(restored).ok().and_then(|start| read_superblock(&start)) else { return };
    let advice = match identity.file_system {
        FileSystemKind::Ext4 | FileSystemKind::Garden | FileSystemKind::Evergreen => return,
        FileSystemKind::Xfs => "mount this one with -o nouuid",
        FileSystemKind::Btrfs => "unmount that one before you mount this one",
    };
    let (kind, uuid) = (identity.file_system, identity.uuid);
    match find_mounted_twin(host, identity) {
        Ok(Some(point)) => {
            eprintln!("note: a {kind} with its UUID {uuid} is mounted on {}: {advice}", point.display());
        }
        Ok(None) => {}
        Err(error) => eprintln!("note: whether a {kind} with its UUID {uuid} is mounted is not known: {error}"),
    }
}

/// Whether a signal asked for an end.
pub fn is_interrupted() -> bool {
    interrupted().is_some()
}

/// What the user can do otherwise is a matter of usage; who stopped was told to.
pub fn explain(error: senesce_image::Error) -> anyhow::Error {
    if let (senesce_image::Error::Stopped { .. }, Err(signal)) = (&error, check_interrupted("an image container")) {
        return signal.into();
    }
    match error {
        senesce_image::Error::Exists { .. } => {
            usage(error.to_string(), Some("give another name, or restore with --force"))
        }
        senesce_image::Error::TooSmall { .. } => usage(error.to_string(), None),
        error => error.into(),
    }
}

fn list(paths: &[PathBuf], json: bool) -> Result<()> {
    let mut documents = Vec::new();
    for path in find_containers(paths)? {
        let container = Container::open(&path)?;
        let description = container.description();
        if json {
            documents.push(serde_json::json!({
                "path": path.to_string_lossy(),
                "file_system": description.file_system,
                "volume_bytes": container.volume_bytes(),
                "data_bytes": container.data_bytes(),
                "stored_bytes": container.stored_bytes(),
                "content_hash": container.content_hash(),
                "senesce": container.senesce_version(),
                "circumstances": description.circumstances,
            }));
            continue;
        }
        println!(
            "{}: {} of {}, {} of data in {}, by senesce {}\n  content  {}",
            path.display(),
            description.file_system.as_deref().unwrap_or("no known file system"),
            Bytes(container.volume_bytes()),
            Bytes(container.data_bytes()),
            Bytes(container.stored_bytes()),
            container.senesce_version(),
            container.content_hash()
        );
        for (name, value) in &description.circumstances {
            println!("  {name}  {value}");
        }
    }
    if json {
        let document = serde_json::json!({ "schema": "senesce-image-list/1", "containers": documents });
        println!("{}", serde_json::to_string_pretty(&document)?);
    }
    Ok(())
}

/// The files that were named, and those in the directories that were named which begin as a container does.
fn find_containers(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))?;
        let mut names: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        names.sort();
        // A file that is none is passed over; one that is a container and damaged is told.
        names.retain(|name| {
            name.is_file() && !matches!(Container::open(name), Err(senesce_image::Error::NotAContainer { .. }))
        });
        found.extend(names);
    }
    Ok(found)
}

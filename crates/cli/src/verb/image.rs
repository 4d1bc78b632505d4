//! `senesce image`: containers of aged volumes.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::{Bytes, Clock, Printable, numbers::score};
use senesce_image::{
    Container, Description, RestoreOptions, SaveOptions, SaveReport, restore, restore_device, save, save_open,
    temporary_path, verify,
};
use senesce_report::{count, three_digits};
use senesce_volume::{
    Backend, Claim, Custodian, FileSystemKind, HeldDevice, Host, LinuxHost, Purpose, Resource, SCAN_BYTES, Slot,
    SuperblockIdentity, Volume, VolumeSpec, check_interrupted, find_mounted_twin, install_signal_cleanup, interrupted,
    read_superblock, read_used_bytes,
};
use serde::Serialize;
use serde_json::Value;

use super::{fresh::check_new, home::with_home, place::check_new_files};
use crate::{
    args::{ImageArgs, ImageRestoreArgs, ImageSaveArgs, ImageVerb},
    clock::SystemClock,
    exit::{failed, usage},
    machine::count_threads,
    schema::document,
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
                check_interrupted("image verify")?;
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
    check_new(&args.container)?;
    let source = open_source(&args.source)?;
    if args.dry_run {
        return preview_save(args, &source);
    }
    with_home(|custodian| save_in(custodian, args, &source, &clock, quiet))
}

/// Prints what would be saved. The source is open and not in use; the container does not exist.
fn preview_save(args: &ImageSaveArgs, source: &Claim) -> Result<()> {
    check_new_files([&Some(args.container.clone())])?;
    if args.trim {
        let host = LinuxHost::default();
        if !host.is_root() {
            return Err(senesce_volume::Error::NotRoot { operation: "mount volumes" }.into());
        }
        check_trim(&host, &args.source)?;
    }
    let bytes = source.size()?;
    println!("{}: {bytes} would be saved in {}", args.source.display(), args.container.display());
    Ok(())
}

fn save_in(custodian: &Custodian, args: &ImageSaveArgs, claim: &Claim, clock: &SystemClock, quiet: bool) -> Result<()> {
    let trimmed = if args.trim { Some(trim_copy(custodian, args)?) } else { None };
    let source = trimmed.as_ref().and_then(Volume::image).unwrap_or(&args.source);
    let mut circumstances: BTreeMap<String, String> = LinuxHost::default().circumstances(None).into_iter().collect();
    if trimmed.is_some() {
        circumstances.insert("trimmed".to_owned(), "true".to_owned());
    }
    circumstances.extend(args.set.iter().map(|set| (set.name.clone(), set.value.clone())));
    let file_system = read_superblock(&claim.read(0, SCAN_BYTES)?).map(|found| found.file_system.name().to_owned());
    let description = Description { file_system, circumstances };
    let options = SaveOptions { threads: count_threads(args.threads), level: args.level, ..SaveOptions::default() };
    let to = &args.container;
    let report = save_listed(custodian, to, options, |options| match &trimmed {
        Some(_) => save(source, to, &description, options),
        None => save_open(claim.file(), claim.path(), to, &description, options),
    })?;
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

/// Says what deleted files left in free space, if it is much. What is used and zero hides some of
/// it.
fn note_deleted(source: &Path, report: &SaveReport) {
    // The image is saved: an unknown use of its blocks is no failure.
    let Some(used) = read_start(source).ok().and_then(|start| read_used_bytes(&start)) else { return };
    let beyond = report.nonzero_bytes.saturating_sub(used);
    if beyond > TOLD_BYTES && beyond > report.nonzero_bytes / 20 {
        let beyond = Bytes(beyond);
        eprintln!(
            "note: about {beyond} of the data are contents of deleted files in free space; --trim leaves them out"
        );
    }
}

/// Data in free space that is worth a word; and more than a twentieth of all.
const TOLD_BYTES: u64 = 16 << 20;

/// Checks an image that is to be trimmed. Returns its metadata, its file system and the tool.
fn check_trim(host: &dyn Host, source: &Path) -> Result<(fs::Metadata, SuperblockIdentity, PathBuf)> {
    let found = fs::metadata(source).with_context(|| format!("cannot read {}", source.display()))?;
    use FileSystemKind::{Btrfs, Ext4, Xfs};
    let is_trimmed = |found: &SuperblockIdentity| matches!(found.file_system, Ext4 | Xfs | Btrfs);
    let identity = read_superblock(&read_start(source)?).filter(is_trimmed);
    let (Some(identity), true) = (identity, found.is_file()) else {
        let message = format!("{} is no image of ext4, XFS or Btrfs: only those are trimmed", source.display());
        return Err(usage(message, Some("mount the device, run fstrim on it, unmount it, and save it without --trim")));
    };
    let fstrim = host.find_tool("fstrim");
    let fstrim = fstrim.ok_or(senesce_volume::Error::ToolMissing { tool: "fstrim".into(), package: "util-linux" })?;
    Ok((found, identity, fstrim))
}

/// A copy of the image whose free space is trimmed. The image itself stays as it is: a mount
/// writes.
fn trim_copy(custodian: &Custodian, args: &ImageSaveArgs) -> Result<Volume> {
    let host = custodian.host();
    let (found, identity, fstrim) = check_trim(&**host, &args.source)?;
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

/// Saves to `to`, which the journal lists until it has its name; a signal stops it.
pub fn save_listed(
    custodian: &Custodian,
    to: &Path,
    options: SaveOptions<'_>,
    act: impl FnOnce(&SaveOptions<'_>) -> senesce_image::Result<SaveReport>,
) -> Result<SaveReport> {
    let mark = custodian.token();
    let options = SaveOptions { mark, stop: is_interrupted, ..options };
    listed(custodian, to, mark, || act(&options))
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

/// Opens an image or device to read it whole.
///
/// Errors: it is in use, so that a copy would mix states of several moments; it is neither an image
/// nor a device.
pub fn open_source(path: &Path) -> Result<Claim> {
    let kind = fs::metadata(path).with_context(|| format!("cannot look up {}", path.display()))?.file_type();
    if !kind.is_block_device() && !kind.is_file() {
        let hint = "give the image or the device that holds the file system, not the directory where it is mounted";
        return Err(usage(format!("{} is neither an image nor a device", path.display()), Some(hint)));
    }
    Ok(Claim::open(path, Purpose::Read)?)
}

fn restore_image(args: &ImageRestoreArgs, quiet: bool) -> Result<()> {
    let clock = SystemClock::start();
    let host = LinuxHost::default();
    // Held until the end, so that no process mounts the device or opens the file that is replaced.
    let target = open_target(args)?;
    if args.dry_run {
        return preview_restore(args);
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
        match target.as_ref().filter(|claim| claim.is_device()) {
            Some(claim) => restore_device(&args.container, claim.file(), claim.path(), &options).map_err(explain),
            None => listed(custodian, &args.to, mark, || restore(&args.container, &args.to, &options)),
        }
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

/// Prints what a restore would write. The target was checked.
fn preview_restore(args: &ImageRestoreArgs) -> Result<()> {
    if args.to.is_file() && !args.force {
        let message = format!("{} exists already", args.to.display());
        return Err(usage(message, Some("give another name, or restore with --force")));
    }
    let dir = args.to.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::canonicalize(dir).with_context(|| format!("cannot look up {}", dir.display()))?;
    let container = Container::open_until(&args.container, is_interrupted).map_err(explain)?;
    let bytes = Bytes(container.volume_bytes());
    println!("{}: {bytes} would be written to {}", args.container.display(), args.to.display());
    Ok(())
}

/// Opens the device that is written, or the file that is replaced; none if the file is new.
///
/// Errors: it is in use; it is not empty and `--force` is missing.
fn open_target(args: &ImageRestoreArgs) -> Result<Option<Claim>> {
    let Ok(found) = args.to.metadata() else {
        check_new(&args.to)?;
        return Ok(None);
    };
    if found.file_type().is_block_device() {
        let claim = Claim::open(&args.to, Purpose::Write)?;
        claim.check_content(args.force)?;
        return Ok(Some(claim));
    }
    // Without --force, `restore` reports that the file exists.
    let replaced = args.force.then(|| Claim::open(&args.to, Purpose::Replace)).transpose()?;
    match replaced {
        // Another process may have replaced the file by a device since the check above.
        Some(claim) if claim.is_device() => {
            Err(usage(format!("{} is a device now", args.to.display()), Some("run the command again")))
        }
        replaced => Ok(replaced),
    }
}

/// Says what stands in the way of mounting what was restored.
fn note_twin(host: &LinuxHost, restored: &Path) {
    // It is restored: that its twins cannot be looked for is no failure.
    let Some(identity) = read_start(restored).ok().and_then(|start| read_superblock(&start)) else { return };
    let advice = match identity.file_system {
        FileSystemKind::Xfs => "mount this one with -o nouuid",
        FileSystemKind::Btrfs => "unmount that one before you mount this one",
        _ => return,
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

/// Whether a signal came.
pub fn is_interrupted() -> bool {
    interrupted().is_some()
}

/// Errors that the user can avoid are usage errors. A signal is no error.
pub fn explain(error: senesce_image::Error) -> anyhow::Error {
    if let (senesce_image::Error::Stopped { .. }, Err(signal)) = (&error, check_interrupted("an image container")) {
        return signal.into();
    }
    match error {
        senesce_image::Error::Exists { .. } => {
            usage(error.to_string(), Some("give another name, or restore with --force"))
        }
        senesce_image::Error::TooSmall { .. } => usage(error.to_string(), None),
        senesce_image::Error::NotAContainer { path, .. } => usage(
            format!("{} is no image container", path.display()),
            Some("`senesce image save IMAGE CONTAINER` makes one; an image itself needs no restore"),
        ),
        error => error.into(),
    }
}

/// The version of [`ImageListDocument`].
pub(super) const IMAGE_LIST_SCHEMA: &str = "senesce-image-list/1";

/// The JSON output of `image list`.
#[derive(Serialize, JsonSchema)]
pub(super) struct ImageListDocument {
    /// The containers.
    containers: Vec<Listed>,
}

/// A container.
#[derive(Serialize, JsonSchema)]
struct Listed {
    /// The file.
    path: String,
    /// The file system in it. `None` if it is not known.
    file_system: Option<String>,
    /// Bytes of the volume.
    volume_bytes: u64,
    /// Bytes of the volume that are stored, uncompressed.
    data_bytes: u64,
    /// Bytes of the container.
    stored_bytes: u64,
    /// The hash of the content.
    content_hash: String,
    /// The version of senesce that wrote the container.
    senesce: String,
    /// Circumstances of the volume.
    circumstances: BTreeMap<String, String>,
}

fn list(paths: &[PathBuf], json: bool) -> Result<()> {
    let mut containers = Vec::new();
    let found = find_containers(paths)?;
    if found.is_empty() && !json {
        let names: Vec<String> = paths.iter().map(|path| Printable::new(path).to_string()).collect();
        eprintln!("senesce: no container in {}", names.join(", "));
    }
    for path in found {
        check_interrupted("image list")?;
        let container = Container::open_until(&path, is_interrupted).map_err(explain)?;
        let description = container.description();
        if json {
            containers.push(Listed {
                path: path.to_string_lossy().into_owned(),
                file_system: description.file_system.clone(),
                volume_bytes: container.volume_bytes(),
                data_bytes: container.data_bytes(),
                stored_bytes: container.stored_bytes(),
                content_hash: container.content_hash().to_owned(),
                senesce: container.senesce_version().to_owned(),
                circumstances: description.circumstances.clone(),
            });
            continue;
        }
        print!("{}", render_listed(&path, &container));
    }
    if json {
        println!("{:#}", document(IMAGE_LIST_SCHEMA, ImageListDocument { containers }));
    }
    Ok(())
}

/// A container as lines of the list. Its texts may come from anyone.
fn render_listed(path: &Path, container: &Container) -> String {
    let description = container.description();
    let mut text = format!(
        "{}: {} of {}, {} of data in {}, by senesce {}\n  content  {}\n",
        Printable::new(path),
        Printable::new(description.file_system.as_deref().unwrap_or("no known file system")),
        Bytes(container.volume_bytes()),
        Bytes(container.data_bytes()),
        Bytes(container.stored_bytes()),
        Printable::new(container.senesce_version()),
        container.content_hash()
    );
    for (name, value) in &description.circumstances {
        let shown = match serde_json::from_str(value) {
            Ok(Value::Object(_)) if name != REACHED => continue,
            Ok(Value::Object(reached)) => tell_reached(&reached),
            _ => value.clone(),
        };
        text += &format!("  {}  {}\n", Printable::new(name), Printable::new(&shown));
    }
    text
}

/// The circumstance with the reached age, a JSON document. `--json` prints all of it.
const REACHED: &str = "age.reached";

/// The figures of a reached age that describe the volume.
fn tell_reached(reached: &serde_json::Map<String, Value>) -> String {
    let number = |value: Option<&Value>, tell: &dyn Fn(f64) -> String| value.and_then(Value::as_f64).map(tell);
    let layout = reached.get("layout");
    let of_layout = |key: &str| layout.and_then(|layout| layout.get(key));
    let parts = [
        number(reached.get("fullness"), &|share| format!("fullness {}%", three_digits(100.0 * share))),
        number(reached.get("turnover"), &|times| format!("turnover {}", three_digits(times))),
        number(of_layout("layout_score"), &|value| format!("layout score {}", score(value))),
        number(of_layout("files"), &|files| format!("{} files", count(files as u64))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The files that were named, and those in the directories that were named which begin as a
/// container does.
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
        for name in names.into_iter().filter(|name| name.is_file()) {
            check_interrupted("image list")?;
            // A damaged container is listed: its error is reported later.
            let opened = Container::open_until(&name, is_interrupted);
            if !matches!(opened, Err(senesce_image::Error::NotAContainer { .. })) {
                found.push(name);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reached_age_is_four_figures() {
        let reached =
            json!({ "fullness": 0.5008, "turnover": 1.003, "layout": { "layout_score": 0.99312, "files": 5789 } });
        let told = "fullness 50.1%, turnover 1.00, layout score 0.993, 5,789 files";
        assert_eq!(tell_reached(reached.as_object().unwrap()), told);
    }
}

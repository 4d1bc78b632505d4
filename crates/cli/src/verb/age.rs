//! `senesce age`: an aged volume, and no experiment.

mod explain;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::{Bytes, Clock, Seed, numbers::score};
use senesce_experiment::{
    AgeEnd, AgeEnded, AgeOptions, Layout, Onto, Source, age_into, create_untaken,
    plan::{Plan, WorkloadKind},
    plan_aging, planned_bytes,
};
use senesce_image::{Description, SaveOptions, save};
use senesce_report::{count, three_digits};
use senesce_volume::{
    Backend, Custodian, FileSystemKind, Host, LinuxHost, Slot, Uuid, Volume, VolumeSpec, check_device,
    check_mkfs_words, check_room, install_signal_cleanup,
};
use serde::Serialize;
use serde_json::Value;

use self::explain::explain;
use super::{
    filling::{check_filling, fill_percent},
    home::with_home,
    image::save_listed,
    keep::{name_place, trim, write_image},
    nearness::tell_nearness,
    place::{check_new_files, check_place, image_size},
    shell::quote,
};
use crate::{
    args::{AgeArgs, FsArg, GardeningArg},
    chains::print_chains,
    clock::SystemClock,
    engines::{engines, is_engine_place},
    exit::{failed, usage},
    machine::{count_threads, trusted_owners},
    schema::document,
};

/// The version of [`AgeDocument`].
pub(super) const AGE_SCHEMA: &str = "senesce-age/1";

/// The JSON output of `age`.
#[derive(Serialize, JsonSchema)]
pub(super) struct AgeDocument<'a> {
    /// The aged volume or directory.
    place: &'a str,
    /// The reached age.
    reached: &'a AgeEnd,
    /// The image or container files that hold the volume, a container with size and hash.
    kept: &'a [String],
    /// The requests to the drives of a garden, as in `senesce fs figures`. Absent for other file
    /// systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    drives: Option<&'a Value>,
}

/// The directory that is made in one that holds something.
const SUBDIRECTORY: &str = "senesce-aged";

/// Ages, saves the volume, and prints the age. A requested age that was not reached is
/// a failure.
pub fn age(args: AgeArgs, quiet: bool) -> Result<()> {
    if is_engine_place(&args.on) {
        engines().hand_over()?;
    }
    install_signal_cleanup().context("cannot handle signals")?;
    let settings: Vec<_> = args.set.iter().map(|set| (set.name.clone(), set.value.clone())).collect();
    let until = args.until.unwrap_or_default();
    let plan = plan_aging(&args.workload, &settings, &until, args.seed.map(Seed))
        .map_err(|error| explain(&args.workload, error))?;
    if args.threads > 1 && plan.workload.profile.is_none() {
        return Err(usage("--threads is only for the workload profile", Some("leave it out, or name profile:NAME")));
    }
    check_new_files([&args.log, &args.image, &args.save])?;
    let aged = with_home(|custodian| {
        let (_, scratch) = custodian.acquire_tree(&args.dir, "senesce-age")?;
        age_in(&args, &plan, custodian, &scratch, quiet)
    });
    let hint = "a trace of strace becomes a log with `senesce record --import-strace`; age with replay:LOG";
    match aged {
        Err(error) if args.workload.starts_with("trace:") && format!("{error:#}").contains("is no record") => {
            Err(usage(format!("{error:#}"), Some(hint)))
        }
        aged => aged,
    }
}

fn age_in(args: &AgeArgs, plan: &Plan, custodian: &Custodian, scratch: &Path, quiet: bool) -> Result<()> {
    let existing = Path::new(&args.on);
    if !matches!(args.gardening, GardeningArg::Auto | GardeningArg::Off) && !args.on.starts_with("garden:") {
        return Err(usage("--gardening has an effect on a garden only", Some("name one: --on garden:DIRECTORY")));
    }
    if let Some(place) = args.on.strip_prefix("garden:") {
        check_not_made(args, plan, "a garden")?;
        if args.dry_run {
            return preview_engine(args, plan, Path::new(place), scratch);
        }
        return age_engine(args, plan, scratch, quiet);
    }
    if args.on.starts_with("evergreen:") {
        check_not_made(args, plan, "an evergreen")?;
        if args.dry_run {
            return preview_engine(args, plan, Path::new(&args.on), scratch);
        }
        return age_engine(args, plan, scratch, quiet);
    }
    if existing.is_dir() {
        check_not_made(args, plan, "a directory")?;
        let source = open_source(args, plan, scratch)?;
        let filling = check_filling(args, plan, existing)?;
        let root = choose_root(existing, args.dry_run)?;
        if args.dry_run {
            rustix::fs::access(existing, rustix::fs::Access::WRITE_OK)
                .map_err(std::io::Error::from)
                .with_context(|| format!("cannot write to {}", existing.display()))?;
            print_preview(args, &root.display().to_string());
            filling.iter().for_each(|filling| println!("{filling}"));
            return Ok(());
        }
        filling.iter().filter(|_| !quiet).for_each(|filling| eprintln!("{filling}"));
        let end = age_onto(args, plan, &source, Onto::Directory(&root), quiet, &mut || Ok(()));
        if end.is_err() && root != existing {
            // Only if nothing was done in it.
            fs::remove_dir(&root).ok();
        }
        let end = end?;
        return tell((args, plan), &root.display().to_string(), &end, &[], None);
    }
    check_place(&args.on)?;
    let (spec, slot) = spec(args, plan, scratch)?;
    // Before any work, and before its size is judged. `Volume::create` repeats the check.
    if let Backend::Device { path, .. } = &spec.backend {
        check_device(&**custodian.host(), path, args.force)?;
    }
    check_room(&**custodian.host(), &spec, planned_bytes(plan)?)
        .map_err(|error| name_place(error, scratch, (&args.on, &args.dir)))?;
    // A log that is damaged or a repository that is gone must not cost what is on a device.
    let source = open_source(args, plan, scratch)?;
    if args.dry_run {
        print_preview(args, &args.on);
        return Ok(());
    }
    let volume = create_untaken(custodian, &spec, slot.clone())?;
    let root = volume.root().to_owned();
    let mut volume = Some(volume);
    let mut make_anew = || {
        if let Some(old) = volume.take() {
            old.destroy()?;
        }
        // What a named device carries now is ours.
        let spec = VolumeSpec { force: true, ..spec.clone() };
        volume = Some(create_untaken(custodian, &spec, slot.clone())?);
        Ok(())
    };
    let end = age_onto(args, plan, &source, Onto::Directory(&root), quiet, &mut make_anew)?;
    let mut volume = volume.context("the volume was not made again")?;
    let kept = keep(args, plan, custodian, &mut volume, &end)?;
    volume.destroy()?;
    tell((args, plan), &args.on, &end, &kept, None)
}

/// Refuses arguments about volumes that are made or kept.
fn check_not_made(args: &AgeArgs, plan: &Plan, place: &str) -> Result<()> {
    if args.image.is_some() || args.save.is_some() {
        let hint = Some("leave them out, or name --on image:SIZE or a device");
        return Err(usage(format!("--image and --save keep a volume that senesce makes; --on names {place}"), hint));
    }
    if args.mkfs.is_some() {
        return Err(usage(format!("--mkfs has options for a volume that senesce formats; --on names {place}"), None));
    }
    let may_force = place == "a directory" && fill_percent(plan).is_some();
    if args.fs.is_some() || args.force && !may_force {
        let message = format!("--fs and --force apply to a volume that senesce formats; --on names {place}");
        return Err(usage(message, Some("leave them out, or name --on image:SIZE or a device")));
    }
    if plan.workload.kind == WorkloadKind::Interfile {
        let message = format!("interfile makes a new volume for every copy, and --on names {place}");
        return Err(usage(message, Some("name image:SIZE or a device with --on, and a file system with --fs")));
    }
    Ok(())
}

/// Ages an empty file system in this process, and prints the chains of a garden's drives, too.
fn age_engine(args: &AgeArgs, plan: &Plan, scratch: &Path, quiet: bool) -> Result<()> {
    let source = open_source(args, plan, scratch)?;
    let mut end = None;
    let chains = engines().drive(&args.on, Some(args.gardening), &mut |target| {
        end = Some(age_onto(args, plan, &source, Onto::Engine(target), quiet, &mut || Ok(()))?);
        Ok(())
    })?;
    tell((args, plan), &args.on, &end.context("the engine was not aged")?, &[], chains.as_ref())
}

/// Checks the source and the file system, and prints what a run would do. Changes nothing.
fn preview_engine(args: &AgeArgs, plan: &Plan, place: &Path, scratch: &Path) -> Result<()> {
    open_source(args, plan, scratch)?;
    engines().survey(place, None, &|| true)?;
    print_preview(args, &args.on);
    Ok(())
}

fn print_preview(args: &AgeArgs, place: &str) {
    let until = if args.until.is_some() { "the age of --until" } else { "the end of the workload" };
    println!("{} would age {place} until {until}; nothing was written", args.workload);
    for (what, path) in [("operation log", &args.log), ("image", &args.image), ("container", &args.save)] {
        if let Some(path) = path {
            println!("{what:<14} {}", path.display());
        }
    }
}

/// The directory itself if nothing is in it, else a new one in it. With `dry_run` it is not made.
fn choose_root(existing: &Path, dry_run: bool) -> Result<PathBuf> {
    let mut entries = fs::read_dir(existing).with_context(|| format!("cannot list {}", existing.display()))?;
    // mkfs.nilfs2 makes the second one.
    let of_mkfs = ["lost+found", ".nilfs"];
    let is_taken = |entry: std::io::Result<fs::DirEntry>| {
        entry.map_or(true, |entry| !of_mkfs.iter().any(|name| entry.file_name() == *name))
    };
    if !entries.any(is_taken) {
        return Ok(existing.to_owned());
    }
    let root = existing.join(SUBDIRECTORY);
    let made = match (dry_run, root.symlink_metadata().is_ok()) {
        (true, false) => Ok(()),
        (true, true) => Err(std::io::ErrorKind::AlreadyExists.into()),
        (false, _) => fs::create_dir(&root),
    };
    match made {
        Ok(()) => Ok(root),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let (existing, root) = (existing.display(), root.display());
            let message = format!("cannot age below {existing}: it is not empty, and {root} exists already");
            let hint = format!("name an empty directory, or remove {root} if you no longer need it");
            Err(usage(message, Some(&hint)))
        }
        Err(error) => Err(error).with_context(|| format!("cannot create {}", root.display())),
    }
}

/// A command that makes an image and keeps it.
fn image_example(args: &AgeArgs, on: &str) -> String {
    let file_system = args.fs.map_or(FileSystemKind::Ext4, FsArg::kind);
    format!("senesce age {} --on {} --fs {file_system} --image aged.img", quote(&args.workload), quote(on))
}

fn spec(args: &AgeArgs, plan: &Plan, scratch: &Path) -> Result<(VolumeSpec, Slot)> {
    let image = image_size(&args.on, || image_example(args, "image:4GiB"))?;
    let is_lost = image.is_some() && args.image.is_none() && args.save.is_none();
    let Some(file_system) = args.fs.map(FsArg::kind) else {
        let mut hint = format!("name one: --fs {}", FsArg::NAMES);
        if is_lost {
            hint.push_str(&format!("; for example: {}", image_example(args, &args.on)));
        }
        return Err(usage(format!("--on {} needs a file system", args.on), Some(&hint)));
    };
    if is_lost {
        let message = format!("--on {} makes an image that would be removed at the end", args.on);
        let example = image_example(args, &args.on);
        return Err(usage(
            message,
            Some(&format!("keep it with --image FILE or --save CONTAINER; for example: {example}")),
        ));
    }
    let backend = match image {
        Some(size) => Backend::Image { dir: scratch.to_owned(), size, memory: false },
        None => Backend::Device { path: PathBuf::from(&args.on), size: None },
    };
    let mut spec = VolumeSpec::new(backend, file_system);
    spec.force = args.force;
    spec.mkfs_options = args.mkfs.iter().flat_map(|text| text.split_whitespace().map(str::to_owned)).collect();
    check_mkfs_words(file_system, &spec.mkfs_options)?;
    // It seeds the directory hash of ext4, so it must follow from what the user gave: the same
    // volume again is the same.
    let seed = plan.seed.derive(&format!("age {} {file_system}", args.workload));
    Ok((
        spec,
        Slot { name: "age".into(), uuid: Uuid::from_seed(seed), mount_dir: scratch.to_owned(), needed: Bytes(0) },
    ))
}

/// The plan's history, log or parameters, with what it needs below `scratch`.
fn open_source(args: &AgeArgs, plan: &Plan, scratch: &Path) -> Result<Source> {
    let spool = scratch.join("spool");
    fs::create_dir(&spool).with_context(|| format!("cannot create {}", spool.display()))?;
    Ok(Source::open(plan, &spool, &trusted_owners(args.trust_repo))?)
}

fn age_onto(
    args: &AgeArgs,
    plan: &Plan,
    source: &Source,
    onto: Onto<'_>,
    quiet: bool,
    make_anew: &mut dyn FnMut() -> Result<(), senesce_experiment::Error>,
) -> Result<AgeEnd> {
    let clock = SystemClock::start();
    let threads = count_threads(None);
    let mut told_seconds = 0;
    let mut each = |ages: &senesce_experiment::Ages| {
        let seconds = clock.now().as_secs_f64() as u64;
        if !quiet && seconds >= told_seconds + 2 {
            told_seconds = seconds;
            let score = ages.layout_score.map_or(String::new(), |reached| format!(", layout score {}", score(reached)));
            let turnover = if is_recording(plan) { String::new() } else { format!(", turnover {:.2}", ages.turnover) };
            eprintln!(
                "{seconds} s: {} {}, fullness {:.1}%{turnover}{score}",
                ages.counted_steps,
                plan.step_unit(),
                100.0 * ages.fullness
            );
        }
    };
    let until = args.until.unwrap_or_default();
    let (log, until) = (args.log.as_deref(), &until);
    let options = AgeOptions { plan, onto, source, log, until, threads, apply_threads: args.threads, clock: &clock };
    Ok(age_into(&options, make_anew, &mut each)?)
}

/// Keeps the volume as requested: as an image, in a container. A named device stays as it is
/// anyway.
fn keep(args: &AgeArgs, plan: &Plan, custodian: &Custodian, volume: &mut Volume, end: &AgeEnd) -> Result<Vec<String>> {
    let mut kept = Vec::new();
    if args.image.is_none() && args.save.is_none() {
        return Ok(kept);
    }
    let host = LinuxHost::default();
    let trimmed = trim(volume)?;
    let made = volume.mkfs_record().cloned();
    volume.unmount()?;
    if let Some(path) = &args.image {
        kept.push(write_image(volume, path)?.display().to_string());
    }
    if let Some(path) = &args.save {
        let mut circumstances: BTreeMap<String, String> = host.circumstances(None).into_iter().collect();
        let mut note = |name: &str, value: String| circumstances.insert(format!("age.{name}"), value);
        note("workload", args.workload.clone());
        note("plan", serde_json::to_string(&plan.workload)?);
        if args.workload.contains("git") || args.workload.contains("synthetic") {
            note("history", serde_json::to_string(&plan.history)?);
        }
        note("seed", plan.seed.0.to_string());
        note("reached", serde_json::to_string(end)?);
        note("trimmed", trimmed.to_string());
        note("mount_options", volume.spec().mount_options.clone());
        if let Some(made) = made {
            note("mkfs", format!("{} ({})", made.command, made.tool_version));
        }
        let source = volume.image().or(volume.device()).context("the volume has no image and no device")?;
        let file_system = Some(volume.spec().file_system.name().to_owned());
        let options = SaveOptions { threads: count_threads(None), ..SaveOptions::default() };
        let description = Description { file_system, circumstances };
        let report = save_listed(custodian, path, options, |options| save(source, path, &description, options))?;
        kept.push(format!("{} ({}, {})", path.display(), Bytes(report.stored_bytes), report.content_hash));
    }
    Ok(kept)
}

/// Whether the workload replays a recording. A turnover divides by the bytes of set-up. A recording
/// has few such bytes or none, so its turnover says nothing.
fn is_recording(plan: &Plan) -> bool {
    plan.workload.kind == WorkloadKind::Replay
}

/// Prints the ages that were reached. `chains`: the requests to the drives of a garden.
fn tell(
    (args, plan): (&AgeArgs, &Plan),
    place: &str,
    end: &AgeEnd,
    kept: &[String],
    chains: Option<&Value>,
) -> Result<()> {
    if args.json {
        println!("{:#}", document(AGE_SCHEMA, AgeDocument { place, reached: end, kept, drives: chains }));
    } else {
        print_end((place, is_recording(plan)), end, kept, &next_command(args, place, kept));
        chains.into_iter().for_each(print_chains);
    }
    let ended_by = end.workload.iter().find(|(name, _)| name == "ended_by").map(|(_, bound)| bound.as_str());
    if let Some(bound) = ended_by.filter(|bound| !["accuracy", STOPPED_EARLY].contains(bound)) {
        eprintln!("senesce: warning: the profile was not reached as closely as requested: {}", explain_bound(bound));
    }
    if end.missed.is_empty() {
        return Ok(());
    }
    let why = match end.ended {
        AgeEnded::Steps => "the bound on steps ended it",
        AgeEnded::Workload | AgeEnded::Reached => "the workload has no more steps",
    };
    Err(failed(format!("not reached, {why}: {}", end.missed.join(", "))))
}

/// The bound of an aging by a profile that `--until` or the bound on steps stopped.
const STOPPED_EARLY: &str = "none";

/// The bound that ended an aging by a profile, in words.
fn explain_bound(bound: &str) -> &str {
    match bound {
        "whole-files" => "so few files cannot be nearer, since their numbers are whole (whole-files)",
        "no-space" => "the file system had no space (no-space)",
        "most-lives" => "it had as many lives as it may have (most-lives)",
        "end-of-schedule" => "the schedule is at its end; a larger churn comes nearer",
        other => other,
    }
}

/// The command that shows the cost of the age.
fn next_command(args: &AgeArgs, place: &str, kept: &[String]) -> String {
    let inspected = match (&args.image, &args.save) {
        (Some(image), _) => kept.first().cloned().unwrap_or_else(|| image.display().to_string()),
        (None, Some(saved)) => return format!("senesce bench --aged {} --unaged -- COMMAND", saved.display()),
        (None, None) => place.to_owned(),
    };
    format!("senesce inspect {inspected}")
}

fn print_end((place, is_recording): (&str, bool), end: &AgeEnd, kept: &[String], next: &str) {
    println!("{place}: aged");
    println!(
        "fullness          {}% of {}, reserved space counts as used",
        three_digits(100.0 * end.fullness),
        Bytes(end.capacity_bytes)
    );
    if !is_recording {
        println!("turnover          {}", three_digits(end.turnover));
    }
    let layout = end.layout.as_ref();
    let figure = |value: Option<f64>| value.map_or("unknown".to_owned(), three_digits);
    let score = layout.and_then(|layout| layout.layout_score).map_or("unknown".to_owned(), score);
    println!("layout score      {score}");
    println!("extents per file  {}", figure(layout.and_then(|layout| layout.extents_per_file)));
    let files =
        |layout: &Layout| format!("{} ({} with extents)", count(layout.files), count(layout.files_with_extents));
    println!("files             {}", layout.map_or("unknown".to_owned(), files));
    println!(
        "steps             {} ({} after set-up, {} without space)",
        count(end.steps),
        count(end.counted_steps),
        count(end.no_space_steps)
    );
    let (written, reserved) = (Bytes(end.written_bytes), Bytes(end.reserved_bytes));
    println!("operations        {}, {written} written, {reserved} reserved", count(end.operations));
    let nearness = tell_nearness(&end.workload);
    nearness.iter().for_each(|near| println!("profile           {near}"));
    // Figures of distributions are for machines and reports.
    let mut figures = end.workload.iter().filter(|(name, _)| nearness.is_none() || name == "not replayed").peekable();
    if figures.peek().is_some() {
        println!("counted by the workload");
    }
    for (name, value) in figures {
        println!("  {name:<21} {value}");
    }
    if !end.latencies.is_empty() {
        println!("latency, µs      operations          p50          p99        p99.9          max");
    }
    for row in &end.latencies {
        let micro = |nanoseconds: u64| three_digits(nanoseconds as f64 / 1e3);
        println!(
            "  {:<14} {:>11} {:>12} {:>12} {:>12} {:>12}",
            row.kind,
            row.operations,
            micro(row.p50_ns),
            micro(row.p99_ns),
            micro(row.p999_ns),
            micro(row.max_ns)
        );
    }
    for place in kept {
        println!("kept              {place}");
    }
    println!("next              {next}");
}

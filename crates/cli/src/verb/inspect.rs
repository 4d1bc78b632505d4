//! `senesce inspect`: how aged is this file system, where, why, and what does it cost.

use std::{cell::Cell, fs, os::unix::fs::MetadataExt, path::Path, sync::Arc};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::{Clock, Printable};
use senesce_defrag::{Worth, find_mover};
use senesce_device::DeviceSpec;
use senesce_inspect::{
    Access, DeviceJudgement, InspectOptions, Inspection, Judge, Judged, NOTICEABLE_SECONDS, Target, find_target,
    inspect as inspect_target, inspect_told,
};
use senesce_report::{InspectionOptions, inspection_screen, render_inspection, render_inspection_map, tree_screen};
use senesce_volume::{FileSystemKind, Host, LinuxHost, install_signal_cleanup, interrupted};
use serde::{Deserialize, Serialize};

use super::{
    defrag::advise_on,
    device::read_device,
    guest::{self, Order},
    home::patient_host,
    metrics::{self, Sample},
    output::{check_files, print_file_preview},
    pressure::is_quiet_for_a_pause,
};
use crate::{
    args::{FailIf, InspectArgs},
    clock::SystemClock,
    engines::{engines, is_engine_place},
    exit::{different, failed_with, undecided, usage},
    fit::fit,
    machine::count_threads,
    progress::Counter,
};

/// Cells on each side of the map: two to the power of it.
const MAP_ORDER: u32 = 8;

/// The most pauses of `--idle` in a row, while other programs wait for I/O.
const MOST_PAUSES: u32 = 40;

/// Inspects, and prints one screen or JSON, or writes a page or metrics.
pub fn inspect(args: InspectArgs, quiet: bool) -> Result<()> {
    let Some(file) = args.limits.metrics.clone() else { return inspect_place(args, quiet, &mut |_| Ok(())) };
    metrics::check_name(&file)?;
    check_files([&Some(file.clone())], Some(args.limits.force))?;
    let clock = SystemClock::start();
    let path = args.path.clone();
    let is_written = Cell::new(false);
    let write = |figures: Option<&serde_json::Value>| {
        let (unix_seconds, duration_seconds) = (clock.unix_seconds(), clock.now().as_secs_f64());
        is_written.set(true);
        metrics::write(&file, &Sample { figures, path: &path, unix_seconds, duration_seconds })
    };
    let dry_run = args.limits.dry_run;
    let end = inspect_place(args, quiet, &mut |figures| write(Some(figures)));
    if end.is_err() && !is_written.get() && !dry_run {
        write(None)?;
    }
    end
}

/// Inspects. `on_figures` receives the figures before they are printed.
fn inspect_place(
    args: InspectArgs,
    quiet: bool,
    on_figures: &mut dyn FnMut(&serde_json::Value) -> Result<()>,
) -> Result<()> {
    if args.path.to_str().is_some_and(is_engine_place) {
        engines().hand_over()?;
    }
    install_signal_cleanup().context("cannot handle signals")?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let host = patient_host();
    if args.idle {
        senesce_volume::set_idle_priority().context("cannot lower the I/O priority")?;
    }
    let access = if args.offline { Access::Offline } else { Access::ThroughMount };
    let named = |prefix| args.path.to_str().and_then(|path| path.strip_prefix(prefix)).map(Path::new);
    let (garden, evergreen) = (named("garden:"), named("evergreen:"));
    check_kind(&args.path)?;
    check_files([&args.html, &args.map, &args.tree], Some(args.limits.force))?;
    let order = Order::read();
    let medium = order.as_ref().and_then(|order| order.medium.clone());
    let (judge, devices) = match medium {
        Some(medium) => with_models(Judge::Found(medium))?,
        None => choose_devices(&args.device, garden.or(evergreen).unwrap_or(&args.path))?,
    };
    if garden.is_none() && args.volume.is_some() {
        return Err(usage("--volume has an effect on a garden only", Some("write garden:DIRECTORY")));
    }
    if let Some(path) = &args.tree {
        if evergreen.is_none() {
            return Err(usage("--tree has an effect on an evergreen only", Some("write evergreen:FILE")));
        }
        let picture = (!args.limits.dry_run).then_some(path.as_path());
        let tree = engines().draw_tree(&args.path, args.flushes.as_deref(), picture)?;
        if picture.is_some() {
            eprintln!("tree: {}", Printable::new(&path));
        }
        // What can be drawn of a damaged one can often not be inspected.
        if args.html.is_none() && args.map.is_none() {
            if args.limits.dry_run {
                return preview(&args);
            }
            match args.json {
                true => println!("{}", serde_json::to_string_pretty(&tree)?),
                false => print!("{}", tree_screen(&tree)),
            }
            return Ok(());
        }
    }
    let has_map = match &order {
        Some(order) => order.has_map,
        // The screen has no map.
        None => !args.limits.no_map && (args.json || args.html.is_some() || args.map.is_some()),
    };
    if order.is_none() && is_for_guest(&args, access, garden.or(evergreen).is_some(), &host)? {
        if args.limits.dry_run {
            guest::check_inspection(&args)?;
            return preview(&args);
        }
        let medium = match judge {
            Judge::Named => None,
            Judge::Found(medium) => Some(medium),
        };
        let figures = guest::inspect(&args, medium, has_map, quiet)?;
        on_figures(&figures)?;
        return show(&figures, &args);
    }
    let is_late = || args.limits.max_seconds.is_some_and(|most| clock.now().as_secs_f64() >= most as f64);
    let may_go_on = || interrupted().is_none() && !is_late();
    // An evergreen is opened by the whole name: any other content is refused.
    let engine = garden.or(evergreen.and(Some(args.path.as_path())));
    if args.limits.dry_run {
        let opened = match engine {
            Some(place) => engines().survey(place, args.volume.as_deref(), &may_go_on).map(drop),
            None => find_target(&args.path, access, &host).map(drop).map_err(Into::into),
        };
        check_end(&args, opened.is_err() && is_late())?;
        opened?;
        return preview(&args);
    }
    let counter = Counter::for_stderr(quiet, "entries", count_entries(&args.path));
    let options = InspectOptions {
        devices,
        judge,
        threads: count_threads(args.threads),
        read_ahead_kib: args.read_ahead_kib,
        map_order: MAP_ORDER,
        top: args.limits.top,
        progress: &mut |entries| {
            counter.show(entries);
            if args.idle {
                let may_pause = |_: &u32| may_go_on() && !is_quiet_for_a_pause();
                let _pauses = (0..MOST_PAUSES).take_while(may_pause).count();
            }
            may_go_on()
        },
    };
    let inspection = match engine {
        Some(place) => engines()
            .survey(place, args.volume.as_deref(), &may_go_on)
            .and_then(|told| Ok(inspect_told(told, options, &*clock)?)),
        None => find_target(&args.path, access, &host)
            .and_then(|target| inspect_target(&target, options, &host, &*clock))
            .map_err(Into::into),
    };
    counter.finish();
    check_end(&args, inspection.is_err() && is_late())?;
    let mut inspection = inspection?;
    if !has_map {
        inspection.map.cells.clear();
        inspection.map_files.clear();
        inspection.map_directories.clear();
    }
    let mut document =
        InspectionDocument { inspection, defrag_refusal: why_not_defrag(&args.path, &host), defrag: None };
    let is_tree = order.is_none() && access == Access::ThroughMount && garden.or(evergreen).is_none();
    // The advice lists the tree again. Metrics do not have it, and idle reads must stay few.
    let is_wanted = args.limits.max_seconds.is_none() && args.limits.metrics.is_none() && !args.idle;
    if is_tree && is_wanted && args.path.is_dir() {
        document.defrag = Some(advise_defrag(&args, &document.inspection)?);
    }
    let figures = serde_json::to_value(document)?;
    match order {
        Some(Order { figures: path, .. }) => {
            let bytes = serde_json::to_vec(&figures)?;
            fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
        }
        None => {
            on_figures(&figures)?;
            show(&figures, &args)
        }
    }
}

/// Errors: a signal or `--max-seconds` ended the inspection.
fn check_end(args: &InspectArgs, is_late: bool) -> Result<()> {
    if let Some(signal) = interrupted() {
        return Err(senesce_experiment::Error::from(senesce_experiment::Interrupted { signal }).into());
    }
    match args.limits.max_seconds.filter(|_| is_late) {
        Some(most) => {
            let hint = Some("inspect a directory below it, or allow more time");
            Err(failed_with(format!("the inspection was not finished in {most} s (--max-seconds)"), hint))
        }
        None => Ok(()),
    }
}

/// Prints the files that an inspection would write.
fn preview(args: &InspectArgs) -> Result<()> {
    println!("{} would be inspected; nothing was written", Printable::new(&args.path));
    let files = [&args.html, &args.map, &args.tree, &args.limits.metrics];
    files.into_iter().flatten().for_each(|path| print_file_preview(path));
    Ok(())
}

/// Why `senesce defrag` refuses the mounted file system at `path`. `None` if it does not, and if
/// nothing is mounted there.
fn why_not_defrag(path: &Path, host: &LinuxHost) -> Option<String> {
    let Ok(Target::Mounted(mounted)) = find_target(path, Access::ThroughMount, host) else { return None };
    match find_mover(&mounted.root, false) {
        Err(senesce_defrag::Error::NotSupported { problem, .. }) => Some(problem),
        // Any other error is no refusal of the file system.
        _ => None,
    }
}

/// The JSON output of `inspect`.
#[derive(Serialize, JsonSchema)]
pub(super) struct InspectionDocument {
    #[serde(flatten)]
    inspection: Inspection,
    /// The reason why `senesce defrag` refuses the file system. Absent if it does not refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    defrag_refusal: Option<String>,
    /// The advice of `senesce defrag`. `None` if it moves no files there. Absent if the inspection
    /// is not of a mounted tree, or with `--max-seconds`, `--metrics` or `--idle`.
    #[serde(skip_serializing_if = "Option::is_none")]
    defrag: Option<Option<DefragAdvice>>,
}

/// The advice of `senesce defrag` for the first device. `files`, `moved_bytes`, `after_seconds` and
/// `reads_to_pay_back` are absent if no order of files would save a noticeable time.
#[derive(Serialize, JsonSchema)]
struct DefragAdvice {
    /// Whether a run is worth it.
    worth: Worth,
    /// The device.
    device: String,
    /// Seconds of a cold read of the tree as it is.
    now_seconds: f64,
    #[serde(flatten)]
    moves: Option<AdvisedMoves>,
}

/// The moves. Absent if no order of files would save a noticeable time.
#[derive(Serialize, JsonSchema)]
struct AdvisedMoves {
    /// Files that would move.
    files: u64,
    /// Bytes that would move.
    moved_bytes: u64,
    /// Seconds of a cold read after the moves. `None` if there is nothing to move.
    after_seconds: Option<f64>,
    /// Cold reads after which the moves have saved their own time. `None` if they save none.
    reads_to_pay_back: Option<f64>,
}

/// The moves that `senesce defrag` would make in a mounted tree. `None` if it moves no files there.
fn advise_defrag(args: &InspectArgs, inspection: &Inspection) -> Result<Option<DefragAdvice>> {
    let Some(cost) = inspection.costs.first() else { return Ok(None) };
    let (device, now) = (cost.device.clone(), cost.seconds.as_it_lies);
    // No moves reach a cost below that of the best order.
    if now - cost.seconds.best_order < NOTICEABLE_SECONDS {
        return Ok(Some(DefragAdvice { worth: Worth::No, device, now_seconds: now, moves: None }));
    }
    let (judge, devices) = choose_devices(&args.device, &args.path)?;
    let advice = advise_on(&args.path, &devices, judge.models(), count_threads(args.threads));
    if let Some(signal) = interrupted() {
        return Err(senesce_experiment::Error::from(senesce_experiment::Interrupted { signal }).into());
    }
    let Ok(advice) = advice else { return Ok(None) };
    let gain = advice.gains.first();
    let moves = AdvisedMoves {
        files: advice.files,
        moved_bytes: advice.moved_bytes,
        after_seconds: gain.map(|gain| gain.cost.after_seconds),
        reads_to_pay_back: gain.and_then(|gain| gain.reads_to_pay_back),
    };
    let now_seconds = gain.map_or(now, |gain| gain.cost.now_seconds);
    Ok(Some(DefragAdvice { worth: advice.worth, device, now_seconds, moves: Some(moves) }))
}

/// Prints the figures, and writes the requested files.
fn show(figures: &serde_json::Value, args: &InspectArgs) -> Result<()> {
    if let Some(path) = &args.html {
        let page = render_inspection(
            figures,
            &InspectionOptions { senesce_version: crate::VERSION.to_owned(), made_at: None },
        )?;
        fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &args.map {
        let picture = render_inspection_map(figures, args.map_by);
        fs::write(path, picture).with_context(|| format!("cannot write {}", path.display()))?;
    }
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(figures)?),
        false if args.limits.metrics.is_some() => {}
        false => print!("{}", fit(&inspection_screen(figures))),
    }
    for (what, path) in [("page", &args.html), ("map", &args.map)] {
        if let Some(path) = path {
            eprintln!("{what}: {}", Printable::new(&path));
        }
    }
    match args.limits.fail_if {
        Some(limit) => gate(limit, &Judged::deserialize(figures)?),
        None => Ok(()),
    }
}

/// Errors: on the disk that stores the tree, a read takes longer than a fresh copy by more than the
/// limit; or models of an unknown disk differ about that.
fn gate(limit: FailIf, judged: &Judged) -> Result<()> {
    let most = 1.0 + limit.percent / 100.0;
    let is_beyond =
        |judgement: &&DeviceJudgement| judgement.slowdown > most && judgement.lost_seconds >= NOTICEABLE_SECONDS;
    let on_disk = || judged.judgements.iter().filter(|judgement| judged.device.judged_as.contains(&judgement.device));
    let beyond: Vec<&DeviceJudgement> = on_disk().filter(is_beyond).collect();
    if beyond.is_empty() {
        return Ok(());
    }
    let found: Vec<String> =
        beyond.iter().map(|judgement| format!("{:.2}× on {}", judgement.slowdown, judgement.device)).collect();
    let found = found.join(", ");
    if beyond.len() == on_disk().count() {
        let message = format!(
            "--fail-if {limit} failed: a cold read takes {found} of the time that a fresh copy takes (limit {most:.2}×)"
        );
        return Err(different(message));
    }
    Err(undecided(format!(
        "--fail-if {limit} is undecided: the kind of this disk is not known. A cold read takes {found} of the time that a \
         fresh copy takes, and less than the limit of {most:.2}× on its other models. Name the model of the disk with \
         --device."
    )))
}

/// Whether a guest kernel mounts the file system: the user names it, or may not mount.
///
/// Errors: the user names a guest for a place that it does not have.
fn is_for_guest(args: &InspectArgs, access: Access, is_engine: bool, host: &LinuxHost) -> Result<bool> {
    let refused = |what: &str| {
        let message = format!("--guest: a guest cannot mount {}: {what}", Printable::new(&args.path));
        Err(usage(message, Some("leave --guest out")))
    };
    use FileSystemKind::{Jfs, Nilfs2, Reiserfs};
    let is_named = args.guest.is_some();
    if is_engine || senesce_volume::is_guest() {
        return if is_named { refused("senesce itself reads a garden or an evergreen") } else { Ok(false) };
    }
    match find_target(&args.path, access, host) {
        Ok(Target::Unmounted { path, file_system }) => {
            let is_image = fs::metadata(&path).is_ok_and(|metadata| metadata.is_file());
            match is_named {
                true if !is_image => refused("a guest sees no devices of this machine"),
                true => Ok(true),
                // Few look after the code of the old file systems, so a foreign image stays away
                // from the kernel of this machine.
                false => Ok(is_image && (!host.is_root() || matches!(file_system, Nilfs2 | Jfs | Reiserfs))),
            }
        }
        Ok(Target::Ext4 { .. }) if is_named => refused("senesce reads ext4 itself, without a kernel"),
        Ok(Target::Mounted(_)) if is_named => refused("it is mounted on this machine"),
        // The inspection reports the error.
        _ => Ok(false),
    }
}

/// The files and directories of a mounted file system, if `path` is its root.
fn count_entries(path: &Path) -> Option<u64> {
    // The file system that stores an image or the node of a device is another one.
    if !path.is_dir() {
        return None;
    }
    let device = |path: &Path| Some(fs::metadata(path).ok()?.dev());
    let is_root = device(path) != device(&path.join("..")) || path == Path::new("/");
    let stat = rustix::fs::statvfs(path).ok().filter(|stat| is_root && stat.f_files > 0)?;
    Some(stat.f_files.saturating_sub(stat.f_ffree))
}

/// Refuses places of this project that are named like those of other file systems.
fn check_kind(path: &Path) -> Result<()> {
    let shown = path.display();
    let has = |names: &[&str]| names.iter().any(|name| path.join(name).is_file());
    // One drive and one copy of the log may be missing.
    if has(&["drive-00.img", "drive-01.img"]) && has(&["log.img", "log-2.img"]) {
        let message = format!("{shown} is the directory of a garden");
        return Err(usage(message, Some(&format!("inspect its volume: senesce inspect garden:{shown}"))));
    }
    if path.is_file() && senesce_image::Container::open_until(path, || false).is_ok() {
        let message = format!("{shown} is a container of `senesce image`");
        let hint = format!("restore it first: senesce image restore {shown} FILE");
        return Err(usage(message, Some(&hint)));
    }
    Ok(())
}

/// The models that the user named; else the built-in ones, with those of the disk below `place`
/// first.
pub(super) fn choose_devices(named: &[String], place: &Path) -> Result<(Judge, Vec<DeviceSpec>)> {
    if !named.is_empty() {
        return Ok((Judge::Named, named.iter().map(|name| read_device(name)).collect::<Result<_>>()?));
    }
    with_models(Judge::find(place))
}

fn with_models(judge: Judge) -> Result<(Judge, Vec<DeviceSpec>)> {
    let devices = judge.presets().iter().map(|name| read_device(name)).collect::<Result<_>>()?;
    Ok((judge, devices))
}

#[cfg(test)]
mod tests {
    use senesce_inspect::{Grade, JudgedDevice};

    use super::*;

    #[test]
    fn images_have_no_total_of_their_file_system() {
        let image = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(count_entries(image.path()), None);
        assert_eq!(count_entries(Path::new("garden:nowhere")), None);
    }

    #[test]
    fn gate_needs_every_model_of_the_disk() {
        let of = |device: &str, slowdown, lost_seconds| DeviceJudgement {
            device: device.to_owned(),
            grade: Grade::Aged,
            slowdown,
            lost_seconds,
        };
        let judge = |judgements: Vec<DeviceJudgement>, judged_as: &[&str]| {
            let judged_as = judged_as.iter().map(|name| (*name).to_owned()).collect();
            let device = JudgedDevice { kind: None, description: None, judged_as };
            let judged = Judged { grade: Grade::Aged, slowdown: None, device, judgements };
            gate(FailIf { percent: 100.0 }, &judged).err().map(|error| error.to_string())
        };
        // The disk itself passes; another model is not asked.
        assert_eq!(judge(vec![of("nvme", 1.9, 50.0), of("hdd", 9.0, 500.0)], &["nvme"]), None);
        // A slowdown that costs less than a second passes.
        assert_eq!(judge(vec![of("hdd", 9.0, 0.5)], &["hdd"]), None);
        assert_eq!(judge(vec![], &["hdd"]), None);
        let failed = judge(vec![of("nvme", 2.5, 50.0)], &["nvme"]).unwrap();
        let expected =
            "--fail-if +100% failed: a cold read takes 2.50× on nvme of the time that a fresh copy takes (limit 2.00×)";
        assert_eq!(failed, expected);
        let open = judge(vec![of("nvme", 1.2, 5.0), of("hdd", 9.0, 500.0)], &["nvme", "hdd"]).unwrap();
        assert!(
            open.contains("takes 9.00× on hdd") && open.contains("is undecided") && open.contains("--device"),
            "{open}"
        );
    }
}

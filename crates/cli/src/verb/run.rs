//! `senesce run`: an experiment from a plan, from the beginning or from where it was killed.

use std::{
    env, fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use senesce_core::{Bytes, Printable};
use senesce_experiment::{
    BEGUN_UNIX_SECONDS, EngineTeller, Event, KernelLoad, Observer, Preview, Run, RunPaths, TOOK_SECONDS, World,
    hash_of_plan,
    plan::{Backend, Plan, WorkloadKind},
    preview,
};
use senesce_inspect::Told;
use senesce_report::ReportOptions;
use senesce_store::{ResultStore, Results};
use senesce_volume::{install_signal_cleanup, interrupted};

use super::{
    guest,
    home::patient_host,
    place::check_run_directory,
    report::{print_warnings, write_report},
    show::{check_exists, read_results, render_summary, resume_command},
};
use crate::{
    args::{ChangeArgs, RunArgs},
    clock::SystemClock,
    engines::engines,
    exit::{Resumable, failed_with, usage},
    fit::fit,
    machine::{count_threads, trusted_owners},
    progress::Progress,
};

/// Runs, resumes or previews.
pub fn run(args: RunArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    if let Some(kind) = args.guest.guest.filter(|_| !args.dry_run) {
        return guest::run(kind, args, quiet);
    }
    let run = match (&args.resume, &args.plan) {
        (Some(dir), _) => {
            check_exists(dir)?;
            Run::resume(dir, args.force, world(args.change.trust_repo)?)?
        }
        (None, Some(path)) => {
            let plan = read_changed(path, &args.change)?;
            let out = args.out.clone().unwrap_or_else(|| next_run_dir(&plan.name));
            check_run_directory(&out)?;
            if plan.file_systems.iter().any(|fs| fs.kind.is_engine()) {
                engines().check()?;
            }
            if args.dry_run {
                return dry_run(&plan, path, &out, (args.force, args.change.trust_repo));
            }
            Run::create(plan, path, &out, args.force, world(args.change.trust_repo)?)?
        }
        (None, None) => {
            return Err(usage("no plan is named", Some("senesce run PLAN.toml, or senesce run --resume DIRECTORY")));
        }
    };
    run_to_end(run, quiet)
}

/// Executes a run, writes its report and prints its summary.
///
/// Errors: those of the run; a cell is invalid; an arm could not be finished.
pub fn run_to_end(run: Run, quiet: bool) -> Result<()> {
    let ended = execute(run, quiet)?;
    ended.print();
    ended.check()
}

/// An executed run.
pub struct Ended {
    /// Its directory.
    pub dir: PathBuf,
    /// Its results.
    pub results: Results,
    failed_arms: Vec<(String, String)>,
}

/// Executes a run. Writes its report after each arm, with the results so far, and at the end.
/// Prints nothing to stdout.
///
/// Errors: those of the run.
pub fn execute(mut run: Run, quiet: bool) -> Result<Ended> {
    let mut progress = Interim { progress: Progress::for_stderr(quiet), dir: run.dir().to_owned(), arms: (0, 0) };
    let what = "preparing the workload".to_owned();
    progress.on_event(&Event::Doing { arm: "run".to_owned(), what, role: None });
    let end = run.execute(&mut progress).map_err(|error| match error.interrupted() {
        Some(_) => anyhow::Error::from(error).context(Resumable(run.dir().to_owned())),
        None => error.into(),
    })?;
    progress.progress.begin("writing the report and the figures");
    let figures = run.dir().join("figures");
    let warnings = write_report(run.dir(), &run.report_path(), Some(&figures), &ReportOptions::default())?;
    drop(progress);
    print_warnings(&warnings);
    let results = read_results(run.dir())?;
    Ok(Ended { dir: run.dir().to_owned(), results, failed_arms: end.failed_arms })
}

impl Ended {
    /// Prints the summary and the path of the report.
    pub fn print(&self) {
        print!("{}", fit(&render_summary(&self.results)));
        println!("\nreport: {}", Printable::new(&RunPaths::new(&self.dir).report()));
    }

    /// Errors: a cell is invalid; an arm could not be finished.
    pub fn check(&self) -> Result<()> {
        let cells = &self.results.cells;
        if self.failed_arms.is_empty() {
            return match cells.iter().filter(|cell| !cell.valid).count() {
                0 => Ok(()),
                invalid => {
                    let message = format!("{invalid} of {} cells are invalid, for the reasons above", cells.len());
                    let hint = "remove the cause; `senesce run PLAN --out NEW` then measures all cells again (--resume leaves invalid cells as they are)";
                    Err(failed_with(message, Some(hint)))
                }
            };
        }
        let arms: Vec<String> = self.failed_arms.iter().map(|(arm, reason)| format!("{arm}: {reason}")).collect();
        let message =
            format!("{} arm(s) failed, and their missing cells are invalid:\n  {}", arms.len(), arms.join("\n  "));
        let hint = format!("remove the cause, then repeat the failed arms with `{}`", resume_command(&self.dir));
        Err(failed_with(message, Some(&hint)))
    }
}

/// Shows progress, and writes a report of the arms that are done, so that users can look early.
struct Interim {
    progress: Progress,
    /// The run's directory.
    dir: PathBuf,
    /// The number of the arm under way, and of all.
    arms: (u64, u64),
}

impl Observer for Interim {
    fn on_event(&mut self, event: &Event) {
        self.progress.on_event(event);
        match event {
            Event::ArmStarted { number, of, .. } => self.arms = (*number, *of),
            Event::ArmDone { .. } if self.arms.0 < self.arms.1 => self.write(),
            _ => {}
        }
    }
}

impl Interim {
    fn write(&self) {
        let (done, of) = self.arms;
        let missing = format!("This run is not finished: {done} of {of} arms are done. The page reloads itself.");
        let report = RunPaths::new(&self.dir).report();
        let options = ReportOptions { unfinished: Some(missing), ..ReportOptions::default() };
        match write_report(&self.dir, &report, None, &options) {
            Ok(_) => self.progress.note(&format!("report of {done} of {of} arms: {}", report.display())),
            // The report at the end has all of it.
            Err(error) => self.progress.note(&format!("no report of {done} of {of} arms: {error:#}")),
        }
    }
}

/// Everything that a run needs of this machine. With `trust_repo`, repositories of any user are
/// read.
///
/// Errors: the directory for the list of runs is unknown.
pub fn world(trust_repo: bool) -> Result<World> {
    Ok(World {
        clock: Arc::new(SystemClock::start()),
        load: Arc::new(KernelLoad),
        host: Arc::new(patient_host()),
        engines: Arc::new(Surveyor),
        registry_dir: registry_dir()?,
        owners: trusted_owners(trust_repo),
        senesce_version: crate::VERSION.to_owned(),
        threads: count_threads(None),
        interrupted,
    })
}

/// The engines of our own.
struct Surveyor;

impl EngineTeller for Surveyor {
    fn collect_told(&self, device: &Path) -> Result<Told, String> {
        engines().survey(device, None, &|| interrupted().is_none()).map_err(|error| format!("{error:#}"))
    }
}

/// The directory that lists this user's runs on this machine: `SENESCE_REGISTRY`, or one that no
/// other user can write.
///
/// Errors: neither `XDG_STATE_HOME` nor `HOME` is an absolute path.
pub fn registry_dir() -> Result<PathBuf> {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    choose_registry_dir(rustix::process::geteuid().is_root(), named)
}

/// Never chooses /var/tmp: another user can prepare a name there before this user's first run.
fn choose_registry_dir(is_root: bool, named: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf> {
    if let Some(dir) = named("SENESCE_REGISTRY") {
        return Ok(dir);
    }
    if is_root {
        // With sudo, `HOME` may still name the home of the calling user.
        return Ok(PathBuf::from("/var/lib/senesce/runs"));
    }
    let absolute = |name| named(name).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    let hint = "set SENESCE_REGISTRY to a directory that only you can write";
    let state =
        state.ok_or_else(|| usage("the directory for the list of runs is unknown: HOME is not set", Some(hint)))?;
    Ok(state.join("senesce/runs"))
}

/// Reads a plan with the changes of the command line.
///
/// Errors: the changed plan makes no sense.
pub fn read_changed(path: &Path, args: &ChangeArgs) -> Result<Plan> {
    check_twice_set(args)?;
    let mut plan = Plan::read_with(path, &args.set)?;
    check_history_options(&plan, args)?;
    if args.repo.is_some() || args.trace.is_some() {
        (plan.history.synthetic, plan.history.like) = (None, None);
        (plan.history.repo, plan.history.trace) = (args.repo.clone(), args.trace.clone());
    }
    if args.pulls.is_some() {
        plan.history.pulls = args.pulls;
    }
    if let Some(runs) = args.runs {
        plan.measure.repetitions = runs.into();
    }
    if let Some(seed) = args.seed {
        plan.seed = senesce_core::Seed(seed);
    }
    if args.device.is_some() {
        plan.volumes.device = args.device.clone();
    }
    plan.volumes.real_time |= args.real_time;
    // What was overridden must still make sense.
    Ok(plan.checked(path)?)
}

/// Errors: an option and a setting change the same key. The description would list the setting.
fn check_twice_set(args: &ChangeArgs) -> Result<()> {
    // These options replace the source of the history, whatever it is.
    const SOURCES: [&str; 4] = ["history.repo", "history.trace", "history.synthetic", "history.like"];
    let options: [(&str, bool, &[&str]); 7] = [
        ("--repo", args.repo.is_some(), &SOURCES),
        ("--trace", args.trace.is_some(), &SOURCES),
        ("--pulls", args.pulls.is_some(), &["history.pulls"]),
        ("--runs", args.runs.is_some(), &["measure.repetitions"]),
        ("--seed", args.seed.is_some(), &["seed"]),
        ("--device", args.device.is_some(), &["volumes.device"]),
        ("--real-time", args.real_time, &["volumes.real_time"]),
    ];
    for (option, _, keys) in options.iter().filter(|(_, is_given, _)| *is_given) {
        if let Some(setting) = args.set.iter().find(|setting| keys.iter().any(|key| setting.touches(key))) {
            let message = format!("{option} and --set {setting} exclude each other");
            return Err(usage(message, Some("leave one of them out")));
        }
    }
    Ok(())
}

/// Errors: an option for histories is set, but the plan has no history.
fn check_history_options(plan: &Plan, args: &ChangeArgs) -> Result<()> {
    let kind = plan.workload.kind;
    let given = [("--pulls", args.pulls.is_some()), ("--repo", args.repo.is_some()), ("--trace", args.trace.is_some())];
    let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given && kind != WorkloadKind::History) else {
        return Ok(());
    };
    let name = kind.as_str();
    let message = format!("{option} is for histories, and the workload of plan {} is {name}", plan.name);
    // The plan key that sets the number of steps.
    let steps = match kind {
        WorkloadKind::Fsfb | WorkloadKind::Intrafile | WorkloadKind::Overwrite | WorkloadKind::Renames => {
            Some("rounds")
        }
        WorkloadKind::Mail => Some("cycles"),
        WorkloadKind::Profile => Some("churn"),
        WorkloadKind::Replay => Some("repeat"),
        WorkloadKind::History | WorkloadKind::Interfile => None,
    };
    let hint = match steps.filter(|_| option == "--pulls") {
        Some(key) => format!("write --set workload.{name}.{key}=N instead"),
        None => "leave it out, or name a plan with the table history".to_owned(),
    };
    Err(usage(message, Some(&hint)))
}

/// The directory of the next run of a plan.
pub fn next_run_dir(name: &str) -> PathBuf {
    (1u32..)
        .map(|number| PathBuf::from(format!("senesce-runs/{name}-{number}")))
        .find(|dir| !dir.exists())
        .expect("some number is free")
}

/// Prints what a run would do, and refuses what it would refuse.
pub fn dry_run(plan: &Plan, path: &Path, out: &Path, (force, trust_repo): (bool, bool)) -> Result<()> {
    let scratch = create_scratch(&env::temp_dir())?;
    let result = preview(plan, path, (out, &scratch), force, &world(trust_repo)?);
    remove_scratch(&scratch);
    print_preview(plan, &result?);
    if let Some((dir, seconds)) = find_earlier(plan, out) {
        println!("an earlier run of this plan took {}: {}", tell_seconds(seconds), Printable::new(&dir));
    }
    Ok(())
}

/// The latest complete run of the same plan beside `out`, in the working directory or in
/// `senesce-runs`, and its wall time in seconds.
fn find_earlier(plan: &Plan, out: &Path) -> Option<(PathBuf, u64)> {
    let hash = hash_of_plan(plan)?;
    let beside = out.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let dirs = [beside, Path::new("."), Path::new("senesce-runs")]
        .into_iter()
        .filter_map(|dir| fs::read_dir(dir).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|dir| RunPaths::new(dir).results().is_dir());
    let find = |dir: PathBuf| {
        let store = ResultStore::open_read_only(&RunPaths::new(&dir).results()).ok()?;
        if store.run_info().plan_hash != hash {
            return None;
        }
        let rows = store.read_circumstances().ok()?;
        let number = |key: &str| rows.iter().find(|row| row.key == key)?.value.parse::<u64>().ok();
        let dir = dir.strip_prefix(".").map_or_else(|_| dir.clone(), Path::to_owned);
        Some((number(BEGUN_UNIX_SECONDS)?, dir, number(TOOK_SECONDS)?))
    };
    dirs.filter_map(find).max().map(|(_, dir, seconds)| (dir, seconds))
}

fn tell_seconds(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

/// Removes a directory of [`create_scratch`]. If that fails, it prints a warning only, so that the
/// result of the preview is not lost.
pub fn remove_scratch(scratch: &Path) {
    if let Err(error) = fs::remove_dir_all(scratch) {
        let scratch = scratch.display();
        eprintln!("senesce: warning: cannot remove {scratch}, which may hold copies of the inputs: {error}");
    }
}

/// Creates a directory for this process, with access for this user only. Skips names that exist:
/// another user may have made them.
pub fn create_scratch(dir: &Path) -> Result<PathBuf> {
    for number in 0u32.. {
        let path = dir.join(format!("senesce-dry-run-{}.{number}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot create {}", path.display())),
        }
    }
    unreachable!("some number is free")
}

fn print_preview(plan: &Plan, preview: &Preview) {
    match plan.description.trim() {
        "" => println!("plan {}", plan.name),
        description => println!("plan {}: {description}", plan.name),
    }
    let arms: Vec<&str> = preview.arms.iter().map(|arm| arm.name.as_str()).collect();
    println!("arms         {} ({})", arms.len(), arms.join(", "));
    println!("{:<12} {} per arm, at most", plan.step_unit(), preview.pulls);
    let checkpoints: Vec<String> = preview.checkpoints.iter().map(u64::to_string).collect();
    let cured = match preview.cured_checkpoints {
        0 => String::new(),
        number => format!(", and {number} after cures"),
    };
    println!("checkpoints  {} ({}){cured}", checkpoints.len(), shortened(&checkpoints));
    println!("cells        {}", preview.cells.len());
    if plan.workload.kind == WorkloadKind::History || preview.sizes.clone_bytes > 0 {
        println!("first state  {} of one copy", Bytes(preview.sizes.clone_bytes));
    }
    println!("volumes      {}", preview.volumes.join("\n             "));
    if !preview.untried_mkfs.is_empty() {
        let names: Vec<&str> = preview.untried_mkfs.iter().map(|kind| kind.name()).collect();
        println!("mkfs         not tried with the options of {}: it has no dry run", names.join(", "));
    }
    let place = if plan.volumes.backend == Backend::Memory { "memory" } else { "disk space" };
    println!("{place:<12} {} at most while an arm runs", preview.disk_bytes);
    println!("steps of an arm:");
    for (number, step) in preview.steps.iter().enumerate() {
        println!("  {}. {step}", number + 1);
    }
}

fn shortened(items: &[String]) -> String {
    match items {
        [first, second, third, .., last] if items.len() > 12 => format!("{first}, {second}, {third}, … {last}"),
        _ => items.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_registry_is_never_in_a_shared_directory() {
        let choose = |is_root, set: &[(&str, &str)]| {
            let find = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value));
            choose_registry_dir(is_root, find).ok().map(|dir| dir.to_string_lossy().into_owned())
        };
        let home = [("HOME", "/home/a"), ("XDG_STATE_HOME", "/state")];
        assert_eq!(choose(true, &home).as_deref(), Some("/var/lib/senesce/runs"));
        assert_eq!(choose(false, &home).as_deref(), Some("/state/senesce/runs"));
        assert_eq!(choose(false, &home[..1]).as_deref(), Some("/home/a/.local/state/senesce/runs"));
        assert_eq!(
            choose(false, &[home[0], ("XDG_STATE_HOME", "relative")]).as_deref(),
            Some("/home/a/.local/state/senesce/runs")
        );
        assert_eq!(choose(false, &[]), None);
        for is_root in [false, true] {
            assert_eq!(choose(is_root, &[home[0], ("SENESCE_REGISTRY", "/r")]).as_deref(), Some("/r"));
        }
    }

    #[test]
    fn a_taken_scratch_name_is_not_used() {
        let temp = tempfile::tempdir().unwrap();
        let theirs = temp.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        symlink(&theirs, temp.path().join(format!("senesce-dry-run-{}.0", std::process::id()))).unwrap();
        let scratch = create_scratch(temp.path()).unwrap();
        assert!(fs::read_dir(&theirs).unwrap().next().is_none() && !scratch.is_symlink());
        assert_eq!(fs::metadata(&scratch).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

//! `run --guest` and `demo --guest`: the same command, executed in a guest kernel.
//!
//! The launcher reads the plan, so that its errors come at once. It makes the run's directory,
//! which the guest may write, and locks it. The guest runs this program with the same arguments and
//! the directory.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use senesce_core::Printable;
use senesce_experiment::{
    RunPaths,
    plan::{Backend, FileSystemName, Plan, VolumePlan},
};
use senesce_guest::{DEFAULT_MEMORY, GuestConfig, Launch, Limits, Writable, check_memory, find_kernel, run_guest};
use senesce_volume::{
    CleanMode, Custodian, GuestLock, LinuxHost, Registry, check_place, check_run_dir, clean, interrupted, is_guest,
};

use super::{
    home::with_home,
    run::{next_run_dir, registry_dir, with_overrides},
};
use crate::{
    args::{DemoArgs, GuestArg, GuestArgs, RunArgs},
    clock::SystemClock,
    exit::{failed_with, passed, usage},
};

/// In a guest, holds the number of the user who started it.
const CALLER: &str = "SENESCE_GUEST_CALLER";
/// Limits of the launcher, seconds; for tests.
const BOOT_LIMIT: &str = "SENESCE_GUEST_BOOT_SECONDS";
const SILENCE_LIMIT: &str = "SENESCE_GUEST_SILENCE_SECONDS";
const TOTAL_LIMIT: &str = "SENESCE_GUEST_TOTAL_SECONDS";
/// The variables that a command in the guest receives, beside those of senesce.
const PASSED: &[&str] = &["PATH", "HOME", "LANG", "LC_ALL", "TZ", "NO_COLOR", "RUST_BACKTRACE"];
/// The modules that a run may need. The kernel has no program that would load them later.
const MODULES: &[&str] = &["loop", "fuse", "f2fs"];

/// In a guest, the user of the host who started it.
fn caller() -> Option<u32> {
    // Anyone can set a variable, so it counts in a guest only.
    env::var(CALLER).ok().and_then(|uid| uid.parse().ok()).filter(|_| is_guest())
}

/// In a guest, files of the user who started it count as the program's own.
pub fn trust_caller() {
    if let Some(uid) = caller() {
        senesce_volume::set_guest_caller(uid);
    }
}

/// `senesce run --guest`.
pub fn run(kind: GuestArg, args: RunArgs, quiet: bool) -> Result<()> {
    let place = match (&args.resume, &args.plan) {
        (Some(dir), _) => existing(dir)?,
        (None, Some(path)) => {
            let plan = with_overrides(Plan::read(path)?, path, &args)?;
            check_visible(path)?;
            new(plan, args.out.clone())?
        }
        (None, None) => return Err(usage("no plan given", None)),
    };
    // Without "..", so that a new option is not forgotten here.
    let RunArgs {
        plan,
        out: _,
        dry_run: _,
        resume,
        repo,
        trust_repo,
        trace,
        pulls,
        runs,
        seed,
        device,
        real_time,
        force,
        guest,
    } = args;
    let mut words = Words::new("run", quiet);
    match resume {
        Some(_) => words.option("--resume", Some(&place.dir)),
        None => {
            words.0.extend(plan.iter().map(|path| path.display().to_string()));
            words.option("--out", Some(&place.dir));
        }
    }
    words.text("--repo", repo);
    words.flag("--trust-repo", trust_repo);
    words.text("--trace", trace);
    words.text("--pulls", pulls.map(|pulls| pulls.to_string()));
    words.text("--runs", runs.map(|runs| runs.to_string()));
    words.text("--seed", seed.map(|seed| seed.to_string()));
    words.text("--device", device);
    words.flag("--real-time", real_time);
    words.flag("--force", force);
    execute(kind, &guest, &place, words, quiet)
}

/// `senesce demo --guest`; `plan` is the demo's.
pub fn demo(kind: GuestArg, args: &DemoArgs, plan: &Plan, quiet: bool) -> Result<()> {
    let DemoArgs { out, repo, pulls, dry_run: _, plan: _, guest } = args;
    let place = new(plan.clone(), out.clone())?;
    let mut words = Words::new("demo", quiet);
    words.option("--out", Some(&place.dir));
    words.text("--repo", repo.clone());
    words.text("--pulls", pulls.map(|pulls| pulls.to_string()));
    execute(kind, guest, &place, words, quiet)
}

/// The words of the command in the guest, without the program.
struct Words(Vec<String>);

impl Words {
    fn new(verb: &str, quiet: bool) -> Self {
        let mut words = Self(Vec::new());
        words.flag("--quiet", quiet);
        words.0.push(verb.to_owned());
        words
    }

    fn flag(&mut self, name: &str, is_set: bool) {
        self.0.extend(is_set.then(|| name.to_owned()));
    }

    fn text(&mut self, name: &str, value: Option<String>) {
        self.0.extend(value.map(|value| format!("{name}={value}")));
    }

    fn option(&mut self, name: &str, path: Option<&Path>) {
        self.text(name, path.map(|path| path.display().to_string()));
    }
}

/// Where a run in a guest works.
struct Place {
    /// The run's directory, without links.
    dir: PathBuf,
    /// The directory was made for this run.
    is_new: bool,
    writable: Vec<Writable>,
}

fn new(plan: Plan, out: Option<PathBuf>) -> Result<Place> {
    let here = fs::canonicalize(".").context("cannot look up the working directory")?;
    check_plan(&plan)?;
    let out = out.unwrap_or_else(|| next_run_dir(&plan.name));
    let is_new = !out.exists();
    // As a run does: contents of a repository or trace may be private.
    let is_private = plan.history.repo.is_some() || plan.history.trace.is_some();
    let mode = if is_private { 0o700 } else { 0o777 };
    let made = fs::DirBuilder::new().recursive(true).mode(mode).create(&out);
    made.with_context(|| format!("cannot create {}", Printable::new(&out)))?;
    check_place(&out)?;
    place(&plan.seen_from(&here), &out, is_new)
}

fn existing(dir: &Path) -> Result<Place> {
    if !dir.is_dir() {
        return Err(usage(format!("{} does not exist", Printable::new(dir)), Some("name the directory of a run")));
    }
    // `volumes` of the run has no link in its path, so the directory must not have one, either.
    let dir = fs::canonicalize(dir).with_context(|| format!("cannot look up {}", dir.display()))?;
    let paths = RunPaths::new(&dir);
    check_run_dir(&dir, &[paths.volumes()])?;
    // The guest sees no mounts and loop devices of the host: release those of a killed run here.
    let actions = clean(&LinuxHost::default(), &dir, CleanMode::Act)?;
    if let Some(failed) = actions.iter().find(|action| action.is_failure()) {
        return Err(failed_with(failed.to_string(), Some("run `senesce clean` first")));
    }
    let begun_in = fs::read(paths.begun_in()).unwrap_or_else(|_| b".".to_vec());
    let plan = Plan::read_kept(&paths.plan())?.seen_from(Path::new(OsStr::from_bytes(&begun_in)));
    check_plan(&plan)?;
    place(&plan, &dir, false)
}

/// Refuses a plan that needs what a guest does not have.
fn check_plan(plan: &Plan) -> Result<()> {
    let wrong = |what: &str, hint: &str| Err(usage(format!("a guest cannot run this plan: {what}"), Some(hint)));
    for volume in [&plan.volumes.full, &plan.volumes.empty, &plan.volumes.unaged] {
        if let VolumePlan::Place(place) = volume {
            let name = place.device.as_ref().or(place.directory.as_ref()).map_or("", String::as_str);
            return wrong(&format!("its volume {name} is on the host"), "name a size: the volume is an image then");
        }
    }
    if plan.file_systems.iter().any(|file_system| file_system.kind == FileSystemName::Host) {
        return wrong(
            "it measures the file system of the host",
            "leave the file system \"host\" out, or run without --guest",
        );
    }
    let repo = plan.history.repo.as_ref();
    if let Some(repo) = repo.filter(|repo| repo.contains("://") && !Path::new(repo).exists()) {
        return wrong(&format!("it has no network for {repo}"), "clone the repository first, and name the clone");
    }
    Ok(())
}

/// Refuses a path that the guest does not see, because it has devices and processes of its own.
fn check_visible(path: &Path) -> Result<()> {
    let path = fs::canonicalize(path).with_context(|| format!("cannot look up {}", Printable::new(path)))?;
    match ["/dev", "/proc", "/sys"].into_iter().find(|hidden| path.starts_with(hidden)) {
        Some(hidden) => {
            let message = format!("a guest does not see {}: it has a {hidden} of its own", Printable::new(&path));
            Err(usage(message, Some("copy it to another directory")))
        }
        None => Ok(()),
    }
}

fn place(plan: &Plan, dir: &Path, is_new: bool) -> Result<Place> {
    let dir = fs::canonicalize(dir).with_context(|| format!("cannot look up {}", Printable::new(dir)))?;
    let mut writable = vec![Writable::Host { path: dir.clone() }];
    if let Some(images) = &plan.volumes.dir {
        let images = fs::canonicalize(images).with_context(|| format!("cannot look up {images}"))?;
        check_place(&images)?;
        if plan.volumes.backend == Backend::Memory && images == dir {
            let message = format!("volumes.dir is the directory of the run: {}", Printable::new(&dir));
            return Err(usage(message, Some("name another directory: in a guest, volumes in memory hide it")));
        }
        writable.push(match plan.volumes.backend {
            Backend::Memory => Writable::Memory { path: images },
            Backend::Image => Writable::Host { path: images },
        });
    }
    Ok(Place { dir, is_new, writable })
}

fn execute(kind: GuestArg, args: &GuestArgs, place: &Place, words: Words, quiet: bool) -> Result<()> {
    let GuestArg::Uml = kind;
    if is_guest() {
        return Err(usage("this is a guest already", None));
    }
    let registry = Registry::new(&registry_dir()?);
    let host = LinuxHost::default();
    let end = GuestLock::take(&host, &place.dir).map_err(anyhow::Error::from).and_then(|lock| {
        // A killed launcher leaves the run in the list, as a killed run does.
        registry.add(&place.dir)?;
        let end = with_home(|custodian| start(custodian, args, place, words, quiet));
        drop(lock);
        Ok(end)
    });
    let end = end.inspect_err(|_| forget(place, None))?;
    match &end {
        // The command has released what it could. What it could not stays in the list.
        Ok(_) => {
            if clean(&host, &place.dir, CleanMode::DryRun)?.is_empty() {
                registry.remove(&place.dir)?;
            }
        }
        Err(_) => {
            for action in clean(&host, &place.dir, CleanMode::Act)?.iter().filter(|action| action.is_failure()) {
                eprintln!("senesce: {action}");
            }
        }
    }
    if !matches!(end, Ok(0)) {
        forget(place, Some(&registry));
    }
    passed(end?)
}

/// Removes the directory of a run that did not begin, and its entry in the list.
fn forget(place: &Place, registry: Option<&Registry>) {
    let is_empty = fs::read_dir(&place.dir).is_ok_and(|mut entries| entries.next().is_none());
    if is_empty && place.is_new {
        if let Some(registry) = registry {
            // The first error is the one to report.
            let _ = registry.remove(&place.dir);
        }
        let _ = fs::remove_dir(&place.dir);
    }
}

fn start(custodian: &Custodian, args: &GuestArgs, place: &Place, words: Words, quiet: bool) -> Result<u8> {
    let kernel = find_kernel()?;
    let (_, dir) = custodian.acquire_tree(&env::temp_dir(), "senesce-guest")?;
    let memory = args.guest_memory.unwrap_or(DEFAULT_MEMORY);
    check_memory(memory, &dir)?;
    let here = fs::canonicalize(".").context("cannot look up the working directory")?;
    let program = env::current_exe().context("cannot find this program")?;
    for path in [&dir, &here, &program] {
        check_visible(path)?;
    }
    let temporary = dir.join("tmp");
    fs::DirBuilder::new().mode(0o700).create(&temporary).context("cannot create the guest's temporary directory")?;
    let mut command = vec![program.display().to_string()];
    command.extend(words.0);
    let mut writable = place.writable.clone();
    writable.push(Writable::Host { path: dir.clone() });
    let config = GuestConfig {
        command,
        environment: environment(&dir, &temporary),
        dir: here,
        umask: umask(),
        writable,
        modules: kernel.modules.in_order(MODULES),
    };
    if !quiet {
        eprintln!("guest: user-mode Linux {} with {memory}; its times are not those of a machine", kernel.release);
    }
    let launch = Launch {
        kernel: &kernel,
        memory,
        config,
        program,
        private_dir: &dir,
        limits: limits(),
        clock: &SystemClock::start(),
        interrupted,
    };
    Ok(run_guest(launch)?.code)
}

fn limits() -> Limits {
    let seconds =
        |name: &str| env::var(name).ok().and_then(|text| text.parse().ok()).map(std::time::Duration::from_secs);
    let usual = Limits::default();
    Limits {
        boot: seconds(BOOT_LIMIT).unwrap_or(usual.boot),
        silence: seconds(SILENCE_LIMIT).unwrap_or(usual.silence),
        total: seconds(TOTAL_LIMIT),
    }
}

fn environment(dir: &Path, temporary: &Path) -> Vec<(String, String)> {
    let is_passed = |name: &str| PASSED.contains(&name) || name.starts_with("SENESCE_");
    let mut found: Vec<(String, String)> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| is_passed(name))
        .collect();
    found.retain(|(name, _)| name != "SENESCE_REGISTRY");
    let mut add = |name: &str, value: String| found.push((name.to_owned(), value));
    add("SENESCE_REGISTRY", dir.join("registry").display().to_string());
    add("TMPDIR", temporary.display().to_string());
    add(CALLER, rustix::process::geteuid().as_raw().to_string());
    // In the guest, the program and git are root, and repositories belong to the caller, or to the
    // user who ran sudo.
    let caller = rustix::process::geteuid();
    let sudo = env::var("SUDO_UID").ok().filter(|_| caller.is_root());
    add("SUDO_UID", sudo.unwrap_or_else(|| caller.as_raw().to_string()));
    found
}

/// The mask of this process, which can only be read by setting it.
fn umask() -> u32 {
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    rustix::process::umask(mask);
    mask.as_raw_mode()
}

//! `run --guest` and `demo --guest`: the same command, executed in a guest kernel.
//!
//! The launcher reads the plan, so that its errors come at once. It makes the run's directory,
//! which the guest may write, and locks it. The guest runs this program with the same arguments and
//! the directory.

use std::{
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
use senesce_guest::Writable;
use senesce_volume::{
    CleanMode, Error as VolumeError, GuestLock, LinuxHost, Registry, check_place, check_run_dir, clean, is_guest,
};

use super::{
    super::{
        home::with_home,
        run::{next_run_dir, read_changed, registry_dir},
    },
    Job, Words, check_visible, start,
};
use crate::{
    args::{ChangeArgs, DemoArgs, GuestArg, GuestArgs, RunArgs},
    exit::{failed_with, passed, usage},
    near::hint_for_run,
};

/// `senesce run --guest`.
pub fn run(kind: GuestArg, args: RunArgs, quiet: bool) -> Result<()> {
    let place = match (&args.resume, &args.plan) {
        (Some(dir), _) => existing(dir)?,
        (None, Some(path)) => {
            let plan = read_changed(path, &args.change)?;
            check_visible(path)?;
            new(plan, args.out.clone())?
        }
        (None, None) => {
            return Err(usage("no plan is named", Some("senesce run PLAN.toml, or senesce run --resume DIRECTORY")));
        }
    };
    // Without "..", so that a new option is not forgotten here.
    let RunArgs { plan, out: _, dry_run: _, resume, change, force, guest } = args;
    let ChangeArgs { repo, trust_repo, trace, pulls, runs, seed, device, real_time, set } = change;
    let mut words = Words::new("run", quiet);
    match resume {
        Some(_) => words.path("--resume", &place.dir),
        None => {
            words.0.extend(plan.iter().map(|path| path.display().to_string()));
            words.path("--out", &place.dir);
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
    set.iter().for_each(|setting| words.text("--set", Some(setting.to_string())));
    words.flag("--force", force);
    execute(kind, &guest, &place, words, quiet)
}

/// `senesce demo --guest`; `plan` is the demo's.
pub fn demo(kind: GuestArg, args: &DemoArgs, plan: &Plan, quiet: bool) -> Result<()> {
    let DemoArgs { out, repo, pulls, dry_run: _, plan: _, guest } = args;
    let place = new(plan.clone(), out.clone())?;
    let mut words = Words::new("demo", quiet);
    words.path("--out", &place.dir);
    words.text("--repo", repo.clone());
    words.text("--pulls", pulls.map(|pulls| pulls.to_string()));
    execute(kind, guest, &place, words, quiet)
}

/// The directories of a run in a guest. The drop removes the run's directory if it was made for
/// this run and is still empty.
struct Place {
    /// The run's directory, without links.
    dir: PathBuf,
    /// The directory was made for this run.
    is_new: bool,
    writable: Vec<Writable>,
}

impl Place {
    fn is_unbegun(&self) -> bool {
        self.is_new && fs::read_dir(&self.dir).is_ok_and(|mut entries| entries.next().is_none())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_new {
            // Removes an empty directory only.
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

fn new(plan: Plan, out: Option<PathBuf>) -> Result<Place> {
    let here = fs::canonicalize(".").context("cannot look up the working directory")?;
    let plan = plan.seen_from(&here);
    check_plan(&plan)?;
    let out = out.unwrap_or_else(|| next_run_dir(&plan.name));
    let is_new = !out.exists();
    // As a run does: contents of a repository or trace may be private.
    let is_private = plan.history.repo.is_some() || plan.history.trace.is_some();
    let mode = if is_private { 0o700 } else { 0o777 };
    let made = fs::DirBuilder::new().recursive(true).mode(mode).create(&out);
    made.with_context(|| format!("cannot create {}", Printable::new(&out)))?;
    let place = Place { dir: out, is_new, writable: Vec::new() };
    check_place(&place.dir)?;
    with_writable(place, &plan)
}

fn existing(dir: &Path) -> Result<Place> {
    if !dir.is_dir() {
        return Err(usage(format!("{} does not exist", Printable::new(dir)), Some(&hint_for_run(dir))));
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
    with_writable(Place { dir, is_new: false, writable: Vec::new() }, &plan)
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
    // A name that is no path is that of a preset, and a missing file is an error of the run.
    plan.files().iter().map(Path::new).filter(|path| path.is_absolute() && path.exists()).try_for_each(check_visible)
}

/// Adds the directories that the guest may write.
fn with_writable(mut place: Place, plan: &Plan) -> Result<Place> {
    let canonical = fs::canonicalize(&place.dir);
    place.dir = canonical.with_context(|| format!("cannot look up {}", Printable::new(&place.dir)))?;
    place.writable.push(Writable::Host { path: place.dir.clone() });
    if let Some(images) = &plan.volumes.dir {
        let images = fs::canonicalize(images).with_context(|| format!("cannot look up {images}"))?;
        check_place(&images)?;
        if plan.volumes.backend == Backend::Memory && images == place.dir {
            let message =
                format!("volumes.dir and the directory of the run are the same: {}", Printable::new(&place.dir));
            return Err(usage(
                message,
                Some("name another directory for volumes.dir: in a guest, a file system in memory covers it"),
            ));
        }
        place.writable.push(match plan.volumes.backend {
            Backend::Memory => Writable::Memory { path: images },
            Backend::Image => Writable::Host { path: images },
        });
    }
    Ok(place)
}

fn execute(kind: GuestArg, args: &GuestArgs, place: &Place, words: Words, quiet: bool) -> Result<()> {
    let GuestArg::Uml = kind;
    if is_guest() {
        return Err(usage("--guest: this command already runs in a guest", None));
    }
    let registry = Registry::new(&registry_dir()?);
    let host = LinuxHost::default();
    // The lock is held until the entry in the list is right. Otherwise another guest could use the
    // directory and its entry.
    let lock = GuestLock::take(&host, &place.dir)?;
    // A killed launcher leaves the run in the list, as a killed run does.
    registry.add(&place.dir)?;
    let end = with_home(|custodian| {
        let job = Job { words, writable: place.writable.clone(), environment: Vec::new() };
        start(custodian, args.guest_memory, job, quiet)
    });
    lock.share()?;
    settle(&host, &registry, place)?;
    drop(lock);
    passed(end?)
}

/// Removes what the command left, and the run from the list unless something stays.
fn settle(host: &LinuxHost, registry: &Registry, place: &Place) -> Result<()> {
    match clean(host, &place.dir, CleanMode::Act) {
        Ok(actions) => {
            let failed: Vec<_> = actions.iter().filter(|action| action.is_failure()).collect();
            failed.iter().for_each(|action| eprintln!("senesce: {action}"));
            if failed.is_empty() || place.is_unbegun() {
                registry.remove(&place.dir)?;
            }
        }
        // Another process continues the run, so the list keeps it.
        Err(VolumeError::OwnerAlive { .. }) => {}
        // How the guest ended is more important to report, and the list still has the run.
        Err(error) => eprintln!("senesce: {error}\n  hint: run `senesce clean`"),
    }
    Ok(())
}

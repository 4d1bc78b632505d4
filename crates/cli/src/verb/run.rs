//! `senesce run`: an experiment from a plan, from the beginning or from where it was killed.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_experiment::{EngineTeller, Preview, Run, World, plan::Plan, preview};
use senesce_inspect::Told;
use senesce_report::summary_table;
use senesce_volume::{LinuxHost, install_signal_cleanup, interrupted};

use super::{fs::collect_told, report::write_report, show::read_results};
use crate::{
    args::RunArgs,
    clock::SystemClock,
    exit::{Resumable, failed, usage},
    machine::count_threads,
    progress::Progress,
};

/// Runs, goes on, or previews.
pub fn run(args: RunArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let mut run = match (&args.resume, &args.plan) {
        (Some(dir), _) => Run::resume(dir, args.force, world())?,
        (None, Some(path)) => {
            let plan = with_overrides(Plan::read(path)?, path, &args)?;
            if args.dry_run {
                return dry_run(&plan);
            }
            let out = args.out.clone().unwrap_or_else(|| next_run_dir(&plan.name));
            Run::create(plan, &out, args.force, world())?
        }
        (None, None) => return Err(usage("no plan given", None)),
    };
    let mut progress = Progress::for_stderr(quiet);
    let end = run.execute(&mut progress).map_err(|error| match error.interrupted() {
        Some(_) => anyhow::Error::from(error).context(Resumable(run.dir().to_owned())),
        None => error.into(),
    })?;
    drop(progress);
    write_report(run.dir(), &run.report_path(), Some(&run.dir().join("figures")))?;
    let results = read_results(run.dir())?;
    print!("{}", summary_table(&results));
    println!("\nreport: {}", run.report_path().display());
    if end.failed_arms.is_empty() {
        return match results.cells.iter().filter(|cell| !cell.valid).count() {
            0 => Ok(()),
            invalid => Err(failed(format!("{invalid} cell(s) are invalid; the report gives the reasons"))),
        };
    }
    let arms: Vec<String> = end.failed_arms.iter().map(|(arm, reason)| format!("{arm}: {reason}")).collect();
    Err(failed(format!(
        "{} arm(s) could not be finished (their cells are marked invalid):\n  {}",
        arms.len(),
        arms.join("\n  ")
    )))
}

/// The machine.
pub fn world() -> World {
    World {
        clock: Arc::new(SystemClock::start()),
        host: Arc::new(LinuxHost::default()),
        engines: Arc::new(Engines),
        registry_dir: registry_dir(),
        senesce_version: env!("CARGO_PKG_VERSION").to_owned(),
        threads: count_threads(None),
    }
}

/// The engines of our own.
struct Engines;

impl EngineTeller for Engines {
    fn collect_told(&self, device: &Path) -> Result<Told, String> {
        collect_told(device, None, &|| interrupted().is_none()).map_err(|error| format!("{error:#}"))
    }
}

/// Where the runs that this user began on this machine are listed.
pub fn registry_dir() -> PathBuf {
    let of_user = || match rustix::process::geteuid() {
        user if user.is_root() => PathBuf::from("/var/tmp/senesce/runs"),
        user => PathBuf::from(format!("/var/tmp/senesce-{}/runs", user.as_raw())),
    };
    env::var_os("SENESCE_REGISTRY").map_or_else(of_user, PathBuf::from)
}

fn with_overrides(mut plan: Plan, path: &Path, args: &RunArgs) -> Result<Plan> {
    if args.repo.is_some() || args.trace.is_some() {
        (plan.history.synthetic, plan.history.repo, plan.history.trace) = (None, args.repo.clone(), args.trace.clone());
    }
    if args.pulls.is_some() {
        plan.history.pulls = args.pulls;
    }
    if args.device.is_some() {
        plan.volumes.device = args.device.clone();
    }
    plan.volumes.real_time |= args.real_time;
    // What was overridden must still make sense.
    Ok(plan.checked(path)?)
}

fn next_run_dir(name: &str) -> PathBuf {
    (1u32..)
        .map(|number| PathBuf::from(format!("senesce-runs/{name}-{number}")))
        .find(|dir| !dir.exists())
        .expect("some number is free")
}

fn dry_run(plan: &Plan) -> Result<()> {
    let scratch = env::temp_dir().join(format!("senesce-dry-run-{}", std::process::id()));
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let result = preview(plan, &scratch);
    fs::remove_dir_all(&scratch).ok();
    print_preview(plan, &result?);
    Ok(())
}

fn print_preview(plan: &Plan, preview: &Preview) {
    println!("plan {}: {}", plan.name, plan.description);
    let arms: Vec<&str> = preview.arms.iter().map(|arm| arm.name.as_str()).collect();
    println!("arms         {} ({})", arms.len(), arms.join(", "));
    println!("pulls        {} per arm, at most", preview.pulls);
    let checkpoints: Vec<String> = preview.checkpoints.iter().map(u64::to_string).collect();
    println!("checkpoints  {} ({})", checkpoints.len(), shortened(&checkpoints));
    println!("cells        {}", preview.cells.len());
    println!("first state  {} of one copy", Bytes(preview.sizes.clone_bytes));
    println!("volumes      {}", preview.volumes.join("\n             "));
    println!("disk space   {} at most while an arm runs", preview.disk_bytes);
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

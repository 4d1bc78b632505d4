//! `senesce campaign task`: one run of a campaign.

use anyhow::{Context, Result};
use senesce_core::Printable;
use senesce_experiment::{
    Run, RunPaths,
    campaign::{Attempt, Begun, Campaign, KernelName},
    journal::RunState,
};
use senesce_volume::install_signal_cleanup;

use crate::{
    args::{CampaignTaskArgs, ChangeArgs, GuestArg, GuestArgs, RunArgs},
    engines::engines,
    exit::{failed_with, text_of},
    progress::Progress,
    verb::{guest, run::world},
};

/// Runs the task, unless it is finished.
///
/// Errors: those of the run. Records a failure for `campaign status`, but not an interruption.
pub fn task(args: &CampaignTaskArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let campaign = Campaign::open(&args.dir)?;
    let world = world(args.trust_repo)?;
    let attempt = match Attempt::begin(&campaign, args.number, args.scratch.as_deref(), &world)? {
        Begun::Finished => {
            println!("task {} is finished already", args.number);
            return Ok(());
        }
        Begun::Work(attempt) => attempt,
    };
    let ran = match attempt.task().kernel {
        KernelName::Host => run_here(&attempt, quiet, args.trust_repo),
        KernelName::Uml => run_in_guest(&attempt, quiet, args.trust_repo),
    };
    match ran {
        Ok(()) => {
            attempt.finish()?;
            println!("task {} is finished: {}", args.number, Printable::new(&campaign.paths.task(args.number)));
            Ok(())
        }
        Err(error) => {
            if !error.chain().any(|cause| senesce_experiment::interruption(cause).is_some()) {
                attempt.fail(&text_of(&error))?;
            }
            Err(error)
        }
    }
}

fn run_here(attempt: &Attempt<'_>, quiet: bool, trust_repo: bool) -> Result<()> {
    if attempt.plan().file_systems.iter().any(|file_system| file_system.kind.is_engine()) {
        engines().check()?;
    }
    let world = world(trust_repo)?;
    let mut run = match attempt.is_resumable() {
        true => Run::resume(attempt.work(), false, world)?,
        false => Run::create(attempt.plan().clone(), &attempt.plan_file(), attempt.work(), false, world)?,
    };
    let mut progress = Progress::for_stderr(quiet);
    let end = run.execute(&mut progress)?;
    check_arms(end.failed_arms)
}

/// The guest executes `senesce run`, which reads the plan from a file.
fn run_in_guest(attempt: &Attempt<'_>, quiet: bool, trust_repo: bool) -> Result<()> {
    attempt.write_plan()?;
    let is_resumable = attempt.is_resumable();
    let work = attempt.work().to_owned();
    let args = RunArgs {
        plan: (!is_resumable).then(|| attempt.plan_file()),
        out: (!is_resumable).then(|| work.clone()),
        dry_run: false,
        resume: is_resumable.then(|| work.clone()),
        change: ChangeArgs { trust_repo, ..ChangeArgs::default() },
        force: false,
        guest: GuestArgs { guest: Some(GuestArg::Uml), guest_memory: None },
    };
    let ran = guest::run(GuestArg::Uml, args, quiet);
    // If no arm failed, the task has a result, even if a cell is invalid.
    match RunState::read(&RunPaths::new(attempt.work())) {
        Some(state) if state.done == state.arms => Ok(()),
        _ => ran.and_then(|()| check_arms(vec![("the guest".to_owned(), "it exited early".to_owned())])),
    }
}

fn check_arms(failed: Vec<(String, String)>) -> Result<()> {
    if failed.is_empty() {
        return Ok(());
    }
    let reasons: Vec<String> = failed.into_iter().map(|(arm, reason)| format!("{arm}: {reason}")).collect();
    Err(failed_with(reasons.join("\n  "), Some("remove the cause, then run the task again")))
}

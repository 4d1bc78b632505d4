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
    exit::{failed_with, is_interruption, passed_code, text_of},
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
            if !is_interruption(&error) {
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
    end_of_guest(ran, RunState::read(&RunPaths::new(attempt.work())))
}

/// The end of a task whose command ended in this way in the guest, and left this run.
fn end_of_guest(ran: Result<()>, state: Option<RunState>) -> Result<()> {
    let is_error_of_run =
        ran.as_ref().err().is_none_or(|error| passed_code(error).is_some() && !is_interruption(error));
    match state {
        // An invalid cell of an arm that did not fail is a result.
        Some(state) if state.done == state.arms => Ok(()),
        // The command knows only its exit code. The journal has the reasons.
        Some(state) if is_error_of_run && !state.failed.is_empty() => check_arms(state.failed),
        _ => ran.and_then(|()| check_arms(vec![("the guest".to_owned(), "it ended early".to_owned())])),
    }
}

fn check_arms(failed: Vec<(String, String)>) -> Result<()> {
    if failed.is_empty() {
        return Ok(());
    }
    let reasons: Vec<String> = failed.into_iter().map(|(arm, reason)| format!("{arm}: {reason}")).collect();
    Err(failed_with(reasons.join("\n  "), Some("remove the cause, then run the task again")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::passed;

    fn state(done: usize, failed: &[(&str, &str)]) -> Option<RunState> {
        let failed = failed.iter().map(|(arm, reason)| ((*arm).to_owned(), (*reason).to_owned())).collect();
        Some(RunState { arms: 1, done, failed })
    }

    #[test]
    fn a_failure_in_a_guest_has_the_reason_of_the_journal() {
        let reason = "the image has no space";
        let error = end_of_guest(passed(1), state(0, &[("jfs", reason)])).unwrap_err();
        assert!(!is_interruption(&error) && text_of(&error).starts_with("jfs: the image has no space"), "{error}");
        assert!(end_of_guest(passed(1), state(1, &[])).is_ok());
        assert!(end_of_guest(passed(0), state(0, &[])).unwrap_err().to_string().contains("ended early"));
        assert!(end_of_guest(passed(3), None).unwrap_err().to_string().contains("code 3"));
        // An error before the guest is not the reason of an earlier attempt.
        let missing = end_of_guest(Err(failed_with("no kernel", None)), state(0, &[("jfs", reason)])).unwrap_err();
        assert_eq!(missing.to_string(), "no kernel");
    }

    #[test]
    fn an_interruption_in_a_guest_is_no_failure() {
        for code in [130, 143] {
            for state in [None, state(0, &[]), state(0, &[("jfs", "old")])] {
                assert!(is_interruption(&end_of_guest(passed(code), state).unwrap_err()));
            }
        }
        assert!(!is_interruption(&passed(1).unwrap_err()));
    }
}

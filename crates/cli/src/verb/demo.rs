//! `senesce demo`: the quick start on modelled disks, from a plan that the program has in it.

use std::path::Path;

use anyhow::{Context, Result};
use senesce_experiment::{Run, plan::Plan};
use senesce_volume::install_signal_cleanup;

use super::{
    guest,
    place::check_run_directory,
    run::{dry_run, next_run_dir, run_to_end, world},
};
use crate::args::DemoArgs;

/// The plan, and its name in messages.
const PLAN: &str = include_str!("../../data/demo.toml");
const NAME: &str = "plans/demo.toml";

/// Runs the demo, or prints its plan.
pub fn demo(args: &DemoArgs, quiet: bool) -> Result<()> {
    if args.plan {
        print!("{PLAN}");
        return Ok(());
    }
    install_signal_cleanup().context("cannot handle signals")?;
    let name = Path::new(NAME);
    let mut plan = Plan::parse(name, PLAN)?;
    if args.repo.is_some() {
        (plan.history.synthetic, plan.history.repo) = (None, args.repo.clone());
    }
    plan.history.pulls = args.pulls.or(plan.history.pulls);
    let plan = plan.checked(name)?;
    let out = args.out.clone().unwrap_or_else(|| next_run_dir(&plan.name));
    check_run_directory(&out)?;
    if args.dry_run {
        return dry_run(&plan, name, &out, (false, false));
    }
    if let Some(kind) = args.guest.guest {
        return guest::demo(kind, args, &plan, quiet);
    }
    run_to_end(Run::create(plan, name, &out, false, world(false)?)?, quiet)?;
    println!("next:   senesce inspect /    (is this machine's disk aged?)");
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn help_states_the_pulls_of_the_plan() {
        let pulls = Plan::parse(Path::new(NAME), PLAN).unwrap().history.pulls.unwrap();
        let cli = Cli::command();
        let demo = cli.find_subcommand("demo").unwrap();
        let argument = demo.get_arguments().find(|argument| argument.get_id() == "pulls").unwrap();
        let help = argument.get_help().unwrap().to_string();
        assert!(help.contains(&format!("Default: {pulls}")), "{help}");
    }
}

//! Arguments of `gate`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use senesce_core::statistics::Outcome;

use super::{ChangeArgs, GuestArgs, SelectArgs, complete, look::parse_outcome};

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("base").required(true).multiple(true))]
pub struct GateArgs {
    /// Directory of a run, or a plan, which is run first.
    #[arg(value_name = "RUN|PLAN", add = ArgValueCandidates::new(complete::runs))]
    pub path: PathBuf,
    /// Compare with this run, or with this file of --save-baseline.
    #[arg(short, long, value_name = "DIR|FILE", group = "base")]
    pub baseline: Option<PathBuf>,
    /// Write the figures as a baseline, to commit to a repository.
    ///
    /// The file is JSON with a line for each figure. It replaces an existing file. With --baseline,
    /// it is written only if the gate passes, and it gets the tolerances of that baseline.
    #[arg(short, long, value_name = "FILE", group = "base")]
    pub save_baseline: Option<PathBuf>,
    /// Also read this run of the same plan into the baseline.
    ///
    /// Repeatable. The baseline then has the range of each figure over the runs, and the tolerance
    /// begins at its ends.
    #[arg(long, value_name = "DIR", requires = "save_baseline", conflicts_with = "baseline")]
    pub also: Vec<PathBuf>,
    /// Allowed change of exact figures, in percent.
    ///
    /// Default: the baseline's tolerances. 0 compares exactly. A baseline without tolerances allows
    /// 0.5% for layout and requests (Btrfs: 1.5% for requests), and 40% for modelled seconds.
    /// --save-baseline writes this one for all figures.
    #[arg(short, long, value_name = "PERCENT", value_parser = parse_tolerance)]
    pub tolerance: Option<f64>,
    /// Gate wall times, too.
    ///
    /// They need at least seven repetitions on each side. A wall time regresses only if chance
    /// explains any of the differences with a probability below 0.1%.
    #[arg(long)]
    pub measured: bool,
    /// Allowed change of wall times, in percent. Default: 10.
    #[arg(long, value_name = "PERCENT", value_parser = parse_tolerance, default_value = "10", hide_default_value = true)]
    pub measured_tolerance: f64,
    /// Outcome if undecided: undecided (default), pass, fail.
    ///
    /// The exit codes are 6, 0 and 5.
    #[arg(long, value_name = "OUTCOME", default_value = "undecided", hide_default_value = true, value_parser = parse_outcome)]
    pub on_undecided: Outcome,
    /// Use exit codes of `git bisect run`: 0, 1, 125.
    ///
    /// 0: no regression. 1: a regression. 125: undecided, or an error; git then skips the commit.
    /// An interruption keeps its code, which stops the bisection.
    #[arg(long)]
    pub bisect: bool,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub run: GateRunArgs,
    #[command(flatten)]
    pub outputs: GateOutputArgs,
}

/// Options for a plan that is run first.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of a plan's run, as of `run`")]
pub struct GateRunArgs {
    /// Directory of a plan's run. Default: senesce-runs/NAME-N.
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Check the baseline, print the steps. Run nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Format devices of the plan that carry a signature.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub change: ChangeArgs,
    #[command(flatten)]
    pub guest: GuestArgs,
}

/// Files and texts for CI systems.
#[derive(Debug, Args)]
pub struct GateOutputArgs {
    /// Write a JUnit report (XML): a test for each figure.
    #[arg(long, value_name = "FILE", help_heading = "Outputs")]
    pub junit: Option<PathBuf>,
    /// Print annotations for GitHub, and append to its summary.
    ///
    /// GitHub sets the path of the summary in the variable GITHUB_STEP_SUMMARY.
    #[arg(long, conflicts_with = "json", help_heading = "Outputs")]
    pub github: bool,
    /// Write a table for a pull request; - is stdout.
    #[arg(long, value_name = "FILE|-", help_heading = "Outputs")]
    pub markdown: Option<PathBuf>,
    /// Write the run's figures in the format of Bencher.
    #[arg(long, value_name = "FILE", help_heading = "Outputs")]
    pub bmf: Option<PathBuf>,
    /// Write the run's figures for github-action-benchmark.
    ///
    /// As customSmallerIsBetter. A layout score is written as its distance from 1.
    #[arg(long, value_name = "FILE", help_heading = "Outputs")]
    pub small_is_better: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, help_heading = "Outputs")]
    pub json: bool,
}

/// A change in percent: `2`, `2%` or `+2%`.
fn parse_tolerance(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    let is_valid = |percent: &f64| (0.0..=1000.0).contains(percent);
    number.filter(is_valid).ok_or_else(|| format!("{text:?} is no tolerance; write a percentage from 0 to 1000"))
}

//! Arguments of `bundle`, `verify-bundle` and `rerun`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;

use super::complete;

#[derive(Debug, Args)]
pub struct BundleArgs {
    /// Directory of the run.
    #[arg(add = ArgValueCandidates::new(complete::runs))]
    pub run: PathBuf,
    /// File for the bundle. Default: NAME.senesce-bundle.
    ///
    /// NAME is the name of the run's directory. An existing file is not replaced.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Also bundle the files that the plan reads.
    ///
    /// These are traces, operation logs, profiles and descriptions of devices. Without them,
    /// `rerun` refuses a plan that names such a file. Repositories are never bundled.
    #[arg(long)]
    pub inputs: bool,
    /// Leave the operation logs out.
    ///
    /// A log has the names of the files of the workload. `rerun` does not need it: the plan and the
    /// seed make it again.
    #[arg(long)]
    pub no_logs: bool,
    /// Licence of the results: an SPDX identifier, such as CC-BY-4.0.
    #[arg(long, value_name = "ID", value_parser = parse_licence)]
    pub licence: Option<String>,
    /// Check the run and the file. Write nothing.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct VerifyBundleArgs {
    /// The bundle.
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RerunArgs {
    /// The bundle.
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Directory of the new run. Default: senesce-runs/NAME-N.
    ///
    /// It must not exist, or be empty.
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The repository that the plan replays.
    ///
    /// A bundle has no repository, and senesce reads only one that you name.
    #[arg(long, value_name = "PATH|URL")]
    pub repo: Option<String>,
    /// Also read a repository of another user.
    #[arg(long)]
    pub trust_repo: bool,
    /// Compare the bundle with this run of its plan. Run nothing.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["out", "repo", "trust_repo"], add = ArgValueCandidates::new(complete::runs))]
    pub against: Option<PathBuf>,
    /// Verify the bundle, and print what its plan would do. Run nothing.
    #[arg(long, conflicts_with_all = ["against", "json"])]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

fn parse_licence(text: &str) -> Result<String, String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    match !text.is_empty() && text.len() <= 64 && text.chars().all(is_part) {
        true => Ok(text.to_owned()),
        false => Err("write an identifier of https://spdx.org/licenses, such as CC-BY-4.0".to_owned()),
    }
}

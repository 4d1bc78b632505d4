//! `senesce synth`: a synthetic git history.

use anyhow::{Context, Result};
use senesce_core::{Printable, Seed};
use senesce_gitsource::import_synthetic;
use senesce_volume::{Host, LinuxHost};
use senesce_workload::synthetic::{
    SyntheticHistory, SyntheticParameters, compute_synthetic_statistics, render_statistics,
};

use super::place::check_new_files;
use crate::args::SynthArgs;

/// Makes the repository, and shows its statistics beside the real ones if asked.
pub fn synth(args: SynthArgs) -> Result<()> {
    let path = Some(args.path.clone());
    check_new_files([&path])?;
    let parameters = SyntheticParameters { seed: Seed(args.seed), start_files: args.files, commits: args.commits };
    if args.dry_run {
        SyntheticHistory::new(parameters)?;
        let git = "git".to_owned();
        LinuxHost::default().find_tool(&git).ok_or(senesce_volume::Error::ToolMissing { tool: git, package: "git" })?;
        let shown = Printable::new(&args.path);
        println!("{shown}: 1 commit of {} files and {} more would be written", args.files, args.commits);
    } else {
        let made = import_synthetic(parameters, &args.path).context("cannot make the synthetic history")?;
        println!("{}: {} commits, tip {}", Printable::new(&made.path), made.commits, made.tip);
    }
    if args.show {
        let statistics = compute_synthetic_statistics(SyntheticHistory::new(parameters)?);
        print!("{}", render_statistics(&statistics));
    }
    Ok(())
}

//! `senesce synth`: a synthetic git history.

use anyhow::{Context, Result};
use senesce_core::{Printable, Seed};
use senesce_gitsource::import_synthetic;
use senesce_workload::synthetic::{
    SyntheticHistory, SyntheticParameters, compute_synthetic_statistics, render_statistics,
};

use crate::{args::SynthArgs, exit::usage};

/// Makes the repository, and shows its statistics beside the real ones if asked.
pub fn synth(args: SynthArgs) -> Result<()> {
    if args.path.exists() {
        return Err(usage(format!("{} exists already", args.path.display()), Some("name a path that does not exist")));
    }
    let parameters = SyntheticParameters { seed: Seed(args.seed), start_files: args.files, commits: args.commits };
    let made = import_synthetic(parameters, &args.path).context("cannot make the synthetic history")?;
    println!("{}: {} commits, tip {}", Printable::new(&made.path), made.commits, made.tip);
    if args.show {
        let statistics = compute_synthetic_statistics(SyntheticHistory::new(parameters)?);
        print!("{}", render_statistics(&statistics));
    }
    Ok(())
}

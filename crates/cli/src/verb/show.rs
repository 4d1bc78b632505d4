//! `senesce show`: the summary of a run.

use anyhow::Result;
use senesce_experiment::RunPaths;
use senesce_report::{equivalence_table, summary_table};
use senesce_store::{ResultStore, Results};

use crate::args::ShowArgs;

/// Prints the summary table, and with `--equivalence` native arms against those of the git binary.
pub fn show(args: ShowArgs) -> Result<()> {
    let results = read_results(&args.run)?;
    let mut text = summary_table(&results);
    if args.equivalence {
        text.push('\n');
        text.push_str(&equivalence_table(&results));
    }
    print!("{text}");
    Ok(())
}

/// The results of the run in a directory.
pub fn read_results(run: &std::path::Path) -> Result<Results> {
    let paths = RunPaths::new(run);
    // The results directory itself may be given too.
    let dir = if paths.results().exists() { paths.results() } else { run.to_owned() };
    Ok(ResultStore::open_read_only(&dir)?.read_all()?)
}

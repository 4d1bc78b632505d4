//! `senesce report`: the HTML report and the figures.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use senesce_core::Printable;
use senesce_experiment::RunPaths;
use senesce_report::{ReportOptions, render_figures, render_report};

use super::show::read_results;
use crate::args::ReportArgs;

/// Writes the report and prints its path.
pub fn report(args: ReportArgs) -> Result<()> {
    let out = args.out.unwrap_or_else(|| RunPaths::new(&args.run).report());
    write_report(&args.run, &out, args.figures.as_deref())?;
    println!("{}", Printable::new(&out));
    Ok(())
}

/// Writes the report of the run in `run` to `out`, and its figures if asked.
pub fn write_report(run: &Path, out: &Path, figures: Option<&Path>) -> Result<()> {
    let results = read_results(run)?;
    let html = render_report(&results, &ReportOptions::default())?;
    fs::write(out, html).with_context(|| format!("cannot write {}", out.display()))?;
    if let Some(dir) = figures {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        render_figures(&results, dir)?;
    }
    Ok(())
}

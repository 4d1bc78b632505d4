//! `senesce report`: the HTML report and the figures.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use rustix::fs::{Access, access};
use senesce_core::Printable;
use senesce_experiment::RunPaths;
use senesce_report::{Baseline, ReportOptions, render_figures, render_report};

use super::{place::check_files, show::read_results};
use crate::{args::ReportArgs, exit::usage};

/// Writes the report and prints its path.
pub fn report(args: ReportArgs) -> Result<()> {
    check_files([&args.out])?;
    args.figures.as_deref().map_or(Ok(()), check_figures)?;
    let out = match args.out {
        Some(out) => out,
        None => {
            let own = RunPaths::new(&args.run).report();
            // The run may be a stranger's, and the caller did not name this file.
            if own.symlink_metadata().is_ok_and(|found| !found.is_file()) {
                let problem = format!("{} is not a regular file: it was not written", own.display());
                return Err(usage(problem, Some("name another file with --out")));
            }
            own
        }
    };
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    let options = ReportOptions { baseline, ..ReportOptions::default() };
    if args.dry_run {
        return preview(&args.run, &out, args.figures.as_deref(), &options);
    }
    write_report(&args.run, &out, args.figures.as_deref(), &options)?;
    println!("{}", Printable::new(&out));
    Ok(())
}

/// Errors: the path for figures is or is below a file, or cannot be made.
fn check_figures(dir: &Path) -> Result<()> {
    let existing = dir.ancestors().find(|dir| dir.symlink_metadata().is_ok()).unwrap_or(Path::new("."));
    if !existing.is_dir() {
        let message = format!("--figures: {} is a file, and a directory is needed", Printable::new(existing));
        return Err(usage(
            message,
            Some("name a new directory, or one that exists: one file is written for each figure"),
        ));
    }
    access(existing, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(std::io::Error::from)
        .with_context(|| format!("cannot write into {}", existing.display()))
}

/// The results of an earlier run, under the name of its directory.
fn read_baseline(run: &Path) -> Result<Baseline> {
    let name = run.file_name().map_or_else(|| run.display().to_string(), |name| name.to_string_lossy().into_owned());
    Ok(Baseline { name, results: read_results(run)? })
}

/// Renders the page, and prints which files would be written.
fn preview(run: &Path, out: &Path, figures: Option<&Path>, options: &ReportOptions) -> Result<()> {
    check_files([&Some(out.to_owned())])?;
    let results = read_results(run)?;
    render_report(&results, options)?;
    let how = if out.symlink_metadata().is_ok() { "replaced" } else { "written" };
    println!("{} would be {how}", Printable::new(&out));
    if let Some(dir) = figures {
        println!("figures would be written into {}", Printable::new(&dir));
    }
    Ok(())
}

/// Writes the report of the run in `run` to `out`, and its figures to a directory if there is one.
pub fn write_report(run: &Path, out: &Path, figures: Option<&Path>, options: &ReportOptions) -> Result<()> {
    let results = read_results(run)?;
    let html = render_report(&results, options)?;
    fs::write(out, html).with_context(|| format!("cannot write {}", out.display()))?;
    if let Some(dir) = figures {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        render_figures(&results, dir)?;
    }
    Ok(())
}

//! `senesce report`: the HTML report and the figures.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

use anyhow::{Context, Result};
use rustix::fs::{Access, access};
use senesce_core::Printable;
use senesce_experiment::RunPaths;
use senesce_report::{Baseline, ReportOptions, render_figures, render_report};
use senesce_store::Results;
use serde::{Deserialize, Serialize};

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
    if let Some(dir) = &args.figures {
        check_run_of_figures(dir, &read_results(&args.run)?)?;
    }
    if args.dry_run {
        return preview(&args.run, &out, args.figures.as_deref(), &options);
    }
    write_report(&args.run, &out, args.figures.as_deref(), &options)?;
    println!("{}", Printable::new(&out));
    if let Some(dir) = &args.figures {
        println!("figures in {}", Printable::new(dir));
    }
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

/// The run of a directory of figures, in its file [`RUN_OF_FIGURES`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct RunOfFigures {
    format: String,
    run: String,
    plan: String,
    /// A hash of the first cell, which stays the same if the run continues later.
    first_cell: String,
}

/// Written beside figures, so that those of two runs are never mixed.
const RUN_OF_FIGURES: &str = "run.json";
const RUN_OF_FIGURES_FORMAT: &str = "senesce-figures/1";
/// A file of this program is smaller.
const MOST_RUN_BYTES: u64 = 1 << 16;

impl RunOfFigures {
    fn of(results: &Results) -> Result<Self> {
        let Results { run, cells, grep, aging, .. } = results;
        let key = cells.first().map(|cell| &cell.key);
        let grep: Vec<_> = grep.iter().filter(|row| Some(&row.key) == key).collect();
        let aging: Vec<_> = aging.iter().filter(|row| Some(&row.key) == key).collect();
        let first = serde_json::to_vec(&(&run.plan_hash, cells.first(), grep, aging))?;
        Ok(Self {
            format: RUN_OF_FIGURES_FORMAT.to_owned(),
            run: run.run_name.clone(),
            plan: run.plan_name.clone(),
            first_cell: blake3::hash(&first).to_hex().to_string(),
        })
    }

    /// Errors: the file cannot be read, or is none of this program.
    fn read(path: &Path) -> Result<Self> {
        let mut text = String::new();
        File::open(path)?.take(MOST_RUN_BYTES).read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }
}

/// Errors: the directory has the figures of another run, or of a run that cannot be known.
fn check_run_of_figures(dir: &Path, results: &Results) -> Result<()> {
    let path = dir.join(RUN_OF_FIGURES);
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let other = match RunOfFigures::read(&path) {
        Ok(found) if found == RunOfFigures::of(results)? => return Ok(()),
        Ok(found) => format!("another run of the plan {} (named {})", found.plan, found.run),
        Err(_) => format!("a run that {RUN_OF_FIGURES} does not name"),
    };
    let problem = format!("--figures: {} has the figures of {other}", dir.display());
    Err(usage(Printable::new(&problem).to_string(), Some("name a new directory, or remove this one first")))
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
        let mark = dir.join(RUN_OF_FIGURES);
        // First, so that an interrupted command leaves no figures without it.
        fs::write(&mark, serde_json::to_string_pretty(&RunOfFigures::of(&results)?)? + "\n")
            .with_context(|| format!("cannot write {}", mark.display()))?;
        render_figures(&results, dir)?;
    }
    Ok(())
}

//! `senesce report`: the HTML report and the figures.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::Printable;
use senesce_experiment::RunPaths;
use senesce_report::{Baseline, ReportOptions, render_figures, render_report};
use senesce_store::{CellKey, Results};
use serde::{Deserialize, Serialize};

use super::{
    compare::unlike::compute_unlike,
    output::{check_files, check_output_directory, print_file_preview},
    show::read_results,
};
use crate::{args::ReportArgs, exit::usage};

/// Writes the report and prints its path.
pub fn report(args: ReportArgs) -> Result<()> {
    check_files([&args.out], Some(args.force))?;
    if let Some(dir) = &args.figures {
        // Its content is checked below.
        check_output_directory(dir, "--figures", || dir.join(RUN_OF_FIGURES).is_file())?;
    }
    let out = match args.out {
        Some(out) => out,
        None => {
            let own = RunPaths::new(&args.run).report();
            // The run may be a stranger's, and the caller did not name this file.
            if own.symlink_metadata().is_ok_and(|found| !found.is_file()) {
                let problem = format!("{} is not a regular file: it was not written", own.display());
                return Err(usage(problem, Some("name another file with --out")));
            }
            if own.exists() {
                check_files([&Some(own.clone())], Some(args.force))?;
            }
            own
        }
    };
    let baseline = args.baseline.as_deref().map(|earlier| read_baseline(earlier, &args.run)).transpose()?;
    let options = ReportOptions { baseline, ..ReportOptions::default() };
    if let Some(dir) = &args.figures {
        check_run_of_figures(dir, &read_results(&args.run)?)?;
    }
    if args.dry_run {
        return preview(&args.run, &out, args.figures.as_deref(), &options);
    }
    let warnings = write_report(&args.run, &out, args.figures.as_deref(), &options)?;
    println!("{}", Printable::new(&out));
    if let Some(dir) = &args.figures {
        println!("figures in {}", Printable::new(dir));
    }
    print_warnings(&warnings);
    Ok(())
}

/// The run of a directory of figures, in its file [`RUN_OF_FIGURES`].
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct RunOfFigures {
    format: String,
    run: String,
    plan: String,
    /// A valid cell of the run. `None` if it had none.
    cell: Option<CellKey>,
    /// A hash of the measurements of that cell, which stay the same if the run continues later.
    hash: String,
}

/// The file beside figures that names their run, so that figures of two runs are never mixed.
const RUN_OF_FIGURES: &str = "figures.json";
pub(super) const RUN_OF_FIGURES_FORMAT: &str = "senesce-figures/1";
/// A file of this program is smaller.
const MOST_RUN_BYTES: u64 = 1 << 16;

impl RunOfFigures {
    fn of(results: &Results) -> Result<Self> {
        Self::at(results, results.cells.iter().find(|cell| cell.valid).map(|cell| &cell.key))
    }

    /// The identity of the run by this cell.
    fn at(results: &Results, key: Option<&CellKey>) -> Result<Self> {
        let Results { run, cells, grep, aging, .. } = results;
        let cell = cells.iter().find(|cell| Some(&cell.key) == key);
        let grep: Vec<_> = grep.iter().filter(|row| Some(&row.key) == key).collect();
        let aging: Vec<_> = aging.iter().filter(|row| Some(&row.key) == key).collect();
        let measured = serde_json::to_vec(&(&run.plan_hash, cell, grep, aging))?;
        Ok(Self {
            format: RUN_OF_FIGURES_FORMAT.to_owned(),
            run: run.run_name.clone(),
            plan: run.plan_name.clone(),
            cell: key.cloned(),
            hash: blake3::hash(&measured).to_hex().to_string(),
        })
    }

    /// Errors: the file cannot be read, or is none of this program.
    fn read(path: &Path) -> Result<Self> {
        let mut text = String::new();
        File::open(path)?.take(MOST_RUN_BYTES).read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }
}

/// Refuses a directory that has the figures of another run, or of an unknown one.
fn check_run_of_figures(dir: &Path, results: &Results) -> Result<()> {
    let path = dir.join(RUN_OF_FIGURES);
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let other = match RunOfFigures::read(&path) {
        Ok(found) if found == RunOfFigures::at(results, found.cell.as_ref())? => return Ok(()),
        Ok(found) => format!("another run of the plan {} (named {})", found.plan, found.run),
        Err(_) => format!("a run that {RUN_OF_FIGURES} does not name"),
    };
    let problem = format!("--figures: {} has the figures of {other}", dir.display());
    Err(usage(Printable::new(&problem).to_string(), Some("name a new directory, or remove this one first")))
}

/// The results of an earlier run, under the name of its directory, with the circumstances in which
/// `run` differs from it.
fn read_baseline(earlier: &Path, run: &Path) -> Result<Baseline> {
    let results = read_results(earlier)?;
    let unlike = compute_unlike(&results, &read_results(run)?).into_iter().map(Into::into).collect();
    let name =
        earlier.file_name().map_or_else(|| earlier.display().to_string(), |name| name.to_string_lossy().into_owned());
    Ok(Baseline { name, results, unlike })
}

/// Renders the page, and prints which files would be written.
fn preview(run: &Path, out: &Path, figures: Option<&Path>, options: &ReportOptions) -> Result<()> {
    let results = read_results(run)?;
    render_report(&results, options)?;
    print_file_preview(out);
    if let Some(dir) = figures {
        println!("figures would be written into {}", Printable::new(&dir));
    }
    Ok(())
}

/// Prints warnings about the figures of a report, for example that no fonts are installed.
pub fn print_warnings(warnings: &[String]) {
    for warning in warnings {
        eprintln!("senesce: note: {}", Printable::new(warning));
    }
}

/// Writes the report of the run in `run` to `out`, and its figures to a directory if there is one.
/// Returns warnings about the figures.
pub fn write_report(run: &Path, out: &Path, figures: Option<&Path>, options: &ReportOptions) -> Result<Vec<String>> {
    let results = read_results(run)?;
    let html = render_report(&results, options)?;
    fs::write(out, html).with_context(|| format!("cannot write {}", out.display()))?;
    if let Some(dir) = figures {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let mark = dir.join(RUN_OF_FIGURES);
        // First, so that an interrupted command leaves no figures without it.
        fs::write(&mark, serde_json::to_string_pretty(&RunOfFigures::of(&results)?)? + "\n")
            .with_context(|| format!("cannot write {}", mark.display()))?;
        return Ok(render_figures(&results, dir)?.warnings);
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use senesce_store::{CellRow, Role};

    use super::*;

    fn results(run: &str, arms: &[(&str, bool)]) -> Results {
        let cell = |&(arm, valid): &(&str, bool)| {
            let key = CellKey { arm: arm.to_owned(), file_system: arm.to_owned(), role: Role::Full, pulls: 9 };
            CellRow { valid, tree_hash: run.to_owned(), ..CellRow::without_figures(key, "") }
        };
        let mut results = Results { cells: arms.iter().map(cell).collect(), ..Results::default() };
        results.run.run_name = "run".to_owned();
        results
    }

    #[test]
    fn a_run_that_continues_keeps_its_figures() {
        let dir = tempfile::tempdir().unwrap();
        let begun = results("a", &[("btrfs", false), ("xfs", true)]);
        let text = serde_json::to_string(&RunOfFigures::of(&begun).unwrap()).unwrap();
        fs::write(dir.path().join(RUN_OF_FIGURES), text).unwrap();
        let check = |results: &Results| check_run_of_figures(dir.path(), results);
        check(&begun).unwrap();
        // Cells are sorted by arm, so others come first.
        check(&results("a", &[("btrfs", true), ("ext4", true), ("xfs", true)])).unwrap();
        check(&results("b", &[("btrfs", true), ("xfs", true)])).unwrap_err();
        check(&results("a", &[("btrfs", true)])).unwrap_err();
    }
}

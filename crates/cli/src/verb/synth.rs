//! `senesce synth`: a synthetic git history.

use std::{
    cell::RefCell,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use senesce_core::{Printable, Seed};
use senesce_experiment::{Error, GitSource, Interrupted, read_description};
use senesce_gitsource::import_synthetic;
use senesce_volume::{Host, LinuxHost, install_signal_cleanup, interrupted};
use senesce_workload::synthetic::{
    FittedHistory, HistoryModel, SyntheticHistory, SyntheticParameters, compute_synthetic_statistics, fit_history,
    render_fit, render_statistics,
};

use super::{home::with_home, place::check_new_files};
use crate::{args::SynthArgs, machine::trusted_owners};

/// Makes the repository, and shows its statistics beside the real ones if requested. With
/// `--like`, fits a model first.
pub fn synth(args: SynthArgs, quiet: bool) -> Result<()> {
    check_new_files([&args.path, &args.out])?;
    let model = match (&args.like, &args.model) {
        (Some(repo), _) if args.dry_run => {
            println!("{}: a model of its history would be fitted", Printable::new(repo));
            return Ok(());
        }
        (Some(repo), _) => Some(fit(&args, repo, quiet)?),
        (None, Some(file)) => Some(read_model(file)?),
        (None, None) => None,
    };
    let history = || follow(&args, model.as_ref());
    if let Some(path) = &args.path {
        make(path, history()?, args.dry_run)?;
    }
    if args.show {
        print!("{}", render_statistics(&compute_synthetic_statistics(history()?)));
    }
    Ok(())
}

fn make(path: &Path, history: SyntheticHistory, dry_run: bool) -> Result<()> {
    if dry_run {
        let git = "git".to_owned();
        LinuxHost::default().find_tool(&git).ok_or(senesce_volume::Error::ToolMissing { tool: git, package: "git" })?;
        let parameters = history.parameters();
        let (files, commits) = (parameters.start_files, parameters.commits);
        println!("{}: 1 commit of {files} files and {commits} more would be written", Printable::new(path));
        return Ok(());
    }
    let made = import_synthetic(history, path).context("cannot make the synthetic history")?;
    println!("{}: {} commits, tip {}", Printable::new(&made.path), made.commits, made.tip);
    Ok(())
}

/// The history that the arguments describe, at its start.
fn follow(args: &SynthArgs, model: Option<&HistoryModel>) -> Result<SyntheticHistory> {
    let seed = Seed(args.seed);
    let Some(model) = model else {
        let usual = SyntheticParameters::default();
        let start_files = args.files.unwrap_or(usual.start_files);
        let commits = args.commits.unwrap_or(usual.commits);
        return Ok(SyntheticHistory::new(SyntheticParameters { seed, start_files, commits }).map_err(Error::from)?);
    };
    let mut model = model.clone();
    (model.files, model.commits) = (args.files.unwrap_or(model.files), args.commits.unwrap_or(model.commits));
    let model = model.checked("--files and --commits").map_err(Error::from)?;
    Ok(SyntheticHistory::like(model, seed))
}

fn read_model(file: &Path) -> Result<HistoryModel> {
    let name = Printable::new(file).to_string();
    let text = read_description(file).with_context(|| format!("cannot read the model {name}"))?;
    Ok(HistoryModel::parse(&text, &name).map_err(Error::from)?)
}

/// Fits a model to the history of `repo`, prints how near it comes, and writes it to `--out`.
fn fit(args: &SynthArgs, repo: &str, quiet: bool) -> Result<HistoryModel> {
    install_signal_cleanup().context("cannot handle signals")?;
    let fitted = with_home(|custodian| {
        let (_, scratch) = custodian.acquire_tree(&args.dir, "senesce-synth")?;
        fit_in(repo, scratch, args.trust_repo, quiet)
    })?;
    print!("{}", render_fit(&fitted));
    if let Some(out) = &args.out {
        let wrong = || format!("cannot write the model {}", Printable::new(out));
        let mut file = File::create_new(out).with_context(wrong)?;
        file.write_all(fitted.model.to_text().as_bytes()).with_context(wrong)?;
        println!("model: {}", Printable::new(out));
    }
    Ok(fitted.model)
}

fn fit_in(repo: &str, scratch: PathBuf, trust_repo: bool, quiet: bool) -> Result<FittedHistory> {
    let tell = |what: &str| {
        if !quiet {
            eprintln!("{what}");
        }
    };
    tell("reading the history");
    let mut line = GitSource::open_main_line(repo, &scratch.join("spool"), &trusted_owners(trust_repo))?;
    let start = std::mem::take(&mut line.start);
    // The statistics read the history once, commit by commit, so it never is in memory.
    let failed = RefCell::new(None);
    let commits = std::iter::from_fn(|| {
        if interrupted().is_some() {
            return None;
        }
        line.next_commit().unwrap_or_else(|error| {
            *failed.borrow_mut() = Some(error);
            None
        })
    });
    let fitted = fit_history(repo, start, commits, &mut |round, rounds| {
        tell(&format!("fitting: synthetic history {round} of {rounds}"));
        failed.borrow().is_none() && interrupted().is_none()
    });
    if let Some(signal) = interrupted() {
        return Err(Error::from(Interrupted { signal }).into());
    }
    match failed.into_inner() {
        Some(error) => Err(error).context("cannot read the history"),
        None => Ok(fitted.map_err(Error::from)?),
    }
}

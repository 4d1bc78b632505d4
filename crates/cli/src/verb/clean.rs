//! `senesce clean`: removes what killed runs left.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use senesce_experiment::RunPaths;
use senesce_volume::{CleanAction, CleanMode, JOURNAL_FILE_NAME, LinuxHost, Registry, clean as clean_run};

use super::run::registry_dir;
use crate::{
    args::CleanArgs,
    exit::{failed, usage},
};

/// The hint for a directory that is no run.
const NAME_A_RUN: &str = "name the directory that --out named; without a name, `clean` finds the runs itself";

/// Cleans the given runs, or all that this machine knows of.
pub fn clean(args: CleanArgs) -> Result<()> {
    // Before the first one is cleaned: a wrong name must not leave half of the work done.
    check_runs(&args.runs)?;
    let host = LinuxHost::default();
    let mode = if args.dry_run { CleanMode::DryRun } else { CleanMode::Act };
    let mut unclean = 0;
    let is_all = args.runs.is_empty();
    let mut print = |dir: &Path, result: senesce_volume::Result<Vec<CleanAction>>| match result {
        // `clean` without arguments cleans killed runs only, so a live run is no failure.
        Err(senesce_volume::Error::OwnerAlive { pid, .. }) if is_all => {
            println!("{}: process {pid} still runs; left alone", dir.display());
        }
        Ok(actions) => {
            let has_snapshots_left = print_actions(dir, &actions, &args);
            unclean += u32::from(has_snapshots_left || actions.iter().any(CleanAction::is_failure));
        }
        Err(error) => {
            unclean += 1;
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            eprintln!("senesce: {}: {error}{cause}", dir.display());
        }
    };
    if is_all {
        let registry = Registry::new(&registry_dir()?);
        let all = registry.clean_all(&host, mode)?;
        if all.is_empty() {
            println!("nothing to clean: {} lists no run", registry.dir().display());
        }
        for cleaned in all {
            print(&cleaned.dir, cleaned.result);
        }
    } else {
        for dir in &args.runs {
            print(dir, clean_run(&host, dir, mode));
        }
    }
    match unclean {
        0 => Ok(()),
        _ => Err(failed(format!(
            "{unclean} run(s) could not be cleaned; the lines above name the resources that are left"
        ))),
    }
}

/// Errors: one of the directories does not exist, or is no run.
fn check_runs(runs: &[PathBuf]) -> Result<()> {
    for dir in runs {
        if !dir.is_dir() {
            return Err(usage(format!("there is no directory {}", dir.display()), Some(NAME_A_RUN)));
        }
        if !is_run(dir) {
            return Err(usage(format!("{} holds no run", dir.display()), Some(NAME_A_RUN)));
        }
    }
    Ok(())
}

/// Whether a directory has the plan of a run, or a journal of resources.
fn is_run(dir: &Path) -> bool {
    RunPaths::new(dir).plan().exists() || dir.join(JOURNAL_FILE_NAME).exists()
}

/// Prints what happened to a run. Returns whether a snapshot could not be removed.
fn print_actions(dir: &Path, actions: &[CleanAction], args: &CleanArgs) -> bool {
    for action in actions {
        println!("{}: {action}", dir.display());
    }
    if actions.is_empty() {
        println!("{}: nothing left", dir.display());
    }
    let mut has_failed = false;
    for snapshot in snapshots(dir) {
        let what = match (args.snapshots, args.dry_run) {
            (false, _) => "kept for `run --resume` (--snapshots removes it)".to_owned(),
            (true, true) => "would be removed".to_owned(),
            (true, false) => match fs::remove_file(&snapshot) {
                Ok(()) => "removed".to_owned(),
                Err(error) => {
                    has_failed = true;
                    format!("cannot be removed: {error}")
                }
            },
        };
        println!("{}: snapshot {}: {what}", dir.display(), snapshot.display());
    }
    has_failed
}

/// The images from which `run --resume` would continue. Links are not followed, because the
/// directory may have come in an archive.
fn snapshots(run: &Path) -> Vec<PathBuf> {
    let list = |dir: &Path| match dir.symlink_metadata() {
        Ok(found) if found.is_dir() => {
            fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        }
        _ => Vec::new(),
    };
    let arms: Vec<PathBuf> = list(&run.join("arms"));
    let is_snapshot = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("snapshot-")) && path.is_file()
    };
    arms.iter().flat_map(|arm| list(arm)).filter(is_snapshot).collect()
}

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
    let registry = Registry::new(&registry_dir()?);
    // Before the first one is cleaned: a wrong name must not leave half of the work done.
    check_runs(&args.runs, &registry)?;
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
        let all = registry.clean_all(&host, mode)?;
        if all.is_empty() {
            println!("nothing to clean: {} lists no run", registry.dir().display());
        }
        for cleaned in all {
            print(&cleaned.dir, cleaned.result);
        }
    } else {
        for dir in &args.runs {
            let result = match find_gone(&registry, dir)? {
                // Its journal is gone, too.
                Some(gone) if mode == CleanMode::Act => registry.forget(&gone).map(|()| Vec::new()),
                Some(_) => Ok(Vec::new()),
                None => clean_run(&host, dir, mode),
            };
            print(dir, result);
        }
    }
    match unclean {
        0 => Ok(()),
        _ => Err(failed(format!(
            "{unclean} run(s) could not be cleaned; the lines above name the resources that are left"
        ))),
    }
}

/// The path by which a run is listed whose directory is gone. `None` if it is not gone or not
/// listed.
fn find_gone(registry: &Registry, dir: &Path) -> Result<Option<PathBuf>> {
    let (Some(name), Err(_)) = (dir.file_name(), dir.symlink_metadata()) else { return Ok(None) };
    // Lists have real paths. That of a directory that is gone follows from the one above it.
    let absolute = std::path::absolute(dir)?;
    let above = absolute.parent().and_then(|above| fs::canonicalize(above).ok());
    let real = above.map_or_else(|| absolute.clone(), |above| above.join(name));
    Ok(registry.runs()?.into_iter().find(|listed| *listed == real))
}

/// Errors: one of the directories is neither a run nor a listed run that is gone.
fn check_runs(runs: &[PathBuf], registry: &Registry) -> Result<()> {
    for dir in runs {
        if find_gone(registry, dir)?.is_some() {
            continue;
        }
        if dir.is_file() {
            return Err(usage(format!("{} is a file", dir.display()), Some(NAME_A_RUN)));
        }
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
        let what = match (dir.symlink_metadata().is_err(), args.dry_run) {
            (false, _) => "nothing left",
            (true, false) => "the directory is gone; its entry was removed from the list",
            (true, true) => "the directory is gone; its entry would be removed from the list",
        };
        println!("{}: {what}", dir.display());
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

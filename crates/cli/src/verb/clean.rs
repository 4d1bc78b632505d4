//! `senesce clean`: removes what killed runs left.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use senesce_experiment::RunPaths;
use senesce_volume::{CleanAction, CleanMode, JOURNAL_FILE_NAME, LinuxHost, Registry, clean as clean_run};

use super::run::registry_dir;
use crate::{
    args::CleanArgs,
    exit::{failed, usage},
};

/// The hint for a directory that is no run.
const NAME_A_RUN: &str = "name the directory that --out named; without a name, `clean` finds the runs itself";

/// What a run whose directory and journal are gone may have left.
const NOT_LOOKED_FOR: &str = "volumes that its plan kept elsewhere were not looked for";

/// Cleans the given runs, or all that this machine knows of.
pub fn clean(args: CleanArgs) -> Result<()> {
    // Before the first one is cleaned: a wrong name must not leave half of the work done.
    let gone = check_runs(&args.runs)?;
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
        for (dir, gone) in args.runs.iter().zip(gone) {
            let result = match gone {
                // Its journal is gone, too.
                Some((registry, gone)) if mode == CleanMode::Act => registry.forget(&gone).map(|()| Vec::new()),
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

/// Whether a path does not exist. One that cannot be looked up may exist.
fn is_gone(dir: &Path) -> bool {
    dir.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// The list and the path in it of a run whose directory is gone. `None` if it is not gone or not
/// listed. The list is read only for a directory that is gone.
fn find_gone(dir: &Path) -> Result<Option<(Registry, PathBuf)>> {
    let Some(name) = dir.file_name().filter(|_| is_gone(dir)) else { return Ok(None) };
    // The list has real paths. The real path of a missing directory follows from its parent
    // directory.
    let absolute = std::path::absolute(dir)?;
    let above = absolute.parent().and_then(|above| fs::canonicalize(above).ok());
    let real = above.map_or_else(|| absolute.clone(), |above| above.join(name));
    let registry = Registry::new(&registry_dir()?);
    let is_listed = registry.runs()?.contains(&real);
    Ok(is_listed.then_some((registry, real)))
}

/// Checks all directories. Returns what [`find_gone`] found for each.
///
/// Errors: one of the directories is neither a run nor a listed run that is gone, or cannot be
/// looked up.
fn check_runs(runs: &[PathBuf]) -> Result<Vec<Option<(Registry, PathBuf)>>> {
    let gone = runs.iter().map(|dir| find_gone(dir)).collect::<Result<Vec<_>>>()?;
    for (dir, _) in runs.iter().zip(&gone).filter(|(_, gone)| gone.is_none()) {
        let missing = [ErrorKind::NotFound, ErrorKind::NotADirectory];
        match dir.metadata() {
            Ok(found) if found.is_file() => {
                return Err(usage(format!("{} is a file", dir.display()), Some(NAME_A_RUN)));
            }
            Ok(found) if found.is_dir() => {}
            Err(error) if !missing.contains(&error.kind()) => {
                return Err(error).with_context(|| format!("cannot look up {}", dir.display()));
            }
            _ => return Err(usage(format!("there is no directory {}", dir.display()), Some(NAME_A_RUN))),
        }
        if !is_run(dir) {
            return Err(usage(format!("{} holds no run", dir.display()), Some(NAME_A_RUN)));
        }
    }
    Ok(gone)
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
        let what = match (is_gone(dir), args.dry_run) {
            (false, _) => "nothing left".to_owned(),
            (true, is_dry_run) => {
                let verb = if is_dry_run { "would be" } else { "was" };
                format!("the directory is gone; its entry {verb} removed from the list; {NOT_LOOKED_FOR}")
            }
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

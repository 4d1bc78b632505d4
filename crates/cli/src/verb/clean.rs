//! `senesce clean`: removes what killed runs left.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use senesce_volume::{CleanAction, LinuxHost, Registry, clean as clean_run};

use super::run::registry_dir;
use crate::{
    args::CleanArgs,
    exit::{failed, usage},
};

/// Cleans the given runs, or all that this machine knows of.
pub fn clean(args: CleanArgs) -> Result<()> {
    let host = LinuxHost::default();
    let mut wrong = 0;
    let is_all = args.runs.is_empty();
    let mut told = |dir: &Path, result: senesce_volume::Result<Vec<CleanAction>>| match result {
        // Who asks for all that killed runs left does not mean it.
        Err(senesce_volume::Error::OwnerAlive { pid, .. }) if is_all => {
            println!("{}: process {pid} still runs; left alone", dir.display());
        }
        Ok(actions) => {
            for action in &actions {
                println!("{}: {action}", dir.display());
            }
            if actions.is_empty() {
                println!("{}: nothing left", dir.display());
            }
            for snapshot in snapshots(dir) {
                let removed = args.snapshots && fs::remove_file(&snapshot).is_ok();
                let what = if removed { "removed" } else { "kept for `run --resume` (--snapshots removes it)" };
                println!("{}: snapshot {}: {what}", dir.display(), snapshot.display());
            }
        }
        Err(error) => {
            wrong += 1;
            eprintln!("senesce: {}: {error}", dir.display());
        }
    };
    if is_all {
        for cleaned in Registry::new(&registry_dir()).clean_all(&host)? {
            told(&cleaned.dir, cleaned.result);
        }
    } else {
        for dir in &args.runs {
            if !dir.is_dir() {
                return Err(usage(format!("there is no directory {}", dir.display()), None));
            }
            told(dir, clean_run(&host, dir));
        }
    }
    match wrong {
        0 => Ok(()),
        _ => Err(failed(format!("{wrong} run(s) could not be cleaned"))),
    }
}

/// The images that a run would go on from.
fn snapshots(run: &Path) -> Vec<PathBuf> {
    let list = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let arms: Vec<PathBuf> = list(&run.join("arms")).collect();
    let is_snapshot = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("snapshot-")) && path.is_file()
    };
    arms.iter().flat_map(|arm| list(arm)).filter(is_snapshot).collect()
}

//! Directories that change while they are listed.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use senesce_core::{Rng, Seed};

use super::{Difference, Make, Subject};
use crate::{Caller, FileSystem, FsResult, Ino, NewNode, RenameMode};

/// Lists a directory of `entries` names in small steps, while other names are made, removed and
/// renamed. Each permanent name must be listed exactly once, always with the same cookie, also if
/// the file system is reopened meanwhile.
///
/// Errors: a missing name, or one that was listed twice.
pub fn run_read_dir(make: Make<'_>, seed: Seed, entries: u64) -> Result<(), Difference> {
    let mut subject = make();
    let mut rng = Rng::for_purpose(seed, "conformance read_dir");
    let failed = |error: crate::FsError| Difference(format!("seed {}: {error}", seed.0));
    let caller = Caller::default();
    let stable: BTreeSet<Vec<u8>> = (0..entries).map(|n| format!("stays-{n}").into_bytes()).collect();
    let mut moving: BTreeSet<Vec<u8>> = (0..entries).map(|n| format!("goes-{n}").into_bytes()).collect();
    let mut order: Vec<&Vec<u8>> = stable.iter().chain(&moving).collect();
    rng.shuffle(&mut order);
    let directory = subject
        .file_system()
        .make_node(&caller, Ino::ROOT, b"directory", &NewNode::directory(0o755))
        .map_err(failed)?
        .ino;
    for name in order {
        subject.file_system().make_node(&caller, directory, name, &NewNode::file(0o644)).map_err(failed)?;
    }
    let mut cookies = BTreeMap::new();
    for pass in 0..3 {
        let mut seen: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        let mut cookie = 0;
        loop {
            let batch = read_some(subject.as_ref(), directory, cookie, 1 + rng.below(20) as usize).map_err(failed)?;
            let Some(last) = batch.last() else { break };
            cookie = last.1;
            for (name, cookie) in batch {
                let before = *cookies.entry(name.clone()).or_insert(cookie);
                if stable.contains(&name) && (before != cookie || seen.insert(name.clone(), cookie).is_some()) {
                    let name = name.escape_ascii();
                    return Err(Difference(format!(
                        "seed {}: {name} was listed twice, with {before}, {cookie}",
                        seed.0
                    )));
                }
            }
            change(subject.file_system(), directory, &mut moving, &mut rng).map_err(failed)?;
            if pass == 1 && rng.chance(1, 8) {
                subject.reopen().map_err(failed)?;
            }
        }
        if let Some(missing) = stable.iter().find(|name| !seen.contains_key(*name)) {
            let missing = missing.escape_ascii();
            return Err(Difference(format!("seed {}: {missing} was not listed in pass {pass}", seed.0)));
        }
    }
    let left: BTreeSet<Vec<u8>> = read_some(subject.as_ref(), directory, 0, usize::MAX)
        .map_err(failed)?
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    if left != &stable | &moving {
        return Err(Difference(format!(
            "seed {}: {} names are listed at the end; expected {}",
            seed.0,
            left.len(),
            stable.len() + moving.len()
        )));
    }
    subject.check().map_err(Difference)
}

fn read_some(subject: &dyn Subject, directory: Ino, cookie: u64, most: usize) -> FsResult<Vec<(Vec<u8>, u64)>> {
    let mut batch = Vec::new();
    subject.file_system().read_dir(directory, cookie, &mut |entry| {
        batch.push((entry.name.to_vec(), entry.cookie));
        if batch.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(batch)
}

/// Makes, removes and renames a few of the moving names.
fn change(fs: &dyn FileSystem, directory: Ino, moving: &mut BTreeSet<Vec<u8>>, rng: &mut Rng) -> FsResult<()> {
    let caller = Caller::default();
    for _ in 0..rng.below(6) {
        let new = format!("new-{}", rng.next_u64()).into_bytes();
        let old = moving.iter().nth(rng.below(moving.len().max(1) as u64) as usize).cloned();
        match (rng.below(3), old) {
            (0, Some(old)) => {
                fs.unlink(&caller, directory, &old)?;
                moving.remove(&old);
            }
            (1, Some(old)) => {
                fs.rename(&caller, (directory, &old), (directory, &new), RenameMode::Replace)?;
                moving.remove(&old);
                moving.insert(new);
            }
            _ => {
                fs.make_node(&caller, directory, &new, &NewNode::file(0o600))?;
                moving.insert(new);
            }
        }
    }
    Ok(())
}

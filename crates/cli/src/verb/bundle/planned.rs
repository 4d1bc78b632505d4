//! The plan of a bundle, as this machine can run it.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use senesce_experiment::plan::Plan;
use senesce_oplog::LogReader;

use super::{open::Opened, rerun::localize};
use crate::{
    args::RerunArgs,
    engines::engines,
    exit::usage,
    verb::{place::check_run_directory, run::next_run_dir},
};

/// The plan of a bundle for this machine.
pub(super) struct Planned {
    plan: Plan,
    /// The files of the bundle that the plan reads: the name in the plan, and the path in the
    /// bundle.
    named: Vec<(String, String)>,
    /// The directory of the run.
    pub(super) out: PathBuf,
}

impl Planned {
    /// The plan with the files of the bundle in this directory.
    pub(super) fn with_files_in(&self, dir: &Path) -> Plan {
        let find = |text: &str| {
            let (_, path) = self.named.iter().find(|(named, _)| named == text)?;
            Some(dir.join(path).display().to_string())
        };
        self.plan.clone().with_files(find)
    }

    /// Writes the files of the bundle that the plan reads into a directory.
    pub(super) fn write_files(&self, opened: &mut Opened, dir: &Path) -> Result<()> {
        self.named.iter().try_for_each(|(_, path)| {
            let bytes = opened.bundle.take(path).with_context(|| format!("the bundle has no {path}"))?;
            write_input(&dir.join(path), &bytes)
        })
    }
}

/// The plan of a bundle for this machine.
///
/// Errors: the plan reads what the bundle lacks; the directory is in use; an engine is missing.
pub(super) fn plan_again(opened: &Opened, args: &RerunArgs) -> Result<Planned> {
    let named: Vec<(String, String)> =
        opened.manifest().inputs.iter().map(|input| (input.named.clone(), input.path.clone())).collect();
    let plan =
        localize(opened.plan.clone(), args.repo.as_deref(), |text| named.iter().any(|(named, _)| named == text))?;
    let out = args.out.clone().unwrap_or_else(|| next_run_dir(&plan.name));
    check_run_directory(&out)?;
    if plan.file_systems.iter().any(|fs| fs.kind.is_engine()) {
        engines().check()?;
    }
    if let Some(theirs) = repository_of_log(opened, &named, &plan) {
        let message = format!("the log in the bundle reads the repository {theirs}, which is not in the bundle");
        return Err(usage(message, Some("name your copy of it with --repo")));
    }
    Ok(Planned { plan, named, out })
}

/// The repository of the machine that the log of the plan names, if the plan names none.
fn repository_of_log(opened: &Opened, named: &[(String, String)], plan: &Plan) -> Option<String> {
    let replay = plan.workload.replay.as_ref().filter(|replay| replay.repo.is_none())?;
    let (_, path) = named.iter().find(|(named, _)| *named == replay.log)?;
    // A log that cannot be read is an error of the run.
    let log = LogReader::new(opened.bundle.file(path)?, Path::new(path)).ok()?;
    let source = &log.header().workload["source"];
    source["repo"].as_str().filter(|_| source["kind"] == "git").map(str::to_owned)
}

fn write_input(path: &Path, bytes: &[u8]) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(dir).with_context(|| cannot_write(dir))?;
    fs::write(path, bytes).with_context(|| cannot_write(path))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

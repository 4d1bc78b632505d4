//! Opens a bundle, and verifies that its contents agree with each other.

use std::{collections::BTreeSet, fs::File, path::Path};

use anyhow::{Context, Result};
use senesce_bundle::{Bundle, Limits, Manifest, read};
use senesce_core::{Printable, input::MAX_TEXT_BYTES};
use senesce_experiment::plan::{Plan, PlanError};
use senesce_store::{Error as StoreError, FileLimits, RUN_INFO_FILE, Results, Table};

use crate::exit::failed;

/// The plan in a bundle.
pub(super) const PLAN_FILE: &str = "plan.toml";
/// The directory of the result tables in a bundle.
pub(super) const TABLES: &str = "results/";

/// The path of a table in a bundle.
pub(super) fn table_path(table: Table) -> String {
    format!("{TABLES}{}.parquet", table.name())
}

/// A bundle whose contents agree with each other.
pub(super) struct Opened {
    pub(super) bundle: Bundle,
    pub(super) plan: Plan,
    pub(super) results: Results,
}

impl Opened {
    pub(super) fn manifest(&self) -> &Manifest {
        &self.bundle.manifest
    }
}

/// Whether a file of a bundle stays in memory. `keep_inputs`: input files do.
pub(super) fn is_kept(name: &str, keep_inputs: bool) -> bool {
    name == PLAN_FILE || name.starts_with(TABLES) || keep_inputs && name.starts_with("inputs/")
}

/// Opens a bundle, and verifies it. `keep_inputs`: the input files stay in memory.
///
/// Errors: it cannot be read; it is damaged, or its parts disagree.
pub(super) fn open(path: &Path, keep_inputs: bool) -> Result<Opened> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut bundle = read(&file, path, Limits::default(), |name| is_kept(name, keep_inputs))?;
    let damaged = |detail: String| failed(format!("{} is damaged: {}", Printable::new(path), Printable::new(&detail)));
    let run = bundle.take(&format!("{TABLES}{RUN_INFO_FILE}"));
    let run = run.ok_or_else(|| damaged(format!("{RUN_INFO_FILE} is missing")))?;
    // As parsed TOML or JSON, they need many times as much memory.
    for (name, length) in [(PLAN_FILE, bundle.file(PLAN_FILE).map_or(0, <[u8]>::len)), (RUN_INFO_FILE, run.len())] {
        if length > MAX_TEXT_BYTES {
            return Err(damaged(format!("{name} has {length} bytes, and {MAX_TEXT_BYTES} are allowed")));
        }
    }
    let plan = read_plan(&mut bundle, path)?;
    let results = Results::of_files(&run, |table| bundle.take(&table_path(table)), FileLimits::default());
    let results = results.map_err(|error| {
        let shown = Printable::new(path);
        let what = match error {
            StoreError::NewerFormat { .. } => format!("cannot read the results of {shown}"),
            _ => format!("{shown} is damaged"),
        };
        anyhow::Error::from(error).context(what)
    })?;
    check_rows(&bundle.manifest, &results).map_err(damaged)?;
    if results.run.plan_hash != bundle.manifest.plan.hash {
        return Err(damaged("the results are those of another plan".to_owned()));
    }
    let files: BTreeSet<&str> = bundle.manifest.files.iter().map(|file| file.path.as_str()).collect();
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for input in &bundle.manifest.inputs {
        if !input.path.starts_with("inputs/") || !files.contains(input.path.as_str()) {
            return Err(damaged(format!("the input {} is missing", input.path)));
        }
        if !names.insert(&input.named) || !paths.insert(&input.path) {
            return Err(damaged(format!("the input {} appears twice", input.path)));
        }
    }
    Ok(Opened { bundle, plan, results })
}

fn read_plan(bundle: &mut Bundle, path: &Path) -> Result<Plan> {
    let shown = Printable::new(path).to_string();
    let bytes = bundle.take(PLAN_FILE).ok_or_else(|| failed(format!("{shown} is damaged: {PLAN_FILE} is missing")))?;
    let stated = &bundle.manifest.plan;
    if blake3::hash(&bytes).to_hex().as_str() != stated.hash {
        return Err(failed(format!("{shown} is damaged: {PLAN_FILE} has another hash than its manifest states")));
    }
    let unusable =
        |problem: String| failed(format!("the plan of {shown} cannot be used: {}", Printable::lines(&problem)));
    let text = String::from_utf8(bytes).map_err(|_| unusable("it is not UTF-8".to_owned()))?;
    let plan = Plan::parse_kept(Path::new(PLAN_FILE), &text).map_err(|error| match error {
        PlanError::Version { .. } => anyhow::Error::from(error),
        error => unusable(error.to_string()),
    })?;
    match plan.name == stated.name {
        true => Ok(plan),
        false => Err(unusable("it has another name than the manifest states".to_owned())),
    }
}

/// Errors: a table has other rows than the manifest states.
fn check_rows(manifest: &Manifest, results: &Results) -> Result<(), String> {
    if manifest.tables.len() != Table::ALL.len() {
        return Err(format!("the manifest lists {} tables, and a run has {}", manifest.tables.len(), Table::ALL.len()));
    }
    for table in Table::ALL {
        let stated = manifest.tables.iter().find(|entry| entry.name == table.name());
        let stated = stated.ok_or_else(|| format!("the manifest does not list the table {}", table.name()))?.rows;
        let found = results.count_rows(table) as u64;
        if found != stated {
            return Err(format!("the table {} has {found} rows, and the manifest states {stated}", table.name()));
        }
    }
    Ok(())
}

//! The contents of the bundle of a run.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use senesce_bundle::{Content, Contents, Input, Licence, PlanEntry, Research, TableEntry};
use senesce_core::input::{MAX_TEXT_BYTES, read_text};
use senesce_experiment::{BEGUN_UNIX_SECONDS, RunPaths, journal::RunState, plan::Plan};
use senesce_report::{ReportOptions, draw_figures, render_report};
use senesce_store::{RUN_INFO_FILE, Results, Table};

use super::{
    is_built_in,
    open::{PLAN_FILE, TABLES, table_path},
};
use crate::{
    args::BundleArgs,
    exit::usage,
    verb::show::{read_results, resume_command},
};

/// How to cite senesce. A test compares the file with that of the project.
const CITATION: &str = include_str!("../../../data/CITATION.cff");

/// The contents, and notes for the user.
pub(super) fn collect(args: &BundleArgs) -> Result<(Contents, Vec<String>)> {
    let paths = RunPaths::new(&args.run);
    let (text, plan) = read_plan(&paths)?;
    check_finished(&paths)?;
    let results = read_results(&args.run)?;
    let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
    if results.run.plan_hash != hash {
        let message = format!("{} was changed after the run was started", paths.plan().display());
        return Err(usage(message, Some("restore the plan, or run the changed plan")));
    }
    let mut notes = Vec::new();
    let invalid = results.cells.iter().filter(|cell| !cell.valid).count();
    if invalid > 0 {
        notes.push(format!("{invalid} of {} cells of the run are invalid", results.cells.len()));
    }
    let mut files = BTreeMap::new();
    let mut add = |name: String, content: Content| drop(files.insert(name, content));
    let bytes = |text: &str| Content::Bytes(text.as_bytes().to_vec());

    let drawn = draw_figures(&results)?;
    notes.extend(drawn.warnings);
    for (name, content) in drawn.files {
        add(format!("figures/{name}"), Content::Bytes(content));
    }
    add("figures.tex".to_owned(), bytes(&drawn.latex));
    add("methods.txt".to_owned(), bytes(&drawn.methods));
    add("report.html".to_owned(), bytes(&render_report(&results, &ReportOptions::default())?));
    add("circumstances.csv".to_owned(), bytes(&results.export_csv(Table::Circumstances)));
    add("CITATION.cff".to_owned(), bytes(CITATION));
    add("README.txt".to_owned(), bytes(&introduction(&results)));
    add(PLAN_FILE.to_owned(), bytes(&text));

    let mut outputs = Vec::new();
    let run_info = serde_json::to_string_pretty(&results.run)? + "\n";
    outputs.push(format!("{TABLES}{RUN_INFO_FILE}"));
    add(format!("{TABLES}{RUN_INFO_FILE}"), bytes(&run_info));
    let mut tables = Vec::new();
    for file in results.to_files()? {
        tables.push(TableEntry { name: file.table.name().to_owned(), rows: file.rows });
        outputs.push(table_path(file.table));
        add(table_path(file.table), Content::Bytes(file.bytes));
    }
    for (name, path) in if args.no_logs { Vec::new() } else { find_logs(&paths, &plan) } {
        outputs.push(name.clone());
        add(name, Content::File(path));
    }
    let (found, lacking) = find_inputs(&paths, &plan);
    let mut inputs = Vec::new();
    if args.inputs {
        for (number, (named, path)) in found.into_iter().enumerate() {
            let input = Input { named, path: input_path(number, &path) };
            // The plan may be a stranger's, and name any file of this machine.
            notes.push(format!("{} is in the bundle, as {}", path.display(), input.path));
            add(input.path.clone(), Content::File(path));
            inputs.push(input);
        }
    } else if !found.is_empty() {
        let names: Vec<String> = found.into_iter().map(|(named, _)| named).collect();
        notes
            .push(format!("the plan reads files that are not in the bundle: {}; --inputs adds them", names.join(", ")));
    }
    notes.extend(lacking);
    let research = Research {
        plan_name: plan.name.clone(),
        description: plan.description.clone(),
        begun_unix_seconds: find_begin(&results),
        senesce_version: results.run.senesce_version.clone(),
        inputs: inputs.iter().map(|input| input.path.clone()).collect(),
        outputs,
        licence: args.licence.clone().map_or(Licence::NotStated, Licence::Spdx),
    };
    let plan = PlanEntry { name: plan.name, hash };
    Ok((Contents { senesce_version: crate::VERSION.to_owned(), plan, inputs, tables, research, files }, notes))
}

/// The text of a run's plan, and the plan.
fn read_plan(paths: &RunPaths) -> Result<(String, Plan)> {
    let path = paths.plan();
    if !path.try_exists()? {
        let message = format!("{} has no plan.toml, so it is no run of a plan", paths.dir.display());
        return Err(usage(message, Some("name the directory of a run")));
    }
    let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = read_text(file, MAX_TEXT_BYTES).with_context(|| format!("cannot read {}", path.display()))?;
    let plan = Plan::parse_kept(&path, &text)?;
    Ok((text, plan))
}

/// Errors: an arm of the run is neither complete nor failed.
fn check_finished(paths: &RunPaths) -> Result<()> {
    match RunState::read(paths) {
        Some(state) if state.done + state.failed.len() < state.arms => {
            let message = format!("{} is not finished: {} of {} arms", paths.dir.display(), state.done, state.arms);
            Err(usage(message, Some(&format!("continue it with `{}`", resume_command(&paths.dir)))))
        }
        Some(_) => Ok(()),
        None => {
            let message = format!("{} has no journal that this version reads", paths.dir.display());
            Err(usage(message, Some("name the directory of a run")))
        }
    }
}

/// The operation logs of the arms, with their names in the bundle.
fn find_logs(paths: &RunPaths, plan: &Plan) -> Vec<(String, PathBuf)> {
    let logs = plan.arms().into_iter().map(|arm| (format!("logs/{}.senesce-log", arm.name), paths.log(&arm.name)));
    // The run may be a stranger's, so a link may lead anywhere: also one in place of a directory.
    let Ok(run) = fs::canonicalize(&paths.dir) else { return Vec::new() };
    let is_of_run = |path: &Path| {
        let plain = path.strip_prefix(&paths.dir).map(|below| run.join(below));
        plain.is_ok_and(|plain| fs::canonicalize(path).is_ok_and(|found| found == plain)) && path.is_file()
    };
    logs.filter(|(_, path)| is_of_run(path)).collect()
}

/// The input files of a plan by the texts that name them, and notes about those that do not exist.
fn find_inputs(paths: &RunPaths, plan: &Plan) -> (Vec<(String, PathBuf)>, Vec<String>) {
    let begun_in = fs::read(paths.begun_in()).unwrap_or_else(|_| b".".to_vec());
    let base = Path::new(OsStr::from_bytes(&begun_in));
    let (mut found, mut lacking) = (BTreeMap::new(), Vec::new());
    for named in plan.files() {
        let path = base.join(&named);
        match path.metadata() {
            Ok(metadata) if metadata.is_file() => drop(found.insert(named, path)),
            Ok(_) => lacking.push(format!("{named} is not in the bundle; `rerun --repo` names a repository")),
            Err(_) if is_built_in(&named) => {}
            Err(_) => lacking.push(format!("{named} is not in the bundle")),
        }
    }
    (found.into_iter().collect(), lacking)
}

/// The path of an input in the bundle. It has a number, because two inputs may have one name.
fn input_path(number: usize, path: &Path) -> String {
    const LONGEST: usize = 80;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_start_matches('.');
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
    let name: String = name.chars().map(plain).rev().take(LONGEST).collect();
    let name: String = name.chars().rev().collect();
    format!("inputs/{number}/{name}")
}

fn find_begin(results: &Results) -> Option<u64> {
    results.circumstances.iter().find(|row| row.arm.is_empty() && row.key == BEGUN_UNIX_SECONDS)?.value.parse().ok()
}

/// The page for a reader who unpacks the bundle.
fn introduction(results: &Results) -> String {
    format!(
        "Results of the plan {} by senesce {}.\n\n\
         report.html          the report; it needs no network\n\
         figures/             the figures as SVG, PNG and PDF (84 and 178 mm), and their data as CSV\n\
         figures.tex          LaTeX environments for the PDF files\n\
         methods.txt          how the run aged and measured the volumes\n\
         plan.toml            the plan of the run\n\
         results/             the tables as Parquet\n\
         circumstances.csv    kernel, tools, options, machine, seed\n\
         logs/                the operation logs, if they are included\n\
         inputs/              the input files of the plan, if they are included\n\
         CITATION.cff         how to cite senesce\n\n\
         Verify the bundle:   senesce verify-bundle FILE\n\
         Run the plan again:  senesce rerun FILE --out DIR\n\
         Unpack it:           tar --zstd -xf FILE\n",
        results.run.plan_name, results.run.senesce_version
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_inputs_are_plain_and_keep_their_end() {
        assert_eq!(input_path(0, Path::new("/a/b c/höhe.trace.xz")), "inputs/0/h-he.trace.xz");
        let long = input_path(7, Path::new(&format!("{}.toml", "x".repeat(200))));
        assert!(long.len() < 100 && long.ends_with("x.toml"), "{long}");
        senesce_bundle::check_name(&long).unwrap();
    }
}

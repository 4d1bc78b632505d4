//! `senesce gate`: compares a run with a baseline, for pull requests and `git bisect run`.

mod again;
mod baseline;
mod failure;
mod github;
mod judge;
mod junit;
mod markdown;
mod metrics;
#[cfg(test)]
mod proof;
mod screen;
mod tolerance;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::{Printable, statistics::Outcome};
use senesce_experiment::plan::Plan;
use senesce_store::{Results, Role};
use serde::Serialize;
use serde_json::Value;

pub(super) use self::{
    again::{Again, compare_again},
    baseline::{BASELINE_FORMAT, Document as BaselineDocument},
    judge::{Judged as JudgedFigure, Verdict},
    metrics::{BencherMetrics, SmallIsBetter},
};
use self::{
    baseline::Baseline,
    judge::{Judged, Limits, Summary, judge_rows, summarize},
    tolerance::equal_tolerance,
};
use super::{
    compare::{
        figures::{
            FigureKey, Figures, Kind, Missing, Values, collect_figures, compare_figures, find_last_common, find_missing,
        },
        gate::Scope,
        read_planned_arms,
        unfinished::{add_unfinished, find_unfinished},
        unlike::{Unlike, compute_unlike},
    },
    output::check_files,
    run::{next_run_dir, read_changed, run},
    show::read_results,
};
use crate::{
    args::{ChangeArgs, GateArgs, RunArgs, SelectArgs},
    exit::{self, different, undecided, usage},
    fit::fit,
    schema::document,
};

/// The schema of a gate as JSON.
pub(in crate::verb) const GATE_SCHEMA: &str = "senesce-gate/2";

/// The JSON output of `gate`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::verb) enum GateDocument<'a> {
    /// A verdict.
    Judged {
        /// The verdict.
        gate: &'a Summary,
        /// Each figure of the baseline and of the run.
        figures: &'a [Judged],
        /// States and figures that are not compared, because a side has no valid result of them.
        missing: &'a [&'a Missing],
        /// Circumstances in which the baseline and the run differ.
        unlike: &'a [Unlike],
    },
    /// No verdict: the run failed, or nothing can be compared.
    Failed {
        /// The reason.
        error: &'a str,
    },
}
/// A circumstance that a run records only if its volumes settle.
const SETTLE: &str = "workload.settle_every_operations";
/// Its value in other runs.
const NOT_SETTLED: &str = "0";

/// Everything that the outputs show.
struct Report<'a> {
    /// The name of the plan.
    plan: &'a str,
    judged: &'a [Judged],
    missing: Vec<&'a Missing>,
    unlike: &'a [Unlike],
    summary: &'a Summary,
    /// Whether an undecided figure makes the gate pass.
    passes_undecided: bool,
}

/// Whether a command line is one for `git bisect run`, even if it does not parse.
pub fn is_bisection(arguments: &[OsString]) -> bool {
    has_option(arguments, "--bisect")
}

/// Whether a command line is one of `gate --github`, even if it does not parse.
pub fn is_for_github(arguments: &[OsString]) -> bool {
    has_option(arguments, "--github")
}

fn has_option(arguments: &[OsString], option: &str) -> bool {
    let has = |word: &str| arguments.iter().skip(1).any(|argument| argument == word);
    has("gate") && has(option)
}

/// Runs the plan if there is one, compares with the baseline, and writes the outputs.
pub fn gate(args: GateArgs, quiet: bool) -> Result<()> {
    match args.bisect {
        true => exit::bisect(|| judge_run(&args, quiet)),
        false => judge_run(&args, quiet),
    }
}

/// Judges the run. Without a verdict, for example after a failed run, the outputs contain the
/// error. Otherwise a CI system would find no file, and show an old one or none.
fn judge_run(args: &GateArgs, quiet: bool) -> Result<()> {
    check_outputs(args)?;
    let mut is_judged = false;
    judge_checked(args, quiet, &mut is_judged).inspect_err(|error| {
        // An output that cannot be written must not replace the outputs of a verdict.
        if !is_judged && !args.run.dry_run {
            failure::write(args, error);
        }
    })
}

/// Sets `is_judged` before the outputs are written.
fn judge_checked(args: &GateArgs, quiet: bool, is_judged: &mut bool) -> Result<()> {
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    let run = find_run(args, baseline.as_ref(), quiet)?;
    if args.run.dry_run {
        return Ok(());
    }
    let results = read_results(&run)?;
    let Some(baseline) = baseline else {
        let mut found = Baseline::of_results(results);
        metrics::write(&args.outputs, &found.figures)?;
        for path in &args.also {
            let other = Baseline::of_results(read_results(path)?);
            other.check_cells()?;
            check_question(&find_unlike(&found.results, &other.results), (&run, path))?;
            let hint = Some("name runs of one plan that were finished");
            found.merge(&other).map_err(|problem| usage(format!("--also {}: {problem}", path.display()), hint))?;
        }
        if let Some(percent) = args.tolerance {
            found.tolerances = equal_tolerance(percent);
        }
        return save(args, &found);
    };
    let (unlike, missing, judged) = compare(args, &baseline, &results, &run)?;
    let scope = scope_of(args);
    let missing: Vec<&Missing> = missing.iter().filter(|missing| scope.has_missing(missing)).collect();
    let summary = summarize(&judged, &missing);
    let report = Report {
        plan: &results.run.plan_name,
        judged: &judged,
        missing,
        unlike: &unlike,
        summary: &summary,
        passes_undecided: args.on_undecided == Outcome::Pass,
    };
    *is_judged = true;
    write_outputs(args, &report)?;
    let figures = collect_figures(&results);
    metrics::write(&args.outputs, &figures)?;
    let is_failed = matches!((summary.outcome, args.on_undecided), (Outcome::Fail, _))
        || (summary.outcome == Outcome::Undecided && args.on_undecided == Outcome::Fail);
    // A run without some figures of the baseline must not replace them.
    let is_accepted = !is_failed && args.on_undecided == Outcome::Pass && report.missing.is_empty();
    if summary.outcome == Outcome::Pass || is_accepted {
        let tolerances = args.tolerance.map_or(baseline.tolerances, equal_tolerance);
        save(args, &Baseline { tolerances, ..Baseline::of_results(results) })?;
    }
    match (summary.outcome, args.on_undecided) {
        _ if is_failed => Err(different(summary.text)),
        (Outcome::Undecided, Outcome::Undecided) => Err(undecided(summary.text)),
        _ => Ok(()),
    }
}

fn scope_of(args: &GateArgs) -> Scope<'_> {
    Scope { select: &args.select, measured: args.measured, free_extents: false }
}

/// Errors: an output cannot be written.
fn check_outputs(args: &GateArgs) -> Result<()> {
    let outputs = &args.outputs;
    let is_stdout = outputs.markdown.as_deref() == Some(Path::new("-"));
    let markdown = outputs.markdown.clone().filter(|_| !is_stdout);
    check_files([&outputs.junit, &markdown, &args.save_baseline], None)?;
    metrics::check(outputs)?;
    let needs_baseline = outputs.junit.is_some() || outputs.markdown.is_some() || outputs.github || outputs.json;
    if needs_baseline && args.baseline.is_none() {
        return Err(usage("--junit, --markdown, --github and --json need a baseline", Some("add --baseline FILE")));
    }
    if outputs.json && is_stdout {
        return Err(usage("--json and --markdown - both print to stdout", Some("name a file for one of them")));
    }
    if (outputs.json || is_stdout) && !args.path.is_dir() {
        let message = "--json and --markdown - cannot share stdout with the summary of the run of a plan";
        return Err(usage(message, Some("name a file: --markdown FILE; or gate the run: senesce gate RUN")));
    }
    Ok(())
}

fn is_run(path: &Path) -> bool {
    path.join("results").is_dir() || path.join("run.json").exists()
}

/// Reads a baseline: a run, or a file.
fn read_baseline(path: &Path) -> Result<Baseline> {
    match path.is_dir() {
        true if is_run(path) => Ok(Baseline::of_results(read_results(path)?)),
        true => Err(usage(
            format!("{} is no run, so it is no baseline", path.display()),
            Some("name the directory of a run, or a file of `senesce gate --save-baseline`"),
        )),
        false => Baseline::read(path),
    }
}

/// The directory of the run to judge. Runs a plan first, if the baseline allows a comparison.
fn find_run(args: &GateArgs, baseline: Option<&Baseline>, quiet: bool) -> Result<PathBuf> {
    let path = &args.path;
    if is_run(path) {
        let options = &args.run;
        let is_changed = options.force || options.dry_run || options.change != ChangeArgs::default();
        if options.out.is_some() || is_changed || options.guest.guest.is_some() {
            let hint = "leave out options that change a run, such as --out and --seed, or name a plan";
            return Err(usage(format!("{} is a run, and `gate` does not run it again", path.display()), Some(hint)));
        }
        return Ok(path.clone());
    }
    if path.is_dir() {
        return Err(usage(format!("{} is no run", path.display()), Some("name the directory of a run, or a plan")));
    }
    let plan = read_changed(path, &args.run.change)?;
    if let Some(baseline) = baseline {
        check_plan(&plan, path, baseline)?;
    }
    let out = args.run.out.clone().unwrap_or_else(|| next_run_dir(&plan.name));
    let order = RunArgs {
        plan: Some(path.clone()),
        out: Some(out.clone()),
        dry_run: args.run.dry_run,
        resume: None,
        change: args.run.change.clone(),
        force: args.run.force,
        guest: args.run.guest.clone(),
    };
    run(order, quiet)?;
    Ok(out)
}

/// Refuses a plan whose seed or workload is not that of the baseline, before it is run.
fn check_plan(plan: &Plan, path: &Path, baseline: &Baseline) -> Result<()> {
    let mut wanted = vec![("plan.seed".to_owned(), plan.seed.0.to_string())];
    let workload = serde_json::to_value(&plan.workload).unwrap_or_default();
    let keys = workload.as_object().into_iter().flatten();
    wanted.extend(keys.map(|(key, value)| (format!("workload.{key}"), value.to_string())));
    if plan.workload.settle().is_none() {
        wanted.push((SETTLE.to_owned(), NOT_SETTLED.to_owned()));
    }
    for (key, value) in wanted {
        let row = baseline.results.circumstances.iter().find(|row| row.arm.is_empty() && row.key == key);
        let of_baseline = row.map(|row| row.value.as_str()).or((key == SETTLE).then_some(NOT_SETTLED));
        if let Some(of_baseline) = of_baseline.filter(|of_baseline| !is_same(&key, of_baseline, &value)) {
            let found = format!("{key} is {of_baseline} in the baseline, {value} in {}", path.display());
            return Err(refused(&found));
        }
    }
    Ok(())
}

/// Whether two values of a circumstance are equal, or name input files of equal names. A run
/// records absolute paths, which differ between checkouts.
fn is_same(key: &str, a: &str, b: &str) -> bool {
    let of_files = ["workload.replay", "workload.profile", "volumes.device", "measure.devices"];
    let is_table = |table: &str| key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    a == b || of_files.into_iter().any(is_table) && without_directories(a) == without_directories(b)
}

/// The value with each path reduced to its file name. A value is JSON, or one path.
fn without_directories(value: &str) -> Value {
    fn reduce(value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(text.rsplit('/').next().unwrap_or_default().to_owned()),
            Value::Array(items) => items.into_iter().map(reduce).collect(),
            Value::Object(table) => table.into_iter().map(|(key, value)| (key, reduce(value))).collect(),
            other => other,
        }
    }
    reduce(serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned())))
}

/// Whether runs that differ in the circumstance answer different questions.
fn is_question(key: &str) -> bool {
    let is_history = key.starts_with("history.") && key != "history.origin";
    let is_log = key.starts_with("log_");
    is_history
        || is_log
        || key.starts_with("workload.")
        || matches!(key, "plan.seed" | "volumes.device" | "device_bytes")
}

fn refused(found: &str) -> anyhow::Error {
    let hint = "run the plan of the baseline with its seed, or write a new baseline with --save-baseline";
    usage(format!("the run and the baseline cannot be compared: {}", Printable::new(found)), Some(hint))
}

/// Errors: the two runs answer different questions.
fn check_question(unlike: &[Unlike], (name_a, name_b): (&Path, &Path)) -> Result<()> {
    // A circumstance that one side does not record cannot differ.
    let differs = |unlike: &&Unlike| unlike.a.is_some() && unlike.b.is_some() && is_question(&unlike.key);
    match unlike.iter().find(differs) {
        Some(found) => Err(refused(&found.text(&name_a.to_string_lossy(), &name_b.to_string_lossy()))),
        None => Ok(()),
    }
}

/// The circumstances that differ, apart from directories of input files.
fn find_unlike(a: &Results, b: &Results) -> Vec<Unlike> {
    let mut all = compute_unlike(a, b);
    for unlike in all.iter_mut().filter(|unlike| unlike.key == SETTLE) {
        unlike.a.get_or_insert_with(|| NOT_SETTLED.to_owned());
        unlike.b.get_or_insert_with(|| NOT_SETTLED.to_owned());
    }
    let is_alike = |unlike: &Unlike| match (&unlike.a, &unlike.b) {
        (Some(a), Some(b)) => is_same(&unlike.key, a, b),
        _ => false,
    };
    all.retain(|unlike| !is_alike(unlike));
    all
}

/// The circumstances that differ, the cells and figures that the run lacks, and the verdicts.
///
/// Errors: run and baseline answer different questions; no figure is left to judge.
fn compare(
    args: &GateArgs,
    baseline: &Baseline,
    results: &Results,
    run: &Path,
) -> Result<(Vec<Unlike>, Vec<Missing>, Vec<Judged>)> {
    let unlike = find_unlike(&baseline.results, results);
    check_question(&unlike, (Path::new("the baseline"), Path::new("the run")))?;
    let of_run = collect_figures(results);
    let planned = match run.join("results").is_dir() {
        true => read_planned_arms(run)?,
        false => BTreeSet::new(),
    };
    // Every arm of the baseline is expected: if the plan lost an arm, the gate must not pass.
    let expected = planned.into_iter().chain(baseline.file_systems.keys().cloned()).collect();
    let mut missing = find_missing(&baseline.results, results, (&expected, "the run"), &args.select);
    let rows = compare_figures(baseline.figures.clone(), of_run.clone(), &args.select)?;
    let (of_baseline, of_results) = ((&baseline.results, "the baseline"), (results, "the run"));
    let last_common = find_last_common(&baseline.figures, &of_run);
    add_unfinished(&mut missing, find_unfinished(&rows, &last_common, of_baseline, of_results));
    missing.extend(find_missing_figures(&baseline.figures, &of_run, &args.select, args.measured));
    let limits = Limits {
        tolerance: args.tolerance,
        rules: &baseline.tolerances,
        file_systems: &baseline.file_systems,
        measured_tolerance: args.measured_tolerance,
    };
    let judged = judge_rows(rows, scope_of(args), &limits);
    if judged.iter().all(|figure| figure.verdict.is_none()) {
        let hint = "by default it leaves out wall times and fresh copies: add --measured, or --role unaged";
        return Err(usage("the gate has no figure to judge", Some(hint)));
    }
    Ok((unlike, missing, judged))
}

/// The figures of the baseline that the run lacks, in cells that the run has.
fn find_missing_figures(of_baseline: &Figures, of_run: &Figures, select: &SelectArgs, measured: bool) -> Vec<Missing> {
    let mut last: BTreeMap<(&str, Role), u64> = BTreeMap::new();
    let mut cells = BTreeSet::new();
    for (arm, role, pulls, _) in of_run.keys() {
        cells.insert((arm.as_str(), *role, *pulls));
        last.insert((arm, *role), *pulls);
    }
    let is_missing = |(key, found): &(&FigureKey, &Values)| {
        let (arm, role, pulls, figure) = key;
        !of_run.contains_key(*key)
            && cells.contains(&(arm.as_str(), *role, *pulls))
            && (select.all || last.get(&(arm.as_str(), *role)) == Some(pulls))
            && (found.kind != Kind::Measured || measured)
            && (select.arm.is_empty() || select.arm.contains(arm))
            && (select.role.is_empty() || select.role.contains(role))
            && (select.figure.is_empty() || select.figure.iter().any(|pattern| pattern.is_match(figure)))
    };
    let missing = of_baseline.iter().filter(is_missing).map(|((arm, role, pulls, figure), _)| {
        Missing::new(&[arm, role.name(), &pulls.to_string()], format!("the run has no figure {figure:?}"))
    });
    missing.collect()
}

fn write_outputs(args: &GateArgs, report: &Report<'_>) -> Result<()> {
    let outputs = &args.outputs;
    if let Some(path) = &outputs.junit {
        write_file(path, &junit::render(report)?)?;
    }
    match outputs.markdown.as_deref() {
        Some(path) if path == Path::new("-") => {
            print!("{}", markdown::render(report));
        }
        Some(path) => write_file(path, &markdown::render(report))?,
        None => {}
    }
    match () {
        () if outputs.json => {
            let Report { summary: gate, judged: figures, missing, unlike, .. } = report;
            println!("{}", document(GATE_SCHEMA, GateDocument::Judged { gate, figures, missing, unlike }));
        }
        () if outputs.markdown.as_deref() == Some(Path::new("-")) => {}
        () if outputs.github => github::print(report)?,
        () => print!("{}", fit(&screen::render(report))),
    }
    Ok(())
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the baseline if `--save-baseline` names a file.
fn save(args: &GateArgs, baseline: &Baseline) -> Result<()> {
    let Some(path) = &args.save_baseline else { return Ok(()) };
    write_file(path, &baseline.render()?)?;
    eprintln!("baseline: {} ({} figures)", Printable::new(path), baseline.figures.len());
    Ok(())
}

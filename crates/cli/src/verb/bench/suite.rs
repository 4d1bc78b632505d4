//! A suite: ages the volumes, runs all personalities on all of them, and writes results and page.

use std::path::Path;

use anyhow::{Context, Result};
use senesce_core::Printable;
use senesce_experiment::suite::{FRESH, Suite, SuitePlan, SuiteResults};
use senesce_report::{SuiteOptions, render_suite, suite_headline};

use super::tell;
use crate::{
    exit::failed,
    fit::fit,
    table::render_table,
    verb::{place::check_run_directory, run::world},
};

/// Runs or resumes a suite, and prints the results.
pub fn run_suite(path: &Path, out: &Path, is_resumed: bool, quiet: bool) -> Result<()> {
    let plan = SuitePlan::read(path)?;
    let results = Suite::open(plan, path, out, is_resumed, world(false)?)?.execute(&mut |said| tell(quiet, &said))?;
    let json = serde_json::to_value(&results)?;
    let page = render_suite(&json, &SuiteOptions::default())?;
    let page_path = out.join("report.html");
    std::fs::write(&page_path, page).with_context(|| format!("cannot write {}", page_path.display()))?;
    print!("{}", fit(&format!("{}\n\n{}", suite_headline(&json).join("\n"), render(&results))));
    println!("\nresults: {}\nreport:  {}", Printable::new(&out.join("results.json")), Printable::new(&page_path));
    let images = results.states.iter().filter_map(|state| {
        state.failed.as_ref().map(|reason| format!("image of {}, {}: {reason}", state.file_system, state.state))
    });
    let runs = results.runs.iter().filter_map(|run| {
        let reason = run.failed.as_ref()?;
        Some(format!("{} {} {}, run {}: {reason}", run.personality, run.file_system, run.state, run.run))
    });
    let failures: Vec<String> = images.chain(runs).collect();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failed(format!(
            "{} could not be done (--resume tries again):\n  {}",
            failures.len(),
            failures.join("\n  ")
        ))),
    }
}

/// Checks the plan and the directory, and prints what would be made and run.
pub fn preview(path: &Path, out: &Path, is_resumed: bool) -> Result<()> {
    let plan = SuitePlan::read(path)?;
    Suite::check(&plan, path, out, is_resumed, &world(false)?)?;
    check_run_directory(out)?;
    let (file_systems, states) = (plan.file_system_names(), plan.states.len());
    let (images, personalities) = (file_systems.len() * states, plan.personalities.len());
    let runs = images * personalities * plan.runs as usize;
    println!("suite {}: {} in {states} states, {personalities} personalities", plan.name, file_systems.join(", "));
    println!("{images} images and {runs} runs below {}; nothing was written", Printable::new(&out));
    Ok(())
}

/// A table for each personality: states by file systems.
fn render(results: &SuiteResults) -> String {
    let mut text = format!("medians over {} {FRESH}, {}\n", results.plan.file_system_names()[0], results.unit);
    let mut last = "";
    let file_systems = results.plan.file_system_names();
    let states: Vec<&str> =
        results.states.iter().filter(|state| state.file_system == file_systems[0]).map(|state| &*state.state).collect();
    for figure in &results.figures {
        if figure.personality == last {
            continue;
        }
        last = &figure.personality;
        let mut lines = vec![[&[last.to_owned()], &file_systems[..]].concat()];
        for state in &states {
            let cell = |name: &String| {
                let found = results
                    .figures
                    .iter()
                    .find(|figure| figure.personality == last && figure.file_system == *name && figure.state == *state);
                found.and_then(|figure| figure.normal).map_or("failed".to_owned(), |normal| {
                    format!("{:.3} ({:.3}..{:.3})", normal.ratio, normal.low, normal.high)
                })
            };
            lines.push([(*state).to_owned()].into_iter().chain(file_systems.iter().map(cell)).collect());
        }
        text.push('\n');
        text.push_str(&render_table(&lines));
    }
    text.push('\n');
    for row in &results.rankings {
        for change in &row.ranking.changes {
            text.push_str(&format!(
                "{}, {}: {} is better fresh, {} is better aged{}.\n",
                row.personality,
                row.state,
                change.better_unaged,
                change.better_aged,
                if change.is_sure { "" } else { "; chance may explain it" }
            ));
        }
    }
    text
}

//! Errors of workloads and settings, in the words of the command line.

use senesce_experiment::plan::PlanError;

use crate::exit::usage;

/// A workload that is unknown is reported without the name of a plan.
pub(super) fn explain(workload: &str, error: PlanError) -> anyhow::Error {
    match error {
        PlanError::Contradiction { key, problem, .. } if key == "workload" => {
            let (problem, known) = problem.split_once("; ").unwrap_or((&problem, ""));
            usage(format!("workload {problem}"), Some(known).filter(|known| !known.is_empty()))
        }
        error => match explain_setting(&error.to_string()) {
            Some(message) if !workload.ends_with(".toml") => {
                // The text of a plan has its own hint.
                let (message, near) = message.split_once("; hint: ").unwrap_or((&message, ""));
                let hint = [near, "docs/reference/plan-keys.md lists all keys"].join(" ");
                usage(message, Some(hint.trim_start()))
            }
            _ => senesce_experiment::Error::from(error).into(),
        },
    }
}

/// The fault of a `--set`, from the text about the plan that was made of it.
fn explain_setting(text: &str) -> Option<String> {
    let (_, shown) = text.split_once("TOML parse error")?;
    let mut lines = shown.lines().skip(2);
    let (_, setting) = lines.next()?.split_once(" | ")?;
    let problem = lines.skip(1).map(str::trim).collect::<Vec<_>>().join("; ");
    Some(format!("--set {}: {problem}", setting.replace(" = ", "=")))
}

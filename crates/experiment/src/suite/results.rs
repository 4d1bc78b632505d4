//! The results of a suite: every run, and the rates of file systems, fresh and aged.

use schemars::JsonSchema;
use senesce_core::{
    Seed,
    statistics::{Figures, Ranking, Spread, compute_comparison, compute_ranking, compute_rows, compute_spread},
};
use serde::{Deserialize, Serialize};

use super::{FRESH, SuitePlan, SuiteState, plan::state_name};
use crate::personality::PersonalityFigures;

/// The version of the format.
pub const SUITE_RESULTS_SCHEMA: &str = "senesce-suite-results/1";

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteRun {
    /// The personality's name.
    pub personality: String,
    /// The file system's name.
    pub file_system: String,
    /// `fresh`, or the profile's name.
    pub state: String,
    /// Number from 1. Runs with the same number do the same operations.
    pub run: u32,
    /// The figures. `None` if the run failed.
    pub figures: Option<PersonalityFigures>,
    /// The reason of the failure.
    pub failed: Option<String>,
    /// The disturbances beyond the limits, in words. Empty if there were none, or if the time of
    /// the device is modelled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub disturbance: String,
    /// Circumstances of the volume.
    pub circumstances: Vec<(String, String)>,
}

/// Operations per second of one personality on one file system in one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteFigure {
    /// The personality's name.
    pub personality: String,
    /// The file system's name.
    pub file_system: String,
    /// `fresh`, or the profile's name.
    pub state: String,
    /// Operations per second. `None` if no run succeeded.
    pub rate: Option<Spread>,
    /// Ratio to the rate of the first file system, fresh, with a bootstrap 95% interval.
    pub normal: Option<Normal>,
    /// Ratio to the rate of the same file system, fresh.
    pub own: Option<Normal>,
    /// Runs that failed.
    pub failed: u32,
    /// Calls that failed for lack of space, in all runs.
    pub no_space: u64,
}

/// A ratio of medians with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Normal {
    /// The ratio.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// p value of the Mann-Whitney test. `None` if there are too few runs.
    pub p: Option<f64>,
}

/// The order of the file systems under one personality, fresh and in one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteRanking {
    /// The personality's name.
    pub personality: String,
    /// The profile's name.
    pub state: String,
    /// The order. `unaged` is fresh.
    pub ranking: Ranking,
}

/// The whole result, as `results.json` stores it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SuiteResults {
    /// The name of the schema and its version.
    pub schema: &'static str,
    /// Version of the program.
    pub senesce_version: String,
    /// The plan.
    pub plan: SuitePlan,
    /// The unit of a rate: operations per wall second, or per second of the modelled device.
    pub unit: String,
    /// The modelled device. `None` if wall seconds count.
    pub device: Option<String>,
    /// Whether the results contain all runs of the plan.
    pub is_complete: bool,
    /// The images at the start of the runs.
    pub states: Vec<SuiteState>,
    /// The figures by personality, file system and state, in the order of the plan.
    pub figures: Vec<SuiteFigure>,
    /// The rankings by personality and profile.
    pub rankings: Vec<SuiteRanking>,
    /// Every run.
    pub runs: Vec<SuiteRun>,
}

/// Computes the results from the runs. `names` are the names of the plan's personalities.
pub(super) fn compute_results(
    plan: &SuitePlan,
    names: &[String],
    states: Vec<SuiteState>,
    runs: Vec<SuiteRun>,
    senesce_version: &str,
) -> SuiteResults {
    let file_systems = plan.file_system_names();
    let state_names: Vec<String> = plan.states.iter().map(|state| state_name(state)).collect();
    let of = |personality: &str, file_system: &str, state: &str| -> Vec<&SuiteRun> {
        let is_it =
            |run: &&SuiteRun| run.personality == personality && run.file_system == file_system && run.state == state;
        runs.iter().filter(is_it).collect()
    };
    let rates = |personality: &str, file_system: &str, state: &str| -> Vec<f64> {
        let found = of(personality, file_system, state);
        found.iter().filter_map(|run| run.figures.as_ref()).map(PersonalityFigures::rate).collect()
    };
    let (mut figures, mut rankings) = (Vec::new(), Vec::new());
    for personality in names {
        let base = rates(personality, &file_systems[0], FRESH);
        for file_system in &file_systems {
            let own = rates(personality, file_system, FRESH);
            for state in &state_names {
                let (all, found) = (of(personality, file_system, state), rates(personality, file_system, state));
                figures.push(SuiteFigure {
                    personality: personality.clone(),
                    file_system: file_system.clone(),
                    state: state.clone(),
                    rate: compute_spread(&found, Seed(1)),
                    normal: compute_normal(&base, &found),
                    own: compute_normal(&own, &found),
                    failed: all.iter().filter(|run| run.failed.is_some()).count() as u32,
                    no_space: all.iter().filter_map(|run| run.figures.as_ref()).map(|found| found.no_space).sum(),
                });
            }
        }
        for state in state_names.iter().filter(|state| *state != FRESH) {
            let side = |state: &str, file_system: &String| rates(personality, file_system, state);
            let all: Vec<Figures> = file_systems
                .iter()
                .map(|name| Figures { name: name.clone(), aged: side(state, name), unaged: side(FRESH, name) })
                .collect();
            if let Some(ranking) = compute_ranking(&all, &compute_rows(&all), true) {
                rankings.push(SuiteRanking { personality: personality.clone(), state: state.clone(), ranking });
            }
        }
    }
    let device = runs.iter().find_map(|run| run.figures.as_ref()?.device.as_ref()).map(|device| device.name.clone());
    let wanted = names.len() * file_systems.len() * state_names.len() * plan.runs as usize;
    SuiteResults {
        schema: SUITE_RESULTS_SCHEMA,
        senesce_version: senesce_version.to_owned(),
        plan: plan.clone(),
        unit: match &device {
            Some(device) => format!("file operations per second of the modelled device ({device})"),
            None => "file operations per second, until all is written back".to_owned(),
        },
        device,
        is_complete: runs.len() == wanted,
        states,
        figures,
        rankings,
        runs,
    }
}

/// Compares the rates of `found` with those of `base`.
fn compute_normal(base: &[f64], found: &[f64]) -> Option<Normal> {
    let compared = compute_comparison(base, found, Seed(1))?;
    Some(Normal { ratio: compared.ratio, low: compared.ratio_low, high: compared.ratio_high, p: compared.p() })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn run(file_system: &str, state: &str, run: u32, rate: f64) -> SuiteRun {
        let figures = (rate > 0.0).then(|| PersonalityFigures {
            operations: 100,
            seconds: 1.0,
            operations_per_second: rate,
            mib_per_second: 1.0,
            no_space: 2,
            passed_over: 0,
            device: None,
            flows: Vec::new(),
            cold: "remount".into(),
        });
        SuiteRun {
            personality: "varmail".into(),
            file_system: file_system.into(),
            state: state.into(),
            run,
            failed: figures.is_none().then(|| "no space".to_owned()),
            disturbance: String::new(),
            figures,
            circumstances: Vec::new(),
        }
    }

    #[test]
    fn rates_are_normalized_and_rank_changes_are_found() {
        let text = "format = \"senesce-suite/1\"\nname = \"t\"\nruns = 4\nstates = [\"fresh\", \"agrawal\"]\n\
            [volume]\nsize = \"512MiB\"\n[[personality]]\nname = \"varmail\"\n\
            [[file_system]]\nkind = \"ext4\"\n[[file_system]]\nkind = \"xfs\"\n[[file_system]]\nkind = \"btrfs\"\n";
        let plan = SuitePlan::parse(Path::new("s.toml"), text).unwrap();
        let mut runs = Vec::new();
        for (file_system, fresh, aged) in [("ext4", 100.0, 90.0), ("xfs", 200.0, 50.0), ("btrfs", 20.0, 0.0)] {
            for number in 1..=4 {
                runs.push(run(file_system, FRESH, number, fresh + f64::from(number) / 10.0));
                let aged = if aged > 0.0 { aged + f64::from(number) / 10.0 } else { 0.0 };
                runs.push(run(file_system, "agrawal", number, aged));
            }
        }
        let results = compute_results(&plan, &["varmail".to_owned()], Vec::new(), runs.clone(), "0");
        let of = |file_system: &str, state: &str| {
            results.figures.iter().find(|entry| entry.file_system == file_system && entry.state == state).unwrap()
        };
        assert_eq!(of("ext4", FRESH).normal.unwrap().ratio, 1.0);
        assert!((of("xfs", FRESH).normal.unwrap().ratio - 2.0).abs() < 0.01);
        let aged = of("xfs", "agrawal");
        assert!((aged.normal.unwrap().ratio - 0.5).abs() < 0.01 && (aged.own.unwrap().ratio - 0.25).abs() < 0.01);
        assert!(aged.own.unwrap().p.is_some_and(|p| p < 0.05) && aged.no_space == 8);
        assert_eq!((of("btrfs", "agrawal").failed, of("btrfs", "agrawal").normal), (4, None));
        assert!(results.rankings.is_empty(), "one has no figures, so no order exists");
        assert!(results.is_complete && results.device.is_none());

        runs.retain(|run| run.file_system != "btrfs");
        let plan =
            SuitePlan::parse(Path::new("s.toml"), &text.replace("[[file_system]]\nkind = \"btrfs\"\n", "")).unwrap();
        runs.pop();
        let results = compute_results(&plan, &["varmail".to_owned()], Vec::new(), runs, "0");
        let change = &results.rankings[0].ranking.changes[0];
        assert_eq!((&*change.better_unaged, &*change.better_aged, results.is_complete), ("xfs", "ext4", false));
    }
}

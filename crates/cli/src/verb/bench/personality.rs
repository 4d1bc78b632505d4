//! A personality in place of a command.

use std::fmt::Write as _;

use anyhow::Result;
use senesce_core::{Nanos, Seed};
use senesce_experiment::{PersonalityFigures, PersonalityRun, measure_personality, read_personality};
use senesce_volume::Volume;
use senesce_workload::personality::{Personality, PersonalityOptions, plan_script};

use super::document::PersonalityOptionsDocument;
use crate::{args::BenchArgs, clock::SystemClock, exit::usage};

/// A personality, and how it is run.
pub struct Run {
    pub personality: Personality,
    how: PersonalityRun,
}

impl Run {
    /// Errors: no such personality; what is wrong with it or with how it is to be run.
    pub fn read(name: &str, args: &BenchArgs) -> Result<Self> {
        let personality = read_personality(name)?;
        let given = &args.personality_options;
        let options = PersonalityOptions {
            seed: Seed(given.seed.unwrap_or(1)),
            scale: given.scale.unwrap_or(1.0),
            operations: given.operations,
            endless: given.seconds.is_some(),
        };
        plan_script(&personality, &options).map_err(|problem| usage(problem.to_string(), None))?;
        let time = given.seconds.map(|seconds| Nanos(seconds * 1_000_000_000));
        Ok(Self { personality, how: PersonalityRun { options, time, sync: args.sync } })
    }

    /// One run; those of the same round do the same operations on every volume.
    pub fn measure(&self, volume: &mut Volume, round: u32) -> Result<PersonalityFigures> {
        let mut how = self.how;
        how.options.seed = how.options.seed.derive(&format!("run {}", round + 1));
        Ok(measure_personality(volume, &self.personality, &how, &SystemClock::start())?)
    }

    /// All parameters.
    pub fn describe(&self) -> PersonalityOptionsDocument {
        let options = &self.how.options;
        PersonalityOptionsDocument {
            personality: self.personality.clone(),
            seed: options.seed.0,
            scale: options.scale,
            operations: options.operations.unwrap_or(self.personality.operations),
            seconds: self.how.time.map(Nanos::as_secs_f64),
        }
    }

    /// What the figure counts.
    pub fn unit(&self) -> String {
        let written = if self.how.sync { ", until all is written back" } else { "" };
        format!("file operations per second of {}{written}", self.personality.name)
    }
}

/// Latencies by flow operation, medians over the runs; one block for each state.
pub fn render_flows(title: &str, runs: &[serde_json::Value]) -> String {
    let parsed: Vec<PersonalityFigures> =
        runs.iter().filter_map(|run| serde_json::from_value(run.clone()).ok()).collect();
    let Some(first) = parsed.first() else { return String::new() };
    let mut text =
        format!("\n{title}\n{:<18} {:>9} {:>10} {:>10} {:>10}\n", "", "count", "p50 µs", "p99 µs", "p99.9 µs");
    for (at, flow) in first.flows.iter().enumerate().filter(|(_, flow)| flow.count > 0) {
        let median = |of: fn(&senesce_experiment::FlowFigures) -> f64| {
            let figures: Vec<f64> = parsed.iter().filter_map(|run| run.flows.get(at)).map(of).collect();
            senesce_core::statistics::compute_median(&figures).unwrap_or(0.0)
        };
        let _ = writeln!(
            text,
            "{:<18} {:>9.0} {:>10.1} {:>10.1} {:>10.1}",
            flow.name,
            median(|flow| flow.count as f64),
            median(|flow| flow.p50_us),
            median(|flow| flow.p99_us),
            median(|flow| flow.p999_us)
        );
    }
    let no_space: u64 = parsed.iter().map(|run| run.no_space).sum();
    if no_space > 0 {
        let _ = writeln!(text, "no space left: {no_space} calls in {} runs", parsed.len());
    }
    text
}

//! One run of a personality on a volume: makes its files, makes the volume cold, and times its
//! threads.

use std::{fs, path::Path};

use schemars::JsonSchema;
use senesce_core::{Bytes, Clock, Nanos};
use senesce_exec::{FlowTally, ScriptLimits, make_script_files, run_script};
use senesce_oplog::Script;
use senesce_volume::{Volume, interrupted};
use senesce_workload::personality::{
    PERSONALITY_FORMAT, Personality, PersonalityOptions, builtin_personalities, find_personality, plan_script,
};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    arm::{check_signal, virtual_time::VirtualTime},
    description::read_description,
    plan::{PlanError, parse_format},
};

/// The directory in the volume that holds the files of a personality.
const DIRECTORY: &str = "senesce-personality";

/// Returns a built-in personality by name, or reads one from a file.
///
/// Errors: neither such a name nor such a file; an error in the file; an unknown key, with the
/// nearest known one.
pub fn read_personality(name: &str) -> Result<Personality, PlanError> {
    if let Some(personality) = find_personality(name) {
        return Ok(personality);
    }
    let path = Path::new(name);
    let text = read_description(path).map_err(|error| {
        let known: Vec<&str> = builtin_personalities().map(|(name, _)| name).collect();
        let problem = format!("it is neither built in ({}) nor a file that can be read ({error})", known.join(", "));
        PlanError::Contradiction { path: path.to_owned(), key: "personality".into(), problem }
    })?;
    let personality: Personality = parse_format(path, &text, PERSONALITY_FORMAT)?;
    personality.check().map_err(|problem| contradiction(path, problem.key, problem.problem))?;
    Ok(personality)
}

/// The JSON schema of personalities, with a final newline.
pub fn personality_schema_json() -> String {
    let schema = schemars::schema_for!(Personality);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}

pub(crate) fn contradiction(path: &Path, key: impl Into<String>, problem: impl Into<String>) -> PlanError {
    PlanError::Contradiction { path: path.to_owned(), key: key.into(), problem: problem.into() }
}

/// The end of a run, and the work that its time includes.
#[derive(Clone, Copy, Debug, Default)]
pub struct PersonalityRun {
    /// Seed, scale, operations.
    pub options: PersonalityOptions,
    /// The run stops after this time, and not after its operations.
    pub time: Option<Nanos>,
    /// The time includes the write-back of data in memory.
    pub sync: bool,
}

/// The figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersonalityFigures {
    /// Completed file operations.
    pub operations: u64,
    /// Wall seconds.
    pub seconds: f64,
    /// Operations over wall seconds.
    pub operations_per_second: f64,
    /// Bytes read and written by the threads over wall seconds.
    pub mib_per_second: f64,
    /// Calls that failed for lack of space.
    pub no_space: u64,
    /// Flow operations that found no file.
    pub passed_over: u64,
    /// The modelled device. `None` if the volume is not a disk in virtual time.
    pub device: Option<DeviceFigures>,
    /// Figures by flow operation.
    pub flows: Vec<FlowFigures>,
    /// The method that made the volume cold.
    pub cold: String,
}

impl PersonalityFigures {
    /// Operations per second of the modelled device if there is one, else per wall second.
    pub fn rate(&self) -> f64 {
        self.device.as_ref().map_or(self.operations_per_second, |device| device.operations_per_second)
    }
}

/// The work of the modelled device during a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceFigures {
    /// Its name.
    pub name: String,
    /// Modelled seconds in which it was busy.
    pub seconds: f64,
    /// Operations per modelled second in which the device was busy.
    pub operations_per_second: f64,
    /// Requests to read.
    pub read_requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Requests to write.
    pub write_requests: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// The figures of a flow operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowFigures {
    /// Its name.
    pub name: String,
    /// Its operation.
    pub op: String,
    /// Number of calls, with those that found no space.
    pub count: u64,
    /// Median latency, wall microseconds.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Calls that failed for lack of space.
    pub no_space: u64,
    /// Calls that found no file.
    pub passed_over: u64,
}

/// Makes the files of a personality on a mounted volume, makes the volume cold, and times its
/// threads.
///
/// Existing files stay. The personality's files are in a new directory. Errors: that directory
/// exists; parameters out of range; no space for the files; a call that fails for another reason
/// than lack of space; a request that a modelled device failed; a signal. Cost: that of the files
/// and of the run.
pub fn measure_personality(
    volume: &mut Volume,
    personality: &Personality,
    run: &PersonalityRun,
    clock: &dyn Clock,
) -> Result<PersonalityFigures, Error> {
    let options = PersonalityOptions { endless: run.time.is_some(), ..run.options };
    let plan = plan_script(personality, &options)
        .map_err(|problem| contradiction(Path::new(&personality.name), problem.key, problem.problem))?;
    let root = volume.root().join(DIRECTORY);
    fs::create_dir(&root).map_err(Error::io("create", &root))?;
    let stop = || interrupted().is_some();
    let made = make_script_files(&root, &plan.script, &stop);
    check_signal()?;
    made?;
    let cold = volume.remount_cold()?.description;
    let before = volume.disk_time()?;
    let began = clock.now();
    let end = run_script(&root, &plan.script, plan.streams(), clock, ScriptLimits { time: run.time, stop: &stop });
    check_signal()?;
    let end = end?;
    let mut elapsed = end.elapsed;
    // A modelled device is busy until all data is written.
    if run.sync || before.is_some() {
        volume.sync()?;
        elapsed = if run.sync { clock.now().since(began) } else { elapsed };
    }
    let after = volume.disk_time()?;
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let time = before.zip(after).map(|(before, after)| VirtualTime::between(&before, &after)).transpose()?;
    let device = time.map(|time| describe_device(time, end.operations));
    let sum = |of: fn(&FlowTally) -> u64| end.flows.iter().map(of).sum::<u64>();
    Ok(PersonalityFigures {
        operations: end.operations,
        seconds,
        operations_per_second: end.operations as f64 / seconds,
        mib_per_second: sum(|flow| flow.read_bytes + flow.written_bytes) as f64 / Bytes::MIB as f64 / seconds,
        no_space: sum(|flow| flow.no_space),
        passed_over: sum(|flow| flow.passed_over),
        device,
        flows: describe_flows(&plan.script, &end.flows),
        cold,
    })
}

fn describe_device(time: VirtualTime, operations: u64) -> DeviceFigures {
    DeviceFigures {
        name: time.device,
        seconds: time.seconds,
        operations_per_second: operations as f64 / time.seconds.max(1e-9),
        read_requests: time.read.0,
        read_bytes: time.read.1,
        write_requests: time.write.0,
        write_bytes: time.write.1,
    }
}

fn describe_flows(script: &Script, tallies: &[FlowTally]) -> Vec<FlowFigures> {
    let flow = |(flow, tally): (&senesce_oplog::ScriptFlow, &FlowTally)| {
        let at = |share| tally.latency.quantile(share).map_or(0.0, |latency| latency.0 as f64 / 1e3);
        FlowFigures {
            name: flow.name.clone(),
            op: flow.op.clone(),
            count: tally.latency.count(),
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: tally.latency.max().0 as f64 / 1e3,
            read_bytes: tally.read_bytes,
            written_bytes: tally.written_bytes,
            no_space: tally.no_space,
            passed_over: tally.passed_over,
        }
    };
    script.flows.iter().zip(tallies).map(flow).collect()
}

//! One run of a personality on a volume: its files made, the volume cold again, its threads timed.

use std::{fs, path::Path};

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

/// A built-in personality by its name, or that of a file.
///
/// Errors: none of that name and no such file; what is wrong with the file, an unknown key with the nearest known one.
pub fn read_personality(name: &str) -> Result<Personality, PlanError> {
    if let Some(personality) = find_personality(name) {
        return Ok(personality);
    }
    let path = Path::new(name);
    let text = read_description(path).map_err(|error| {
        let known: Vec<&str> = builtin_personalities().map(|(name, _)| name).collect();
        let problem = format!("{error}; it is none of the built-in ones ({})", known.join(", "));
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

/// How a run ends, and what belongs to its time.
#[derive(Clone, Copy, Debug, Default)]
pub struct PersonalityRun {
    /// Seed, scale, operations.
    pub options: PersonalityOptions,
    /// It ends after so long, and not after its operations.
    pub time: Option<Nanos>,
    /// The time also holds the writing back of what was left in memory.
    pub sync: bool,
}

/// What a run of a personality came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersonalityFigures {
    /// File operations that were done.
    pub operations: u64,
    /// Wall seconds.
    pub seconds: f64,
    /// Operations over wall seconds.
    pub operations_per_second: f64,
    /// Bytes read and written by the threads over wall seconds.
    pub mib_per_second: f64,
    /// Calls without space.
    pub no_space: u64,
    /// Flow operations without a file to do them with.
    pub passed_over: u64,
    /// The modelled device, if the volume is a disk in virtual time.
    pub device: Option<DeviceFigures>,
    /// By flow operation.
    pub flows: Vec<FlowFigures>,
    /// How the volume was made cold.
    pub cold: String,
}

impl PersonalityFigures {
    /// Operations over the modelled device's seconds if there is one, else over wall seconds.
    pub fn rate(&self) -> f64 {
        self.device.as_ref().map_or(self.operations_per_second, |device| device.operations_per_second)
    }
}

/// What the modelled device did meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceFigures {
    /// Its name.
    pub name: String,
    /// Modelled seconds that it was at work.
    pub seconds: f64,
    /// Operations over these.
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

/// What a flow operation came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowFigures {
    /// Its name.
    pub name: String,
    /// What it does.
    pub op: String,
    /// How often, calls without space included.
    pub count: u64,
    /// Half took no longer, wall microseconds.
    pub p50_us: f64,
    /// 99% took no longer.
    pub p99_us: f64,
    /// 99.9% took no longer.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// How often there was no space.
    pub no_space: u64,
    /// How often there was no file to do it with.
    pub passed_over: u64,
}

/// Makes the files of a personality on a mounted volume, makes it cold, and times its threads.
///
/// What was on the volume stays; its files are in a directory of their own, which must not be there yet.
/// Errors: parameters out of range, no space for the files, a call that fails for another reason than lack of space, a
/// request that a modelled device failed, a signal. Cost: that of the files and of the run.
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
    // A modelled device is at work until all is written.
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

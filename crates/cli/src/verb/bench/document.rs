//! The result of `bench` as JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use senesce_core::statistics::{Ranking, Row};
use senesce_experiment::PersonalityFigures;
use senesce_workload::personality::Personality;
use serde::Serialize;
use serde_json::Value;

use super::volumes::{Source, State};

/// The JSON output of `bench`.
#[derive(Serialize, JsonSchema)]
pub struct BenchDocument {
    /// The command and its arguments. Empty for a personality.
    pub command: Vec<String>,
    /// The personality. `None` for a command.
    pub personality: Option<PersonalityOptionsDocument>,
    /// The unit of a figure.
    pub unit: String,
    /// Whether a larger figure is better.
    pub more_is_better: bool,
    /// Whether a run starts from the state that the previous one left.
    pub is_state_kept: bool,
    /// Whether a run includes the write-back of data in memory.
    pub is_synced: bool,
    /// Runs of each state before the counted ones.
    pub warmups: u32,
    /// Limits of the figures, in words.
    pub warnings: Vec<String>,
    /// The volumes with their runs.
    pub volumes: Vec<BenchVolume>,
    /// The statistics of each volume.
    pub rows: Vec<Row>,
    /// The order of the volumes. `None` for one volume.
    pub ranking: Option<Ranking>,
}

/// A personality and its options.
#[derive(Serialize, JsonSchema)]
pub struct PersonalityOptionsDocument {
    /// The personality.
    pub personality: Personality,
    /// The seed of the runs.
    pub seed: u64,
    /// The factor of the number of files.
    pub scale: f64,
    /// Operations of a run.
    pub operations: u64,
    /// Seconds after which a run stops, in place of `operations`. `None` without this limit.
    pub seconds: Option<f64>,
}

/// An aged volume, with its unaged twin.
#[derive(Serialize, JsonSchema)]
pub struct BenchVolume {
    /// The file system; also the name of the file, if several volumes have this file system.
    name: String,
    /// The image or container.
    source: String,
    /// The file system.
    file_system: &'static str,
    /// Bytes of the volume.
    volume_bytes: u64,
    /// The hash of a container. `None` for an image.
    content_hash: Option<String>,
    /// The differences between the volume and its twin, besides the layout.
    unlike: Vec<String>,
    /// The states that runs start from.
    states: Vec<BenchState>,
}

/// A state of a volume.
#[derive(Serialize, JsonSchema)]
struct BenchState {
    /// `aged` or `unaged`.
    role: &'static str,
    /// The figure of each run.
    figures: Vec<f64>,
    /// The figures of each run of a personality. Empty for a command.
    #[schemars(with = "Vec<PersonalityFigures>")]
    runs: Vec<Value>,
    /// The method that emptied the caches of the volume.
    cold: String,
    /// Bytes that each run read from the device.
    device_read_bytes: Vec<u64>,
    /// The disturbances of each run by other work, in words. Empty if there were none.
    disturbances: Vec<String>,
    /// Bytes in use before the first run.
    used_bytes: u64,
    /// Circumstances of the volume.
    circumstances: BTreeMap<String, String>,
}

impl BenchVolume {
    pub fn of(source: &Source) -> Self {
        Self {
            name: source.name.clone(),
            source: source.path.to_string_lossy().into_owned(),
            file_system: source.file_system.name(),
            volume_bytes: source.volume_bytes,
            content_hash: source.content_hash.clone(),
            unlike: source.unlike.clone(),
            states: source.states.iter().map(BenchState::of).collect(),
        }
    }
}

impl BenchState {
    fn of(state: &State) -> Self {
        Self {
            role: state.role,
            figures: state.figures.clone(),
            runs: state.details.clone(),
            cold: state.cold.clone(),
            device_read_bytes: state.device_read_bytes.clone(),
            disturbances: state.disturbances.clone(),
            used_bytes: state.used_bytes,
            circumstances: state.circumstances.iter().cloned().collect(),
        }
    }
}

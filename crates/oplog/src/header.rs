//! The header of a log, which describes its workload.

use senesce_core::Seed;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Description of a log. It holds no time and nothing of the host: the same plan gives the same
/// bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogHeader {
    /// The format's name with its version: [`LogHeader::FORMAT`] or [`LogHeader::RECORDED_FORMAT`].
    pub format: String,
    /// The seed of everything random in the workload.
    pub seed: Seed,
    /// The workload: its name, parameters and source (a repository's commits), as its runner
    /// describes it.
    pub workload: Value,
}

impl LogHeader {
    /// The name of the format's version 1.
    pub const FORMAT: &str = "senesce-log/1";
    /// The name of the format's version 2, with times and the operations that only recorded
    /// programs use.
    pub const RECORDED_FORMAT: &str = "senesce-log/2";

    /// A header for a workload. It sorts the keys of all objects in `workload`: whether a JSON map
    /// keeps its order depends on how the program was built.
    pub fn new(workload: Value, seed: Seed) -> Self {
        Self { format: Self::FORMAT.to_owned(), seed, workload: in_order(workload) }
    }

    /// A header for a recorded program: the log has version 2.
    pub fn recorded(workload: Value, seed: Seed) -> Self {
        Self { format: Self::RECORDED_FORMAT.to_owned(), ..Self::new(workload, seed) }
    }

    /// The version in the format's name; `None` if it is unknown.
    pub(crate) fn version(&self) -> Option<u16> {
        match self.format.as_str() {
            Self::FORMAT => Some(1),
            Self::RECORDED_FORMAT => Some(2),
            _ => None,
        }
    }
}

fn in_order(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<_> = map.into_iter().map(|(key, value)| (key, in_order(value))).collect();
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(pairs.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(in_order).collect()),
        other => other,
    }
}

//! The header of a log: which workload it holds.

use senesce_core::Seed;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a log says about itself. Holds nothing of the host and no time: the same plan gives the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogHeader {
    /// The format's name with its version: [`LogHeader::FORMAT`] or [`LogHeader::RECORDED_FORMAT`].
    pub format: String,
    /// The seed that everything random followed from.
    pub seed: Seed,
    /// The workload: its name, parameters and source (a repository's commits), as the one who runs it describes it.
    pub workload: Value,
}

impl LogHeader {
    /// The name of the format's version 1.
    pub const FORMAT: &str = "senesce-log/1";
    /// The name of the format's version 2, which knows times and the operations that only recorded programs do.
    pub const RECORDED_FORMAT: &str = "senesce-log/2";

    /// A header for a workload. The keys of all objects in `workload` are put into order, because whether a map of
    /// JSON keeps its order depends on how the program was built.
    pub fn new(workload: Value, seed: Seed) -> Self {
        Self { format: Self::FORMAT.to_owned(), seed, workload: in_order(workload) }
    }

    /// A header for what a program did: the log is of version 2.
    pub fn recorded(workload: Value, seed: Seed) -> Self {
        Self { format: Self::RECORDED_FORMAT.to_owned(), ..Self::new(workload, seed) }
    }

    /// The version that the format's name says; `None` if it is unknown.
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

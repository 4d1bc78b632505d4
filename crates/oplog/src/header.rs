//! The header of a log: which workload it holds.

use senesce_core::Seed;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a log says about itself. Holds nothing of the host and no time: the same plan gives the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogHeader {
    /// The format's name, [`LogHeader::FORMAT`].
    pub format: String,
    /// The seed that everything random followed from.
    pub seed: Seed,
    /// The workload: its name, parameters and source (a repository's commits), as the one who runs it describes it.
    pub workload: Value,
}

impl LogHeader {
    /// The name of the format.
    pub const FORMAT: &str = "senesce-log/1";

    /// A header for a workload. The keys of all objects in `workload` are put into order, because whether a map of
    /// JSON keeps its order depends on how the program was built.
    pub fn new(workload: Value, seed: Seed) -> Self {
        Self { format: Self::FORMAT.to_owned(), seed, workload: in_order(workload) }
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

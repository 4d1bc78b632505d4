//! What the verbs ask of the machine.

use std::thread::available_parallelism;

/// How many threads to use: as many as were asked for, else one for each processor.
pub fn count_threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| available_parallelism().map_or(1, usize::from))
}

//! What the verbs ask of the machine.

use std::{num::NonZeroUsize, thread::available_parallelism};

/// How many threads to use: as many as were asked for, else one for each processor.
pub fn count_threads(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| available_parallelism().ok()).map_or(1, usize::from)
}

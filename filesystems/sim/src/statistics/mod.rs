//! Figures of a run: distributions of spans, means over time, and confidence intervals.

mod batches;
mod histogram;
mod level;

pub use batches::{BatchMeans, Interval};
pub use histogram::{Histogram, Spans};
pub use level::Level;

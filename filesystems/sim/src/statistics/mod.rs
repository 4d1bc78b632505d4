//! Figures of a run: distributions of spans, means over time, and confidence intervals.

mod confidence;
mod histogram;
mod time_average;

pub use confidence::{BatchMeans, Interval};
pub use histogram::{Histogram, Spans};
pub use time_average::Level;

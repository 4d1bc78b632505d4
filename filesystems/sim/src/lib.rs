//! Discrete-event simulation: queues, processors and drives in virtual time, driven by the recorded
//! work of an engine.
//!
//! - [`EventQueue`], [`Station`], [`Distribution`], [`statistics`]: the parts. [`compute_queue`]
//!   simulates one station; [`queueing_formulas`] has the expected figures.
//! - [`Ssd`]: flash in pages of several blocks, with garbage collection. Disks are those of
//!   `senesce-device`.
//! - [`storage`]: clients, processors ([`CpuProfile`]), a log, consistency points and drives
//!   together, driven by a [`storage::Trace`] of an engine's work.
//!
//! Pure: no files, clocks or threads. Times are integer nanoseconds, and random spans are drawn
//! with integers, so the same seed gives the same events on every machine. Every figure is about a
//! *model*. docs/explanation/sim.md describes the scope of the model, and how far its figures can
//! be trusted.

mod cpu;
mod distribution;
mod error;
mod events;
mod queueing;
pub mod queueing_formulas;
mod ssd;
mod station;
pub mod statistics;
pub mod storage;

pub use cpu::{CpuEvents, CpuOrigin, CpuProfile};
pub use distribution::Distribution;
pub use error::Error;
pub use events::EventQueue;
pub use queueing::{Arrivals, QueueFigures, QueueSetup, compute_queue};
pub use ssd::{Ssd, SsdCounts, SsdFill, SsdSpec};
pub use station::{Class, Discipline, Favour, Order, Station, StationFigures, Ticket};
pub use statistics::{BatchMeans, Histogram, Interval, Level, Spans};

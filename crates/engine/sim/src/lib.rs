//! Discrete-event simulation: queues, processors and drives in virtual time, fed with what an engine really did.
//!
//! - [`EventQueue`], [`Station`], [`Distribution`], [`statistics`]: the parts. [`compute_queue`] simulates one station,
//!   [`theory`] says what it should come to.
//! - [`Ssd`]: flash in pages of several blocks, with garbage collection. Disks are those of `senesce-device`.
//! - [`storage`]: clients, processors ([`CpuProfile`]), a log, consistency points and drives together, fed with a
//!   [`storage::Trace`] of what an engine did.
//!
//! Pure: no files, clocks or threads. Times are integer nanoseconds, and random spans are drawn with integers, so the
//! same seed gives the same events on every machine. Everything it says is of a *model*. docs/explanation/sim.md tells what is
//! modelled, what is not, and how far the figures can be trusted.

mod cpu;
mod distribution;
mod error;
mod events;
mod queueing;
mod ssd;
mod station;
pub mod statistics;
pub mod storage;
pub mod theory;

pub use cpu::{CpuEvents, CpuOrigin, CpuProfile};
pub use distribution::Distribution;
pub use error::Error;
pub use events::EventQueue;
pub use queueing::{Arrivals, QueueFigures, QueueSetup, compute_queue};
pub use ssd::{Ssd, SsdCounts, SsdFill, SsdSpec};
pub use station::{Class, Discipline, Favour, Order, Station, StationFigures, Ticket};
pub use statistics::{BatchMeans, Histogram, Interval, Level, Spans};

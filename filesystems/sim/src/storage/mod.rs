//! Clients, processors, a log, consistency points and drives together, driven by the recorded work
//! of an engine.

mod consistency_point;
mod consistency_point_steps;
mod drive;
mod event_loop;
mod figures;
mod operation;
mod setup;
mod synthetic_trace;
mod trace;

pub use event_loop::{SimEvent, compute_load_curve, compute_storage, compute_storage_observed};
pub use figures::{CoreUse, FlashFigures, StorageFigures};
pub use setup::{Drives, LogSpec, Model, Spread, StorageLoad, StorageSetup};
pub use synthetic_trace::SyntheticTrace;
pub use trace::{Chain, Exclusive, Operation, PointTrace, Trace};

//! Clients, processors, a log, consistency points and drives together, driven by the recorded work
//! of an engine.

mod drive;
mod figures;
mod operation;
mod point;
mod run;
mod setup;
mod steps;
mod synthetic;
mod trace;

pub use figures::{CoreUse, FlashFigures, StorageFigures};
pub use run::{Happening, compute_load_curve, compute_storage, compute_storage_observed};
pub use setup::{Drives, LogSpec, Model, Spread, StorageLoad, StorageSetup};
pub use synthetic::SyntheticTrace;
pub use trace::{Chain, Exclusive, Operation, PointTrace, Trace};

//! The aggregate as its users see it: [`Garden`], and a module for each kind of call.
//!
//! The state, and the work on it, is in [`crate::store`]. The calls here lock the state, in steps
//! if they take long.

mod defrag;
mod garden;
mod gardening;
mod maintenance;
mod maintenance_limits;
mod object_defrag;
pub(crate) mod object_gardening;
mod opening;
mod packing;
mod pass_positions;
pub(crate) mod reads;
pub(crate) mod report;
mod sharing;
mod snapshots;
mod tiering;

pub use defrag::{Defrag, DefragFiles};
pub use garden::{Acknowledge, Garden, VolumeOptions};
pub(crate) use garden::{Commits, Shared};
pub use maintenance::{LoadMeasurements, MaintenanceController, MaintenanceReport};
pub use maintenance_limits::{Scheduler, SchedulerLimits, SchedulerSample, Task};
pub use object_defrag::ObjectDefrag;
pub use object_gardening::ObjectGardening;
pub use packing::{Packing, RECOMPACTED_BELOW_PERCENT};
pub use pass_positions::Positions;
pub use report::{AggregateReport, DriveReport, LogReport, OpeningReport};
pub use sharing::Sharing;
pub use snapshots::SnapshotReport;
pub use tiering::{ColdReport, Tier, TierCounts};

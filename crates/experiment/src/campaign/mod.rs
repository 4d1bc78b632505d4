//! Campaigns: a grid of plans, file systems, kernels, devices and seeds, cut into tasks.
//!
//! A task is one run of a plan. The grid and the number of the task determine the plan. So tasks
//! need no coordination: a scheduler can run them in any order, on any machine, and again after a
//! loss. Two tasks never write the same file. [`Campaign::plan`] makes the directory of a campaign.
//! [`Attempt`] runs one task. [`merge`] joins the results in the order of the grid.

mod attempt;
mod axes;
mod comparable;
mod dir;
mod grid;
mod merge;
mod progress;

pub use attempt::{Attempt, Begun, TaskState, remove_leftovers};
pub use axes::{Axes, Place, Task};
pub use dir::{CAMPAIGN_FORMAT, Campaign, CampaignPaths};
pub use grid::{GRID_FORMAT, Grid, GridKernel, GridPlan, KernelName, grid_schema_json};
pub use merge::{Merged, merge, preview_merge};
pub use progress::{Failed, Invalid, Progress, Running};

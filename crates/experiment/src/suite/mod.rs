//! Suites: personalities on several file systems, fresh and aged by several profiles, and the order
//! of the file systems in each state.
//!
//! [`Suite::open`] reads a plan and opens a directory. [`Suite::execute`] makes the missing images:
//! a fresh one and one for each profile, of each file system. Then it makes the missing runs in
//! turn. Each run restores its image, and its time is the machine's or that of a modelled device.
//! Every complete run is a line of `runs.ndjson`, so that a killed suite can continue.

mod images;
mod plan;
mod results;
mod run;

pub use images::SuiteState;
pub use plan::{FRESH, SUITE_FORMAT, SuiteAging, SuitePersonality, SuitePlan, SuiteVolume, suite_schema_json};
pub use results::{Normal, SUITE_RESULTS_SCHEMA, SuiteFigure, SuiteRanking, SuiteResults, SuiteRun};
pub use run::Suite;

//! Suites: personalities on several file systems, fresh and aged by several profiles, with what that does to their order.
//!
//! [`Suite::open`] takes a plan and a directory, [`Suite::execute`] makes the images that are missing (a fresh one and one
//! for each profile, of each file system) and does the runs that are missing, in turn, each from its image restored, on the
//! machine's own time or on a modelled device's. Every finished run is a line of `runs.ndjson`, so that a killed suite goes
//! on where it was.

mod images;
mod plan;
mod results;
mod run;

pub use images::SuiteState;
pub use plan::{FRESH, SUITE_FORMAT, SuiteAging, SuitePersonality, SuitePlan, SuiteVolume, suite_schema_json};
pub use results::{Normal, SUITE_RESULTS_SCHEMA, SuiteFigure, SuiteRanking, SuiteResults, SuiteRun};
pub use run::Suite;

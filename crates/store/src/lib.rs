//! Results: row types, their Parquet schemas, and crash-safe appends that never lose a stored cell.

mod disk;
mod error;
mod export;
mod files;
mod merge;
mod parquet_file;
mod parquet_pages;
mod part;
mod published;
mod reference;
mod results;
mod rows;
mod schema;
mod simulated;
mod store;

pub use disk::{Disk, RealDisk};
pub use error::Error;
pub use files::{FileLimits, TableFile};
pub use merge::Merger;
pub use published::{PUBLISHED, Published, PublishedCost, PublishedRatio};
pub use reference::reference_markdown;
pub use results::{CellCosts, CellResults, EVENTS_FILE, EVENTS_SCHEMA, FORMAT, RUN_INFO_FILE, Results, RunInfo};
pub use rows::{
    AgingRow, CellKey, CellRow, CircumstanceRow, CureRow, FreeSpaceRow, GrepRow, LatencyRow, LayoutRow, LoadRow,
    MISSED_CURE, MapRow, ModelledRow, Role, StepRow, TraceBucketRow, TraceRow, is_of_execution,
};
pub use schema::{Column, ColumnType, Table};
pub use simulated::SimulatedDisk;
pub use store::ResultStore;

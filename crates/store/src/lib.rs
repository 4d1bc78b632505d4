//! Results: row types, their Parquet schemas, and appending them so that a crash loses nothing that was said to be kept.

mod rows;

pub use rows::{AgingRow, CellKey, CellRow, CircumstanceRow, FreeSpaceRow, GrepRow, LayoutRow, Role};

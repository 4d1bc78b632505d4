//! The reference of the tables, as Markdown; `docs/reference/tables.md` is this text.

use std::fmt::Write as _;

use crate::results::{EVENTS_FILE, EVENTS_SCHEMA, FORMAT, RUN_INFO_FILE};
use crate::schema::{ColumnType, Table};

/// Returns the reference of the results directory: files, tables, columns, and how to read them.
/// Generated from the schemas.
pub fn reference_markdown() -> String {
    let mut text = format!(
        "# Tables of results\n\n\
         This page is for users who query results. It lists every table and every column.\n\n\
         A run's results are one directory, in format `{FORMAT}`.\n\n\
         | file | holds |\n|---|---|\n\
         | `{RUN_INFO_FILE}` | format, names of run and plan, plan hash, version |\n\
         | `<table>.parquet` | one table, after the run has been finished |\n\
         | `parts/<table>/*.parquet` | the same, one file per cell, during the run |\n\
         | `{EVENTS_FILE}` | one JSON object per line during the run, each with `\"schema\":\"{EVENTS_SCHEMA}\"` and `event` |\n\n\
         A cell counts if its file in `parts/cells` (or its row in `cells.parquet`) exists: that one is written last. \
         Measurements of a cell whose `valid` is false must not be used. Repetitions of the grep test with a \
         `disturbance` in table `load` are left out of the report's medians, unless a cell has no others. The file's key-value metadata \
         hold every column's unit and description (`senesce.unit.COLUMN`, `senesce.description.COLUMN`). A number that is missing is null.\n\n\
         ## Reading them\n\n\
         [Read results in DuckDB and pandas](../how-to/results.md) has queries.\n\n\
         `senesce export --csv` and `--json` write the same tables for programs that do not read Parquet. The CSV is meant for\n\
         spreadsheets: a text that a spreadsheet would run as a formula has an apostrophe before it. Parquet and JSON hold every text\n\
         unchanged.\n"
    );
    let links = Table::ALL.iter().map(|table| format!("[`{0}`](#table-{0})", table.name()));
    let _ = write!(text, "\n## Tables\n\n{}\n", links.collect::<Vec<_>>().join(", "));
    for table in Table::ALL {
        let _ = write!(text, "\n## Table `{}`\n\n{}\n\n", table.name(), table.description());
        text.push_str("| column | type | unit | meaning |\n|---|---|---|---|\n");
        for column in table.columns() {
            let kind = match column.column_type {
                ColumnType::Text | ColumnType::OptionalText => "text",
                ColumnType::UInt64 | ColumnType::OptionalUInt64 => "uint64",
                ColumnType::Float64 => "float64",
                ColumnType::Boolean => "boolean",
            };
            let _ = writeln!(text, "| `{}` | {kind} | {} | {} |", column.name, column.unit, column.description);
        }
    }
    text
}

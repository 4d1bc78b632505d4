//! `senesce export`: result tables as CSV or JSON.

use anyhow::Result;
use senesce_store::Table;

use super::show::read_results;
use crate::{args::ExportArgs, exit::usage};

/// Writes to stdout.
pub fn export(args: ExportArgs) -> Result<()> {
    let results = read_results(&args.run)?;
    let text = match args.csv {
        Some(name) => {
            let table = Table::ALL.iter().copied().find(|table| table.name() == name).ok_or_else(|| {
                let names: Vec<&str> = Table::ALL.iter().map(|table| table.name()).collect();
                usage(format!("there is no table {name:?}"), Some(&format!("the tables are {}", names.join(", "))))
            })?;
            results.export_csv(table)
        }
        None => results.export_json(),
    };
    print!("{text}");
    Ok(())
}

//! `senesce export`: result tables as CSV or JSON.

use anyhow::Result;
use senesce_store::{Results, Table};

use super::show::read_results;
use crate::{args::ExportArgs, exit::usage, near::find_near};

/// Writes to stdout.
pub fn export(args: ExportArgs) -> Result<()> {
    let results = read_results(&args.run)?;
    match args.csv {
        Some(name) => {
            let table = Table::ALL.iter().copied().find(|table| table.name() == name).ok_or_else(|| {
                let names: Vec<&str> = Table::ALL.iter().map(|table| table.name()).collect();
                let hint = match find_near(&name, names.iter().copied()) {
                    Some(near) => format!("did you mean {near}? The tables are {}", names.join(", ")),
                    None => format!("the tables are {}", names.join(", ")),
                };
                usage(format!("there is no table {name:?}"), Some(&hint))
            })?;
            print!("{}", results.export_csv(table));
            Ok(())
        }
        None => write_json(&results),
    }
}

/// Prints all tables as one JSON document.
pub fn write_json(results: &Results) -> Result<()> {
    print!("{}", results.export_json());
    Ok(())
}

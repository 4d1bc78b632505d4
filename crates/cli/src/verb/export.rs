//! `senesce export`: result tables as CSV or JSON.

use anyhow::Result;
use senesce_store::{Results, Table};

use super::show::read_results;
use crate::{args::ExportArgs, exit::usage};

/// Writes to stdout.
pub fn export(args: ExportArgs) -> Result<()> {
    let results = read_results(&args.run)?;
    match args.csv {
        Some(name) => {
            let table = Table::ALL.iter().copied().find(|table| table.name() == name).ok_or_else(|| {
                let names: Vec<&str> = Table::ALL.iter().map(|table| table.name()).collect();
                let hint = match names.iter().find(|known| is_near(&name, known)) {
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

/// Whether two names share their beginning and end but for one or two letters.
fn is_near(given: &str, known: &str) -> bool {
    let same_start = given.chars().zip(known.chars()).take_while(|(a, b)| a == b).count();
    let same_end = given.chars().rev().zip(known.chars().rev()).take_while(|(a, b)| a == b).count();
    let longer = given.chars().count().max(known.chars().count());
    longer > 2 && same_start + same_end + 2 >= longer && same_start > 0
}

/// Prints all tables as one JSON document.
pub fn write_json(results: &Results) -> Result<()> {
    print!("{}", results.export_json());
    Ok(())
}

//! `senesce verify-bundle`.

use std::path::Path;

use anyhow::Result;
use schemars::JsonSchema;
use senesce_bundle::{PlanEntry, TableEntry};
use senesce_core::{Bytes, Printable};
use serde::Serialize;

use super::open::{Opened, open};
use crate::{args::VerifyBundleArgs, exit::text_of, schema::document};

/// The schema of the JSON output.
pub(in crate::verb) const CHECK_SCHEMA: &str = "senesce-bundle-check/1";

/// The JSON output of `verify-bundle`.
#[derive(Serialize, JsonSchema)]
pub(in crate::verb) struct CheckDocument {
    /// The bundle.
    bundle: String,
    /// Whether the bundle is whole.
    whole: bool,
    /// The first fault. `None` if the bundle is whole.
    error: Option<String>,
    /// The contents. `None` if the bundle is not whole.
    contents: Option<CheckedContents>,
}

/// The contents of a whole bundle.
#[derive(Serialize, JsonSchema)]
struct CheckedContents {
    /// The plan of the run.
    plan: PlanEntry,
    /// The version and commit of the program that ran the plan.
    run_by: String,
    /// The version and commit of the program that made the bundle.
    made_by: String,
    /// The number of files, the manifest included.
    files: usize,
    /// The sum of their sizes in bytes, without the manifest.
    bytes: u64,
    /// The number of cells.
    cells: usize,
    /// The number of invalid cells.
    invalid_cells: usize,
    /// The tables with their numbers of rows.
    tables: Vec<TableEntry>,
}

impl CheckedContents {
    fn of(opened: &Opened) -> Self {
        let (manifest, results) = (opened.manifest(), &opened.results);
        Self {
            plan: manifest.plan.clone(),
            run_by: results.run.senesce_version.clone(),
            made_by: manifest.senesce_version.clone(),
            files: manifest.files.len() + 1,
            bytes: manifest.files.iter().map(|file| file.bytes).sum(),
            cells: results.cells.len(),
            invalid_cells: results.cells.iter().filter(|cell| !cell.valid).count(),
            tables: manifest.tables.clone(),
        }
    }
}

/// Verifies a bundle, and prints its contents. Writes nothing.
pub fn verify_bundle(args: VerifyBundleArgs) -> Result<()> {
    let opened = open(&args.bundle, false);
    if args.json {
        println!("{}", document(CHECK_SCHEMA, document_of(&args.bundle, &opened)));
    }
    let contents = CheckedContents::of(&opened?);
    if !args.json {
        print(&args.bundle, &contents);
    }
    Ok(())
}

fn document_of(path: &Path, opened: &Result<Opened>) -> CheckDocument {
    CheckDocument {
        bundle: path.to_string_lossy().into_owned(),
        whole: opened.is_ok(),
        error: opened.as_ref().err().map(text_of),
        contents: opened.as_ref().ok().map(CheckedContents::of),
    }
}

fn print(path: &Path, contents: &CheckedContents) {
    let CheckedContents { plan, run_by, made_by, files, bytes, cells, invalid_cells, tables } = contents;
    println!("{} is whole", Printable::new(path));
    println!("plan     {} (BLAKE3 {})", Printable::new(&plan.name), Printable::new(&plan.hash));
    println!("run by   senesce {}", Printable::new(run_by));
    println!("made by  senesce {}", Printable::new(made_by));
    println!("files    {files}, {}", Bytes(*bytes));
    let invalid = if *invalid_cells == 0 { String::new() } else { format!(", {invalid_cells} of them invalid") };
    println!("cells    {cells}{invalid}");
    let rows: Vec<String> =
        tables.iter().filter(|table| table.rows > 0).map(|table| format!("{} {}", table.name, table.rows)).collect();
    println!("rows     {}", rows.join(", "));
}

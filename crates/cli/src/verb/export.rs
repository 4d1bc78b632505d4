//! `senesce export`: result tables as CSV or JSON.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use senesce_core::Printable;
use senesce_experiment::Event;
use senesce_store::{ColumnType, EVENTS_SCHEMA, FORMAT, Results, RunInfo, Table};
use serde_json::{Map, Value, json};

use super::{
    output::{check_output_directory, print_file_preview},
    show::read_results,
};
use crate::{
    args::ExportArgs,
    exit::usage,
    near::find_near,
    schema::{Versioned, schema_of},
};

/// Writes to stdout.
pub fn export(args: ExportArgs) -> Result<()> {
    let results = read_results(&args.run)?;
    match args.csv {
        Some(name) if name == ALL => match &args.out {
            Some(out) => write_tables(&results, &Table::ALL, out, args.dry_run),
            None => Err(usage("--csv all needs --out", Some("name a directory: each table becomes a file in it"))),
        },
        Some(name) => {
            let table = Table::ALL.iter().copied().find(|table| table.name() == name).ok_or_else(|| {
                let names: Vec<&str> = Table::ALL.iter().map(|table| table.name()).collect();
                let hint = match find_near(&name, names.iter().copied()) {
                    Some(near) => format!("did you mean {near}? The tables are {}", names.join(", ")),
                    None => format!("the tables are {}", names.join(", ")),
                };
                usage(format!("there is no table {name:?}"), Some(&hint))
            })?;
            match &args.out {
                Some(out) => write_tables(&results, &[table], out, args.dry_run),
                None => {
                    print!("{}", results.export_csv(table));
                    Ok(())
                }
            }
        }
        None => write_json(&results),
    }
}

/// The value of `--csv` that names all tables.
const ALL: &str = "all";

/// Writes each table to a file of its name in a new or an empty directory. With `dry_run` it only
/// prints the names.
fn write_tables(results: &Results, tables: &[Table], out: &Path, dry_run: bool) -> Result<()> {
    check_output_directory(out, "--out", || false)?;
    if !dry_run {
        fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    }
    for table in tables {
        let path = out.join(format!("{}.csv", table.name()));
        if dry_run {
            print_file_preview(&path);
            continue;
        }
        fs::write(&path, results.export_csv(*table)).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", Printable::new(&path));
    }
    Ok(())
}

/// Prints all tables as one JSON document.
pub fn write_json(results: &Results) -> Result<()> {
    print!("{}", results.export_json());
    Ok(())
}

/// The JSON schema of [`write_json`]. Its version is in the key `format` of the run.
pub fn results_schema() -> Value {
    let mut run = schema_of::<RunInfo>(FORMAT);
    if let Some(run) = run.as_object_mut() {
        run.remove("$schema");
        run.remove("title");
    }
    let mut properties = Map::from_iter([("run".to_owned(), run)]);
    for table in Table::ALL {
        let columns = table.columns();
        let required: Vec<&str> = columns.iter().map(|column| column.name).collect();
        let values = columns.iter().map(|column| {
            let unit = if column.unit.is_empty() { String::new() } else { format!(" Unit: {}.", column.unit) };
            let value = json!({ "description": format!("{}{unit}", column.description) });
            (column.name.to_owned(), with_type(value, column.column_type))
        });
        let row = json!({ "type": "object", "properties": Map::from_iter(values), "required": required });
        let rows = json!({ "description": table.description(), "type": "array", "items": row });
        properties.insert(table.name().to_owned(), rows);
    }
    let required: Vec<&String> = properties.keys().collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": FORMAT,
        "description": "All result tables of a run. A missing number is null.",
        "type": "object",
        "required": required,
        "properties": properties,
    })
}

/// Adds the type of a column to a schema of its values.
fn with_type(mut schema: Value, column: ColumnType) -> Value {
    let (of, least) = match column {
        ColumnType::Text => (json!("string"), None),
        ColumnType::OptionalText => (json!(["string", "null"]), None),
        ColumnType::UInt64 => (json!("integer"), Some(0)),
        ColumnType::OptionalUInt64 => (json!(["integer", "null"]), Some(0)),
        ColumnType::Float64 => (json!(["number", "null"]), None),
        ColumnType::Boolean => (json!("boolean"), None),
    };
    schema["type"] = of;
    if let Some(least) = least {
        schema["minimum"] = least.into();
    }
    schema
}

/// The JSON schema of a line of `events.ndjson`.
pub fn events_schema() -> Value {
    let mut schema = schema_of::<Versioned<Event>>(EVENTS_SCHEMA);
    let released = json!({
        "description": "A resource that the run held at its end was removed.",
        "type": "object",
        "properties": { "event": { "type": "string", "const": "released" }, "resource": { "type": "string" } },
        "required": ["event", "resource"],
    });
    if let Some(kinds) = schema["oneOf"].as_array_mut() {
        kinds.push(released);
    }
    schema
}

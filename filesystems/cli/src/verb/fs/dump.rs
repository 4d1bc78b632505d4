//! `senesce fs dump`: any structure of a garden as it is on its devices. Nothing is written.

use std::os::unix::ffi::OsStrExt;

use crate::version;
use anyhow::{Context, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use senesce_garden::{Dump, DumpTable, DumpValue, DumpWhat};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{name_arguments::explain_missing, place::Place, send_request::with_format};
use crate::{
    args::{FsDumpArgs, FsDumpWhat},
    exit::usage,
};

/// Shows a structure, with what is wrong with it.
pub fn dump(args: &FsDumpArgs) -> Result<()> {
    let structure = what(&args.what)?;
    let objects = match &args.what {
        FsDumpWhat::Object { objects, .. } => objects.open()?,
        _ => None,
    };
    let devices = Place::at(&args.place).look()?;
    let shown = senesce_garden::dump_with(&devices.drives, &devices.log, objects.as_ref(), &structure, args.most);
    print(
        &shown.map_err(explain_missing).with_context(|| format!("cannot look into {}", args.place.display()))?,
        args.json,
    )
}

/// A dump on the screen.
pub(super) fn print(shown: &Dump, as_json: bool) -> Result<()> {
    if as_json {
        println!("{}", with_format(version::DUMP, &DumpDocument::of(shown))?);
    } else {
        print!("{shown}");
    }
    Ok(())
}

/// Errors: a structure that a garden has not.
fn what(what: &FsDumpWhat) -> Result<DumpWhat> {
    let name = |volume: &String| volume.clone().into_bytes();
    Ok(match what {
        FsDumpWhat::Label => DumpWhat::Labels,
        FsDumpWhat::Superblock => DumpWhat::Superblocks,
        FsDumpWhat::Volumes => DumpWhat::Volumes,
        FsDumpWhat::Aggregate { file } => DumpWhat::AggregateFile { file: *file },
        FsDumpWhat::Inode { volume, ino } => DumpWhat::Inode { volume: name(volume), ino: *ino },
        FsDumpWhat::File { volume, path } => {
            DumpWhat::File { volume: name(volume), path: path.as_os_str().as_bytes().to_vec() }
        }
        FsDumpWhat::Directory { volume, path } => {
            DumpWhat::Directory { volume: name(volume), path: path.as_os_str().as_bytes().to_vec() }
        }
        FsDumpWhat::Vvbn { volume, range } => DumpWhat::Vvbns { volume: name(volume), range: range.0.clone() },
        FsDumpWhat::Pvbn { pvbn, hex } => DumpWhat::Pvbn { pvbn: *pvbn, hex: *hex },
        FsDumpWhat::Bitmap { range, volume, snapshots } => {
            DumpWhat::Bitmap { volume: volume.as_ref().map(name), held: *snapshots, range: range.0.clone() }
        }
        FsDumpWhat::Snapshots => DumpWhat::Snapshots,
        FsDumpWhat::References { volume, range } => {
            DumpWhat::References { volume: name(volume), range: range.0.clone() }
        }
        FsDumpWhat::Chunks { range } => DumpWhat::Chunks { range: range.0.clone() },
        FsDumpWhat::Areas => DumpWhat::Areas,
        FsDumpWhat::Objects => DumpWhat::Objects,
        FsDumpWhat::Log => DumpWhat::Log,
        FsDumpWhat::Object { number, .. } => DumpWhat::Object { number: *number },
        FsDumpWhat::Map | FsDumpWhat::Space | FsDumpWhat::Tree | FsDumpWhat::Node { .. } => {
            return Err(usage("only an evergreen has map, space, tree and nodes", None));
        }
    })
}

/// A structure. The names of fields and columns are keys. Each row of a table is an object.
#[derive(Serialize, JsonSchema)]
pub struct DumpDocument {
    /// The name of the structure.
    title: String,
    /// Its fields.
    #[schemars(schema_with = "cells_schema")]
    fields: Map<String, Value>,
    /// Its faults.
    wrong: Vec<String>,
    /// The rows of its table. Absent without a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "rows_schema")]
    rows: Option<Vec<Map<String, Value>>>,
    /// Rows that are not shown. Absent without a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_rows: Option<u64>,
    /// Its parts.
    parts: Vec<DumpDocument>,
}

fn cells_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": { "type": ["integer", "string", "null"] } })
}

fn rows_schema(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": cells_schema(generator) })
}

impl DumpDocument {
    fn of(dump: &Dump) -> Self {
        let row = |columns: &[&str], row: &[DumpValue]| {
            columns.iter().zip(row).map(|(word, value)| ((*word).to_owned(), value_of(value))).collect()
        };
        let table = dump.table.as_ref();
        let rows = |table: &DumpTable| table.rows.iter().map(|cells| row(&table.columns, cells)).collect();
        Self {
            title: dump.title.clone(),
            fields: dump.fields.iter().map(|(word, value)| ((*word).to_owned(), value_of(value))).collect(),
            wrong: dump.wrong.clone(),
            rows: table.map(rows),
            more_rows: table.map(|table| table.more),
            parts: dump.parts.iter().map(Self::of).collect(),
        }
    }
}

fn value_of(value: &DumpValue) -> Value {
    match value {
        DumpValue::Number(number) => json!(number),
        DumpValue::Text(text) => json!(text),
        DumpValue::None => Value::Null,
    }
}

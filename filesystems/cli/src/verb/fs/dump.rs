//! `senesce fs dump`: any structure of a garden as it is on its devices. Nothing is written.

use std::os::unix::ffi::OsStrExt;

use anyhow::{Context, Result};
use senesce_garden::{Dump, DumpTable, DumpValue, DumpWhat};
use serde_json::{Map, Value, json};

use super::{name_arguments::explain_missing, place::Place};
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
    );
    Ok(())
}

/// A dump on the screen.
pub(super) fn print(shown: &Dump, as_json: bool) {
    if as_json {
        let mut all = Map::from_iter([("format".to_owned(), json!("senesce-fs-dump/1"))]);
        all.extend(to_json(shown));
        println!("{}", Value::Object(all));
    } else {
        print!("{shown}");
    }
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

/// Words are keys; rows are objects.
fn to_json(dump: &Dump) -> Map<String, Value> {
    let fields = dump.fields.iter().map(|(word, value)| ((*word).to_owned(), value_of(value)));
    let mut all = Map::from_iter([
        ("title".to_owned(), json!(dump.title)),
        ("fields".to_owned(), Value::Object(fields.collect())),
        ("wrong".to_owned(), json!(dump.wrong)),
    ]);
    if let Some(DumpTable { columns, rows, more }) = &dump.table {
        let row = |row: &Vec<DumpValue>| {
            let cells = columns.iter().zip(row).map(|(word, value)| ((*word).to_owned(), value_of(value)));
            Value::Object(cells.collect())
        };
        all.insert("rows".to_owned(), rows.iter().map(row).collect());
        all.insert("more_rows".to_owned(), json!(more));
    }
    let parts: Vec<Value> = dump.parts.iter().map(|part| Value::Object(to_json(part))).collect();
    all.insert("parts".to_owned(), json!(parts));
    all
}

fn value_of(value: &DumpValue) -> Value {
    match value {
        DumpValue::Number(number) => json!(number),
        DumpValue::Text(text) => json!(text),
        DumpValue::None => Value::Null,
    }
}

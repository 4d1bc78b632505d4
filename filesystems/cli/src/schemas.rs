//! The JSON schemas of all outputs of the file systems.

use schemars::JsonSchema;
use senesce_cli::{
    SchemaOf,
    schema::{Formatted, Versioned, schema_of},
};
use senesce_service::{
    Checked, Cleaned, Deduped, Defragmented, EvergreenChecked, EvergreenDefragmented, EvergreenStat, Scrubbed,
    Snapshots, Stat, Tiered, Volumes, evergreen::EvergreenFigures, garden::GardenFigures,
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    verb::{
        fs::{
            CloneDocument, DiffDocument, DumpDocument, EvergreenRepairDocument, RebuildDocument, RecompactDocument,
            RepairDocument, SnapshotDocument, TIER_INNER, TreeDocument, VolumeDocument,
        },
        garden::Reproduction,
    },
    version,
};

/// The JSON schema of an output of `fs` and `garden`. `None` for other kinds.
pub fn engine_schema(of: SchemaOf) -> Option<Value> {
    Some(match of {
        SchemaOf::EvergreenFigures => formatted::<EvergreenFigures>(version::EVERGREEN_FIGURES),
        SchemaOf::EvergreenTree => schema_of::<Versioned<TreeDocument>>(version::EVERGREEN_TREE),
        SchemaOf::FsCheck => formatted::<Checked>(version::CHECK),
        SchemaOf::FsCheckEvergreen => formatted::<EvergreenChecked>(version::CHECK_EVERGREEN),
        SchemaOf::FsClean => formatted::<Cleaned>(version::CLEAN),
        SchemaOf::FsClone => formatted::<CloneDocument>(version::CLONE),
        SchemaOf::FsDedup => formatted::<Deduped>(version::DEDUP),
        SchemaOf::FsDefrag => formatted::<Defragmented>(version::DEFRAG),
        SchemaOf::FsDefragEvergreen => formatted::<EvergreenDefragmented>(version::DEFRAG_EVERGREEN),
        SchemaOf::FsDiff => formatted::<DiffDocument>(version::DIFF),
        SchemaOf::FsDump => formatted::<DumpDocument>(version::DUMP),
        SchemaOf::FsFigures => formatted::<FiguresDocument>(version::FIGURES),
        SchemaOf::FsRebuild => formatted::<RebuildDocument>(version::REBUILD),
        SchemaOf::FsRecompact => formatted::<RecompactDocument>(version::RECOMPACT),
        SchemaOf::FsRepairEvergreen => formatted::<EvergreenRepairDocument>(version::REPAIR_EVERGREEN),
        SchemaOf::FsRepairGarden => formatted::<RepairDocument>(version::REPAIR_GARDEN),
        SchemaOf::FsScrub => formatted::<Scrubbed>(version::SCRUB),
        SchemaOf::FsSnapshot => formatted::<SnapshotDocument>(version::SNAPSHOT),
        SchemaOf::FsSnapshots => formatted::<Snapshots>(version::SNAPSHOTS),
        SchemaOf::FsStat => formatted::<Stat>(version::STAT),
        SchemaOf::FsStatEvergreen => formatted::<EvergreenStat>(version::STAT_EVERGREEN),
        SchemaOf::FsTier => without(formatted::<Tiered>(version::TIER), &TIER_INNER),
        SchemaOf::FsVolume => formatted::<VolumeDocument>(version::VOLUME),
        SchemaOf::FsVolumes => formatted::<Volumes>(version::VOLUMES),
        SchemaOf::Reproduction => schema_of::<Reproduction>(version::REPRODUCTION),
        _ => return None,
    })
}

/// The counters of a mount.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "responses have figures as JSON")]
enum FiguresDocument {
    Garden(Box<GardenFigures>),
    Evergreen(Box<EvergreenFigures>),
}

fn formatted<T: JsonSchema>(version: &str) -> Value {
    schema_of::<Formatted<T>>(version)
}

/// A schema without keys that are not printed.
fn without(mut schema: Value, names: &[&str]) -> Value {
    if let Some(keys) = schema["properties"].as_object_mut() {
        keys.retain(|key, _| !names.contains(&key.as_str()));
    }
    if let Some(keys) = schema["required"].as_array_mut() {
        keys.retain(|key| !names.iter().any(|name| key == name));
    }
    schema
}

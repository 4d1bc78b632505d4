//! Checks JSON outputs against the published schemas in docs/schemas.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    sync::OnceLock,
};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

/// Formats of other programs, without a version of this project.
pub const FOREIGN_SCHEMAS: [&str; 2] = ["bmf", "small-is-better"];

/// Fails unless the text consists of JSON documents that [`check_document`] accepts.
#[track_caller]
pub fn check_printed(text: &str) {
    for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        check_document(&document.unwrap_or_else(|error| panic!("the output is not JSON: {error}: {text}")));
    }
}

/// Fails unless a document has a published version and fits its schema. The schema must describe
/// every key.
#[track_caller]
pub fn check_document(document: &Value) {
    let is_results = document["run"]["format"].is_string();
    let version = document["schema"].as_str().or(document["format"].as_str()).unwrap_or_default();
    let kind = if is_results { Some("results") } else { kinds_by_version().get(version).map(String::as_str) };
    check_json(kind.unwrap_or_else(|| panic!("no schema is published for {version:?}: {document}")), document);
}

/// The published kinds by their version. `results` is not among them: the version of its documents
/// is in their part `run`, and is also that of `run`.
fn kinds_by_version() -> &'static BTreeMap<String, String> {
    static KINDS: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let files = fs::read_dir(schemas_directory()).unwrap().map(|entry| entry.unwrap().path());
        let kinds = files.map(|file| file.file_stem().unwrap().to_string_lossy().into_owned());
        let kinds = kinds.filter(|kind| kind != "results" && !FOREIGN_SCHEMAS.contains(&kind.as_str()));
        kinds.map(|kind| (read_schema(&kind)["title"].as_str().unwrap().to_owned(), kind)).collect()
    })
}

/// Fails unless the value fits the published schema of this kind. The schema must describe every
/// key.
#[track_caller]
pub fn check_json(kind: &str, value: &Value) {
    let mut schema = read_schema(kind);
    close(&mut schema);
    if let Err(problem) = SchemaChecker::of(schema).check(value) {
        panic!("the output does not fit the schema {kind}: {problem}");
    }
}

/// The directory of the published schemas.
pub fn schemas_directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/schemas"))
}

/// Reads a published schema.
pub fn read_schema(kind: &str) -> Value {
    let path = schemas_directory().join(format!("{kind}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// A compiled schema.
pub struct SchemaChecker {
    schemas: Schemas,
    index: SchemaIndex,
}

impl SchemaChecker {
    /// Compiles a schema. Panics if the value is not a schema.
    pub fn of(schema: Value) -> Self {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("file:///schema.json", schema).unwrap();
        let index = compiler.compile("file:///schema.json", &mut schemas).unwrap();
        Self { schemas, index }
    }

    /// Checks a value. Errors: the value does not fit the schema; the text names the places.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.schemas.validate(value, self.index).map_err(|error| error.to_string())
    }
}

/// Makes a schema refuse keys that it does not describe.
fn close(schema: &mut Value) {
    let mut parts = BTreeSet::new();
    find_parts(schema, false, &mut parts);
    close_below(schema, false, &parts);
}

/// Whether a keyword combines schemas of the same value.
fn combines(keyword: &str) -> bool {
    ["allOf", "anyOf", "oneOf"].contains(&keyword)
}

/// Finds the definitions that describe a part of the keys of an object. `is_part`: whether the
/// schema around this one describes further keys of the same object.
fn find_parts(schema: &Value, is_part: bool, parts: &mut BTreeSet<String>) {
    match schema {
        Value::Object(keys) => {
            if let Some(name) = keys.get("$ref").and_then(Value::as_str).filter(|_| is_part) {
                parts.insert(name.to_owned());
            }
            let has_properties = keys.contains_key("properties");
            for (keyword, inner) in keys {
                find_parts(inner, combines(keyword) && (is_part || has_properties), parts);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find_parts(item, is_part, parts)),
        _ => {}
    }
}

fn close_below(schema: &mut Value, is_part: bool, parts: &BTreeSet<String>) {
    let Some(keys) = schema.as_object_mut() else { return };
    let has_properties = keys.contains_key("properties");
    if has_properties && !is_part && !keys.contains_key("additionalProperties") {
        keys.insert("unevaluatedProperties".to_owned(), false.into());
    }
    for (keyword, value) in keys {
        match (keyword.as_str(), value) {
            (keyword, Value::Array(inner)) if combines(keyword) => {
                inner.iter_mut().for_each(|inner| close_below(inner, is_part || has_properties, parts));
            }
            ("prefixItems", Value::Array(items)) => items.iter_mut().for_each(|item| close_below(item, false, parts)),
            ("$defs", Value::Object(inner)) => {
                for (name, inner) in inner {
                    close_below(inner, parts.contains(&format!("#/$defs/{name}")), parts);
                }
            }
            ("properties" | "patternProperties", Value::Object(inner)) => {
                inner.values_mut().for_each(|inner| close_below(inner, false, parts));
            }
            ("items" | "additionalProperties", value) => close_below(value, false, parts),
            _ => {}
        }
    }
}

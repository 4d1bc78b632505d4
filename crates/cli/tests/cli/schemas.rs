//! The published schemas of JSON outputs: they are current, documented, and refuse other documents.

use std::{collections::BTreeSet, fs, path::PathBuf};

use boon::{Compiler, SchemaIndex, Schemas};
use proptest::{
    collection::vec,
    prelude::any,
    test_runner::{Config, TestCaseError, TestRunner},
};
use serde_json::{Map, Value, json};

use super::lab::Lab;

/// Kinds of `senesce schema --of` that are inputs, or Markdown.
const INPUTS: [&str; 4] = ["plan", "suite", "personality", "metrics"];
/// Formats of other programs: they have no version of this project.
const FOREIGN: [&str; 2] = ["bmf", "small-is-better"];

/// Reads a JSON output of this kind. Fails unless it fits the published schema, without a key that
/// the schema does not describe.
#[track_caller]
pub fn read_json(kind: &str, text: &str) -> Value {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{kind}: {error}: {text}"));
    check_json(kind, &value);
    value
}

/// Fails unless the value fits the published schema of this kind, as [`read_json`] does.
#[track_caller]
pub fn check_json(kind: &str, value: &Value) {
    let mut schema = published(kind);
    close(&mut schema, false);
    if let Err(problem) = Checker::of(schema).check(value) {
        panic!("the output is not of the schema {kind}: {problem}");
    }
}

fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas"))
}

fn published(kind: &str) -> Value {
    let path = directory().join(format!("{kind}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// A compiled schema.
struct Checker {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Checker {
    fn of(schema: Value) -> Self {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("file:///schema.json", schema).unwrap();
        let index = compiler.compile("file:///schema.json", &mut schemas).unwrap();
        Self { schemas, index }
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        self.schemas.validate(value, self.index).map_err(|error| error.to_string())
    }
}

/// Makes a schema refuse keys that it does not describe. `is_part`: whether the schema around this
/// one describes further keys of the same object.
fn close(schema: &mut Value, is_part: bool) {
    let Some(keys) = schema.as_object_mut() else { return };
    let has_properties = keys.contains_key("properties");
    if has_properties && !is_part && !keys.contains_key("additionalProperties") {
        keys.insert("unevaluatedProperties".to_owned(), false.into());
    }
    for (key, value) in keys {
        match (key.as_str(), value) {
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                parts.iter_mut().for_each(|part| close(part, is_part || has_properties));
            }
            ("prefixItems", Value::Array(items)) => items.iter_mut().for_each(|item| close(item, false)),
            ("properties" | "patternProperties" | "$defs", Value::Object(inner)) => {
                inner.values_mut().for_each(|inner| close(inner, false));
            }
            ("items" | "additionalProperties", value) => close(value, false),
            _ => {}
        }
    }
}

/// The kinds of outputs that the program names.
fn kinds() -> Vec<String> {
    let said = Lab::new().run(["schema", "--of", "nonsense"]);
    said.refused(2, &["nonsense", "possible values"]);
    let (_, list) = said.stderr.split_once("possible values: ").unwrap();
    let (list, _) = list.split_once(']').unwrap();
    let all = list.split(',').map(|kind| kind.trim().to_owned());
    all.filter(|kind| !INPUTS.contains(&kind.as_str())).collect()
}

#[test]
fn published_schemas_are_those_of_the_code() {
    let lab = Lab::new();
    let mut old = Vec::new();
    for kind in kinds() {
        let printed = lab.run(["schema", "--of", &kind]).good().stdout;
        let path = directory().join(format!("{kind}.json"));
        if fs::read_to_string(&path).unwrap_or_default() != printed {
            old.push(format!("senesce schema --of {kind} > docs/schemas/{kind}.json"));
        }
    }
    assert!(old.is_empty(), "old schemas; run:\n{}", old.join("\n"));
    let files = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let expected: BTreeSet<String> = kinds().iter().map(|kind| format!("{kind}.json")).collect();
    assert_eq!(files.collect::<BTreeSet<String>>(), expected);
}

#[test]
fn every_schema_has_a_version_and_is_documented() {
    let page = directory().join("../reference/json.md");
    let page = fs::read_to_string(page).unwrap();
    for kind in kinds() {
        let schema = published(&kind);
        let title = schema["title"].as_str().unwrap();
        let row = page.lines().find(|line| line.contains(&format!("(../schemas/{kind}.json)")));
        let row = row.unwrap_or_else(|| panic!("{kind} is not in docs/reference/json.md"));
        if FOREIGN.contains(&kind.as_str()) {
            continue;
        }
        assert!(row.contains(&format!("`{title}`")), "{row}: its version is {title}");
        let is_fixed = |key: &str| schema.pointer(key).is_some_and(|version| version == title);
        let places =
            ["/properties/schema/const", "/properties/format/const", "/properties/run/properties/format/const"];
        assert!(places.into_iter().any(is_fixed), "{kind} has no key for its version {title}");
    }
}

#[test]
fn schemas_refuse_missing_keys_and_wrong_types() {
    for kind in kinds() {
        let root = published(&kind);
        let checker = Checker::of(root.clone());
        let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
        let refuses = |(choices, place): (Vec<u8>, usize)| {
            let mut sampler = Sampler { root: &root, choices: choices.into_iter(), faults: Vec::new() };
            let sample = sampler.sample(&root, "", 0);
            checker.check(&sample).map_err(|problem| TestCaseError::fail(format!("{sample}: {problem}")))?;
            let fault = &sampler.faults[place % sampler.faults.len()];
            let broken = fault.of(sample);
            match checker.check(&broken) {
                Ok(()) => Err(TestCaseError::fail(format!("{fault:?} is not refused: {broken}"))),
                Err(_) => Ok(()),
            }
        };
        let strategy = (vec(any::<u8>(), 200), any::<usize>());
        TestRunner::new(config).run(&strategy, refuses).unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}

/// A change of a valid document that makes it invalid.
#[derive(Debug)]
enum Fault {
    /// A required key of the object at this pointer is missing.
    Missing(String, String),
    /// The value at this pointer is replaced by this one.
    Replaced(String, Value),
}

impl Fault {
    fn of(&self, mut document: Value) -> Value {
        match self {
            Self::Missing(object, key) => {
                document.pointer_mut(object).and_then(Value::as_object_mut).unwrap().remove(key).unwrap();
            }
            Self::Replaced(pointer, value) => *document.pointer_mut(pointer).unwrap() = value.clone(),
        }
        document
    }
}

/// Makes a document of a schema, and lists its possible faults.
struct Sampler<'a> {
    root: &'a Value,
    choices: std::vec::IntoIter<u8>,
    faults: Vec<Fault>,
}

impl<'a> Sampler<'a> {
    /// A number below `end`; 0 once the choices are used up.
    fn choose(&mut self, end: usize) -> usize {
        self.choices.next().map_or(0, usize::from) % end
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(name) => self.resolve(self.root.pointer(name.strip_prefix('#').unwrap()).unwrap()),
            None => schema,
        }
    }

    /// The types of a schema; `None` if it allows every value.
    fn types(&self, schema: &'a Value) -> Option<BTreeSet<&'a str>> {
        let schema = self.resolve(schema);
        if let Some(parts) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
            return parts.iter().map(|part| self.types(part)).try_fold(BTreeSet::new(), |mut all, types| {
                all.extend(types?);
                Some(all)
            });
        }
        match &schema["type"] {
            Value::String(one) => Some(BTreeSet::from([one.as_str()])),
            Value::Array(several) => Some(several.iter().filter_map(Value::as_str).collect()),
            _ => None,
        }
    }

    /// Adds the fault of a value that has no type of this schema.
    fn add_wrong_type(&mut self, schema: &'a Value, pointer: &str) {
        let Some(types) = self.types(schema) else { return };
        let wrong = [
            (json!(null), &["null"][..]),
            (json!("text"), &["string"]),
            (json!(7.5), &["number"]),
            (json!(true), &["boolean"]),
            (json!([[]]), &["array"]),
            (json!({ "x": {} }), &["object"]),
        ];
        for (value, of) in wrong {
            if !of.iter().any(|name| types.contains(name)) {
                self.faults.push(Fault::Replaced(pointer.to_owned(), value));
            }
        }
    }

    fn sample(&mut self, schema: &'a Value, pointer: &str, depth: usize) -> Value {
        self.add_wrong_type(schema, pointer);
        self.fill(schema, pointer, depth)
    }

    fn fill(&mut self, schema: &'a Value, pointer: &str, depth: usize) -> Value {
        let schema = self.resolve(schema);
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(values) = schema["enum"].as_array() {
            return values[self.choose(values.len())].clone();
        }
        if let Some(parts) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
            let part = &parts[self.choose(parts.len())];
            let mut value = self.fill(part, pointer, depth);
            if let (Some(_), Value::Object(keys)) = (schema.get("properties"), &mut value) {
                keys.extend(self.fill_keys(schema, pointer, depth));
            }
            return value;
        }
        let types: Vec<&str> = self.types(schema).into_iter().flatten().collect();
        match types.get(self.choose(types.len().max(1))) {
            Some(&"object") => Value::Object(self.fill_keys(schema, pointer, depth)),
            Some(&"array") => self.fill_items(schema, pointer, depth),
            Some(&"string") => json!("text"),
            Some(&"boolean") => json!(self.choose(2) == 1),
            Some(&"integer") => json!(self.choose(200)),
            Some(&"number") => json!(self.choose(200) as f64 / 8.0),
            Some(&"null") => Value::Null,
            _ => json!({}),
        }
    }

    fn fill_keys(&mut self, schema: &'a Value, pointer: &str, depth: usize) -> Map<String, Value> {
        let mut keys = Map::new();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.contains(&key.as_str());
            if is_required || self.choose(2) == 1 {
                keys.insert(key.clone(), self.sample(inner, &format!("{pointer}/{key}"), depth + 1));
            }
            if is_required {
                self.faults.push(Fault::Missing(pointer.to_owned(), key.clone()));
            }
        }
        let further = schema["patternProperties"].as_object().and_then(|patterns| patterns.values().next());
        let further = further.or(schema.get("additionalProperties").filter(|inner| inner.is_object()));
        if let Some(inner) = further.filter(|_| self.choose(2) == 1) {
            keys.insert("7".to_owned(), self.sample(inner, &format!("{pointer}/7"), depth + 1));
        }
        keys
    }

    fn fill_items(&mut self, schema: &'a Value, pointer: &str, depth: usize) -> Value {
        if let Some(items) = schema["prefixItems"].as_array() {
            let items = items.iter().enumerate();
            return items.map(|(at, item)| self.sample(item, &format!("{pointer}/{at}"), depth + 1)).collect();
        }
        let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
        let most = schema["maxItems"].as_u64().unwrap_or(2) as usize;
        let count = if least == most { least } else { least + self.choose(most - least + 1) };
        (0..count).map(|at| self.sample(&schema["items"], &format!("{pointer}/{at}"), depth + 1)).collect()
    }
}

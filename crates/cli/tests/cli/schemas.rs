//! The published schemas of JSON outputs are current and documented, and refuse other documents.

use std::{collections::BTreeSet, fs};

use proptest::{
    collection::vec,
    prelude::any,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner},
};
use senesce_testkit::{FOREIGN_SCHEMAS, SchemaChecker, check_document, read_schema, schemas_directory};
use serde_json::{Map, Value, json};

use super::lab::Lab;

/// Kinds of `senesce schema --of` that are inputs, or Markdown.
const INPUTS: [&str; 5] = ["plan", "suite", "personality", "grid", "metrics"];

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
        let path = schemas_directory().join(format!("{kind}.json"));
        if fs::read_to_string(&path).unwrap_or_default() != printed {
            old.push(format!("senesce schema --of {kind} > docs/schemas/{kind}.json"));
        }
    }
    assert!(old.is_empty(), "the published schemas are not current; run:\n{}", old.join("\n"));
    let files =
        fs::read_dir(schemas_directory()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let expected: BTreeSet<String> = kinds().iter().map(|kind| format!("{kind}.json")).collect();
    assert_eq!(files.collect::<BTreeSet<String>>(), expected);
}

#[test]
fn every_schema_has_a_version_and_is_documented() {
    let page = schemas_directory().join("../reference/json.md");
    let page = fs::read_to_string(page).unwrap();
    for kind in kinds() {
        let schema = read_schema(&kind);
        let title = schema["title"].as_str().unwrap();
        let row = page.lines().find(|line| line.contains(&format!("(../schemas/{kind}.json)")));
        let row = row.unwrap_or_else(|| panic!("{kind} is not in docs/reference/json.md"));
        if FOREIGN_SCHEMAS.contains(&kind.as_str()) {
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
fn outputs_without_a_volume_fit_their_schemas() {
    let lab = Lab::new();
    fs::create_dir(lab.path("tree")).unwrap();
    fs::write(lab.path("tree/file"), [7; 9000]).unwrap();
    // `Lab::run` checks the output.
    for (command, version) in [
        (&["grep", "tree", "--json"][..], "senesce-grep/1"),
        (&["device", "list", "--json"], "senesce-devices/1"),
        (&["kernels", "--json"], "senesce-kernels/1"),
        (&["profile", "diff", "agrawal", "wang_os", "--json"], "senesce-profile-diff/1"),
    ] {
        let printed = lab.run(command).good().stdout;
        assert!(printed.contains(&format!("\"{version}\"")), "{printed}");
    }
}

#[test]
fn outputs_of_a_garden_fit_their_schemas() {
    let lab = Lab::new();
    lab.run(["fs", "mkfs", "garden", "g", "--size", "64MiB"]).good();
    // `Lab::run` checks the output.
    for command in [
        "fs snapshot create g main monday",
        "fs snapshot list g main",
        "fs diff g main monday",
        "fs clone g main monday try",
        "fs volume list g",
        "fs volume delete g try",
        "fs snapshot restore g main monday",
        "fs snapshot delete g main monday",
        "fs dedup g main",
        "fs recompact g main",
        "fs defrag g",
        "fs clean g",
        "fs scrub g",
        "fs rebuild g",
        "fs check g",
        "fs check g --repair",
        "fs stat g",
        "fs dump g label",
    ] {
        let printed = lab.run(command.split(' ').chain(["--json"])).good().stdout;
        assert!(printed.contains("\"format\":\"senesce-fs-"), "{command}: {printed}");
    }
}

#[test]
#[should_panic(expected = "/further")]
fn undescribed_keys_of_an_output_are_found() {
    check_document(&json!({ "schema": "senesce-devices/1", "devices": [], "further": 1 }));
}

#[test]
#[should_panic(expected = "no schema is published for \"senesce-devices/9\"")]
fn unknown_versions_of_an_output_are_found() {
    check_document(&json!({ "schema": "senesce-devices/9", "devices": [] }));
}

#[test]
fn schemas_refuse_missing_keys_and_wrong_types() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for kind in kinds() {
        let root = read_schema(&kind);
        let checker = SchemaChecker::of(root.clone());
        let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
        let refuses = |(choices, place): (Vec<u8>, usize)| {
            let mut sampler = Sampler { root: &root, choices: choices.into_iter(), faults: Vec::new() };
            let sample = sampler.sample(&root, "");
            checker.check(&sample).map_err(|problem| TestCaseError::fail(format!("{sample}: {problem}")))?;
            let fault = &sampler.faults[place % sampler.faults.len()];
            let broken = fault.of(sample);
            match checker.check(&broken) {
                Ok(()) => Err(TestCaseError::fail(format!("{fault:?} is not refused: {broken}"))),
                Err(_) => Ok(()),
            }
        };
        let strategy = (vec(any::<u8>(), 200), any::<usize>());
        TestRunner::new_with_rng(config, rng.clone())
            .run(&strategy, refuses)
            .unwrap_or_else(|error| panic!("{kind}: {error}"));
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
    /// A number below `end`. 0 if no choices are left.
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

    fn sample(&mut self, schema: &'a Value, pointer: &str) -> Value {
        self.add_wrong_type(schema, pointer);
        self.fill(schema, pointer)
    }

    fn fill(&mut self, schema: &'a Value, pointer: &str) -> Value {
        let schema = self.resolve(schema);
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(values) = schema["enum"].as_array() {
            return values[self.choose(values.len())].clone();
        }
        if let Some(parts) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
            // The sampler makes no texts with a pattern: it uses the part that allows a number.
            let parts: Vec<&Value> = parts.iter().filter(|part| part.get("pattern").is_none()).collect();
            let part = parts[self.choose(parts.len())];
            let mut value = self.fill(part, pointer);
            if let (Some(_), Value::Object(keys)) = (schema.get("properties"), &mut value) {
                keys.extend(self.fill_keys(schema, pointer));
            }
            return value;
        }
        let types: Vec<&str> = self.types(schema).into_iter().flatten().collect();
        match types.get(self.choose(types.len().max(1))) {
            Some(&"object") => Value::Object(self.fill_keys(schema, pointer)),
            Some(&"array") => self.fill_items(schema, pointer),
            Some(&"string") => json!("text"),
            Some(&"boolean") => json!(self.choose(2) == 1),
            Some(&"integer") => json!(schema["minimum"].as_u64().unwrap_or(0) + self.choose(50) as u64),
            Some(&"number") => json!(self.choose(200) as f64 / 8.0),
            Some(&"null") => Value::Null,
            _ => json!({}),
        }
    }

    fn fill_keys(&mut self, schema: &'a Value, pointer: &str) -> Map<String, Value> {
        let mut keys = Map::new();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.contains(&key.as_str());
            if is_required || self.choose(2) == 1 {
                keys.insert(key.clone(), self.sample(inner, &format!("{pointer}/{key}")));
            }
            if is_required {
                self.faults.push(Fault::Missing(pointer.to_owned(), key.clone()));
            }
        }
        let further = schema["patternProperties"].as_object().and_then(|patterns| patterns.values().next());
        let further = further.or(schema.get("additionalProperties").filter(|inner| inner.is_object()));
        if let Some(inner) = further.filter(|_| self.choose(2) == 1) {
            keys.insert("7".to_owned(), self.sample(inner, &format!("{pointer}/7")));
        }
        keys
    }

    fn fill_items(&mut self, schema: &'a Value, pointer: &str) -> Value {
        if let Some(items) = schema["prefixItems"].as_array() {
            let items = items.iter().enumerate();
            return items.map(|(at, item)| self.sample(item, &format!("{pointer}/{at}"))).collect();
        }
        let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
        let most = schema["maxItems"].as_u64().unwrap_or(2) as usize;
        let count = if least == most { least } else { least + self.choose(most - least + 1) };
        (0..count).map(|at| self.sample(&schema["items"], &format!("{pointer}/{at}"))).collect()
    }
}

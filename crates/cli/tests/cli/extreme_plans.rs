//! Each key of the plan's schema with values that no author of a plan would write: refused or
//! shown, in bounded memory.

use std::{
    fmt::Write,
    fs,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use senesce_core::is_hazard;
use serde_json::{Map, Value, json};

use super::lab::{Done, Lab, SENESCE};

const SCHEMA: &str = include_str!("../../../../docs/plan.schema.json");

/// TOML text of values, beside a deep array and a long text.
const VALUES: [&str; 6] = [
    "nan",
    "-1",
    "9223372036854775807",
    r#""a\u0000\u001b[2J\u202e""#,
    r#""99999999999TiB""#,
    "[[0, {}], 9007199254740993]",
];

/// What one program may allocate, bytes: an aborted one exits with no code.
const MEMORY: &str = "--as=2147483648";

/// Adds the paths of all keys of a part of the schema: names and, for what is in a list, an empty
/// name.
fn add_keys(schema: &Value, part: &Value, path: &[String], keys: &mut Vec<Vec<String>>) {
    let below = |name: &str| [path, &[name.to_owned()]].concat();
    if let Some(name) = part["$ref"].as_str().and_then(|to| to.rsplit('/').next()) {
        return add_keys(schema, &schema["$defs"][name], path, keys);
    }
    for list in ["oneOf", "anyOf", "allOf"] {
        part[list].as_array().into_iter().flatten().for_each(|choice| add_keys(schema, choice, path, keys));
    }
    for (name, part) in part["properties"].as_object().into_iter().flatten() {
        keys.push(below(name));
        add_keys(schema, part, &below(name), keys);
    }
    if part["items"].is_object() {
        keys.push(below(""));
        add_keys(schema, &part["items"], &below(""), keys);
    }
}

/// Puts a text of TOML at a path, in place of what is there.
fn put(at: &mut Value, path: &[String], text: &str) {
    let Some((name, rest)) = path.split_first() else {
        *at = json!({ "": text });
        return;
    };
    if name.is_empty() {
        if at.as_array().is_none_or(Vec::is_empty) {
            *at = json!([{}]);
        }
        put(&mut at[0], rest, text);
    } else {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        put(&mut at[name.as_str()], rest, text);
    }
}

/// A value as TOML; a table whose only name is empty is text of TOML.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(table) if table.len() == 1 && table.contains_key("") => table[""].as_str().unwrap().to_owned(),
        Value::Object(table) => {
            let pairs: Vec<String> = table.iter().map(|(name, value)| format!("{name} = {}", toml(value))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(toml).collect::<Vec<_>>().join(", ")),
        plain => plain.to_string(),
    }
}

#[test]
fn extreme_plan_values_are_refused_or_previewed() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut keys = Vec::new();
    add_keys(&schema, &schema, &[], &mut keys);
    keys.sort();
    keys.dedup();
    assert!(keys.len() > 80, "{keys:?}");
    let base = json!({
        "format": "senesce-plan/1", "name": "n",
        "history": { "synthetic": { "model": "linux-like", "files": 500, "commits": 2 }, "pulls": 2 },
        "workload": { "edition": "single" }, "measure": { "every": 2 },
        "volumes": { "empty": "64MiB", "unaged": "64MiB" }, "file_system": [{ "kind": "ext4" }],
    });
    let (deep, long) = (["[".repeat(3000), "]".repeat(3000)].concat(), format!("\"{}\"", "x".repeat(100_000)));
    let values: Vec<&str> = VALUES.into_iter().chain([deep.as_str(), &long]).collect();
    let lab = Lab::new();
    let (next, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let attack = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(key) = keys.get(number / values.len()) else { return };
            let mut plan = base.clone();
            put(&mut plan, key, values[number % values.len()]);
            let text = plan.as_object().unwrap().iter().fold(String::new(), |mut text, (name, value)| {
                let _ = writeln!(text, "{name} = {}", toml(value));
                text
            });
            let path = lab.path(format!("{number}.toml"));
            fs::write(&path, &text).unwrap();
            let mut command = Command::new("prlimit");
            command.args([MEMORY, "--core=0", "--", SENESCE, "--quiet", "run", "--dry-run", "--out", "absent/out"]);
            lab.confine(command.arg(&path));
            let done = Done::of(command.output().unwrap());
            let shown = format!("{}: {}", key.join("."), &text[..text.len().min(600)]);
            assert!((0..=3).contains(&done.code), "{} {shown}\n{}", done.code, done.stderr);
            for said in [&done.stdout, &done.stderr] {
                assert!(!said.contains("internal error") && !said.contains("panicked"), "{shown}\n{said}");
                assert!(!said.chars().any(|found| found != '\n' && is_hazard(found)), "{shown}\n{said:?}");
            }
            refused.fetch_add(usize::from(done.code != 0), Ordering::Relaxed);
            fs::remove_file(path).unwrap();
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(attack))));
    let (tried, refused) = (keys.len() * values.len(), refused.into_inner());
    // A base that is refused itself would let no value through.
    assert!(refused > tried / 2 && refused < tried, "{refused} of {tried}");
}

//! The reference of plan keys in Markdown. docs/reference/plan-keys.md is this text.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde_json::Value;

use super::Plan;

/// Every key of a plan with its values, default and meaning. Generated from the schema.
pub fn plan_reference() -> String {
    reference_of::<Plan>(
        "# Keys of a plan\n\n\
         This page is for users who write a plan and look up a key. It is generated: `senesce schema --markdown`. \
         [Plan files](plans.md) says what belongs together.\n",
    )
}

fn reference_of<T: JsonSchema>(head: &str) -> String {
    let schema = schemars::schema_for!(T).to_value();
    let (mut sections, mut links) = (String::new(), Vec::new());
    let mut open = vec![(String::new(), &schema)];
    while let Some((path, object)) = open.pop() {
        let name = if path.is_empty() { "The plan".to_owned() } else { format!("`{path}`") };
        let meaning = if path.is_empty() { "" } else { object["description"].as_str().unwrap_or_default() };
        links.push(format!("[{name}](#{})", anchor_of(&name)));
        write_section(&mut sections, &name, meaning, &schema, object);
        // Sections follow in the order of the rows.
        for (key, value) in object["properties"].as_object().into_iter().flatten().rev() {
            let (inner, is_list) = match value["items"].is_object() {
                true => (resolve(&schema, &value["items"]), true),
                false => (resolve(&schema, value), false),
            };
            if inner["properties"].is_object() {
                let dot = if path.is_empty() { "" } else { "." };
                open.push((format!("{path}{dot}{key}{}", if is_list { "[]" } else { "" }), inner));
            }
        }
    }
    format!("{head}\nContents: {}\n{sections}", links.join(", "))
}

/// The anchor of a heading, by the rule of GitHub.
fn anchor_of(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn write_section(text: &mut String, name: &str, meaning: &str, schema: &Value, object: &Value) {
    let space = if meaning.is_empty() { "" } else { "\n\n" };
    let _ = write!(
        text,
        "\n## {name}\n\n{}{space}| key | values | default | meaning |\n|---|---|---|---|\n",
        cell(meaning)
    );
    let required: Vec<&str> = object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (key, value) in object["properties"].as_object().into_iter().flatten() {
        let default = match (&value["default"], required.contains(&key.as_str())) {
            (_, true) => "required".to_owned(),
            (Value::Null | Value::Object(_), _) => String::new(),
            (default, _) => format!("`{default}`"),
        };
        let meaning = value["description"].as_str().unwrap_or_default();
        let _ = writeln!(text, "| `{key}` | {} | {default} | {} |", values(schema, value), cell(meaning));
    }
}

/// The definition that a value refers to, also through `anyOf` with null.
fn resolve<'a>(schema: &'a Value, value: &'a Value) -> &'a Value {
    if let Some(name) = value["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return &schema["$defs"][name];
    }
    let alternatives: Vec<&Value> =
        value["anyOf"].as_array().into_iter().flatten().filter(|inner| inner["type"] != "null").collect();
    match alternatives[..] {
        [only] => resolve(schema, only),
        _ => value,
    }
}

/// The values that a key accepts.
fn values(schema: &Value, value: &Value) -> String {
    let value = resolve(schema, value);
    let choices: Vec<&Value> = ["oneOf", "anyOf"].iter().filter_map(|key| value[*key].as_array()).flatten().collect();
    if !choices.is_empty() {
        let mut names: Vec<String> = choices.iter().map(|choice| values(schema, choice)).collect();
        names.dedup();
        return names.join(", ");
    }
    if let Some(names) = value["enum"].as_array() {
        return names
            .iter()
            .filter(|name| !name.is_null())
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    if !value["const"].is_null() {
        return format!("`{}`", value["const"]);
    }
    if value["pattern"].is_string() {
        return "size (`5GiB`)".to_owned();
    }
    let kind = value["type"].as_str().or_else(|| value["type"][0].as_str()).unwrap_or_default();
    match kind {
        "array" => format!("list of {}", values(schema, &value["items"])),
        "boolean" => "`true`, `false`".to_owned(),
        "string" => "text".to_owned(),
        "object" => "table".to_owned(),
        other => other.to_owned(),
    }
}

/// Escapes a text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    #[test]
    fn reference_of_plan_keys_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/plan-keys.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        let is_current = page == super::plan_reference();
        assert!(is_current, "old; run: senesce schema --markdown > docs/reference/plan-keys.md");
    }
}

//! The versions and JSON schemas of the JSON outputs of both programs.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::Value;

/// A document of this version, with its keys in alphabetical order.
pub fn document(version: &'static str, body: impl Serialize) -> Value {
    serde_json::to_value(Versioned::new(version, body)).expect("documents are plain structures with text keys")
}

/// A document with the key `schema`, which names its version.
#[derive(Serialize, JsonSchema)]
pub struct Versioned<T> {
    /// The name of the schema and its version.
    schema: &'static str,
    #[serde(flatten)]
    body: T,
}

impl<T> Versioned<T> {
    /// A document of this version.
    pub fn new(version: &'static str, body: T) -> Self {
        Self { schema: version, body }
    }
}

/// A document with the key `format`, which names its version.
#[derive(Serialize, JsonSchema)]
pub struct Formatted<T> {
    /// The name of the schema and its version.
    format: &'static str,
    #[serde(flatten)]
    body: T,
}

/// The JSON schema (draft 2020-12) of documents of this version that have the shape of `T`.
///
/// `T` has a key `schema` or `format`, or its version is in a part of it.
pub fn schema_of<T: JsonSchema>(version: &str) -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    clarify(&mut schema);
    name(&mut schema, version);
    schema
}

/// Makes `version` the title of a schema, and the only value of its key `schema` or `format`.
fn name(schema: &mut Value, version: &str) {
    schema["title"] = version.into();
    for key in ["schema", "format"] {
        if let Some(key) = schema.pointer_mut(&format!("/properties/{key}")).and_then(Value::as_object_mut) {
            key.insert("const".to_owned(), version.into());
        }
    }
}

/// Replaces terms of Rust in descriptions by those of JSON. Descriptions are comments of the code.
fn clarify(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            for (key, value) in keys {
                match value {
                    Value::String(text) if key == "description" => *text = clarify_text(text),
                    value => clarify(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(clarify),
        _ => {}
    }
}

fn clarify_text(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
    let text = paragraphs.collect::<Vec<_>>().join("\n\n");
    // Brackets mark links of the Rust documentation.
    let text = text.replace("[`", "`").replace("`]", "`").replace(". `None`", ". Null").replace("`None`", "null");
    match text.strip_prefix("null") {
        Some(rest) => format!("Null{rest}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of [`Item`], one
    /// after the other. `None` is not one.
    ///
    /// It ends with `None`.
    #[derive(Serialize, JsonSchema)]
    struct List {
        items: Option<Vec<Item>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }

    #[derive(Serialize, JsonSchema)]
    struct Item {
        bytes: u64,
    }

    #[test]
    fn printed_keys_are_required_and_the_version_is_fixed() {
        let schema = schema_of::<Versioned<List>>("senesce-list/1");
        assert_eq!(schema["title"], "senesce-list/1");
        assert_eq!(schema["properties"]["schema"]["const"], "senesce-list/1");
        assert_eq!(schema["required"], serde_json::json!(["schema", "items"]));
        let list = document("senesce-list/1", List { items: Some(vec![Item { bytes: 3 }]), note: None });
        assert_eq!(list.to_string(), r#"{"items":[{"bytes":3}],"schema":"senesce-list/1"}"#);
    }

    #[test]
    fn descriptions_have_terms_of_json() {
        let schema = schema_of::<List>("senesce-list/1");
        assert_eq!(
            schema["description"],
            "A list of `Item`, one after the other. Null is not one.\n\nIt ends with null."
        );
    }
}

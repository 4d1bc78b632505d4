//! The JSON schema of plan files, for editors.

use super::Plan;

/// The schema as pretty JSON, with a final newline.
pub fn plan_schema_json() -> String {
    let schema = schemars::schema_for!(Plan);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    /// `senesce schema` prints the file.
    #[test]
    fn the_published_schema_is_that_of_the_code() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plan.schema.json");
        let published = std::fs::read_to_string(path).unwrap_or_default();
        assert!(published == super::plan_schema_json(), "old; run: senesce schema > docs/plan.schema.json");
    }
}

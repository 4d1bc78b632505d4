//! Exports results for other programs.

use crate::results::Results;
use crate::schema::{Table, TableRow, Value, columns_of, values_of};

impl Results {
    /// Returns one table as CSV (RFC 4180, with a header line). A missing number is an empty field.
    ///
    /// A text that a spreadsheet would execute as a formula gets a leading apostrophe. Such a text
    /// starts with `=`, `+`, `-`, `@`, a tab or a line break, and is not a number. Parquet and JSON
    /// have every text unchanged.
    pub fn export_csv(&self, table: Table) -> String {
        match table {
            Table::Cells => csv(&self.cells),
            Table::Grep => csv(&self.grep),
            Table::Load => csv(&self.load),
            Table::Layout => csv(&self.layout),
            Table::Modelled => csv(&self.modelled),
            Table::Trace => csv(&self.trace),
            Table::TraceBuckets => csv(&self.trace_buckets),
            Table::Maps => csv(&self.maps),
            Table::FreeSpace => csv(&self.free_space),
            Table::Aging => csv(&self.aging),
            Table::Latency => csv(&self.latency),
            Table::Steps => csv(&self.steps),
            Table::Cures => csv(&self.cures),
            Table::Circumstances => csv(&self.circumstances),
        }
    }

    /// Returns everything as one JSON object: `run` (with `format`) and an array per table. A
    /// missing number is null.
    pub fn export_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("rows are plain structures with text keys");
        json.push('\n');
        json
    }

    /// Sorts every table by its key, then by the columns that distinguish its rows.
    pub(crate) fn sort(&mut self) {
        self.cells.sort_by(|a, b| a.key.cmp(&b.key));
        self.grep.sort_by(|a, b| (&a.key, a.repetition).cmp(&(&b.key, b.repetition)));
        self.load.sort_by(|a, b| (&a.key, a.repetition).cmp(&(&b.key, b.repetition)));
        self.layout.sort_by(|a, b| a.key.cmp(&b.key));
        self.modelled.sort_by(|a, b| (&a.key, &a.device, &a.method).cmp(&(&b.key, &b.device, &b.method)));
        self.trace.sort_by(|a, b| (&a.key, &a.access).cmp(&(&b.key, &b.access)));
        self.trace_buckets.sort_by(|a, b| {
            let place = |row: &crate::TraceBucketRow| (row.access.clone(), row.histogram.clone(), row.bucket_bytes);
            a.key.cmp(&b.key).then_with(|| place(a).cmp(&place(b)))
        });
        self.maps.sort_by(|a, b| (&a.key, a.cell).cmp(&(&b.key, b.cell)));
        self.free_space.sort_by(|a, b| (&a.key, a.bucket_bytes).cmp(&(&b.key, b.bucket_bytes)));
        self.aging.sort_by(|a, b| a.key.cmp(&b.key));
        self.latency.sort_by(|a, b| (&a.key, &a.operation).cmp(&(&b.key, &b.operation)));
        self.steps.sort_by(|a, b| (&a.key, a.step).cmp(&(&b.key, b.step)));
        self.cures.sort_by(|a, b| (&a.key, &a.device).cmp(&(&b.key, &b.device)));
        self.circumstances.sort_by(|a, b| (&a.arm, &a.key).cmp(&(&b.arm, &b.key)));
    }
}

fn csv<R: TableRow>(rows: &[R]) -> String {
    let mut text = columns_of::<R>().iter().map(|column| column.name).collect::<Vec<_>>().join(",");
    text.push_str("\r\n");
    for row in rows {
        let fields: Vec<_> = values_of(row).iter().map(csv_field).collect();
        text.push_str(&fields.join(","));
        text.push_str("\r\n");
    }
    text
}

fn csv_field(value: &Value) -> String {
    match value {
        Value::OptionalText(None) => String::new(),
        Value::OptionalText(Some(text)) => csv_text(text),
        Value::Text(text) => csv_text(text),
        Value::UInt64(number) | Value::OptionalUInt64(Some(number)) => number.to_string(),
        Value::OptionalUInt64(None) => String::new(),
        Value::Float64(number) if number.is_nan() => String::new(),
        Value::Float64(number) => number.to_string(),
        Value::Boolean(truth) => truth.to_string(),
    }
}

/// The tables contain commit messages and file names from foreign sources, which must not become
/// formulas.
fn csv_text(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) && text.parse::<f64>().is_err();
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::csv_text;

    #[test]
    fn formulas_become_text() {
        for (text, field) in [
            ("=1+1", "'=1+1"),
            ("=HYPERLINK(\"x\",\"y\")", "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\""),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-m 0", "'-m 0"),
            ("\t=1", "'\t=1"),
            ("\n=1", "\"'\n=1\""),
            ("-1.5", "-1.5"),
            ("plain, text", "\"plain, text\""),
            ("a=b", "a=b"),
        ] {
            assert_eq!(csv_text(text), field, "{text:?}");
        }
    }
}

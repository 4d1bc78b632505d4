//! Dumps: structures on devices as values (fields, a table, parts), shown as indented text.

mod layout;

use std::fmt;

pub use layout::{Field, Form, field, read_fields, sum_text};

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpValue {
    /// A number.
    Number(u64),
    /// Text: words, a name, a checksum.
    Text(String),
    /// No value: a hole, or an unknown place.
    None,
}

/// Rows with the same columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpTable {
    /// The names of the columns.
    pub columns: Vec<&'static str>,
    /// The rows, each with a value for every column.
    pub rows: Vec<Vec<DumpValue>>,
    /// The number of further rows.
    pub more: u64,
}

/// A structure on the devices, field by field, with the names of the engine's format document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// The structure and its place.
    pub title: String,
    /// The fields, in the order of their bytes.
    pub fields: Vec<(&'static str, DumpValue)>,
    /// The repeated parts.
    pub table: Option<DumpTable>,
    /// The faults. Readable values are in the fields nevertheless.
    pub wrong: Vec<String>,
    /// The parts of the structure.
    pub parts: Vec<Dump>,
}

impl Dump {
    /// An empty dump.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Adds a field.
    pub fn field(&mut self, word: &'static str, value: impl Into<DumpValue>) {
        self.fields.push((word, value.into()));
    }

    /// Adds a fault.
    pub fn wrong(&mut self, what: impl ToString) {
        self.wrong.push(what.to_string());
    }

    /// Whether the structure and its parts have no faults.
    pub fn is_sound(&self) -> bool {
        self.wrong.is_empty() && self.parts.iter().all(Self::is_sound)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let pad = "  ".repeat(depth);
        writeln!(f, "{pad}{}", self.title)?;
        let width = self.fields.iter().map(|(word, _)| word.chars().count()).max().unwrap_or(0);
        for (word, value) in &self.fields {
            writeln!(f, "{pad}  {word:<width$}  {value}")?;
        }
        for wrong in &self.wrong {
            writeln!(f, "{pad}  WRONG: {wrong}")?;
        }
        if let Some(table) = &self.table {
            table.write(f, &pad)?;
        }
        self.parts.iter().try_for_each(|part| part.write(f, depth + 1))
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl DumpTable {
    /// A table without rows.
    pub fn new(columns: &[&'static str]) -> Self {
        Self { columns: columns.to_vec(), ..Self::default() }
    }

    /// Adds a row, or counts it if the table has `most` rows.
    pub fn push(&mut self, most: u64, row: Vec<DumpValue>) {
        debug_assert_eq!(row.len(), self.columns.len());
        if (self.rows.len() as u64) < most { self.rows.push(row) } else { self.more += 1 }
    }

    /// Numbers are right-aligned, texts left-aligned; the last column is not padded.
    fn write(&self, f: &mut fmt::Formatter<'_>, pad: &str) -> fmt::Result {
        let shown: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect();
        let width = |at: usize| {
            let cells = shown.iter().map(|row| row[at].chars().count());
            cells.max().unwrap_or(0).max(self.columns[at].chars().count())
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let is_text = |at: usize| self.rows.iter().any(|row| matches!(row[at], DumpValue::Text(_)));
        let texts: Vec<bool> = (0..self.columns.len()).map(is_text).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let aligned = cells.zip(&widths).zip(&texts).map(|((cell, &width), is_text)| match is_text {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
            aligned.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        if !self.rows.is_empty() {
            writeln!(f, "{pad}  {}", line(&mut self.columns.iter().copied()))?;
        }
        for row in &shown {
            writeln!(f, "{pad}  {}", line(&mut row.iter().map(String::as_str)))?;
        }
        if self.more > 0 { writeln!(f, "{pad}  and {} more", self.more) } else { Ok(()) }
    }
}

impl fmt::Display for DumpValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::None => f.write_str("–"),
        }
    }
}

impl From<u64> for DumpValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<String> for DumpValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for DumpValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<DumpValue>> From<Option<T>> for DumpValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

/// Bytes that may be a name; bytes that are no text become `\x1b`.
pub fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => bytes.escape_ascii().to_string(),
    }
}

/// Lines of 32 bytes, as `0020  00 11 ...`; rows of zeros are left out.
pub fn hex(bytes: &[u8]) -> DumpTable {
    const ROW: usize = 32;
    let mut table = DumpTable::new(&["at", "bytes"]);
    for (number, row) in bytes.chunks(ROW).enumerate().filter(|(_, row)| row.iter().any(|&byte| byte != 0)) {
        let digits: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        table.rows.push(vec![((number * ROW) as u64).into(), digits.join(" ").into()]);
    }
    table
}

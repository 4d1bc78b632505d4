//! Blocks of pages: which table of which kept run is shown, and how.
//!
//! ```text
//! <!-- run: cure
//! table: cures
//! rows: arm=ext4-senesce|xfs-senesce device=hdd-7.2k
//! label: ext4-senesce = ext4
//! | file system | arm |
//! | before -> after | read_before_seconds -> read_after_seconds | s
//! | gain | read_before_seconds / read_after_seconds |
//! -->
//! ```
//!
//! Several runs (`run: cure cure-lasts`) put their rows into one table, with a column `run`. A cell
//! of another row is `column@role=unaged,pulls=first`. Without columns, the table is shown as it
//! is.

use anyhow::{Context, bail, ensure};

use super::{
    Kept, circumstances,
    table::{Table, count, figure, markdown},
};

/// Labels that hold in all blocks.
const LABELS: [(&str, &str); 5] =
    [("xfs", "XFS"), ("btrfs", "Btrfs"), ("full", "nearly full"), ("empty", "roomy"), ("unaged", "fresh copy")];

/// A block's definition.
#[derive(Debug, Default, PartialEq)]
pub struct Block {
    pub runs: Vec<String>,
    pub table: String,
    rows: Vec<(String, Vec<String>)>,
    labels: Vec<(String, String)>,
    columns: Vec<Column>,
}

/// A column: terms that `->` joins, each a figure or the ratio of two.
#[derive(Debug, PartialEq)]
struct Column {
    heading: String,
    terms: Vec<(Cell, Option<Cell>)>,
    unit: Unit,
}

/// A column's name, and the keys in which the row differs from the shown one.
#[derive(Debug, PartialEq)]
struct Cell {
    column: String,
    elsewhere: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    Plain,
    Percent,
    Seconds,
    MiB,
    Count,
    Text,
}

impl Block {
    /// Reads the lines of a definition, without the marks of the comment.
    pub fn parse(lines: &[&str]) -> anyhow::Result<Self> {
        let mut block = Self { table: "cells".to_owned(), ..Self::default() };
        for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
            if let Some(column) = line.strip_prefix('|') {
                block.columns.push(Column::parse(column).with_context(|| format!("in `{line}`"))?);
                continue;
            }
            let (key, value) = line.split_once(':').with_context(|| format!("`{line}` is no key and no column"))?;
            let value = value.trim();
            match key.trim() {
                "run" => block.runs = value.split_whitespace().map(str::to_owned).collect(),
                "table" => block.table = value.to_owned(),
                "rows" => block.rows = value.split_whitespace().map(parse_filter).collect::<anyhow::Result<_>>()?,
                "label" => {
                    let (from, to) = value.split_once(" = ").with_context(|| format!("`{line}` has no ` = `"))?;
                    block.labels.push((from.trim().to_owned(), to.trim().to_owned()));
                }
                key => bail!("no key `{key}`; there are: run, table, rows, label"),
            }
        }
        ensure!(!block.runs.is_empty(), "no run is named");
        Ok(block)
    }

    /// The Markdown of the block.
    pub fn render(&self, kept: &mut Kept) -> anyhow::Result<String> {
        if self.table == "circumstances" {
            let lines = self.runs.iter().map(|run| circumstances::render(run, kept));
            return lines.collect::<anyhow::Result<_>>();
        }
        let (mut heads, mut rows) = (Vec::new(), Vec::new());
        for run in &self.runs {
            let table = kept.table(run, &self.table)?;
            let all: Vec<Column> = table.heads.iter().map(|head| Column::as_it_is(head)).collect();
            let columns = if self.columns.is_empty() { &all } else { &self.columns };
            heads = columns.iter().map(|column| column.heading.clone()).collect();
            for row in self.select(table).with_context(|| format!("run {run}"))? {
                let shown: anyhow::Result<Vec<String>> =
                    columns.iter().map(|column| self.show(column, run, table, row)).collect();
                rows.push(shown.with_context(|| format!("run {run}, row {}", row.join(" ")))?);
            }
        }
        ensure!(!rows.is_empty(), "no row of {} matches", self.runs.join(", "));
        Ok(markdown(&heads, &rows))
    }

    /// The rows that match, in the order of the values that the filters list.
    fn select<'t>(&self, table: &'t Table) -> anyhow::Result<Vec<&'t Vec<String>>> {
        let mut found: Vec<(Vec<usize>, &Vec<String>)> = table.rows.iter().map(|row| (Vec::new(), row)).collect();
        for (key, values) in &self.rows {
            let column = table.column(key)?;
            let values: Vec<String> = values.iter().map(|value| resolve(table, column, value)).collect();
            for value in &values {
                let is_known = table.rows.iter().any(|row| row[column] == *value);
                ensure!(is_known || self.runs.len() > 1, "no row has {key}={value}");
            }
            found = found
                .into_iter()
                .filter_map(|(mut order, row)| {
                    order.push(values.iter().position(|value| *value == row[column])?);
                    Some((order, row))
                })
                .collect();
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found.into_iter().map(|(_, row)| row).collect())
    }

    fn show(&self, column: &Column, run: &str, table: &Table, row: &[String]) -> anyhow::Result<String> {
        let mut shown = Vec::new();
        for (above, below) in &column.terms {
            let value = above.value(run, table, row)?;
            if column.unit == Unit::Text {
                shown.push(self.label(&value));
                continue;
            }
            let below = below.as_ref().map(|below| below.value(run, table, row)).transpose()?;
            let Ok(number) = value.parse::<f64>() else {
                shown.push(if below.is_some() { String::new() } else { self.label(&value) });
                continue;
            };
            shown.push(match below.map(|below| below.parse::<f64>()) {
                None => column.unit.show(number),
                Some(Ok(below)) => column.unit.show(number / below),
                Some(Err(_)) => String::new(),
            });
        }
        // A volume without a cure has no figure after it.
        while shown.pop_if(|text| text.is_empty()).is_some() {}
        let shown: Vec<&str> = shown.iter().map(|text| if text.is_empty() { "–" } else { text }).collect();
        Ok(shown.join(" -> "))
    }

    fn label(&self, text: &str) -> String {
        let own = self.labels.iter().find(|(from, _)| from == text).map(|(_, to)| to.as_str());
        let common = || LABELS.iter().find(|(from, _)| *from == text).map(|(_, to)| *to);
        own.or_else(common).unwrap_or(text).to_owned()
    }
}

impl Column {
    /// A column of a table that is shown as it is.
    fn as_it_is(head: &str) -> Self {
        let cell = Cell { column: head.to_owned(), elsewhere: Vec::new() };
        Self { heading: head.to_owned(), terms: vec![(cell, None)], unit: Unit::Text }
    }

    /// Reads `heading | column / column -> column | unit`.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let parts: Vec<&str> = text.trim_end_matches('|').split('|').map(str::trim).collect();
        let (heading, terms, unit) = match parts[..] {
            [heading, terms] => (heading, terms, ""),
            [heading, terms, unit] => (heading, terms, unit),
            _ => bail!("a column is `| heading | figure | unit`"),
        };
        let term = |term: &str| -> anyhow::Result<(Cell, Option<Cell>)> {
            match term.split_once(" / ") {
                None => Ok((Cell::parse(term)?, None)),
                Some((above, below)) => Ok((Cell::parse(above)?, Some(Cell::parse(below)?))),
            }
        };
        let unit = match unit {
            "" => Unit::Plain,
            "%" => Unit::Percent,
            "s" => Unit::Seconds,
            "MiB" => Unit::MiB,
            "count" => Unit::Count,
            "text" => Unit::Text,
            unit => bail!("no unit `{unit}`; there are: %, s, MiB, count, text"),
        };
        let terms = terms.split(" -> ").map(term).collect::<anyhow::Result<_>>()?;
        Ok(Self { heading: heading.to_owned(), terms, unit })
    }
}

impl Cell {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let (column, elsewhere) = text.trim().split_once('@').unwrap_or((text.trim(), ""));
        let pair = |pair: &str| -> anyhow::Result<(String, String)> {
            let (key, value) = pair.split_once('=').with_context(|| format!("`{pair}` has no ="))?;
            Ok((key.to_owned(), value.to_owned()))
        };
        let elsewhere =
            elsewhere.split(',').filter(|part| !part.is_empty()).map(pair).collect::<anyhow::Result<_>>()?;
        Ok(Self { column: column.to_owned(), elsewhere })
    }

    /// The text of the cell; empty if there is no such row.
    fn value(&self, run: &str, table: &Table, row: &[String]) -> anyhow::Result<String> {
        if self.column == "run" {
            return Ok(run.to_owned());
        }
        let column = table.column(&self.column)?;
        if self.elsewhere.is_empty() {
            return Ok(valid(table, row, column));
        }
        // Other rows have the same keys, except those that are named.
        let mut keys = Vec::new();
        for key in ["arm", "role", "pulls", "device"] {
            let Ok(at) = table.column(key) else { continue };
            let other = self.elsewhere.iter().find(|(named, _)| named == key);
            keys.push((at, other.map_or_else(|| row[at].clone(), |(_, value)| resolve(table, at, value))));
        }
        for (key, _) in &self.elsewhere {
            ensure!(["arm", "role", "pulls", "device"].contains(&key.as_str()), "`{key}` is no key of a row");
        }
        let other = table.rows.iter().find(|row| keys.iter().all(|(at, value)| row[*at] == *value));
        Ok(other.map(|row| valid(table, row, column)).unwrap_or_default())
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Plain | Self::Text => figure(value),
            Self::Percent => format!("{}%", figure(value * 100.0)),
            Self::Seconds => format!("{} s", figure(value)),
            Self::MiB => format!("{} MiB", figure(value / 1_048_576.0)),
            Self::Count => count(value),
        }
    }
}

fn parse_filter(text: &str) -> anyhow::Result<(String, Vec<String>)> {
    let (key, values) = text.split_once('=').with_context(|| format!("the filter `{text}` has no ="))?;
    Ok((key.to_owned(), values.split('|').map(str::to_owned).collect()))
}

/// The cell of a row. Figures of an invalid cell must not be used, so they are empty.
fn valid(table: &Table, row: &[String], column: usize) -> String {
    let is_invalid = table.column("valid").is_ok_and(|valid| row[valid] == "false");
    let is_figure = row[column].parse::<f64>().is_ok() && table.heads[column] != "pulls";
    if is_invalid && is_figure { String::new() } else { row[column].clone() }
}

/// A value of a filter: `first` and `last` are the lowest and the highest number of a column.
fn resolve(table: &Table, column: usize, value: &str) -> String {
    let numbers = || table.rows.iter().filter_map(|row| row[column].parse::<u64>().ok());
    let number = match value {
        "first" => numbers().min(),
        "last" => numbers().max(),
        _ => None,
    };
    number.map_or_else(|| value.to_owned(), |number| number.to_string())
}

//! Tables of kept runs: tab-separated text with a head, and figures as people read them.

use anyhow::{Context, bail, ensure};

/// A table; every row has a cell for every head. A figure that is missing is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub heads: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(heads: &[&str]) -> Self {
        Self { heads: heads.iter().map(|head| (*head).to_owned()).collect(), rows: Vec::new() }
    }

    /// Reads what [`render`](Self::render) wrote.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let cells = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
        let mut lines = text.lines();
        let heads = cells(lines.next().context("no head")?);
        if let Some(twice) = heads.iter().enumerate().find(|(at, head)| heads[..*at].contains(head)) {
            bail!("two columns have the head {:?}", twice.1);
        }
        let mut rows = Vec::new();
        for (number, line) in lines.enumerate() {
            let row = cells(line);
            ensure!(row.len() == heads.len(), "line {}: {} cells for {} heads", number + 2, row.len(), heads.len());
            rows.push(row);
        }
        Ok(Self { heads, rows })
    }

    pub fn render(&self) -> String {
        let lines = std::iter::once(&self.heads).chain(&self.rows);
        lines.map(|cells| cells.join("\t").replace('\n', " ") + "\n").collect()
    }

    /// The place of a column.
    pub fn column(&self, head: &str) -> anyhow::Result<usize> {
        let at = self.heads.iter().position(|known| known == head);
        at.with_context(|| format!("no column {head:?}; there are: {}", self.heads.join(", ")))
    }
}

/// A table of a page.
pub fn markdown(heads: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        let cell = |cell: &String| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") };
        format!("|{}\n", cells.iter().map(cell).collect::<String>())
    };
    let rule = format!("|{}\n", "---|".repeat(heads.len()));
    line(heads) + &rule + &rows.iter().map(|row| line(row)).collect::<String>()
}

/// Three significant digits, thousands apart: `0.0123`, `1.85`, `12,300`.
pub fn figure(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let rounded = format!("{value:.2e}");
    let exponent = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok()).unwrap_or(0);
    match (2 - exponent).clamp(0, 9) {
        0 => {
            let unit = 10_f64.powi((exponent - 2).max(0));
            thousands(&format!("{:.0}", (value / unit).round() * unit))
        }
        decimals => format!("{value:.*}", decimals as usize),
    }
}

/// A count: all digits, thousands apart.
pub fn count(value: f64) -> String {
    thousands(&format!("{value:.0}"))
}

fn thousands(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let mut text = String::from(sign);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.99961, "1.00"),
            (0.012345, "0.0123"),
            (9.996, "10.0"),
            (12345.0, "12,300"),
            (1038.2, "1,040"),
            (-27.64, "-27.6"),
        ] {
            assert_eq!(figure(value), text);
        }
        assert_eq!(count(1234567.0), "1,234,567");
    }

    #[test]
    fn a_table_reads_what_it_wrote() {
        let table = Table { heads: vec!["a".into(), "b".into()], rows: vec![vec!["1".into(), String::new()]] };
        assert_eq!(Table::parse(&table.render()).unwrap(), table);
        assert!(Table::parse("a\tb\n1\n").is_err());
        assert!(Table::parse("a\ta\n1\t2\n").is_err());
        assert!(table.column("c").unwrap_err().to_string().contains("a, b"));
    }
}

//! The data of a figure as CSV, for programs that draw it themselves.

use crate::model::{Lines, words};

/// Rows of texts with a head.
pub(crate) struct Csv(String);

impl Csv {
    /// A table with these columns.
    pub(crate) fn new(head: &[&str]) -> Self {
        Self(head.join(",") + "\n")
    }

    /// Adds a row. A text that a spreadsheet would run as a formula gets an apostrophe before it.
    pub(crate) fn row(&mut self, fields: &[String]) {
        let fields: Vec<String> = fields.iter().map(|text| field(text)).collect();
        self.0.push_str(&(fields.join(",") + "\n"));
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }
}

fn field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) && text.parse::<f64>().is_err();
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

/// A number with at most nine significant digits: more are artefacts of the arithmetic. A number
/// that is very large or very small has an exponent.
pub(crate) fn exact(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { String::new() };
    }
    let Ok(rounded) = format!("{value:.8e}").parse::<f64>() else { return String::new() };
    match (1e-18..1e18).contains(&rounded.abs()) {
        true => rounded.to_string(),
        false => format!("{rounded:e}"),
    }
}

/// The points of lines, by the drawing they belong to. A single value has no interval.
pub(crate) fn lines_csv(parts: &[(&str, &Lines)]) -> String {
    let mut csv = Csv::new(&["drawing", "arm", "volume", "shown_as", "checkpoint", "n", "median", "low_95", "high_95"]);
    for (name, lines) in parts {
        for ((arm, role), line) in *lines {
            for (pulls, spread) in line {
                let end = |value: f64| if spread.count > 1 { exact(value) } else { String::new() };
                csv.row(&[
                    (*name).to_owned(),
                    arm.clone(),
                    role.name().to_owned(),
                    words(*role).to_owned(),
                    pulls.to_string(),
                    spread.count.to_string(),
                    exact(spread.median),
                    end(spread.low),
                    end(spread.high),
                ]);
            }
        }
    }
    csv.finish()
}

#[cfg(test)]
mod tests {
    use senesce_store::Role;

    use super::*;
    use crate::model::Spread;

    #[test]
    fn single_value_has_no_interval() {
        let line = |values: &[f64]| [(9, Spread::compute(values.iter().copied()).unwrap())].into();
        let lines = Lines::from([
            (("a".to_owned(), Role::Full), line(&[2.0])),
            (("b".to_owned(), Role::Full), line(&[1.0, 2.0, 3.0])),
        ]);
        let csv = lines_csv(&[("d", &lines)]);
        let rows: Vec<&str> = csv.lines().skip(1).collect();
        assert_eq!(rows, ["d,a,full,nearly full,9,1,2,,", "d,b,full,nearly full,9,3,2,1,3"]);
    }

    #[test]
    fn csv_numbers_have_nine_digits_texts_no_formulas() {
        assert_eq!([0.012949000000000765, 0.0, f64::NAN, 1e6].map(exact), ["0.012949", "0", "", "1000000"]);
        assert_eq!([1e300, -2.5e-20].map(exact), ["1e300", "-2.5e-20"]);
        let mut csv = Csv::new(&["a", "b"]);
        csv.row(&["=1+1".to_owned(), "x,\"y\"".to_owned()]);
        csv.row(&["-1.5".to_owned(), String::new()]);
        assert_eq!(csv.finish(), "a,b\n'=1+1,\"x,\"\"y\"\"\"\n-1.5,\n");
    }
}

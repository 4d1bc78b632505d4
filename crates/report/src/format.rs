//! Numbers and units as people read them.

pub(crate) use senesce_core::names::list;
pub(crate) use senesce_core::numbers::{count, number, score, three_digits as figure};
use senesce_core::{Bytes, Printable, TerminalFilter};

/// A duration with three significant digits: below one second as milliseconds.
pub(crate) fn seconds(value: f64) -> String {
    match value.abs() {
        small if small < 0.9995 && value != 0.0 => format!("{} ms", figure(value * 1e3)),
        _ => format!("{} s", figure(value)),
    }
}

/// Writes durations of one column in one unit, so that they can be compared: `1.54 s` and
/// `0.277 s`. A column without a second is in milliseconds.
pub(crate) struct SecondsColumn {
    is_milli: bool,
}

impl SecondsColumn {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        Self { is_milli: !values.into_iter().any(|value| value.is_finite() && value.abs() >= 0.9995) }
    }

    /// The duration; a dash if it is no number.
    pub(crate) fn text(&self, value: f64) -> String {
        match value.is_finite() {
            false => "–".to_owned(),
            true if self.is_milli => format!("{} ms", figure(value * 1e3)),
            true => format!("{} s", figure(value)),
        }
    }
}

/// A round duration, for the ticks of an axis: `50 ms`, `2 s`.
pub(crate) fn round_seconds(value: f64) -> String {
    match value.abs() {
        small if small > 0.0 && small < 0.9995e-3 => format!("{} µs", number(value * 1e6)),
        small if small > 0.0 && small < 0.9995 => format!("{} ms", number(value * 1e3)),
        _ => format!("{} s", number(value)),
    }
}

/// A share as a percentage with three significant digits.
pub(crate) fn percent(share: f64) -> String {
    format!("{}%", figure(share * 100.0))
}

/// A number with two digits, enough for a headline: `12`, `1.8`, `0.59`.
pub(crate) fn two_digits(value: f64) -> String {
    match value {
        value if value >= 99.5 => number(value.round()),
        value if value >= 9.95 => format!("{value:.0}"),
        value if value >= 0.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Bytes with a binary unit; a dash if the value is no number.
pub(crate) fn bytes(value: f64) -> String {
    let sign = if value.round() < 0.0 { "-" } else { "" };
    if value.is_finite() { format!("{sign}{}", Bytes(value.abs().round() as u64)) } else { "–".to_owned() }
}

/// Text for element content and attribute values of pages and figures.
///
/// Shows characters that XML forbids, or that mislead a reader, as escapes. So no text can make a
/// figure or a page fail.
pub(crate) fn escape(text: &str) -> String {
    let text = Printable::lines(text).to_string();
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A JSON document for a script element of a page, with its exact value.
///
/// Its texts cannot end the element, and have no characters that mislead a reader of the source.
pub(crate) fn page_json(document: &str) -> String {
    let mut page = Vec::with_capacity(document.len());
    let mut filter = TerminalFilter::new();
    filter.filter(document.as_bytes(), &mut page);
    filter.finish(&mut page);
    String::from_utf8(page).expect("the filter writes UTF-8").replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_keep_three_digits() {
        assert_eq!(
            [0.0, 0.00041, 0.0504, 0.9996, 52.961].map(seconds),
            ["0 s", "0.410 ms", "50.4 ms", "1.00 s", "53.0 s"]
        );
        let column = |values: [f64; 3]| values.map(|value| SecondsColumn::of(values).text(value));
        assert_eq!(column([1.54, 0.277, f64::NAN]), ["1.54 s", "0.277 s", "–"]);
        assert_eq!(column([0.0504, 0.277, 0.0]), ["50.4 ms", "277 ms", "0 ms"]);
        assert_eq!([0.0, 2e-5, 0.05, 2.0].map(round_seconds), ["0 s", "20 µs", "50 ms", "2 s"]);
        assert_eq!([0.0, 0.83449, 1.0].map(percent), ["0%", "83.4%", "100%"]);
        assert_eq!(bytes(1536.0), "1.5 KiB");
        assert_eq!([-1536.0, -0.2, 0.0].map(bytes), ["-1.5 KiB", "0 B", "0 B"]);
        assert_eq!(bytes(3.0 * 1024.0 * 1024.0), "3 MiB");
        assert_eq!(escape("<a b=\"c\">&'"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
        assert_eq!(escape("a\0\u{1b}<\n\t\u{fffe}\u{202e}"), "a\\x00\\x1b&lt;\n\t\\u{fffe}\\u{202e}");
    }

    #[test]
    fn digits_are_those_a_reader_needs() {
        let texts = [0.589, 0.996, 1.04, 9.94, 9.96, 12.4, 1234.6].map(two_digits);
        assert_eq!(texts, ["0.59", "1.0", "1.0", "9.9", "10", "12", "1,235"]);
    }
}

//! Numbers as people read them.

/// Three significant digits, no needless zeros, thousands apart: `0.0123`, `1.85`, `12,300`.
/// Numbers that need many digits have an exponent: `1e300`, `1.5e-11`.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = decimals(value);
    if !MOST_DECIMALS.contains(&digits) {
        let text = format!("{value:.2e}");
        let (factor, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", factor.trim_end_matches('0').trim_end_matches('.'));
    }
    let text = format!("{value:.*}", digits.max(0) as usize);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    match text.split_once('.') {
        Some(_) => text.to_owned(),
        None => thousands(text),
    }
}

/// Decimals of numbers that are written without an exponent: from 1e-8 to 1e12.
const MOST_DECIMALS: std::ops::RangeInclusive<i32> = -9..=10;

/// Decimals that leave three significant digits after rounding: 0.9996 is 1.00.
fn decimals(value: f64) -> i32 {
    let rounded = format!("{value:.2e}");
    2 - rounded.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok()).unwrap_or(0)
}

/// Three significant digits with trailing zeros, as a column needs them: `8.00`, `6.52`.
pub fn three_digits(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return number(value);
    }
    match decimals(value) {
        digits if !MOST_DECIMALS.contains(&digits) => format!("{value:.2e}"),
        digits if digits <= 0 => thousands(&format!("{value:.0}")),
        digits => format!("{value:.*}", digits as usize),
    }
}

/// A score from 0 to 1 with three significant digits. A score just below 1 has four digits and is
/// rounded down: only a perfect score is `1.00`.
pub fn score(value: f64) -> String {
    match (0.9995..1.0).contains(&value) {
        true => format!("{:.4}", (value * 1e4).floor() / 1e4),
        false => three_digits(value),
    }
}

/// Digits in groups of three.
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

/// A count, its digits in groups of three.
pub fn count(value: u64) -> String {
    thousands(&value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        let cases = [
            (0.0, "0"),
            (0.012345, "0.0123"),
            (1.0, "1"),
            (1.846, "1.85"),
            (99.96, "100"),
            (12345.0, "12,345"),
            (-2.5, "-2.5"),
            (f64::NAN, "–"),
            (1e-8, "0.00000001"),
            (1.5e-11, "1.5e-11"),
            (-1e300, "-1e300"),
            (999_900_000_000.0, "1e12"),
            (999_400_000_000.0, "999,400,000,000"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!([8.0, 6.523, 1234.5, 0.0, 0.9999].map(three_digits), ["8.00", "6.52", "1,234", "0", "1.00"]);
        assert_eq!([f64::MAX, 4e-9].map(three_digits), ["1.80e308", "4.00e-9"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let scores = [0.0, 0.75, 0.9994, 0.9995, 0.99999, 1.0, f64::NAN].map(score);
        assert_eq!(scores, ["0", "0.750", "0.999", "0.9995", "0.9999", "1.00", "–"]);
    }
}

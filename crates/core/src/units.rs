//! Quantities with their unit in the type.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::numbers::{count, number};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// 1024 bytes.
    pub const KIB: u64 = 1 << 10;
    /// 1024 KiB.
    pub const MIB: u64 = 1 << 20;
    /// 1024 MiB.
    pub const GIB: u64 = 1 << 30;

    /// Rounds up to the three digits that are displayed. Space of the displayed size is then
    /// enough.
    pub fn rounded_up(self) -> Self {
        let unit = (1..=6).map(|power| Self::KIB.pow(power)).take_while(|unit| self.0 >= *unit).last();
        let Some(unit) = unit else { return self };
        // Three significant digits.
        let parts: u128 = match self.0 / unit {
            0..10 => 100,
            10..100 => 10,
            _ => 1,
        };
        let count = (u128::from(self.0) * parts).div_ceil(u128::from(unit));
        let bytes = (count * u128::from(unit)).div_ceil(parts);
        Self(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// A free quantity and a larger one that is needed, as texts that differ. If three digits do
    /// not distinguish them, the texts are numbers of bytes.
    pub fn shortage(free: Self, needed: Self) -> (String, String) {
        let texts = (free.to_string(), needed.rounded_up().to_string());
        match texts.0 == texts.1 {
            true => (format!("{} bytes", count(free.0)), format!("{} bytes", count(needed.0))),
            false => texts,
        }
    }

    /// The quantity in GiB, for figures per GiB.
    pub fn as_gib(self) -> f64 {
        self.0 as f64 / Self::GIB as f64
    }
}

impl fmt::Display for Bytes {
    /// Three significant digits in the largest unit of at least 1: `64 MiB`, `1.38 GiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        // From this value on, it is 1 of the next unit after rounding.
        const NEXT: f64 = 1023.5;
        let (mut value, mut unit) = (self.0 as f64, 0);
        while value >= NEXT && unit + 1 < UNITS.len() {
            (value, unit) = (value / Self::KIB as f64, unit + 1);
        }
        f.pad(&format!("{} {}", number(value), UNITS[unit]))
    }
}

/// A text that is not a quantity of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a size; write a whole number with an optional K, M, G, T, KiB, MiB, GiB, TiB (powers of 1024) or KB, MB, GB, TB (powers of 1000)"
)]
pub struct ParseBytesError {
    /// The text.
    pub text: String,
}

impl FromStr for Bytes {
    type Err = ParseBytesError;

    /// Parses `4096`, `4k`, `4KiB`, `5 GiB`, `500MB`. `K` and `KiB` are powers of 1024, `KB` is a
    /// power of 1000, as in the GNU core utilities. Case has no effect.
    fn from_str(text: &str) -> Result<Self, ParseBytesError> {
        let error = || ParseBytesError { text: text.to_owned() };
        let trimmed = text.trim();
        let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = trimmed[..digits].parse().map_err(|_| error())?;
        let unit: u64 = match trimmed[digits..].trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => Self::KIB,
            "m" | "mib" => Self::MIB,
            "g" | "gib" => Self::GIB,
            "t" | "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(error()),
        };
        number.checked_mul(unit).map(Bytes).ok_or_else(error)
    }
}

/// A span of time or a point on a clock, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to `self`; zero if the clock went backwards.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rounding_up_provides_enough_and_is_displayed_whole(bytes in 0u64..1 << 62, shift in 0u32..60) {
            let bytes = Bytes(bytes >> shift);
            let up = bytes.rounded_up();
            prop_assert!(up >= bytes && up.0 as f64 <= bytes.0 as f64 * 1.01 + 1.0, "{bytes:?} {up:?}");
            // Less than a byte is lost if the display is read again.
            let text = up.to_string();
            let (number, unit) = text.split_once(' ').unwrap();
            let unit = 1024f64.powi(["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].iter().position(|u| *u == unit).unwrap() as i32);
            let shown = number.replace(',', "").parse::<f64>().unwrap() * unit;
            prop_assert!(shown.ceil() as u64 >= bytes.0, "{bytes:?} is shown as {text}");
        }

        #[test]
        fn a_shortage_is_visible(free in 0u64..1 << 50, missing in 1u64..1 << 30) {
            let (free, needed) = Bytes::shortage(Bytes(free), Bytes(free + missing));
            prop_assert_ne!(free, needed);
        }
    }

    #[test]
    fn units_are_those_of_the_gnu_core_utilities() {
        for (text, want) in [
            ("0", 0),
            ("4096", 4096),
            ("4k", 4096),
            ("4KiB", 4096),
            ("5 GiB", 5 << 30),
            ("1g", 1 << 30),
            ("2TiB", 2 << 40),
            ("320MB", 320_000_000),
            ("320mb", 320_000_000),
            ("320M", 320 << 20),
            ("1 kB", 1_000),
            ("1GB", 1_000_000_000),
            ("3TB", 3_000_000_000_000),
        ] {
            assert_eq!(text.parse::<Bytes>().unwrap(), Bytes(want), "{text}");
        }
    }

    #[test]
    fn invalid_sizes_are_refused() {
        for text in ["", "k", "1.5g", "-1", "5 bananas", "99999999999t", "18446745TB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_have_three_digits_and_the_largest_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (512, "512 B"),
            (1023, "1,023 B"),
            (4096, "4 KiB"),
            (1536, "1.5 KiB"),
            (1_008_640, "985 KiB"),
            ((1 << 20) - 1, "1 MiB"),
            (960 << 20, "960 MiB"),
            (1_481_763_717, "1.38 GiB"),
            (16 << 40, "16 TiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!(format!("{:>8}", Bytes(64 << 20)), "  64 MiB");
    }

    #[test]
    fn clock_that_went_backwards_returns_no_time() {
        assert_eq!(Nanos(5).since(Nanos(9)), Nanos(0));
    }
}

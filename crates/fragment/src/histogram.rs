//! Histograms that describe the requested free space.

use std::{fmt, str::FromStr};

use senesce_core::Bytes;

/// Shares of the free bytes by the size of free extents.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Sizes of extents, powers of two of at least 4 KiB, and their shares of the free bytes, in
    /// ascending order of size. The shares sum to 1.
    pub shares: Vec<(u64, f64)>,
}

/// A text that is not a histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a histogram of free space: {problem}; write 4KiB:20%,64KiB:30%,1MiB:50%")]
pub struct ParseHistogramError {
    /// The text.
    pub text: String,
    /// What is wrong.
    pub problem: String,
}

impl FromStr for Histogram {
    type Err = ParseHistogramError;

    fn from_str(text: &str) -> Result<Self, ParseHistogramError> {
        let wrong = |problem: String| ParseHistogramError { text: text.to_owned(), problem };
        let mut shares = Vec::new();
        for part in text.split(',') {
            let (size, share) =
                part.trim().split_once(':').ok_or_else(|| wrong(format!("{part:?} is not SIZE:PERCENT%")))?;
            let size = size.parse::<Bytes>().map_err(|error| wrong(error.to_string()))?.0;
            let percent = share.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
            let percent = percent.filter(|percent| percent.is_finite() && *percent > 0.0);
            let percent = percent.ok_or_else(|| wrong(format!("{share:?} is not a share in percent above 0")))?;
            if !size.is_power_of_two() || size < 4096 {
                return Err(wrong(format!("{size} bytes is not a power of two of at least 4KiB")));
            }
            shares.push((size, percent / 100.0));
        }
        shares.sort_by_key(|(size, _)| *size);
        if let Some(pair) = shares.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(wrong(format!("{} appears twice", Bytes(pair[0].0))));
        }
        let sum: f64 = shares.iter().map(|(_, share)| share).sum();
        if (sum - 1.0).abs() > 1e-6 {
            return Err(wrong(format!("the shares sum to {:.4}%", sum * 100.0)));
        }
        Ok(Self { shares })
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (size, share)) in self.shares.iter().enumerate() {
            write!(f, "{}{}:{:.2}%", if number > 0 { "," } else { "" }, Bytes(*size), share * 100.0)?;
        }
        Ok(())
    }
}

impl Histogram {
    /// Returns half the sum of the absolute differences between the shares and those of measured
    /// free space. 0 means equal, 1 means nothing in common. In: bytes by bucket (extents from this
    /// size to below twice that).
    pub fn compute_distance(&self, buckets: impl IntoIterator<Item = (u64, u64)>) -> f64 {
        let found: Vec<(u64, u64)> = buckets.into_iter().collect();
        let total = found.iter().map(|(_, bytes)| bytes).sum::<u64>().max(1) as f64;
        let wanted = |size: u64| self.shares.iter().find(|(s, _)| *s == size).map_or(0.0, |(_, share)| *share);
        let in_found: f64 = found.iter().map(|(size, bytes)| (*bytes as f64 / total - wanted(*size)).abs()).sum();
        let not_found: f64 =
            self.shares.iter().filter(|(size, _)| found.iter().all(|(s, _)| s != size)).map(|(_, share)| share).sum();
        (in_found + not_found) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_histogram_and_computes_its_distance() {
        let histogram: Histogram = "1MiB:50%, 4k:20%,64KiB:30%".parse().unwrap();
        assert_eq!(histogram.shares, [(4096, 0.2), (65_536, 0.3), (1 << 20, 0.5)]);
        assert_eq!(histogram.compute_distance([(4096, 20), (65_536, 30), (1 << 20, 50)]), 0.0);
        // 10% in a bucket that was not requested, the rest in the smallest.
        let distance = histogram.compute_distance([(4096, 90), (8192, 10)]);
        assert!((distance - 0.8).abs() < 1e-12, "{distance}");
    }

    #[test]
    fn invalid_histogram_is_refused_with_its_problem() {
        for (text, problem) in [
            ("4KiB", "not SIZE:PERCENT%"),
            ("4KiB:10", "not a share"),
            ("4KiB:-10%", "not a share"),
            ("5KiB:100%", "power of two"),
            ("2KiB:100%", "power of two"),
            ("4KiB:50%,4KiB:50%", "twice"),
            ("4KiB:50%,8KiB:40%", "sum to 90"),
        ] {
            let error = text.parse::<Histogram>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}

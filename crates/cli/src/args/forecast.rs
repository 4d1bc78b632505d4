//! Arguments of `forecast`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use senesce_store::Role;

use super::{complete, look::parse_role};
use crate::clock::parse_utc_day;

#[derive(Debug, Args)]
pub struct ForecastArgs {
    /// Directory of a run, or files of `inspect --json`.
    ///
    /// The files are inspections of one volume at different dates, at least four. A file may have
    /// several documents, one after the other.
    #[arg(value_name = "RUN|FILE", required = true, add = ArgValueCandidates::new(complete::runs))]
    pub paths: Vec<PathBuf>,
    /// Forecast the costs at these dates or checkpoints.
    ///
    /// Inspections: a date such as 2027-03-14. A run: a number of counted steps, such as pulls.
    /// If a run has several volumes, each point must be after the last checkpoint of every volume.
    /// Default: three points, the last one as far as a forecast reaches.
    #[arg(long, value_name = "DATE|N", value_delimiter = ',')]
    pub at: Vec<When>,
    /// Find the date of this slowdown. Default: 2.
    ///
    /// 2: a read takes twice as long as in a fresh copy.
    #[arg(long, value_name = "TIMES", default_value = "2", hide_default_value = true, value_parser = parse_threshold)]
    pub threshold: f64,
    /// The model of a device. Default: the first one.
    ///
    /// A part of its name in the figures, such as 7.2K.
    #[arg(short, long, value_name = "NAME")]
    pub device: Option<String>,
    /// A run: only these arms.
    #[arg(long, value_name = "ARM", value_delimiter = ',')]
    pub arm: Vec<String>,
    /// A run: only these volumes: full, empty.
    #[arg(long, value_name = "ROLE", value_delimiter = ',', value_parser = parse_role)]
    pub role: Vec<Role>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// A date, or a number of counted steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// The start of a day (UTC), seconds since 1970.
    Date(i64),
    /// Counted steps.
    Steps(u64),
}

impl std::str::FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.replace('_', "").parse::<u64>().ok().map(Self::Steps);
        let when = number.or_else(|| parse_utc_day(text).map(Self::Date));
        when.ok_or_else(|| format!("{text:?} is no date and no number; write 2027-03-14, or 5000"))
    }
}

/// A slowdown: `2`, `1.5`, `2x`.
fn parse_threshold(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches(['x', '×']).parse::<f64>().ok();
    let is_valid = |times: &f64| *times > 1.0 && *times <= 1000.0;
    number.filter(is_valid).ok_or_else(|| format!("{text:?} is no slowdown; write a number above 1, at most 1000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_numbers_differ() {
        assert_eq!("5_000".parse(), Ok(When::Steps(5000)));
        assert_eq!("1970-01-02".parse(), Ok(When::Date(86_400)));
        for bad in ["", "-1", "soon", "2027-02-30", "2027-3", "99999999999999999999"] {
            assert!(bad.parse::<When>().is_err(), "{bad}");
        }
    }

    #[test]
    fn thresholds_are_above_one() {
        assert_eq!(parse_threshold("1.5x"), Ok(1.5));
        for bad in ["1", "0", "-2", "nan", "inf", "1001", "two"] {
            assert!(parse_threshold(bad).is_err(), "{bad}");
        }
    }
}

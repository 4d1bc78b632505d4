//! The history of a volume: its cost at several times.

use schemars::JsonSchema;
use senesce_core::statistics::forecast::Point;
use senesce_report::count;
use serde::Serialize;

use crate::clock::{tell_utc, tell_utc_day};

/// Seconds of a day.
const SECONDS_OF_DAY: f64 = 86_400.0;
/// Inspections within fewer days are shown with minutes.
const LEAST_DAYS: f64 = 4.0;

/// A cost of a volume at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct Value {
    /// The time, in `unit`.
    pub(super) at: f64,
    /// The cost, in `cost_unit`.
    pub(super) cost: f64,
    /// The cost over that of a fresh copy, or over the first cost.
    pub(super) slowdown: f64,
}

/// What a slowdown compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Against {
    /// A fresh copy of the tree at the same time.
    FreshCopy,
    /// The first value of the history, because the run has no fresh copies.
    FirstValue,
}

/// The unit of times.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Unit {
    /// Seconds since 1970, shown as days.
    Days,
    /// Seconds since 1970, shown with minutes.
    Minutes,
    /// Counted steps, by their name in the plural.
    Steps(String),
}

impl Unit {
    /// The name in JSON.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Days | Self::Minutes => "unix-seconds",
            Self::Steps(name) => name,
        }
    }

    /// The unit of inspections that are so far apart, in seconds.
    pub(super) fn of_time(length: f64) -> Self {
        if length < LEAST_DAYS * SECONDS_OF_DAY { Self::Minutes } else { Self::Days }
    }

    /// The smallest step of times that the table shows.
    pub(super) fn grain(&self) -> f64 {
        match self {
            Self::Days => SECONDS_OF_DAY,
            Self::Minutes => 60.0,
            Self::Steps(_) => 1.0,
        }
    }

    /// The values of a history in words.
    pub(super) fn values(&self) -> &'static str {
        if let Self::Steps(_) = self { "checkpoints" } else { "inspections" }
    }

    /// A time as text: a day, or a number.
    pub(super) fn tell(&self, at: f64) -> String {
        match self {
            Self::Days => tell_utc_day(at as i64),
            Self::Minutes => tell_utc(at as i64).chars().take("2026-11-23 06:40".len()).collect(),
            Self::Steps(_) => count(at.round() as u64),
        }
    }
}

/// The costs of one volume on one device.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// The directory, or the arm and volume.
    pub(super) of: String,
    /// The model of the device.
    pub(super) device: String,
    /// The unit of times.
    pub(super) unit: Unit,
    /// The unit of costs.
    pub(super) cost_unit: &'static str,
    /// What slowdowns compare with.
    pub(super) against: Against,
    /// The values, in ascending order of time.
    pub(super) values: Vec<Value>,
    /// Facts that a reader must know.
    pub(super) notes: Vec<String>,
}

impl History {
    /// One figure of all values.
    pub(super) fn points(&self, of: fn(&Value) -> f64) -> Vec<Point> {
        self.values.iter().map(|value| Point { at: value.at, value: of(value) }).collect()
    }

    /// The first and the last time.
    pub(super) fn ends(&self) -> Option<(f64, f64)> {
        Some((self.values.first()?.at, self.values.last()?.at))
    }
}

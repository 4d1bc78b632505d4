//! The history of a volume: its cost at several times.

use schemars::JsonSchema;
use senesce_core::statistics::forecast::Point;
use senesce_report::count as count_text;
use serde::Serialize;

use crate::clock::{tell_utc, tell_utc_day};

/// Seconds of a day.
const SECONDS_OF_DAY: f64 = 86_400.0;
/// The most values that a forecast uses. Its cost is quadratic in their number.
const MOST_VALUES: usize = 400;
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
            Self::Steps(_) => count_text(at.round() as u64),
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
    /// Keeps at most [`MOST_VALUES`] values, evenly spread over time, with the first and the last
    /// one. Cost: linear in the values.
    pub(super) fn thin(&mut self) {
        let (Some((first, last)), count) = (self.ends(), self.values.len()) else { return };
        if count <= MOST_VALUES {
            return;
        }
        // The smallest gap that leaves at most `MOST_VALUES` values.
        let (mut low, mut high) = (0.0, last - first);
        for _ in 0..64 {
            let middle = f64::midpoint(low, high);
            if spread(&self.values, middle).count() > MOST_VALUES { low = middle } else { high = middle }
        }
        self.values = spread(&self.values, high).collect();
        self.values.reverse();
        let (kept, all) = (count_text(self.values.len() as u64), count_text(count as u64));
        let what = self.unit.values();
        self.notes.push(format!("The forecast uses {kept} of {all} {what}, evenly spread over time."));
    }

    /// One figure of all values.
    pub(super) fn points(&self, of: fn(&Value) -> f64) -> Vec<Point> {
        self.values.iter().map(|value| Point { at: value.at, value: of(value) }).collect()
    }

    /// The first and the last time.
    pub(super) fn ends(&self) -> Option<(f64, f64)> {
        Some((self.values.first()?.at, self.values.last()?.at))
    }
}

/// Values from the last one back to the first one, at least `gap` apart. The first value is always
/// kept, even if it is nearer.
fn spread(values: &[Value], gap: f64) -> impl Iterator<Item = Value> {
    let mut next = f64::INFINITY;
    let is_kept = move |(index, value): &(usize, &Value)| {
        let is_kept = *index == 0 || value.at <= next;
        if is_kept {
            next = value.at - gap;
        }
        is_kept
    };
    values.iter().enumerate().rev().filter(is_kept).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(times: impl Iterator<Item = f64>) -> History {
        History {
            of: "tree".to_owned(),
            device: "disk".to_owned(),
            unit: Unit::Days,
            cost_unit: "s",
            against: Against::FreshCopy,
            values: times.map(|at| Value { at, cost: 9.0, slowdown: 1.0 }).collect(),
            notes: Vec::new(),
        }
    }

    fn thinned(times: impl Iterator<Item = f64>) -> (Vec<f64>, Vec<String>) {
        let mut history = history(times);
        history.thin();
        (history.values.iter().map(|value| value.at).collect(), history.notes)
    }

    #[test]
    fn many_values_are_thinned_evenly() {
        let (kept, notes) = thinned((0..100_000).map(f64::from));
        assert!((MOST_VALUES / 2..=MOST_VALUES).contains(&kept.len()), "{}", kept.len());
        assert_eq!((kept[0], kept[kept.len() - 1]), (0.0, 99_999.0));
        let gaps: Vec<f64> = kept.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps[1..].iter().all(|gap| (250.0..=251.0).contains(gap)) && gaps[0] > 0.0, "{gaps:?}");
        assert!(notes[0].ends_with(" of 100,000 inspections, evenly spread over time."), "{notes:?}");
    }

    #[test]
    fn values_of_two_bursts_stay_many() {
        let burst = |start: u32| (0..1000).map(move |n| f64::from(start + n));
        let (kept, _) = thinned(burst(0).chain(burst(1_000_000_000)));
        assert!(kept.len() > MOST_VALUES / 2 && kept.len() <= MOST_VALUES, "{}", kept.len());
    }

    #[test]
    fn few_values_stay() {
        let (kept, notes) = thinned((0..MOST_VALUES as u32).map(f64::from));
        assert!(kept.len() == MOST_VALUES && notes.is_empty());
    }
}

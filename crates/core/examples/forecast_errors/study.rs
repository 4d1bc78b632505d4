//! Forecasts of histories from their first checkpoints, beside the values that followed.

use std::collections::BTreeSet;

use senesce_core::statistics::{
    compute_quantile,
    forecast::{Crossing, Curve, FARTHEST, Forecast, HORIZONS, LEAST_ERROR, LEAST_VALUES, Point, find_horizon},
};

use crate::kept::History;

/// The coverage that intervals aim at.
const COVERAGE: f64 = 0.95;
/// The name of a slowdown, and its value from the last given one.
type Threshold = (&'static str, fn(f64) -> f64);
/// Slowdowns whose date is sought: twice as slow as a fresh copy, and multiples of the last given
/// slowdown.
const THRESHOLDS: [Threshold; 3] =
    [("2", |_| 2.0), ("1.25 x the last", |last| 1.25 * last), ("2 x the last", |last| 2.0 * last)];

/// A forecast value beside the actual one.
struct Trial {
    /// The history, by its place in the list.
    history: usize,
    /// The given checkpoints of the history.
    given: usize,
    /// Whether the value is a slowdown, or a cost.
    is_slowdown: bool,
    /// The index in [`HORIZONS`].
    horizon: usize,
    /// Natural logarithms of actual over predicted: by the forecast, no change, a straight line.
    errors: [f64; 3],
    /// The own error of the history.
    own_error: f64,
}

impl Trial {
    /// The error over the own error, from whose quantiles the factors are.
    fn score(&self) -> f64 {
        self.errors[0].abs() / (self.own_error + LEAST_ERROR)
    }

    /// The relative error of a method.
    fn relative(&self, method: usize) -> f64 {
        (-self.errors[method]).exp_m1().abs()
    }
}

/// All forecasts of all histories.
pub struct Study {
    histories: Vec<History>,
    trials: Vec<Trial>,
}

impl Study {
    /// Forecasts every history from every start of at least [`LEAST_VALUES`] checkpoints.
    pub fn of(histories: Vec<History>) -> Self {
        let mut trials = Vec::new();
        for (history, found) in histories.iter().enumerate() {
            for (is_slowdown, points) in [(true, &found.slowdown), (false, &found.cost)] {
                for given in LEAST_VALUES..points.len() {
                    trials.extend(compute_trials(history, is_slowdown, points, given));
                }
            }
        }
        Self { histories, trials }
    }

    /// The factors of the interval from the histories of all plans but one.
    pub fn factors_without(&self, plan: Option<&str>) -> [f64; HORIZONS.len()] {
        let mut factors = [0.0; HORIZONS.len()];
        let mut largest = 0.0f64;
        for (horizon, factor) in factors.iter_mut().enumerate() {
            let is_other = |trial: &&Trial| plan.is_none_or(|plan| self.histories[trial.history].plan() != plan);
            let of_horizon = self.trials.iter().filter(|trial| trial.horizon == horizon).filter(is_other);
            let mut scores: Vec<f64> = of_horizon.map(Trial::score).collect();
            scores.sort_by(f64::total_cmp);
            // The quantile of split conformal prediction: one more value, which is yet to come.
            let rank = ((scores.len() + 1) as f64 * COVERAGE).ceil() as usize;
            largest = largest.max(scores.get(rank.saturating_sub(1)).or(scores.last()).copied().unwrap_or(f64::MAX));
            *factor = largest;
        }
        factors
    }

    /// The factors rounded up, as the code has them.
    pub fn factors(&self) -> [f64; HORIZONS.len()] {
        self.factors_without(None).map(|factor| (factor * 10.0).ceil() / 10.0)
    }

    /// Whether the actual value of each trial is in its interval, and the width of the interval as
    /// a factor. The factors are from the other plans.
    fn intervals<'s>(&'s self, trials: &[&'s Trial]) -> (f64, Vec<f64>) {
        let mut inside = 0;
        let mut widths = Vec::new();
        let plans: BTreeSet<&str> = trials.iter().map(|trial| self.histories[trial.history].plan()).collect();
        for plan in plans {
            let factors = self.factors_without(Some(plan));
            for trial in trials.iter().filter(|trial| self.histories[trial.history].plan() == plan) {
                let width = factors[trial.horizon] * (trial.own_error + LEAST_ERROR);
                inside += usize::from(trial.errors[0].abs() <= width);
                widths.push(width.exp());
            }
        }
        (inside as f64 / trials.len().max(1) as f64, widths)
    }

    /// Table `factors`: the factors, coverage and width by horizon.
    pub fn factor_lines(&self) -> Vec<String> {
        let mut lines = vec!["horizon\tfactor\tvalues\tcovered_share\tmedian_width_times".to_owned()];
        for (index, horizon) in HORIZONS.iter().enumerate() {
            let trials: Vec<&Trial> = self.trials.iter().filter(|trial| trial.horizon == index).collect();
            let (covered, widths) = self.intervals(&trials);
            let factor = self.factors()[index];
            lines.push(format!("{horizon}\t{factor:.1}\t{}\t{covered:.4}\t{:.4}", trials.len(), median(&widths)));
        }
        lines
    }

    /// Table `errors`: relative errors of three methods, and the coverage of the interval.
    pub fn error_lines(&self) -> Vec<String> {
        let head = "figure\tgiven\tdevice\thistories\tvalues\tmedian\tp90\tmedian_no_change\tp90_no_change\tmedian_straight\t\
                    p90_straight\tcovered_share\tmedian_width_times";
        let mut lines = vec![head.to_owned()];
        for is_slowdown in [true, false] {
            for (given, parts, least) in [("third", 3, 9), ("half", 2, 7)] {
                for device in ["hdd-7.2k", "sata-ssd", "nvme-ssd", "all"] {
                    let is_wanted = |trial: &&Trial| {
                        let history = &self.histories[trial.history];
                        let count = history.slowdown.len();
                        trial.is_slowdown == is_slowdown
                            && count >= least
                            && trial.given == count.div_ceil(parts).max(LEAST_VALUES)
                            && (device == "all" || device == history.device)
                    };
                    let trials: Vec<&Trial> = self.trials.iter().filter(is_wanted).collect();
                    let histories: BTreeSet<usize> = trials.iter().map(|trial| trial.history).collect();
                    let figure = if is_slowdown { "slowdown" } else { "cost" };
                    let mut line = format!("{figure}\t{given}\t{device}\t{}\t{}", histories.len(), trials.len());
                    for method in 0..3 {
                        let errors: Vec<f64> = trials.iter().map(|trial| trial.relative(method)).collect();
                        let p90 = compute_quantile(&errors, 0.9).unwrap_or(f64::NAN);
                        line.push_str(&format!("\t{:.4}\t{p90:.4}", median(&errors)));
                    }
                    let (covered, widths) = self.intervals(&trials);
                    lines.push(format!("{line}\t{covered:.4}\t{:.4}", median(&widths)));
                }
            }
        }
        lines
    }

    /// Table `dates`: forecasts of the checkpoint at which a slowdown is reached.
    pub fn date_lines(&self) -> Vec<String> {
        let mut lines =
            vec!["slowdown\toutcome\tforecasts\tallowed_by_interval\twith_date\tmedian_error_of_date".to_owned()];
        for (name, threshold) in THRESHOLDS {
            let dates: Vec<ComparedDate> = self.compare_dates(threshold);
            for (outcome, is_crossed) in [("reached", true), ("not reached", false)] {
                let of = || dates.iter().filter(|date| date.is_crossed == is_crossed);
                let errors: Vec<f64> = of().filter_map(|date| date.error).collect();
                let (allowed, dated) =
                    (of().filter(|date| date.is_consistent).count(), of().filter(|date| date.is_dated).count());
                let error = if errors.is_empty() { String::new() } else { format!("{:.4}", median(&errors)) };
                lines.push(format!("{name}\t{outcome}\t{}\t{allowed}\t{dated}\t{error}", of().count()));
            }
        }
        lines
    }

    fn compare_dates(&self, threshold: fn(f64) -> f64) -> Vec<ComparedDate> {
        let of_history = |history: &History| {
            let factors = self.factors_without(Some(history.plan()));
            let starts = LEAST_VALUES..history.slowdown.len();
            starts.filter_map(|given| compare_date(&history.slowdown, given, threshold, factors)).collect::<Vec<_>>()
        };
        self.histories.iter().flat_map(of_history).collect()
    }

    /// Table `histories`: each history with its errors when the first half is given.
    pub fn history_lines(&self) -> Vec<String> {
        let head = "kept_run\tvolume\tdevice\tcheckpoints\tgiven\tfirst_slowdown\tlast_slowdown\tcurve\tmedian\tlargest\t\
                    largest_no_change\tlargest_straight";
        let mut lines = vec![head.to_owned()];
        for (index, history) in self.histories.iter().enumerate() {
            let points = &history.slowdown;
            let given = points.len().div_ceil(2).max(LEAST_VALUES);
            let is_of = |trial: &&Trial| trial.history == index && trial.given == given && trial.is_slowdown;
            let largest = |method: usize| {
                self.trials.iter().filter(is_of).map(|trial| trial.relative(method)).fold(0.0f64, f64::max)
            };
            let errors: Vec<f64> = self.trials.iter().filter(is_of).map(|trial| trial.relative(0)).collect();
            let curve = Forecast::compute(&points[..given]).map_or("none", |forecast| forecast.curve().words());
            lines.push(format!(
                "{}\t{}\t{}\t{}\t{given}\t{:.4}\t{:.4}\t{curve}\t{:.4}\t{:.4}\t{:.4}\t{:.4}",
                history.run,
                history.volume,
                history.device,
                points.len(),
                points[0].value,
                points[points.len() - 1].value,
                median(&errors),
                largest(0),
                largest(1),
                largest(2)
            ));
        }
        lines
    }
}

fn median(values: &[f64]) -> f64 {
    compute_quantile(values, 0.5).unwrap_or(f64::NAN)
}

fn compute_trials(history: usize, is_slowdown: bool, points: &[Point], given: usize) -> Vec<Trial> {
    let (known, later) = points.split_at(given);
    let Ok(forecast) = Forecast::compute(known) else { return Vec::new() };
    let (first, last) = (known[0].at, known[given - 1].at);
    let trial = |point: &Point| {
        let predicted = [
            forecast.at(point.at)?.value,
            Curve::NoChange.extrapolate(known, point.at),
            Curve::Straight.extrapolate(known, point.at),
        ];
        let horizon = find_horizon((point.at - last) / (last - first))?;
        let errors = predicted.map(|predicted| (point.value / predicted).ln());
        Some(Trial { history, given, is_slowdown, horizon, errors, own_error: forecast.own_error() })
    };
    later.iter().filter_map(trial).collect()
}

/// The forecast of a date beside the actual one.
struct ComparedDate {
    /// Whether the history reaches the threshold within the reach of the forecast.
    is_crossed: bool,
    /// Whether the interval allows what happened.
    is_consistent: bool,
    /// Whether the forecast has a date. If the event did not happen: one before the last
    /// checkpoint.
    is_dated: bool,
    /// The error of the date over the time from the first checkpoint to the actual date.
    error: Option<f64>,
}

/// `None` if the given part has reached the threshold.
fn compare_date(
    points: &[Point],
    given: usize,
    threshold: fn(f64) -> f64,
    factors: [f64; HORIZONS.len()],
) -> Option<ComparedDate> {
    let (known, later) = points.split_at(given);
    let forecast = Forecast::compute(known).ok()?.with_factors(factors);
    let last = known[given - 1];
    let threshold = threshold(last.value);
    let Crossing::Ahead { earliest, at, latest } = forecast.crossing(threshold) else { return None };
    let farthest = last.at + FARTHEST * (last.at - known[0].at);
    let seen = later.iter().filter(|point| point.at <= farthest).collect::<Vec<_>>();
    let crossed = seen.iter().position(|point| point.value >= threshold);
    // The time at which it happened is between two checkpoints, or after the last one.
    let (after, until) = match crossed {
        Some(0) => (last.at, seen[0].at),
        Some(place) => (seen[place - 1].at, seen[place].at),
        None => (seen.last().map_or(last.at, |point| point.at), f64::INFINITY),
    };
    let (start, end) = (earliest.unwrap_or(farthest), latest.unwrap_or(f64::INFINITY));
    let actual = crossed.map(|_| f64::midpoint(after, until));
    Some(ComparedDate {
        is_crossed: crossed.is_some(),
        is_consistent: start <= until && end >= after,
        is_dated: at.is_some_and(|at| crossed.is_some() || at <= after),
        error: actual.zip(at).map(|(actual, at)| (at - actual).abs() / (actual - points[0].at)),
    })
}

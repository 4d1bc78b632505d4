//! `senesce forecast`: the later cost of a volume, and the date at which it is twice as slow.

mod history;
mod inspections;
mod results;
mod screen;

use anyhow::Result;
use schemars::JsonSchema;
use senesce_core::statistics::forecast::{Crossing, Curve, Expected, Forecast};
use serde::Serialize;

use self::history::{Against, History, Unit, Value};
use crate::{
    args::{ForecastArgs, When},
    exit::usage,
    fit::fit,
    schema::document,
};

/// The schema of forecasts as JSON.
pub(in crate::verb) const FORECAST_SCHEMA: &str = "senesce-forecast/1";
/// Horizons of the default table, in lengths of the history.
const HORIZONS: [f64; 3] = [0.5, 1.0, 2.0];

/// The JSON output of `forecast`.
#[derive(Serialize, JsonSchema)]
pub(in crate::verb) struct ForecastDocument {
    /// The slowdown whose date is sought.
    threshold: f64,
    /// The forecast of each volume.
    forecasts: Vec<VolumeForecast>,
}

/// The forecast of a volume.
#[derive(Serialize, JsonSchema)]
struct VolumeForecast {
    /// The directory, or the arm and volume of a run.
    of: String,
    /// The model of the device; of a measured run, the test.
    device: String,
    /// The unit of `at`: `unix-seconds`, or counted steps such as `pulls`.
    unit: String,
    #[serde(skip)]
    time_unit: Unit,
    /// The unit of costs: `s` for a read of the whole tree, or `s/GiB`.
    cost_unit: &'static str,
    /// What the slowdown compares with.
    against: Against,
    /// The forecast as a sentence, or the reason why there is none.
    text: String,
    /// The values that the forecast is from.
    history: Vec<Value>,
    /// Facts that a reader must know, as sentences.
    notes: Vec<String>,
    /// The forecast. `None` if there cannot be one; `text` has the reason.
    forecast: Option<Found>,
}

/// A forecast that exists.
#[derive(Serialize, JsonSchema)]
struct Found {
    /// The curve that continues the slowdown.
    curve: Curve,
    /// The mean error with which the curve predicts each slowdown of the history from those before
    /// it: the absolute natural logarithm of predicted over actual.
    own_error: f64,
    /// The last time of which the forecast says something.
    farthest: f64,
    /// The time at which the slowdown reaches the threshold.
    crossing: CrossingTime,
    /// Costs at later times.
    later: Vec<Later>,
}

/// The time at which the slowdown reaches the threshold.
#[derive(Serialize, JsonSchema)]
struct CrossingTime {
    /// Whether the history has reached it.
    state: CrossingState,
    /// The expected time. `None`: not as far as the forecast reaches.
    at: Option<f64>,
    /// The lower end of the 95% interval. `None`: not as far as the forecast reaches, or the
    /// history has reached it.
    earliest: Option<f64>,
    /// The upper end of the 95% interval. `None`: later than the forecast reaches, or never, or the
    /// history has reached it.
    latest: Option<f64>,
}

/// Whether a threshold is reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum CrossingState {
    /// The history has reached it.
    Reached,
    /// It is expected.
    Expected,
    /// It is not expected as far as the forecast reaches.
    NotExpected,
}

/// Costs at a later time.
#[derive(Serialize, JsonSchema)]
struct Later {
    /// The time.
    at: f64,
    /// The slowdown. `None` if the forecast does not reach the time.
    slowdown: Option<Expected>,
    /// The cost, in `cost_unit`. `None` if the forecast does not reach the time.
    cost: Option<Expected>,
}

/// Reads the histories, and prints a sentence and a table for each, or JSON.
///
/// Errors: the inputs are not of one volume, or of several runs; no volume has enough values.
pub fn forecast(args: &ForecastArgs) -> Result<()> {
    let histories = match &args.paths[..] {
        [run] if run.is_dir() => results::read_histories(run, args)?,
        paths => vec![inspections::read_history(paths, args.device.as_deref())?],
    };
    let mut forecasts = Vec::new();
    let mut problem = None;
    for mut history in histories {
        history.thin();
        let at = choose_times(&history, &args.at)?;
        forecasts.push(match foretell(&history, args.threshold, &at) {
            Ok(found) => describe(history, Ok(found), args.threshold),
            Err(reason) => {
                let described = describe(history, Err(&reason), args.threshold);
                problem.get_or_insert_with(|| described.text.clone());
                described
            }
        });
    }
    if let Some(problem) = problem.filter(|_| forecasts.iter().all(|found| found.forecast.is_none())) {
        return Err(usage(problem, Some("add later inspections, or a run with more checkpoints")));
    }
    let found = ForecastDocument { threshold: args.threshold, forecasts };
    match args.json {
        true => println!("{}", document(FORECAST_SCHEMA, found)),
        false => print!("{}", fit(&screen::render(&found))),
    }
    Ok(())
}

/// The times of the table: those of `--at`, or the default ones.
///
/// Errors: a date for a run, a number for inspections, or a time that is not after the history.
fn choose_times(history: &History, wanted: &[When]) -> Result<Vec<f64>> {
    let Some((first, last)) = history.ends() else { return Ok(Vec::new()) };
    if wanted.is_empty() {
        let grain = history.unit.grain();
        let mut at: Vec<f64> =
            HORIZONS.iter().map(|horizon| ((last + horizon * (last - first)) / grain).floor() * grain).collect();
        at.retain(|at| *at > last);
        at.dedup();
        return Ok(at);
    }
    let time = |when: &When| match (when, &history.unit) {
        (When::Date(seconds), Unit::Days | Unit::Minutes) => Ok(*seconds as f64),
        (When::Steps(steps), Unit::Steps(_)) => Ok(*steps as f64),
        (When::Date(_), _) => Err(usage("--at: a run has no dates", Some("write a number of counted steps"))),
        (When::Steps(_), _) => Err(usage("--at: inspections have dates", Some("write a date such as 2027-03-14"))),
    };
    let times = wanted.iter().map(time).collect::<Result<Vec<f64>>>()?;
    match times.iter().find(|at| **at <= last) {
        Some(at) => {
            let (at, last, of) = (history.unit.tell(*at), history.unit.tell(last), &history.of);
            let message = format!("--at: {at} is not after the last value of {of}, at {last}");
            Err(usage(message, Some("name a later one, or choose volumes of a run with --arm and --role")))
        }
        None => Ok(times),
    }
}

/// Computes the forecasts of slowdown and cost. The error is the reason why there are none.
fn foretell(history: &History, threshold: f64, at: &[f64]) -> Result<Found, String> {
    let of = |value: fn(&Value) -> f64| Forecast::compute(&history.points(value)).map_err(|error| error.to_string());
    let (slowdown, cost) = (of(|value| value.slowdown)?, of(|value| value.cost)?);
    let crossing = match slowdown.crossing(threshold) {
        Crossing::Reached { at } => {
            CrossingTime { state: CrossingState::Reached, at: Some(at), earliest: None, latest: None }
        }
        Crossing::Ahead { earliest, at, latest } => {
            let state = if at.is_some() { CrossingState::Expected } else { CrossingState::NotExpected };
            CrossingTime { state, at, earliest, latest }
        }
    };
    let later = at.iter().map(|at| Later { at: *at, slowdown: slowdown.at(*at), cost: cost.at(*at) }).collect();
    let (curve, own_error, farthest) = (slowdown.curve(), slowdown.own_error(), slowdown.farthest());
    Ok(Found { curve, own_error, farthest, crossing, later })
}

fn describe(history: History, found: Result<Found, &String>, threshold: f64) -> VolumeForecast {
    let text = match &found {
        Ok(found) => screen::sentence(&history, found, threshold),
        Err(reason) => format!("No forecast for {}: {reason}.", history.of),
    };
    VolumeForecast {
        of: history.of,
        device: history.device,
        unit: history.unit.name().to_owned(),
        time_unit: history.unit,
        cost_unit: history.cost_unit,
        against: history.against,
        text,
        history: history.values,
        notes: history.notes,
        forecast: found.ok(),
    }
}

//! Forecasts as text.

use senesce_core::statistics::forecast::{Curve, Expected};
use senesce_report::count;

use super::{
    Against, CrossingState, CrossingTime, ForecastDocument, Found, VolumeForecast,
    history::{History, Unit},
};
use crate::table::{render_table, tell_ratio, tell_value};

/// The forecast of a volume as one or two sentences.
pub(super) fn sentence(history: &History, found: &Found, threshold: f64) -> String {
    let of = &history.of;
    let base = match history.against {
        Against::FreshCopy => "a fresh copy",
        Against::FirstValue => "at its first checkpoint",
    };
    let times = if threshold == 2.0 { "twice".to_owned() } else { format!("{threshold} times") };
    let long = format!("{times} as long as {base}");
    let tell = |at: f64| match &history.unit {
        Unit::Steps(name) => format!("{} {name}", history.unit.tell(at)),
        _ => history.unit.tell(at),
    };
    let farthest = tell(found.farthest);
    let does_not_grow = format!("No date: the cost of reading {of} does not grow measurably.");
    let CrossingTime { state, at, earliest, latest } = found.crossing;
    match (state, at, earliest, latest) {
        (CrossingState::Reached, Some(at), ..) => {
            let now = history.values.last().map_or(0.0, |value| value.slowdown);
            format!("Reading {of} has taken {long} since {}: now {} times.", tell(at), tell_value(now))
        }
        (_, Some(at), earliest, latest) => {
            let earliest = earliest.map_or_else(String::new, tell);
            let interval = match latest {
                Some(latest) => format!("{earliest} to {}", tell(latest)),
                None => format!("{earliest} or later"),
            };
            format!("Reading {of} will take {long} about {} (95%: {interval}).", tell(at))
        }
        (_, None, Some(earliest), _) if found.curve == Curve::NoChange => {
            format!("{does_not_grow} It can take {long} from {} on (95%).", tell(earliest))
        }
        (_, None, Some(earliest), _) => format!(
            "Reading {of} is not expected to take {long} before {farthest}, the end of this forecast. It can from {} on \
             (95%).",
            tell(earliest)
        ),
        (_, None, None, _) => {
            let before =
                if found.curve == Curve::NoChange { format!("{does_not_grow} It") } else { format!("Reading {of}") };
            format!("{before} does not take {long} until {farthest} (95%), the end of this forecast.")
        }
    }
}

/// All forecasts: for each a sentence, the notes and a table.
pub(super) fn render(document: &ForecastDocument) -> String {
    let blocks: Vec<String> = document.forecasts.iter().map(block).collect();
    blocks.join("\n")
}

fn block(volume: &VolumeForecast) -> String {
    let mut text = format!("{}\n", volume.text);
    for note in &volume.notes {
        text.push_str(&format!("{note}\n"));
    }
    let Some(found) = &volume.forecast else { return text };
    let (unit, values) = (&volume.time_unit, &volume.history);
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return text };
    text.push_str(&format!(
        "From {} {}, {} to {}, on {}.\nThe slowdown continues as {}; its own error one step ahead is {:.1}%.\n",
        count(values.len() as u64),
        unit.values(),
        unit.tell(first.at),
        unit.tell(last.at),
        volume.device,
        found.curve.words(),
        100.0 * found.own_error.exp_m1().min(9.99)
    ));
    let heading = match unit {
        Unit::Steps(name) => name.clone(),
        _ => "date".to_owned(),
    };
    let cost = match volume.cost_unit {
        "s" => "read, s".to_owned(),
        unit => format!("cost, {unit}"),
    };
    let mut lines = vec![vec![heading, "slowdown".to_owned(), "95%".to_owned(), cost, "95%".to_owned()]];
    let none = String::new;
    lines.push(vec![unit.tell(last.at), tell_ratio(last.slowdown), none(), tell_value(last.cost), none()]);
    let interval =
        |expected: &Expected, tell: fn(f64) -> String| format!("{}..{}", tell(expected.low), tell(expected.high));
    let mut beyond = false;
    for later in &found.later {
        let mut line = vec![unit.tell(later.at)];
        match (&later.slowdown, &later.cost) {
            (Some(slowdown), Some(cost)) => line.extend([
                tell_ratio(slowdown.value),
                interval(slowdown, tell_ratio),
                tell_value(cost.value),
                interval(cost, tell_value),
            ]),
            _ => {
                line.push("unknown".to_owned());
                beyond = true;
            }
        }
        lines.push(line);
    }
    text.push_str(&render_table(&lines));
    if beyond {
        text.push_str(&format!(
            "The forecast reaches to {}, twice as far as the history.\n",
            unit.tell(found.farthest)
        ));
    }
    text
}

//! What is kept of a part that ran.

use std::collections::BTreeMap;

use senesce_trials::{Band, Fact, Figure, Scale};
use serde::{Deserialize, Serialize};

use super::{Chart, PUBLISHED, Part, charts, circumstances};
use crate::Stage;

/// What is said of a figure that is outside and that nobody has explained.
const UNKNOWN: &str = "The cause is not known.";

/// A figure of ours beside the published one, as it is shown and kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// What it is.
    pub name: String,
    /// What was published; empty if nothing was.
    pub paper: String,
    /// What came out; none if that is no number, or has no end.
    pub value: Option<f64>,
    /// The same in words.
    pub ours: String,
    /// What is accepted.
    pub band: String,
    /// Whether there are bounds at all.
    pub judged: bool,
    /// Whether it is within them.
    pub inside: bool,
    /// Why it is outside, or that this is not known; nothing of what is inside or has no bounds.
    pub cause: Option<String>,
}

/// What came out of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its experiment.
    pub experiment: String,
    /// Structure or time.
    pub kind: String,
    /// What it is about.
    pub title: String,
    /// Its scale.
    pub scale: Scale,
    /// Figures beside the published ones.
    pub figures: Vec<Told>,
    /// What of the published experiment is not here, or other than there.
    pub notes: Vec<String>,
    /// What was set.
    pub circumstances: Vec<Fact>,
    /// What is drawn.
    pub charts: Vec<Chart>,
}

impl Record {
    pub(super) fn of_structure(outcome: &senesce_trials::Outcome) -> Self {
        let part = Part::Structure(outcome.experiment);
        Self::new(
            part,
            outcome.scale,
            &outcome.figures,
            &outcome.notes,
            circumstances::of_structure(outcome),
            charts::of_structure(outcome),
        )
    }

    pub(super) fn of_time(outcome: &crate::Outcome) -> Self {
        let part = Part::Time(outcome.experiment);
        let notes: Vec<String> = outcome.notes.iter().cloned().chain(tell_unkept(&outcome.stages)).collect();
        Self::new(
            part,
            outcome.scale,
            &outcome.figures,
            &notes,
            circumstances::of_time(outcome),
            charts::of_time(outcome),
        )
    }

    fn new(
        part: Part,
        scale: Scale,
        figures: &[Figure],
        notes: &[String],
        circumstances: Vec<Fact>,
        charts: Vec<Chart>,
    ) -> Self {
        Self {
            experiment: part.experiment(),
            kind: part.kind().to_owned(),
            title: part.title().to_owned(),
            scale,
            figures: figures.iter().map(|figure| Told::of(figure, &part.experiment(), scale)).collect(),
            notes: notes.to_vec(),
            circumstances,
            charts,
        }
    }
}

impl Told {
    fn of(figure: &Figure, experiment: &str, scale: Scale) -> Self {
        let Figure { name, paper, ours, band, inside } = figure;
        let judged = *band != Band::any();
        let published = || PUBLISHED.iter().find(|published| published.name == experiment);
        let cause = || published().and_then(|published| published.find_cause(name, *ours, scale)).unwrap_or(UNKNOWN);
        Self {
            name: name.clone(),
            paper: paper.clone(),
            value: ours.is_finite().then_some(shorten(*ours)),
            ours: tell(*ours),
            band: band.to_string(),
            judged,
            inside: *inside,
            cause: (judged && !inside).then(|| cause().to_owned()),
        }
    }
}

/// Which runs did not keep up: why a latency has no figure, or none that means more than that.
fn tell_unkept(stages: &[Stage]) -> Option<String> {
    let mut unkept: BTreeMap<(&str, u64), [usize; 2]> = BTreeMap::new();
    for stage in stages {
        for run in &stage.runs {
            let [not, all] = unkept.entry((&stage.name, run.load)).or_default();
            *not += usize::from(!run.figures.kept_up);
            *all += 1;
        }
    }
    let told = unkept.into_iter().filter(|(_, [not, _])| *not > 0);
    let told: Vec<String> =
        told.map(|((name, load), [not, all])| format!("{name} at {load}: {not} of {all}")).collect();
    (!told.is_empty()).then(|| format!("Runs that did not keep up with their load: {}.", told.join("; ")))
}

/// Six digits that count: as many survive being written and read anywhere, bit by bit.
pub(super) fn shorten(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// Three digits that count.
fn tell(value: f64) -> String {
    if value.is_nan() {
        return "no figure".to_owned();
    }
    if value.is_infinite() {
        return "no bound".to_owned();
    }
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    format!("{value:.*}", (2 - magnitude).clamp(0, 4) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_json_lacks_are_words() {
        for (ours, value, told) in [
            (0.0, Some(0.0), "0.00"),
            (0.0123, Some(0.0123), "0.0123"),
            (12.345, Some(12.345), "12.3"),
            (123_456.0, Some(123_456.0), "123456"),
            (1.0 / 3.0, Some(0.333333), "0.333"),
            (f64::INFINITY, None, "no bound"),
            (f64::NAN, None, "no figure"),
        ] {
            let figure = Told::of(&Figure::new("f", "", ours, Band::at_most(1.0)), "E1", Scale::EIGHTH);
            assert_eq!(figure.cause.as_deref(), (!figure.inside).then_some(UNKNOWN));
            assert_eq!((figure.value, figure.ours.as_str(), figure.inside), (value, told, ours <= 1.0), "{ours}");
            let text = serde_json::to_string(&figure).unwrap();
            assert_eq!(serde_json::from_str::<Told>(&text).unwrap(), figure);
        }
        assert!(!Told::of(&Figure::new("f", "", 7.0, Band::any()), "E1", Scale::EIGHTH).judged);
    }
}

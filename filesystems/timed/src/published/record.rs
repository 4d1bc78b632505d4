//! The stored result of a part.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use senesce_trials::{Fact, Figure, Scale, Verdict};
use serde::{Deserialize, Serialize};

use super::{Chart, PUBLISHED, Part, charts, circumstances};
use crate::Stage;

/// The cause of a figure that is not met, if none is known.
const UNKNOWN: &str = "The cause is not known.";

/// Our figure beside the published one, as it is shown and stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShownFigure {
    /// Its name.
    pub name: String,
    /// The paper's statement; empty if it has none.
    pub paper: String,
    /// The section of the paper; empty without a statement.
    pub section: String,
    /// The published number, if there is one.
    pub published: Option<f64>,
    /// Our value. `None` if it is not finite.
    pub value: Option<f64>,
    /// The value in words.
    pub ours: String,
    /// Our value divided by the published number.
    pub ratio: Option<f64>,
    /// The verdict. `None` without a statement of the paper.
    pub verdict: Option<Verdict>,
    /// The parameter that was fitted to this figure. `None` if the figure is a prediction.
    pub fitted: Option<String>,
    /// The reason why a number is not met or not comparable, or that the reason is unknown.
    pub cause: Option<String>,
}

/// The result of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Its experiment.
    pub experiment: String,
    /// The kind of part: structure or time.
    pub kind: String,
    /// Its title.
    pub title: String,
    /// Its scale.
    pub scale: Scale,
    /// Figures, with the paper's statements.
    pub figures: Vec<ShownFigure>,
    /// Differences from the published experiment.
    pub notes: Vec<String>,
    /// The settings.
    pub circumstances: Vec<Fact>,
    /// The charts.
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
            figures: figures.iter().map(|figure| ShownFigure::of(figure, &part.experiment(), scale)).collect(),
            notes: notes.to_vec(),
            circumstances,
            charts,
        }
    }
}

impl ShownFigure {
    pub(super) fn of(figure: &Figure, experiment: &str, scale: Scale) -> Self {
        let Figure { name, ours, quote } = figure;
        let (quote, verdict) = (quote.as_ref(), figure.verdict());
        let published = quote.and_then(|quote| quote.claim.number());
        let known = || PUBLISHED.iter().find(|published| published.name == experiment)?.find_cause(name, *ours, scale);
        let cause = match verdict {
            Some(Verdict::NotComparable) => quote.and_then(|quote| quote.obstacle.clone()),
            // The paper has only a direction without a number.
            Some(Verdict::DirectionOnly) if published.is_none() => None,
            Some(Verdict::DirectionOnly | Verdict::NotMet) => Some(known().unwrap_or(UNKNOWN).to_owned()),
            Some(Verdict::Met) | None => None,
        };
        Self {
            name: name.clone(),
            paper: quote.map_or(String::new(), |quote| quote.words.clone()),
            section: quote.map_or(String::new(), |quote| quote.section.clone()),
            published: published.map(shorten),
            value: ours.is_finite().then_some(shorten(*ours)),
            ours: tell(*ours),
            ratio: figure.over_published().filter(|_| verdict != Some(Verdict::NotComparable)).map(shorten),
            verdict,
            fitted: quote.and_then(|quote| quote.fitted.clone()),
            cause,
        }
    }
}

/// The number of published numbers, and how close our figures are to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Published numbers.
    pub numbers: usize,
    /// The number of published numbers with each verdict, in the order of the verdicts.
    pub verdicts: [usize; 4],
    /// Met numbers to which a parameter was fitted.
    pub fitted: usize,
    /// Published directions without a number.
    pub directions: usize,
    /// Published directions that our figures have, too.
    pub kept: usize,
}

impl Tally {
    /// The tally of these figures.
    pub fn of<'t>(figures: impl IntoIterator<Item = &'t ShownFigure>) -> Self {
        let mut tally = Self::default();
        for figure in figures {
            let Some(verdict) = figure.verdict else { continue };
            if figure.published.is_none() {
                tally.directions += 1;
                tally.kept += usize::from(verdict == Verdict::DirectionOnly);
                continue;
            }
            tally.numbers += 1;
            tally.fitted += usize::from(verdict == Verdict::Met && figure.fitted.is_some());
            for (count, one) in tally.verdicts.iter_mut().zip(Verdict::ALL) {
                *count += usize::from(verdict == one);
            }
        }
        tally
    }

    /// The tally in words.
    pub fn words(&self) -> String {
        let Self { numbers, verdicts: [met, direction, not, other], fitted, directions, kept } = self;
        let mut words = format!(
            "{met} of {numbers} published numbers are met within 40% ({fitted} of them fitted), {direction} in direction only, {not} not, {other} not comparable."
        );
        if *directions > 0 {
            words.push_str(&format!(" {kept} of {directions} published directions without a number hold."));
        }
        words
    }
}

/// The overloaded runs, which explain why a latency has no figure or no further meaning.
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

/// Rounds to six significant digits, which survive text formats exactly.
pub(super) fn shorten(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// Formats three significant digits.
pub(super) fn tell(value: f64) -> String {
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
    use senesce_trials::Claim;

    use super::*;

    #[test]
    fn non_finite_numbers_become_words() {
        for (ours, value, told) in [
            (0.0, Some(0.0), "0.00"),
            (0.0123, Some(0.0123), "0.0123"),
            (12.345, Some(12.345), "12.3"),
            (123_456.0, Some(123_456.0), "123456"),
            (1.0 / 3.0, Some(0.333333), "0.333"),
            (f64::INFINITY, None, "no bound"),
            (f64::NAN, None, "no figure"),
        ] {
            let figure =
                ShownFigure::of(&Figure::new("f", ours).quoted(Claim::AtMost(1.0), "", "1"), "E1", Scale::EIGHTH);
            let is_met = figure.verdict == Some(Verdict::Met);
            assert_eq!(figure.cause.as_deref(), (!is_met).then_some(UNKNOWN));
            assert_eq!((figure.value, figure.ours.as_str(), is_met), (value, told, ours <= 1.0), "{ours}");
            let text = serde_json::to_string(&figure).unwrap();
            assert_eq!(serde_json::from_str::<ShownFigure>(&text).unwrap(), figure);
        }
        assert_eq!(ShownFigure::of(&Figure::new("f", 7.0), "E1", Scale::EIGHTH).verdict, None);
    }

    #[test]
    fn numbers_directions_and_fits_are_counted_separately() {
        let told = |figure: Figure| ShownFigure::of(&figure, "E1", Scale::EIGHTH);
        let number = |ours| Figure::new("f", ours).number(10.0, "1");
        let figures = [
            told(number(11.0)),
            told(number(9.0).fitted("by hand")),
            told(number(90.0).ratio()),
            told(number(0.5).ratio()),
            told(number(10.0).not_comparable(Some("other drives"))),
            told(Figure::new("f", 2.0).quoted(Claim::Rises, "more", "1").ratio()),
            told(Figure::new("f", 0.5).quoted(Claim::Rises, "more", "1").ratio()),
            told(Figure::new("f", 7.0)),
        ];
        let tally = Tally::of(&figures);
        let wanted = Tally { numbers: 5, verdicts: [2, 1, 1, 1], fitted: 1, directions: 2, kept: 1 };
        assert_eq!(tally, wanted, "{}", tally.words());
        assert_eq!(figures[4].cause.as_deref(), Some("other drives"));
        assert_eq!((figures[2].cause.as_deref(), &figures[5].cause), (Some(UNKNOWN), &None));
    }
}

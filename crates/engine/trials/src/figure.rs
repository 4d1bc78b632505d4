//! A figure of ours beside the published one, and the verdict, which is computed here and nowhere else.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How far a figure may be from a published number and still meet it, as a part of that number.
pub const TOLERANCE: f64 = 0.4;

/// What the paper says of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// A number.
    Number(f64),
    /// A bound that the paper states as one ("a fraction of a core", "within a month").
    AtMost(f64),
    /// More than before, without a number.
    Rises,
    /// Less than before, without a number.
    Falls,
}

impl Claim {
    /// The number, if there is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) | Self::AtMost(number) => Some(number),
            Self::Rises | Self::Falls => None,
        }
    }
}

/// What the paper says, where, and what limits a comparison with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quote {
    /// The paper's statement, in short.
    pub words: String,
    /// The section of the paper.
    pub section: String,
    /// The same as the verdict needs it.
    pub claim: Claim,
    /// The state from which the paper's figure changed, and ours. None: the figure is of one state.
    pub before: Option<(f64, f64)>,
    /// Why the figures are not comparable.
    pub obstacle: Option<String>,
    /// The parameter that was set so that this figure comes out: then it is no prediction.
    pub fitted: Option<String>,
}

/// How near a figure is to the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within 40 % of the published number, or within the published bound.
    Met,
    /// The change has the published sign. The number is further away, or none is published.
    DirectionOnly,
    /// Neither.
    NotMet,
    /// The published figure and ours are not of the same quantity, or ours has no meaning.
    NotComparable,
}

impl Verdict {
    /// All of them, the best first.
    pub const ALL: [Self; 4] = [Self::Met, Self::DirectionOnly, Self::NotMet, Self::NotComparable];

    /// Its words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Met => "met within 40%",
            Self::DirectionOnly => "direction only",
            Self::NotMet => "not met",
            Self::NotComparable => "not comparable",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// A figure of ours, and what the paper says of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Our value.
    pub ours: f64,
    /// The paper's statement. None: the paper says nothing of it, and there is no verdict.
    pub quote: Option<Quote>,
}

impl Figure {
    /// A figure of which the paper says nothing.
    pub fn new(name: &str, ours: f64) -> Self {
        Self { name: name.to_owned(), ours, quote: None }
    }

    /// The paper has this number in that section.
    pub fn number(self, number: f64, section: &str) -> Self {
        self.quoted(Claim::Number(number), &number.to_string(), section)
    }

    /// The paper's statement in words, as a claim that a verdict can be computed from.
    pub fn quoted(mut self, claim: Claim, words: &str, section: &str) -> Self {
        let (words, section) = (words.to_owned(), section.to_owned());
        self.quote = Some(Quote { words, section, claim, before: None, obstacle: None, fitted: None });
        self
    }

    /// The figure is of a state after a change. `published` and `ours` are the figures of the state before it.
    pub fn after(self, published: f64, ours: f64) -> Self {
        self.with(|quote| quote.before = Some((published, ours)))
    }

    /// The figure is a ratio of two states, so 1 is no change.
    pub fn ratio(self) -> Self {
        self.after(1.0, 1.0)
    }

    /// The figure is a difference of two states, so 0 is no change.
    pub fn difference(self) -> Self {
        self.after(0.0, 0.0)
    }

    /// Why it is not comparable, if it is not.
    pub fn not_comparable(self, why: Option<&str>) -> Self {
        self.with(|quote| quote.obstacle = why.map(str::to_owned))
    }

    /// Names the parameter that was set so that this figure comes out.
    pub fn fitted(self, how: &str) -> Self {
        self.with(|quote| quote.fitted = Some(how.to_owned()))
    }

    fn with(mut self, change: impl FnOnce(&mut Quote)) -> Self {
        if let Some(quote) = &mut self.quote {
            change(quote);
        }
        self
    }

    /// Ours over the published number, if there is one.
    pub fn over_published(&self) -> Option<f64> {
        let number = self.quote.as_ref()?.claim.number()?;
        let ratio = self.ours / number;
        ratio.is_finite().then_some(ratio)
    }

    /// The verdict: none if the paper says nothing of the figure.
    pub fn verdict(&self) -> Option<Verdict> {
        let Quote { claim, before, obstacle, .. } = self.quote.as_ref()?;
        if obstacle.is_some() {
            return Some(Verdict::NotComparable);
        }
        let is_met = match *claim {
            Claim::Number(number) => (self.ours / number - 1.0).abs() <= TOLERANCE,
            Claim::AtMost(most) => self.ours <= most,
            Claim::Rises | Claim::Falls => false,
        };
        let changes = |published: f64, ours: f64| match *claim {
            Claim::Number(number) | Claim::AtMost(number) => (number - published) * (self.ours - ours) > 0.0,
            Claim::Rises => self.ours > ours,
            Claim::Falls => self.ours < ours,
        };
        Some(match is_met {
            true => Verdict::Met,
            false if before.is_some_and(|(published, ours)| changes(published, ours)) => Verdict::DirectionOnly,
            false => Verdict::NotMet,
        })
    }
}

/// Figures as a table with their verdicts, and notes below.
pub fn render_figures(figures: &[Figure], notes: &[String]) -> String {
    let mut text = format!("{:<62} {:>12} {:>10} {:>7}  verdict\n", "figure", "published", "ours", "ratio");
    for figure in figures {
        let published = figure.quote.as_ref().map_or(String::new(), |quote| quote.words.clone());
        let ratio = figure.over_published().map_or(String::new(), |ratio| format!("{ratio:.2}"));
        let verdict = figure.verdict().map_or("", Verdict::words);
        let (name, ours) = (&figure.name, figure.ours);
        text.push_str(&format!("{name:<62} {published:>12} {ours:>10.3} {ratio:>7}  {verdict}\n"));
    }
    for note in notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_percent_either_way_meet_a_number() {
        for (ours, verdict) in [
            (6.0, Verdict::Met),
            (14.0, Verdict::Met),
            (5.9, Verdict::NotMet),
            (14.1, Verdict::NotMet),
            (f64::NAN, Verdict::NotMet),
            (f64::INFINITY, Verdict::NotMet),
        ] {
            assert_eq!(Figure::new("f", ours).number(10.0, "1").verdict(), Some(verdict), "{ours}");
        }
        assert_eq!(Figure::new("f", 1.0).verdict(), None);
    }

    #[test]
    fn a_number_that_is_far_away_has_its_direction_from_the_state_before() {
        let figure = |ours: f64| Figure::new("f", ours).number(40.0, "1").after(2.0, 5.0);
        for (ours, verdict) in [
            (40.0, Verdict::Met),
            (9.0, Verdict::DirectionOnly),
            (80.0, Verdict::DirectionOnly),
            (4.0, Verdict::NotMet),
        ] {
            assert_eq!(figure(ours).verdict(), Some(verdict), "{ours}");
        }
        assert_eq!(figure(5.0).verdict(), Some(Verdict::NotMet), "no change has no direction");
    }

    #[test]
    fn bounds_and_words_are_judged_as_the_paper_states_them() {
        let bound = |ours| Figure::new("f", ours).quoted(Claim::AtMost(1.0), "< 1", "1").verdict();
        assert_eq!((bound(1.0), bound(1.1)), (Some(Verdict::Met), Some(Verdict::NotMet)));
        let words = |claim, ours| Figure::new("f", ours).quoted(claim, "more", "1").ratio().verdict();
        for (claim, ours, verdict) in [
            (Claim::Rises, 1.2, Verdict::DirectionOnly),
            (Claim::Rises, 0.9, Verdict::NotMet),
            (Claim::Falls, 0.9, Verdict::DirectionOnly),
            (Claim::Falls, 1.0, Verdict::NotMet),
            (Claim::Rises, f64::NAN, Verdict::NotMet),
        ] {
            assert_eq!(words(claim, ours), Some(verdict), "{claim:?} {ours}");
        }
    }

    #[test]
    fn an_obstacle_overrides_every_number() {
        let figure = Figure::new("f", 10.0).number(10.0, "1").not_comparable(Some("other drives"));
        assert_eq!(figure.verdict(), Some(Verdict::NotComparable));
        assert_eq!(figure.not_comparable(None).verdict(), Some(Verdict::Met));
    }
}

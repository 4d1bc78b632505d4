//! Compares figures with the published ones. Only this module computes verdicts.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tolerance of [`Verdict::Met`], as a part of the published number.
pub const TOLERANCE: f64 = 0.4;

/// The statement of the paper about a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// A number.
    Number(f64),
    /// A bound that the paper states as one ("a fraction of a core", "within a month").
    AtMost(f64),
    /// An increase without a number.
    Rises,
    /// A decrease without a number.
    Falls,
}

impl Claim {
    /// The number, if the claim has one.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) | Self::AtMost(number) => Some(number),
            Self::Rises | Self::Falls => None,
        }
    }
}

/// A statement of the paper, its section, and the limits of a comparison with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quote {
    /// The statement, in short.
    pub words: String,
    /// The section of the paper.
    pub section: String,
    /// The statement as the verdict needs it.
    pub claim: Claim,
    /// The paper's figure and ours before the change. `None`: the figure is of a single state.
    pub before: Option<(f64, f64)>,
    /// The reason why the figures are not comparable.
    pub obstacle: Option<String>,
    /// The parameter that was fitted to this figure. Then the figure is not a prediction.
    pub fitted: Option<String>,
}

/// The agreement of a figure with the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within 40 % of the published number, or within the published bound.
    Met,
    /// The change has the published sign, but the number differs by more, or the paper has none.
    DirectionOnly,
    /// Neither the number nor the direction agrees.
    NotMet,
    /// The published figure is of another quantity, or ours has no meaning.
    NotComparable,
}

impl Verdict {
    /// All verdicts, the best first.
    pub const ALL: [Self; 4] = [Self::Met, Self::DirectionOnly, Self::NotMet, Self::NotComparable];

    /// The verdict in words.
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

/// A figure of ours, with the paper's statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The name.
    pub name: String,
    /// Our value.
    pub ours: f64,
    /// The paper's statement. `None`: the paper does not have the figure, so there is no verdict.
    pub quote: Option<Quote>,
}

impl Figure {
    /// Makes a figure without a statement of the paper.
    pub fn new(name: &str, ours: f64) -> Self {
        Self { name: name.to_owned(), ours, quote: None }
    }

    /// Adds a published number and its section.
    pub fn number(self, number: f64, section: &str) -> Self {
        self.quoted(Claim::Number(number), &number.to_string(), section)
    }

    /// Adds the paper's statement in words, with the claim from which the verdict is computed.
    pub fn quoted(mut self, claim: Claim, words: &str, section: &str) -> Self {
        let (words, section) = (words.to_owned(), section.to_owned());
        self.quote = Some(Quote { words, section, claim, before: None, obstacle: None, fitted: None });
        self
    }

    /// Marks the figure as one after a change. `published` and `ours` are the figures before it.
    pub fn after(self, published: f64, ours: f64) -> Self {
        self.with(|quote| quote.before = Some((published, ours)))
    }

    /// Marks the figure as a ratio of two states, so 1 is no change.
    pub fn ratio(self) -> Self {
        self.after(1.0, 1.0)
    }

    /// Marks the figure as a difference of two states, so 0 is no change.
    pub fn difference(self) -> Self {
        self.after(0.0, 0.0)
    }

    /// Sets the reason why the figure is not comparable, or clears it.
    pub fn not_comparable(self, why: Option<&str>) -> Self {
        self.with(|quote| quote.obstacle = why.map(str::to_owned))
    }

    /// Names the parameter that was fitted to this figure.
    pub fn fitted(self, how: &str) -> Self {
        self.with(|quote| quote.fitted = Some(how.to_owned()))
    }

    fn with(mut self, change: impl FnOnce(&mut Quote)) -> Self {
        if let Some(quote) = &mut self.quote {
            change(quote);
        }
        self
    }

    /// Our value over the published number, if there is one.
    pub fn over_published(&self) -> Option<f64> {
        let number = self.quote.as_ref()?.claim.number()?;
        let ratio = self.ours / number;
        ratio.is_finite().then_some(ratio)
    }

    /// The verdict; `None` without a statement of the paper.
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

/// Renders figures as a table with their verdicts, then the notes.
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
    fn distant_numbers_are_judged_by_direction() {
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
    fn bounds_and_directions_have_verdicts() {
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

//! Figures of experiments beside the published ones.

use senesce_core::verdict::{Claim, Verdict};
use serde::{Deserialize, Serialize};

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
        Some(claim.judge(self.ours, *before))
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
    fn a_figure_without_a_statement_has_no_verdict() {
        assert_eq!(Figure::new("f", 1.0).verdict(), None);
        let after = |ours| Figure::new("f", ours).number(40.0, "1").after(2.0, 5.0).verdict();
        assert_eq!((after(9.0), after(4.0)), (Some(Verdict::DirectionOnly), Some(Verdict::NotMet)));
    }

    #[test]
    fn an_obstacle_overrides_every_number() {
        let figure = Figure::new("f", 10.0).number(10.0, "1").not_comparable(Some("other drives"));
        assert_eq!(figure.verdict(), Some(Verdict::NotComparable));
        assert_eq!(figure.not_comparable(None).verdict(), Some(Verdict::Met));
    }
}

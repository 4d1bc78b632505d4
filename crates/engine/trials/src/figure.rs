//! A figure of ours beside a published one.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is accepted: bounds that belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// No less, if there is a bound.
    pub least: Option<f64>,
    /// No more, if there is a bound.
    pub most: Option<f64>,
}

impl Band {
    /// From one bound to the other.
    pub fn between(least: f64, most: f64) -> Self {
        Self { least: Some(least), most: Some(most) }
    }

    /// This or more.
    pub fn at_least(least: f64) -> Self {
        Self { least: Some(least), most: None }
    }

    /// This or less.
    pub fn at_most(most: f64) -> Self {
        Self { least: None, most: Some(most) }
    }

    /// No bound: the figure is told only.
    pub fn any() -> Self {
        Self { least: None, most: None }
    }

    /// Whether a value is in it. What is no number is not.
    pub fn contains(self, value: f64) -> bool {
        !value.is_nan() && self.least.is_none_or(|least| value >= least) && self.most.is_none_or(|most| value <= most)
    }
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (Some(least), Some(most)) if least == most => write!(f, "{least}"),
            (Some(least), Some(most)) => write!(f, "{least}..{most}"),
            (Some(least), None) => write!(f, ">= {least}"),
            (None, Some(most)) => write!(f, "<= {most}"),
            (None, None) => f.write_str("any"),
        }
    }
}

/// A figure of ours beside the published one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// What was published, in words; empty if nothing was.
    pub paper: String,
    /// What came out here.
    pub ours: f64,
    /// What is accepted.
    pub band: Band,
    /// Whether it is in the band.
    pub inside: bool,
}

impl Figure {
    /// A figure; whether it is inside is decided here and nowhere else.
    pub fn new(name: &str, paper: &str, ours: f64, band: Band) -> Self {
        Self { name: name.to_owned(), paper: paper.to_owned(), ours, band, inside: band.contains(ours) }
    }
}

/// Figures as a table with their bands, and notes below.
pub fn render_figures(figures: &[Figure], notes: &[String]) -> String {
    let mut text = format!("{:<62} {:>10} {:>10}  inside\n", "figure", "ours", "band");
    for Figure { name, paper, ours, band, inside } in figures {
        let (band, inside) = (band.to_string(), if *inside { "yes" } else { "NO" });
        text.push_str(&format!("{name:<62} {ours:>10.3} {band:>10}  {inside}  (paper: {paper})\n"));
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
    fn bounds_belong_to_bands() {
        for (band, value, inside) in [
            (Band::between(5.0, 20.0), 5.0, true),
            (Band::between(5.0, 20.0), 20.0, true),
            (Band::between(5.0, 20.0), 20.01, false),
            (Band::at_least(8.0), 7.99, false),
            (Band::at_least(8.0), f64::INFINITY, true),
            (Band::at_most(4.0), 4.0, true),
            (Band::at_most(4.0), f64::NAN, false),
        ] {
            assert_eq!(Figure::new("f", "", value, band).inside, inside, "{value} in {band}");
        }
    }
}

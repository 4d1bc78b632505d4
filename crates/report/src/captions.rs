//! Sentences of captions about the marks of lines. A caption names only marks that are drawn.

use crate::chart::has_samples;
use crate::model::Model;
use crate::panels_lines::{LineFigure, ShownNoise, drawn_series};

/// The marks that a figure has beside its points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub intervals: bool,
    /// Single repetitions.
    pub samples: bool,
    pub outliers: bool,
    /// The noise band.
    pub noise: bool,
}

impl Marks {
    pub(crate) fn of(model: &Model, figure: &LineFigure) -> Self {
        let mut marks = Self::default();
        for spread in drawn_series(model, figure).flat_map(|series| series.points).map(|point| point.spread) {
            marks.intervals |= spread.count > 1;
            marks.samples |= has_samples(&spread);
            marks.outliers |= !spread.outliers.is_empty();
        }
        marks.noise = figure.noise != ShownNoise::None && !model.noise.is_empty();
        marks
    }

    /// The marks of both figures.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            intervals: self.intervals || other.intervals,
            samples: self.samples || other.samples,
            outliers: self.outliers || other.outliers,
            noise: self.noise || other.noise,
        }
    }

    /// Sentences about points that are medians of repetitions.
    pub(crate) fn of_repetitions(self) -> String {
        [
            (
                true,
                if self.intervals {
                    " Points are medians of the repetitions, bars their bootstrap 95% intervals."
                } else {
                    " Each cell was measured once (n = 1)."
                },
            ),
            (self.samples, " Small dots are the repetitions."),
            (self.outliers, " Rings are outliers (beyond Tukey's fences), which count like all others."),
        ]
        .into_iter()
        .filter(|(is_drawn, _)| *is_drawn)
        .map(|(_, sentence)| sentence)
        .collect()
    }
}

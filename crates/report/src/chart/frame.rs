//! The area of a panel: its size, and which of its texts it has.

use std::fmt::Write as _;

use super::{PANEL_HEIGHT, PANEL_WIDTH};
use crate::format::escape;

/// The area of a panel, in px.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    pub width: f64,
    /// The height of the data, without titles and axes.
    pub plot: f64,
    /// Whether the lines have their names at their ends. Otherwise a legend must name them.
    pub has_end_labels: bool,
    /// Whether the title of the y axis is above the panel.
    pub has_y_label: bool,
    /// Whether the x axis has its numbers and its title.
    pub has_x_axis: bool,
}

/// Height of the lines of text above the data and below them.
const TITLE: f64 = 22.0;
const Y_LABEL: f64 = 24.0;
const X_AXIS: f64 = 38.0;
/// Space below a panel without an x axis.
const NO_X_AXIS: f64 = 8.0;

impl Frame {
    /// The area of a panel of a page: [`PANEL_WIDTH`] by [`PANEL_HEIGHT`].
    pub(crate) const PAGE: Self = Self {
        width: PANEL_WIDTH,
        plot: PANEL_HEIGHT - TITLE - Y_LABEL - X_AXIS,
        has_end_labels: true,
        has_y_label: true,
        has_x_axis: true,
    };

    /// Where the data start, from the top.
    pub(crate) fn top(&self) -> f64 {
        TITLE + if self.has_y_label { Y_LABEL } else { 0.0 }
    }

    /// Where the data end, from the top.
    pub(crate) fn base(&self) -> f64 {
        self.top() + self.plot
    }

    pub(crate) fn height(&self) -> f64 {
        self.base() + if self.has_x_axis { X_AXIS } else { NO_X_AXIS }
    }

    /// The least N with which every Nth of `labels` labels, `label` px wide, fits in `length` px.
    pub(crate) fn every(length: f64, labels: usize, label: f64) -> usize {
        let parts = labels.saturating_sub(1).max(1);
        let least = (label / (length / parts as f64).max(0.1)).ceil().max(1.0) as usize;
        // The end of the axis has a label if the step between labels need not more than double.
        (least..=least * 2).find(|every| parts.is_multiple_of(*every)).unwrap_or(least)
    }

    /// The title of a panel; smaller, or cut, if it is too long for the panel.
    pub(crate) fn draw_title(&self, svg: &mut String, title: &str) {
        const LETTER: f64 = 8.2;
        const NARROW: f64 = 6.9;
        const SMALL: f64 = 6.0;
        let length = title.chars().count() as f64;
        let most = (self.width / SMALL).floor().max(2.0) as usize;
        // Panels this narrow have equally small titles beside each other.
        let is_narrow = self.width < 150.0;
        let (class, text) = match length {
            length if is_narrow && length * SMALL <= self.width => ("panel-title small-label", title.to_owned()),
            length if length * LETTER <= self.width => ("panel-title", title.to_owned()),
            length if length * NARROW <= self.width => ("panel-title narrow", title.to_owned()),
            length if length * SMALL <= self.width => ("panel-title small-label", title.to_owned()),
            _ => ("panel-title small-label", title.chars().take(most - 1).chain(['…']).collect()),
        };
        let _ = write!(svg, r#"<text class="{class}" x="0" y="14">{}</text>"#, escape(&text));
    }

    /// The title of the y axis.
    pub(crate) fn draw_y_label(&self, svg: &mut String, label: &str) {
        if self.has_y_label {
            let (class, text) = self.axis_text(label);
            let _ = write!(svg, r#"<text class="{class}" x="0" y="32">{}</text>"#, escape(&text));
        }
    }

    /// The title of the x axis, in the middle between two places.
    pub(crate) fn draw_x_label(&self, svg: &mut String, (left, right): (f64, f64), label: &str) {
        if self.has_x_axis {
            let (middle, y) = ((left + right) / 2.0, self.base() + 34.0);
            let (class, text) = self.axis_text(label);
            let _ = write!(
                svg,
                r#"<text class="{class}" x="{middle}" y="{y}" text-anchor="middle">{}</text>"#,
                escape(&text)
            );
        }
    }

    /// The title of an axis with its class: smaller, or its first part, if it is too long.
    fn axis_text(&self, label: &str) -> (&'static str, String) {
        const LETTER: f64 = 6.4;
        const SMALL: f64 = 5.7;
        let fits = |text: &str, letter: f64| text.chars().count() as f64 * letter <= self.width;
        let short = || {
            let first = label.split([',', '(']).next().unwrap_or(label).trim_end();
            // Without this word, a modelled cost reads as a measured one.
            if label.contains("(model") { format!("{first} (model)") } else { first.to_owned() }
        };
        let tries = [label.to_owned(), label.replace("seconds per GiB", "s/GiB"), short()];
        for text in tries {
            if fits(&text, LETTER) {
                return ("axis-label", text);
            }
            if fits(&text, SMALL) {
                return ("axis-label small-label", text);
            }
        }
        ("axis-label small-label", short().replace("seconds per GiB", "s/GiB"))
    }
}

/// A panel that can be drawn in several sizes.
pub(crate) trait Draw {
    /// The panel's elements, for the area.
    fn draw(&self, frame: &Frame) -> String;

    /// The height of its data on a page, for a panel that is not as high as others.
    fn page_plot(&self) -> f64 {
        Frame::PAGE.plot
    }

    /// The area that [`Draw::draw`] fills.
    fn height(&self, frame: &Frame) -> f64 {
        frame.height()
    }

    /// Whether the titles of the x and of the y axis are those of the figure's other panels.
    fn shares_titles(&self) -> (bool, bool) {
        (false, false)
    }

    /// Whether its y axis has a title.
    fn has_y_label(&self) -> bool {
        true
    }

    /// The name of the dotted line across the panel.
    fn reference(&self) -> Option<&'static str> {
        None
    }

    /// The most panels that are beside each other in one column of text.
    fn columns(&self) -> usize {
        2
    }

    /// Whether the panel is at least as high as wide, so that panels are beside each other.
    fn is_upright(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_axis_keeps_the_word_model() {
        let of = |width| Frame { width, ..Frame::PAGE }.axis_text("seconds per GiB (model)").1;
        assert_eq!(of(300.0), "seconds per GiB (model)");
        assert_eq!(of(105.0), "s/GiB (model)");
        assert_eq!(of(40.0), "s/GiB (model)");
    }

    #[test]
    fn last_label_is_the_end_of_the_axis() {
        // Five labels in 100 px of which each needs 36: 0 and 4 instead of 0 and 3.
        assert_eq!(Frame::every(100.0, 5, 60.0), 4);
        assert_eq!(Frame::every(400.0, 5, 36.0), 1);
    }
}

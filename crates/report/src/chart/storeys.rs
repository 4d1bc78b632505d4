//! A panel of two charts of lines, one above the other, with one x axis.

use super::{Draw, Frame, LinePanel};

/// The share of the height that the upper chart has.
const UPPER: f64 = 0.58;
/// Space that the lower chart does not need, because it has no title.
const NO_TITLE: f64 = 12.0;

/// The panel. The lower chart has no title.
pub(crate) struct StoreysPanel {
    pub upper: LinePanel,
    pub lower: LinePanel,
}

impl StoreysPanel {
    fn frames(frame: &Frame) -> (Frame, Frame) {
        let upper = Frame { plot: frame.plot * UPPER, has_x_axis: false, ..*frame };
        (upper, Frame { plot: frame.plot - upper.plot, has_y_label: true, ..*frame })
    }
}

impl Draw for StoreysPanel {
    fn draw(&self, frame: &Frame) -> String {
        let (upper, lower) = Self::frames(frame);
        let below = upper.height() - NO_TITLE;
        format!(r#"{}<g transform="translate(0,{below:.1})">{}</g>"#, self.upper.draw(&upper), self.lower.draw(&lower))
    }

    fn page_plot(&self) -> f64 {
        Frame::PAGE.plot * 1.4
    }

    fn height(&self, frame: &Frame) -> f64 {
        let (upper, lower) = Self::frames(frame);
        upper.height() - NO_TITLE + lower.height()
    }

    fn shares_titles(&self) -> (bool, bool) {
        (self.upper.shares_titles().0, false)
    }

    fn is_upright(&self) -> bool {
        true
    }
}

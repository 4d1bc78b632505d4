//! Drawing: panels as SVG. Colours are classes, so that a page can be light or dark; see
//! `assets/chart.css`.

mod curve;
mod dots;
mod frame;
mod histogram;
mod line;
mod map;
mod pairs;
mod plot;
mod scale;
mod stack;
mod storeys;
mod trade;

pub(crate) use curve::{Curve, CurvePanel, natural_size_mark};
pub(crate) use dots::DotPanel;
pub(crate) use frame::{Draw, Frame};
pub(crate) use histogram::{Distribution, HistogramPanel};
pub(crate) use line::{LinePanel, Point, Series, arm_marker, has_samples, marker};
pub(crate) use map::{MapPanel, PLACE_COLOURS, colour, hilbert_place};
pub(crate) use pairs::PairsPanel;
pub(crate) use plot::{PlotLine, PlotPanel};
pub(crate) use scale::{Axis, draw_heights, draw_named_heights, label_width, labelled_along, width_of_letters};
pub(crate) use stack::{Bar, ByteUnit, CLASS_NAMES, StackPanel};
pub(crate) use storeys::StoreysPanel;
pub(crate) use trade::TradePanel;

/// The start of each line that joins points. A legend has lines only if a drawing has one.
pub(crate) const LINE: &str = r#"<polyline class="line""#;
/// Size of every panel, in px at scale 1.
pub(crate) const PANEL_WIDTH: f64 = 360.0;
/// See [`PANEL_WIDTH`].
pub(crate) const PANEL_HEIGHT: f64 = 252.0;

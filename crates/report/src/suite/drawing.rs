//! The drawings of a personality: dots of rates with whiskers, on an axis of ratios.
//!
//! On wide screens the states are side by side. They are categories, so no line joins them: at each
//! aged dot, a short horizontal line marks the rate of the fresh volume. On narrow screens each
//! aged state has a row for each file system, from its fresh dot to its aged one.

use std::fmt::Write as _;

use super::{Bar, Page, class};
use crate::{
    chart::Axis,
    format::{escape, figure, number},
};

/// Size of the wide drawing, px, and its margins: left, top, bottom.
const SIZE: (f64, f64) = (1116.0, 300.0);
const MARGIN: (f64, f64, f64) = (44.0, 26.0, 30.0);
/// Width of the narrow drawing, its margins at the left and the right, and the height of a row.
const NARROW: f64 = 358.0;
const SIDES: (f64, f64) = (86.0, 12.0);
const ROW: f64 = 18.0;
/// The width of the label of a share, px.
const LABEL: f64 = 30.0;
/// The widest range of the axis: one outlier must not flatten all other dots.
const ENDS: (f64, f64) = (0.02, 50.0);
/// Ticks of ratios. Those that are too near to another one are left out.
const TICKS: [f64; 19] =
    [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5, 2.0, 5.0, 10.0, 20.0, 50.0];

/// The drawings of a personality for wide and for narrow screens.
pub(super) fn draw(page: &Page<'_>, personality: &str) -> [String; 2] {
    let drawing = Drawing { page, personality, axis: axis(page) };
    [drawing.wide(), drawing.narrow()]
}

/// The axis of all ratios and their intervals, from a tick to a tick. All personalities share it,
/// so that readers can compare their drawings.
fn axis(page: &Page<'_>) -> Axis {
    let volumes = || page.states.iter().flat_map(|state| page.file_systems.iter().map(move |fs| (fs, state)));
    let of = |personality: &String| -> Vec<Bar> {
        volumes().filter_map(|(fs, state)| page.bar(personality, fs, state)).collect()
    };
    let bars: Vec<Bar> = page.personalities.iter().flat_map(of).collect();
    let low = bars.iter().map(|bar| bar.low).fold(0.9, f64::min).max(ENDS.0);
    let high = bars.iter().map(|bar| bar.high).fold(1.1, f64::max).min(ENDS.1);
    let min = TICKS.into_iter().rev().find(|tick| *tick <= low).unwrap_or(ENDS.0);
    let max = TICKS.into_iter().find(|tick| *tick >= high).unwrap_or(ENDS.1);
    Axis { min, max, logarithmic: true }
}

struct Drawing<'p> {
    page: &'p Page<'p>,
    personality: &'p str,
    axis: Axis,
}

impl Drawing<'_> {
    /// The position of a ratio, 0 to 1.
    fn position(&self, ratio: f64) -> f64 {
        let ratio = if ratio.is_finite() { ratio.clamp(self.axis.min, self.axis.max) } else { self.axis.max };
        self.axis.position(ratio)
    }

    /// Ticks that are at least `apart` from each other, as shares of the axis; 1 is always one.
    fn ticks(&self, apart: f64) -> Vec<f64> {
        let mut kept: Vec<f64> = vec![1.0];
        let ends = [self.axis.min, self.axis.max];
        let is_inside = |tick: &f64| (self.axis.min..=self.axis.max).contains(tick);
        for tick in ends.into_iter().chain(TICKS.into_iter().filter(is_inside)) {
            if kept.iter().all(|other| (self.position(*other) - self.position(tick)).abs() >= apart) {
                kept.push(tick);
            }
        }
        kept
    }

    /// The ratio as text if the axis ends before it; else nothing.
    fn beyond(&self, ratio: f64, x: f64, y: f64) -> String {
        match (self.axis.min..=self.axis.max).contains(&ratio) {
            true => String::new(),
            false => {
                format!(r#"<text class="tick" x="{x:.1}" y="{y:.1}" text-anchor="middle">{}×</text>"#, figure(ratio))
            }
        }
    }

    /// The share of the own fresh rate, if the volume differs from it: the figure of the headline.
    fn own_share(&self, file_system: &str, state: &str, (x, anchor): (f64, &str), y: f64) -> String {
        let share = self.page.difference(self.personality, file_system, state);
        share.map_or_else(String::new, |share| {
            format!(r#"<text class="tick of-own" x="{x:.1}" y="{:.1}" text-anchor="{anchor}">{share}</text>"#, y + 4.0)
        })
    }

    fn head(&self, class: &str, width: f64, height: f64) -> String {
        let label = escape(&format!("{}: operations per second by state and file system", self.personality));
        let base = escape(self.page.file_systems.first().map_or("the first file system", String::as_str));
        format!(
            r#"<svg class="panel {class}" viewBox="0 0 {width} {height}" role="img" tabindex="0" aria-label="{label}"><text class="axis-label" x="0" y="11">operations per second, times {base} fresh (logarithmic)</text>"#
        )
    }

    fn bar(&self, file_system: &str, state: &str) -> Option<Bar> {
        self.page.bar(self.personality, file_system, state)
    }

    /// Class, name and value of a dot, for a tooltip.
    fn tip(&self, file_system: &str, state: &str) -> String {
        let colour = self.page.classes.get(file_system).map_or("", String::as_str);
        let Some(bar) = self.bar(file_system, state) else {
            return format!("{colour}\t{file_system}\tno run succeeded");
        };
        let rate = self.page.entry(self.personality, file_system, state)["rate"]["median"].as_f64();
        let rate = rate.map_or("–".to_owned(), figure);
        let (ratio, low, high) = (figure(bar.ratio), figure(bar.low), figure(bar.high));
        format!("{colour}\t{file_system}\t{ratio}× (95% {low} to {high}), {rate} operations/s")
    }

    fn wide(&self) -> String {
        let (width, height) = SIZE;
        let (left, top, bottom) = MARGIN;
        let y = |ratio: f64| top + (height - top - bottom) * (1.0 - self.position(ratio));
        let mut svg = self.head("wide", width, height);
        for tick in self.ticks(15.0 / (height - top - bottom)) {
            let (at, name) = (y(tick), number(tick));
            let class = if tick == 1.0 { "one" } else { "grid" };
            let _ = write!(
                svg,
                r#"<line class="{class}" x1="{left}" x2="{width}" y1="{at:.1}" y2="{at:.1}"/><text class="tick" x="{:.1}" y="{:.1}" text-anchor="end">{name}×</text>"#,
                left - 8.0,
                at + 4.0
            );
        }
        let group = (width - left) / self.page.states.len().max(1) as f64;
        let step = group * 0.8 / self.page.file_systems.len().max(1) as f64;
        let x = |place: usize, at: usize| left + group * (place as f64 + 0.1) + step * (at as f64 + 0.5);
        for (at, file_system) in self.page.file_systems.iter().enumerate() {
            let _ = write!(svg, r#"<g class="{}">"#, class(&self.page.classes, file_system));
            let bars: Vec<_> = self.page.states.iter().map(|state| self.bar(file_system, state)).collect();
            let fresh = self.bar(file_system, "fresh");
            for (place, bar) in bars.iter().enumerate() {
                let x = x(place, at);
                let Some(bar) = bar else {
                    let y = y(self.axis.min) - 4.0;
                    let _ = write!(svg, r#"<text class="failed" x="{x:.1}" y="{y:.1}" text-anchor="middle">×</text>"#);
                    continue;
                };
                if let Some(fresh) = fresh.as_ref().filter(|_| self.page.states[place] != "fresh") {
                    let _ = write!(svg, r#"<path class="join" d="M{:.1},{:.1}h18"/>"#, x - 9.0, y(fresh.ratio));
                }
                let (left, high, low) = (x - 3.0, y(bar.high), y(bar.low));
                let _ = write!(svg, r#"<path class="whisker" d="M{left:.1},{high:.1}h6m-3,0V{low:.1}m-3,0h6"/>"#);
                svg.push_str(&dot(&self.page.states[place], x, y(bar.ratio)));
                svg.push_str(&self.beyond(bar.ratio, x, y(bar.ratio) - 9.0));
                svg.push_str(&self.own_share(file_system, &self.page.states[place], (x + 8.0, "start"), y(bar.ratio)));
            }
            svg.push_str("</g>");
        }
        for (place, state) in self.page.states.iter().enumerate() {
            let start = left + group * place as f64;
            let tips = self.page.file_systems.iter().map(|name| self.tip(name, state));
            let tip = escape(&format!("{state}\n{}", tips.collect::<Vec<_>>().join("\n")));
            let _ = write!(
                svg,
                r#"<text class="state" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text><rect class="column" x="{start:.1}" y="{top}" width="{group:.1}" height="{:.1}" data-tip="{tip}"/>"#,
                start + group * 0.5,
                height - 8.0,
                escape(state),
                height - top - bottom,
            );
        }
        svg + "</svg>"
    }

    fn narrow(&self) -> String {
        let aged: Vec<&String> = self.page.states.iter().filter(|state| *state != "fresh").collect();
        let block = ROW * (self.page.file_systems.len() as f64 + 1.0) + 6.0;
        let (top, (left, right)) = (38.0, (SIDES.0, NARROW - SIDES.1));
        let base = top + block * aged.len() as f64;
        let x = |ratio: f64| left + (right - left) * self.position(ratio);
        let mut svg = self.head("narrow", NARROW, base + 4.0);
        for tick in self.ticks(34.0 / (right - left)) {
            let class = if tick == 1.0 { "one" } else { "grid" };
            let (at, name) = (x(tick), number(tick));
            let _ = write!(
                svg,
                r#"<line class="{class}" x1="{at:.1}" x2="{at:.1}" y1="{top}" y2="{base:.1}"/><text class="tick" x="{at:.1}" y="{:.1}" text-anchor="middle">{name}×</text>"#,
                top - 6.0
            );
        }
        for (place, state) in aged.iter().enumerate() {
            let start = top + block * place as f64;
            let _ = write!(svg, r#"<text class="state" x="0" y="{:.1}">{}</text>"#, start + 14.0, escape(state));
            for (at, file_system) in self.page.file_systems.iter().enumerate() {
                let y = start + ROW * (at as f64 + 1.5);
                let _ = write!(
                    svg,
                    r#"<text class="tick" x="{:.1}" y="{:.1}" text-anchor="end">{}</text><g class="{}">"#,
                    left - 10.0,
                    y + 4.0,
                    escape(file_system),
                    class(&self.page.classes, file_system)
                );
                let (fresh, aged) = (self.bar(file_system, "fresh"), self.bar(file_system, state));
                if let (Some(fresh), Some(aged)) = (&fresh, &aged) {
                    let (from, to) = (x(fresh.ratio), x(aged.ratio));
                    let _ = write!(svg, r#"<path class="join" d="M{from:.1},{y:.1}H{to:.1}"/>"#);
                }
                if let Some(bar) = &aged {
                    let (low, high) = (x(bar.low), x(bar.high));
                    let top = y - 3.0;
                    let _ = write!(svg, r#"<path class="whisker" d="M{low:.1},{top:.1}v6m0,-3H{high:.1}m0,-3v6"/>"#);
                    // The label is on the side without the fresh dot, or above its own dot.
                    let fresh = fresh.as_ref().map_or(bar.ratio, |fresh| fresh.ratio);
                    let (least, most) = (x(bar.low) - 8.0, x(bar.high) + 8.0);
                    let (place, y) = match bar.ratio < fresh {
                        true if least > left + LABEL => ((least, "end"), y),
                        false if most < right - LABEL => ((most, "start"), y),
                        _ => ((x(bar.ratio), "middle"), y - 10.0),
                    };
                    svg.push_str(&self.own_share(file_system, state, place, y));
                }
                let fresh = fresh.map(|bar| dot("fresh", x(bar.ratio), y));
                let beyond = aged.as_ref().map(|bar| self.beyond(bar.ratio, x(bar.ratio), y - 7.0));
                let aged = aged.map(|bar| dot(state, x(bar.ratio), y));
                svg.extend(fresh.into_iter().chain(aged).chain(beyond));
                let tips = [self.tip(file_system, "fresh"), self.tip(file_system, state)];
                let tip = escape(&format!("fresh, then {state}\n{}", tips.join("\n")));
                let _ = write!(
                    svg,
                    r#"</g><rect class="column" x="0" y="{:.1}" width="{NARROW}" height="{ROW}" data-tip="{tip}"/>"#,
                    y - ROW / 2.0
                );
            }
        }
        svg + "</svg>"
    }
}

/// The dot of a rate, hollow if the volume is fresh.
fn dot(state: &str, x: f64, y: f64) -> String {
    let fresh = if state == "fresh" { " fresh" } else { "" };
    format!(r#"<circle class="bar{fresh}" cx="{x:.1}" cy="{y:.1}" r="4.5"/>"#)
}

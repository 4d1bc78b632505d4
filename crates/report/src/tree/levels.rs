//! The levels of a tree, one above the other: the messages that wait in inner nodes for each child,
//! and the fill of leaves.

use std::fmt::Write as _;

use super::outline::{Holds, Level, Node, Outline};
use crate::format::{bytes, count, escape};

const LEFT: f64 = 62.0;
/// Heights, px: text above a level, its strip, the line below it, and the gap to the next level.
const HEAD: f64 = 46.0;
const STRIP: f64 = 60.0;
const BLOCK: f64 = HEAD + STRIP + 30.0;
/// The least width of a bar, px. Narrower bars are merged.
const BAR: f64 = 2.0;

/// The drawing and its height, for a width in px.
pub(super) fn draw(outline: &Outline, width: f64) -> (String, f64) {
    let mut svg = String::new();
    for (at, level) in outline.levels.iter().enumerate() {
        let _ = write!(svg, r#"<g transform="translate(0,{})">"#, at as f64 * BLOCK);
        Strip { outline, level, width }.draw(&mut svg);
        svg.push_str("</g>");
    }
    (svg, (outline.levels.len() as f64 * BLOCK).max(BLOCK) - 8.0)
}

/// A level.
struct Strip<'o> {
    outline: &'o Outline,
    level: &'o Level,
    width: f64,
}

/// A bar: of one node, or of several that are too narrow alone.
struct Bar<'o> {
    nodes: Vec<&'o Node>,
    left: f64,
    right: f64,
}

impl Strip<'_> {
    fn draw(&self, svg: &mut String) {
        let (title, text) = self.title();
        let _ = write!(
            svg,
            r#"<text class="panel-title" x="0" y="13">{}</text><text class="tick" x="0" y="29">{}</text>"#,
            escape(&title),
            escape(&text)
        );
        let bars = self.bars();
        let most = match self.is_leaves() {
            // A leaf may exceed its limit until it is split.
            true => bars.iter().map(|bar| self.value(bar)).fold(1.0, f64::max),
            false => bars.iter().map(|bar| self.value(bar)).fold(0.0, f64::max),
        };
        self.draw_ground(svg, most);
        let base = HEAD + STRIP;
        for bar in &bars {
            let value = self.value(bar);
            let height = if most > 0.0 { value / most * STRIP } else { 0.0 };
            let height = if value > 0.0 { height.max(0.8) } else { 0.0 };
            let gap = if bar.right - bar.left > 3.0 { 0.6 } else { 0.0 };
            let (x, wide) = (bar.left + gap, bar.right - bar.left - 2.0 * gap);
            if height > 0.0 {
                let class = self.class(bar);
                let y = base - height;
                let _ = write!(
                    svg,
                    r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{wide:.1}" height="{height:.1}"/>"#
                );
            }
            let middle = (bar.left + bar.right) / 2.0;
            if !self.is_leaves() && bar.nodes.iter().any(|node| node.waiting.2 > 0) {
                let top = HEAD - 7.0;
                let _ = write!(
                    svg,
                    r#"<path class="tree-ranges" d="M{:.1},{top}h6l-3,5z"/>"#,
                    (middle - 3.0).clamp(LEFT, self.width - 6.0)
                );
            }
            if self.of_level(bar).any(|node| node.damage.is_some()) {
                let middle = middle.clamp(LEFT + 6.0, self.width - 6.0);
                let (l, r, t, b) = (middle - 5.0, middle + 5.0, base - 35.0, base - 25.0);
                let _ = write!(svg, r#"<path class="tree-damaged" d="M{l:.1},{t}L{r:.1},{b}M{l:.1},{b}L{r:.1},{t}"/>"#);
            }
        }
        for bar in &bars {
            let _ = write!(
                svg,
                r#"<rect class="column" x="{:.1}" y="{HEAD}" width="{:.1}" height="{STRIP}" data-tip="{}"/>"#,
                bar.left,
                bar.right - bar.left,
                escape(&self.tip(bar))
            );
        }
    }

    /// The scale, the outlines of nodes, and below them the fill of each node. If no message waits,
    /// the scale has only its zero.
    fn draw_ground(&self, svg: &mut String, most: f64) {
        let (base, end) = (HEAD + STRIP, self.width);
        let top = match self.is_leaves() {
            true => format!("{:.0}%", most * 100.0),
            false => bytes(most),
        };
        let top = (most > 0.0).then_some((HEAD, top.as_str()));
        for (y, label) in top.into_iter().chain([(base, "0")]) {
            let _ = write!(
                svg,
                r#"<line class="grid" x1="{LEFT}" x2="{end}" y1="{y}" y2="{y}"/><text class="tick" x="{}" y="{}" text-anchor="end">{label}</text>"#,
                LEFT - 7.0,
                y + 4.0
            );
        }
        let nodes = self.level.nodes.iter().map(|at| &self.outline.nodes[*at]);
        let is_separate = self.level.nodes.len() as f64 * 8.0 <= end - LEFT;
        if self.is_leaves() || !is_separate {
            let _ = write!(svg, r#"<line class="axis" x1="{LEFT}" x2="{end}" y1="{base}" y2="{base}"/>"#);
            return;
        }
        for node in nodes {
            let (left, right) = (self.x(node.span.0) + 0.5, self.x(node.span.1) - 0.5);
            let wide = (right - left).max(0.5);
            let taken = self.outline.fill(node).min(1.0) * wide;
            let _ = write!(
                svg,
                r#"<rect class="tree-node" x="{left:.1}" y="{HEAD}" width="{wide:.1}" height="{STRIP}"/><rect class="blank" x="{left:.1}" y="{y}" width="{wide:.1}" height="5"/><rect class="tree-waits" x="{left:.1}" y="{y}" width="{taken:.1}" height="5"/>"#,
                y = base + 4.0
            );
        }
    }

    fn is_leaves(&self) -> bool {
        self.level.height == 0
    }

    fn x(&self, place: usize) -> f64 {
        LEFT + place as f64 / self.outline.places.max(1) as f64 * (self.width - LEFT)
    }

    /// The bars of a node. A leaf has one; an inner node has one for each child, and one of its own
    /// if it cannot be read.
    fn bars(&self) -> Vec<Bar<'_>> {
        let nodes = &self.outline.nodes;
        let is_here = |node: &&Node| match self.is_leaves() {
            true => node.height == 0,
            false => {
                let of_parent = node.parent.is_some_and(|parent| nodes[parent].height == self.level.height);
                of_parent || (node.height == self.level.height && node.damage.is_some() && node.weight == 0.0)
            }
        };
        let mut bars: Vec<Bar<'_>> = Vec::new();
        for node in nodes.iter().filter(is_here) {
            let (left, right) = (self.x(node.span.0), self.x(node.span.1));
            match bars.last_mut().filter(|last| last.right - last.left < BAR && right - last.left < 2.0 * BAR) {
                Some(last) => {
                    last.nodes.push(node);
                    last.right = right;
                }
                None => bars.push(Bar { nodes: vec![node], left, right }),
            }
        }
        bars
    }

    /// The nodes of this level that a bar describes.
    fn of_level<'b>(&self, bar: &'b Bar<'_>) -> impl Iterator<Item = &'b Node> + use<'b> {
        let height = self.level.height;
        bar.nodes.iter().copied().filter(move |node| node.height == height)
    }

    /// The mean fill of leaves, or the largest number of bytes that wait for one child.
    fn value(&self, bar: &Bar<'_>) -> f64 {
        match self.is_leaves() {
            true => bar.nodes.iter().map(|node| self.outline.fill(node)).sum::<f64>() / bar.nodes.len() as f64,
            false => bar.nodes.iter().map(|node| node.waiting.0).fold(0.0, f64::max),
        }
    }

    fn class(&self, bar: &Bar<'_>) -> &'static str {
        match self.is_leaves() {
            false => "tree-waits",
            true => holds_class(bar.nodes[0].holds),
        }
    }

    fn title(&self) -> (String, String) {
        let Level { height, nodes, readable, weight, messages, ranges, .. } = self.level;
        let nodes = nodes.len() as u64;
        let damaged = match nodes - readable {
            0 => String::new(),
            damaged => format!(", {} damaged", count(damaged)),
        };
        let share = if *readable > 0 { weight / (*readable as f64 * self.outline.node_bytes) * 100.0 } else { 0.0 };
        if self.is_leaves() {
            return (format!("Leaves: {}{damaged}", count(nodes)), format!("{share:.0}% full on the mean"));
        }
        let is_root = self.outline.nodes.first().is_some_and(|root| root.height == *height);
        let title = match (is_root, nodes) {
            (true, _) => format!("Root, level {height}{damaged}"),
            (false, 1) => format!("Level {height}: 1 node{damaged}"),
            (false, _) => format!("Level {height}: {} nodes{damaged}", count(nodes)),
        };
        let text = format!(
            "{} wait, {share:.0}% full: {}, {}",
            bytes(*weight),
            plural(*messages, "message"),
            plural(*ranges, "range")
        );
        (title, text)
    }

    /// Lines of colour, name and value, after a heading.
    fn tip(&self, bar: &Bar<'_>) -> String {
        let first = bar.nodes[0];
        let mut lines = Vec::new();
        if self.is_leaves() {
            let colour = holds_colour(first.holds);
            let at = first.span.0 + 1;
            match bar.nodes.len() {
                1 => {
                    lines.push(format!("leaf {} of {}, node {}", count(at as u64), count(self.places()), first.id));
                    lines.push(format!("{colour}\tfull\t{:.0}%", self.outline.fill(first) * 100.0));
                    lines.push(format!("muted\twritten by checkpoint\t{}", count(first.generation)));
                    lines.extend(place_line(first));
                }
                several => {
                    let last = at + several - 1;
                    let of = count(self.places());
                    lines.push(format!("leaves {} to {} of {of}", count(at as u64), count(last as u64)));
                    lines.push(format!("{colour}\tfull on the mean\t{:.0}%", self.value(bar) * 100.0));
                    let fills = || bar.nodes.iter().map(|node| self.outline.fill(node) * 100.0);
                    let (least, most) = (fills().fold(f64::MAX, f64::min), fills().fold(0.0, f64::max));
                    lines.push(format!("{colour}\temptiest, fullest\t{least:.0}%, {most:.0}%"));
                }
            }
        } else {
            match bar.nodes.len() {
                1 if first.height == self.level.height => lines.push(format!("node {}", first.id)),
                1 => {
                    let parent = first.parent.map_or(0, |parent| self.outline.nodes[parent].id);
                    lines.push(format!("in node {parent} for node {}", first.id));
                }
                several => lines.push(format!("for {} nodes", count(several as u64))),
            }
            let sum = |of: fn(&Node) -> u64| bar.nodes.iter().map(|node| of(node)).sum::<u64>();
            lines.push(format!("full\twaits, at most\t{}", bytes(self.value(bar))));
            lines.push(format!("full\tmessages\t{}", count(sum(|node| node.waiting.1))));
            lines.push(format!("warning\tranges\t{}", count(sum(|node| node.waiting.2))));
        }
        lines.extend(
            self.of_level(bar).filter_map(|node| node.damage.as_ref()).map(|why| format!("warning\tdamaged\t{why}")),
        );
        lines.join("\n")
    }

    fn places(&self) -> u64 {
        self.outline.places as u64
    }
}

/// The position of a leaf on the device.
pub(super) fn place_line(node: &Node) -> Option<String> {
    let (at, _) = node.extents.first()?;
    let pieces = match node.extents.len() {
        1 => "in one piece".to_owned(),
        pieces => format!("in {pieces} pieces"),
    };
    Some(format!("muted\tis at\t{}, {pieces}", bytes(*at)))
}

fn plural(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{} {what}s", count(number)),
    }
}

/// The class that has the colour of a leaf.
pub(super) fn holds_class(holds: Holds) -> &'static str {
    match holds {
        Holds::Contents => "tree-contents",
        Holds::Metadata => "tree-metadata",
        Holds::Both => "tree-both",
    }
}

/// The colour's name.
pub(super) fn holds_colour(holds: Holds) -> &'static str {
    match holds {
        Holds::Contents => "empty",
        Holds::Metadata => "unaged",
        Holds::Both => "curve-4",
    }
}

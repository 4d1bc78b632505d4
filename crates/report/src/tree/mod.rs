//! The picture of a tree of nodes: its levels, the waiting messages, the positions and the fill of
//! its leaves.
//!
//! The input is JSON of schema `senesce-evergreen-tree/1`, so that this crate does not import an
//! engine.

mod fills;
mod levels;
mod outline;
mod places;

use std::fmt::Write as _;

use minijinja::context;
use senesce_core::names::with_more;
use serde_json::{Value as Json, json};

use crate::{
    Error,
    chart::{PANEL_HEIGHT, PANEL_WIDTH},
    csv::{Csv, exact},
    figures::light_css,
    format::{bytes, count, escape, figure, page_json},
    html::style,
    page::render_page,
};
use outline::{Level, Outline};

/// Options of the page.
#[derive(Clone, Debug, Default)]
pub struct TreeOptions {
    /// Version of the program, for the footer.
    pub senesce_version: String,
    /// Time of making, as text; `None` shows nothing.
    pub made_at: Option<String>,
}

const CSS: &str = include_str!("../../assets/tree.css");
/// The disk of the judgement: a seek with half a turn, and the rate of a sequential read, of a
/// 7,200 rpm disk.
const SEEK_SECONDS: f64 = 0.0125;
const DISK_BYTES_PER_SECOND: f64 = 180e6;
/// Widths of the drawings on wide screens and in files, and on narrow ones, px.
const WIDE: f64 = 1116.0;
const NARROW: f64 = 358.0;
/// Heights of the picture of places on them.
const WIDE_PLACES: f64 = 340.0;
const NARROW_PLACES: f64 = 280.0;
/// The most damaged nodes that are listed.
const NAMED: usize = 20;
/// The legend: class and name of each colour.
const LEGEND: [(&str, &str); 5] = [
    ("tree-waits", "waits for a child"),
    ("tree-contents", "leaf of contents"),
    ("tree-metadata", "leaf of metadata"),
    ("tree-both", "leaf of both"),
    ("tree-ranges", "deleted ranges wait"),
];

/// Renders the picture of a tree as one HTML page, which loads nothing.
///
/// In: JSON of schema `senesce-evergreen-tree/1`. Out: the page; the same for the same input. Cost:
/// linear in the nodes.
pub fn render_tree(tree: &Json, options: &TreeOptions) -> Result<String, Error> {
    let outline = Outline::read(tree);
    let sizes = [("wide", WIDE, WIDE_PLACES), ("narrow", NARROW, NARROW_PLACES)];
    let panel = |class: &str, width: f64, height: f64, label: &str, drawn: &str| {
        format!(
            r#"<svg class="panel {class}" viewBox="0 0 {width} {height}" role="img" tabindex="0" aria-label="{label}">{drawn}</svg>"#
        )
    };
    let levels = sizes.map(|(class, width, _)| {
        let (drawn, height) = levels::draw(&outline, width);
        panel(class, width, height, "Levels of the tree", &drawn)
    });
    let places = sizes.map(|(class, width, height)| {
        panel(class, width, height, "Where leaves are on the device", &places::draw(&outline, width, height))
    });
    let values = context! {
        path => tree["path"].as_str().unwrap_or("–"),
        shape => shape(tree),
        generation => count(outline.generation),
        judgement => judgement(&outline),
        facts => facts(&outline),
        levels_csv => levels_csv(&outline),
        places_csv => places_csv(&outline),
        damaged => damaged(&outline),
        made_at => options.made_at.as_deref(),
        version => options.senesce_version.as_str(),
        schema => tree["schema"].as_str().unwrap_or("–"),
        style => style() + CSS + include_str!("../../assets/treepage.css"),
        script => include_str!("../../assets/report.js"),
        legend => LEGEND.map(|(class, name)| context! { class => class, name => name }),
        levels => levels,
        places => places,
        fills => panel("fills", PANEL_WIDTH, PANEL_HEIGHT, "How full leaves are", &fills::draw(&outline)),
        rows => outline.levels.iter().map(|level| row(&outline, level)).collect::<Vec<_>>(),
        flushes => flushes(&outline),
        data => page_json(&summary(tree, &outline).to_string()),
    };
    render_page("tree.html", include_str!("../../assets/tree.html"), values)
}

/// The picture alone, as one SVG document in light colours.
///
/// In: the input of [`render_tree`]. Out: the same for the same input.
pub fn render_tree_svg(tree: &Json) -> String {
    const MARGIN: f64 = 20.0;
    const HEAD: f64 = 88.0;
    const GAP: f64 = 40.0;
    let outline = Outline::read(tree);
    let (levels, levels_height) = levels::draw(&outline, WIDE);
    let width = WIDE + 2.0 * MARGIN;
    let places_width = WIDE - PANEL_WIDTH - GAP;
    let height = HEAD + levels_height + GAP + WIDE_PLACES + MARGIN;
    let title = escape(&format!("Tree of {}", tree["path"].as_str().unwrap_or("–")));
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"><title>{title}</title><style>{}</style><rect class="paper" width="{width}" height="{height}"/><text class="figure-title" x="{MARGIN}" y="32">{title}</text><text class="tick" x="{MARGIN}" y="52">{}</text>"#,
        light_css(CSS),
        escape(&shape(tree)),
    );
    for (at, (class, name)) in LEGEND.iter().enumerate() {
        let x = MARGIN + at as f64 * 150.0;
        let _ = write!(
            svg,
            r#"<rect class="{class}" x="{x}" y="62" width="11" height="11"/><text class="tick" x="{}" y="72">{name}</text>"#,
            x + 17.0
        );
    }
    let below = HEAD + levels_height + GAP;
    let _ = write!(
        svg,
        r#"<g transform="translate({MARGIN},{HEAD})">{levels}</g><g transform="translate({MARGIN},{below})">{}</g><g transform="translate({},{below})">{}</g></svg>"#,
        places::draw(&outline, places_width, WIDE_PLACES),
        MARGIN + places_width + GAP,
        fills::draw(&outline),
    );
    svg.push('\n');
    svg
}

/// The picture as text: a line for each level, then the damage.
pub fn tree_screen(tree: &Json) -> String {
    let outline = Outline::read(tree);
    let mut text = format!("{}\n  {}\n", tree["path"].as_str().unwrap_or("–"), shape(tree));
    let said = judgement(&outline).into_iter().chain(facts(&outline)).chain(damaged(&outline));
    said.for_each(|line| {
        let _ = writeln!(text, "  {line}");
    });
    text
}

fn shape(tree: &Json) -> String {
    let size = |key: &str| tree[key].as_f64().map_or("–".to_owned(), bytes);
    format!(
        "nodes of {} in basements of {}, {} children; keys by {}",
        size("node_bytes"),
        size("basement_bytes"),
        tree["fanout"].as_u64().map_or("–".to_owned(), count),
        tree["key_order"].as_str().unwrap_or("–"),
    )
}

/// One sentence on a read of all leaves in the order of keys; none with fewer than two leaves. Each
/// leaf that does not follow the previous one costs a seek, and so does each further piece of a
/// leaf.
fn judgement(outline: &Outline) -> Option<String> {
    let share = outline.adjacent_share()?;
    let (leaves, pieces, bytes_read) = outline.leaves().filter(|leaf| !leaf.extents.is_empty()).fold(
        (0_u64, 0_u64, 0.0),
        |(leaves, pieces, bytes_read), leaf| {
            let bytes: f64 = leaf.extents.iter().map(|(_, length)| length).sum();
            (leaves + 1, pieces + leaf.extents.len() as u64, bytes_read + bytes)
        },
    );
    let gaps = ((1.0 - share) * leaves.saturating_sub(1) as f64).round();
    let seeks = gaps + pieces.saturating_sub(leaves) as f64;
    let ideal = bytes_read / DISK_BYTES_PER_SECOND + SEEK_SECONDS;
    let slowdown = 1.0 + seeks * SEEK_SECONDS / ideal;
    let grade = match slowdown {
        slow if slow < 1.5 => "The tree is young",
        slow if slow < 2.0 => "The tree is somewhat aged",
        slow if slow < 5.0 => "The tree is aged",
        _ => "The tree is badly aged",
    };
    Some(format!(
        "{grade}: on a disk, a read of all leaves in the order of keys takes about {}× as long as one without seeks.",
        digits(slowdown)
    ))
}

/// Two digits: the estimate has no more.
fn digits(times: f64) -> String {
    if times < 9.95 { format!("{times:.1}") } else { format!("{times:.0}") }
}

/// Figures by level as CSV.
fn levels_csv(outline: &Outline) -> String {
    let heads = [
        "height",
        "nodes",
        "readable",
        "device_bytes",
        "weight_bytes",
        "messages",
        "ranges",
        "pieces",
        "written_by_newest_checkpoint",
    ];
    let mut csv = Csv::new(&heads);
    for level in &outline.levels {
        let counts = [level.messages, level.ranges, level.pieces, level.newest].map(|count| count.to_string());
        let first = [level.height, level.nodes.len() as u64, level.readable].map(|count| count.to_string());
        csv.row(&[&first[..], &[exact(level.bytes), exact(level.weight)], &counts[..]].concat());
    }
    csv.finish()
}

/// The pieces of all leaves in the order of keys, as CSV.
fn places_csv(outline: &Outline) -> String {
    let mut csv = Csv::new(&["leaf", "node", "first_byte", "bytes", "filled_share"]);
    for (number, leaf) in outline.leaves().enumerate() {
        for (at, length) in &leaf.extents {
            let fill = exact(outline.fill(leaf));
            csv.row(&[(number + 1).to_string(), leaf.id.to_string(), exact(*at), exact(*length), fill]);
        }
    }
    csv.finish()
}

fn facts(outline: &Outline) -> Vec<String> {
    let leaves = outline.leaves().count() as u64;
    let mut facts = Vec::new();
    if let Some(level) = outline.levels.iter().find(|level| level.height == 0 && level.readable > 0) {
        let share = level.weight / (level.readable as f64 * outline.node_bytes) * 100.0;
        let count = match leaves {
            1 => "The only leaf is".to_owned(),
            _ => format!("{} leaves are", count(leaves)),
        };
        // The mean of trees that are filled in random order (Yao 1978).
        let judged = if leaves > 1 { " on the mean (random inserts alone leave 69%)" } else { "" };
        facts.push(format!("{count} {share:.0}% full{judged}."));
    }
    if let Some(share) = outline.adjacent_share() {
        facts.push(format!(
            "{:.0}% of the leaves start on the device at the end of the leaf before; {} pieces per leaf on the mean.",
            share * 100.0,
            figure(outline.leaves().map(|leaf| leaf.extents.len()).sum::<usize>() as f64 / leaves.max(1) as f64),
        ));
    }
    let inner: Vec<&Level> = outline.levels.iter().filter(|level| level.height > 0).collect();
    let (waits, room) = inner.iter().fold((0.0, 0.0), |(waits, room), level| {
        (waits + level.weight, room + level.readable as f64 * outline.node_bytes)
    });
    let messages: u64 = inner.iter().map(|level| level.messages).sum();
    let ranges: u64 = inner.iter().map(|level| level.ranges).sum();
    if room > 0.0 {
        facts.push(format!(
            "{} wait in {} inner node{} with space for {}: {} messages and {} deleted ranges.",
            bytes(waits),
            count(inner.iter().map(|level| level.readable).sum()),
            if inner.iter().map(|level| level.readable).sum::<u64>() == 1 { "" } else { "s" },
            bytes(room),
            count(messages),
            count(ranges),
        ));
    }
    facts
}

fn damaged(outline: &Outline) -> Vec<String> {
    let all: Vec<_> = outline.damaged().collect();
    let described = |node: &&outline::Node| {
        let why = node.damage.as_deref().unwrap_or_default();
        format!("Node {}, level {}, cannot be read, or not all of it: {why}", node.id, node.height)
    };
    with_more(all.iter().take(NAMED).map(described), all.len())
}

fn row(outline: &Outline, level: &Level) -> Vec<String> {
    let nodes = level.nodes.len() as u64;
    let share = level.weight / (level.readable.max(1) as f64 * outline.node_bytes) * 100.0;
    let of_inner = |text: String| if level.height > 0 { text } else { String::new() };
    vec![
        if level.height > 0 { format!("level {}", level.height) } else { "leaves".to_owned() },
        count(nodes),
        bytes(level.bytes),
        format!("{share:.0}%"),
        of_inner(bytes(level.weight)),
        of_inner(count(level.messages)),
        of_inner(count(level.ranges)),
        figure(level.pieces as f64 / nodes.max(1) as f64),
        count(level.newest),
        count(nodes - level.readable),
    ]
}

/// The counted flushes between levels.
fn flushes(outline: &Outline) -> Vec<Vec<String>> {
    let row = |(height, times, moved): &(u64, u64, f64)| {
        let to = if *height == 1 { "leaves".to_owned() } else { format!("level {}", height - 1) };
        vec![
            format!("level {height} to {to}"),
            count(*times),
            bytes(*moved),
            bytes(if *times > 0 { moved / *times as f64 } else { 0.0 }),
        ]
    };
    outline.flushes.iter().map(row).collect()
}

/// The levels as JSON. The nodes, of which there may be many, are in the program's own output.
fn summary(tree: &Json, outline: &Outline) -> Json {
    let level = |level: &Level| {
        json!({
            "height": level.height, "nodes": level.nodes.len(), "readable": level.readable, "bytes": level.bytes,
            "weight_bytes": level.weight, "waiting_messages": level.messages, "waiting_ranges": level.ranges,
            "written_by_newest_checkpoint": level.newest, "pieces": level.pieces,
        })
    };
    let mut summary = tree.clone();
    if let Some(fields) = summary.as_object_mut() {
        fields.remove("nodes");
        fields.insert("levels".to_owned(), outline.levels.iter().map(level).collect());
        fields.insert("adjacent_leaves_share".to_owned(), json!(outline.adjacent_share()));
    }
    summary
}

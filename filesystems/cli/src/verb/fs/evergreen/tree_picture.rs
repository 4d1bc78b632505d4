//! The picture of an evergreen's tree.

use std::{fs, path::Path};

use crate::version;
use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_cli::schema::document;
use senesce_evergreen::{Figures, Holds, Outline, OutlinedNode, outline};
use senesce_experiment::read_description;
use senesce_report::{TreeOptions, render_tree, render_tree_svg};
use senesce_service::evergreen::FlushedLevel;
use serde::Serialize;
use serde_json::{Value, json};

use super::{super::send_request::with_format, Place};
use crate::exit::usage;

/// Outlines the tree of an evergreen as JSON, with the flushes of a file of figures, if one is
/// named.
pub fn outline_tree(place: &Path, figures: Option<&Path>) -> Result<Value> {
    let place = &Place::named(place).unwrap_or_else(|| Place(place.to_owned()));
    let flushes = figures.map(read_flushes).transpose()?;
    let found = outline(&place.look()?).with_context(|| format!("cannot look into {place}"))?;
    let Outline { generation, shape, area, nodes } = found;
    let tree = TreeDocument {
        path: format!("evergreen:{place}"),
        superblock: generation,
        node_bytes: shape.node_bytes,
        basement_bytes: shape.basement_bytes,
        fanout: shape.fanout,
        key_order: shape.key_order.to_string(),
        area: Area { start_bytes: area.0, length_bytes: area.1 },
        nodes: nodes.iter().map(node).collect(),
        flushes: flushes.unwrap_or_else(|| json!([])),
    };
    Ok(document(version::EVERGREEN_TREE, tree))
}

/// Writes the picture of an outlined tree: a page, or an SVG if it is called so.
pub fn draw_tree(tree: &Value, path: &Path) -> Result<()> {
    let is_svg = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    let options = TreeOptions { senesce_version: senesce_cli::VERSION.to_owned(), made_at: None };
    let picture = if is_svg { render_tree_svg(tree) } else { render_tree(tree, &options)? };
    fs::write(path, picture).with_context(|| format!("cannot write {}", path.display()))
}

/// The outline of a tree.
#[derive(Serialize, JsonSchema)]
pub struct TreeDocument {
    /// The place of the evergreen, as `evergreen:PATH`.
    path: String,
    /// The number of the newest superblock.
    superblock: u64,
    /// The largest size of a node, bytes.
    node_bytes: u32,
    /// The largest size of a basement, bytes.
    basement_bytes: u32,
    /// The largest number of children of a node.
    fanout: u32,
    /// The order of keys.
    key_order: String,
    /// The part of the device for nodes.
    area: Area,
    /// The nodes, each after its parent.
    nodes: Vec<NodeDocument>,
    /// The flushes of messages by height, from a file of figures. Empty without such a file.
    #[schemars(with = "Vec<FlushedLevel>")]
    flushes: Value,
}

/// A part of the device.
#[derive(Serialize, JsonSchema)]
struct Area {
    /// The first byte of the part.
    start_bytes: u64,
    /// The length of the part, bytes.
    length_bytes: u64,
}

/// A node.
#[derive(Serialize, JsonSchema)]
struct NodeDocument {
    /// Its number.
    id: u64,
    /// Its height; leaves have 0.
    height: u8,
    /// The index of its parent in `nodes`. `None` for the root.
    parent: Option<usize>,
    /// The checkpoint that wrote it.
    generation: u64,
    /// Bytes of the node on the device.
    bytes: u64,
    /// Bytes of its keys and values.
    weight_bytes: u64,
    /// Bytes of messages that wait in it.
    waiting_bytes: u64,
    /// Messages that wait in it.
    waiting_messages: u64,
    /// Waiting messages that delete ranges.
    waiting_ranges: u64,
    /// `contents`, `metadata` or `both`.
    holds: &'static str,
    /// Its extents: start and length, bytes.
    extents: Vec<(u64, u64)>,
    /// Its damage. `None` if it is intact.
    damage: Option<String>,
}

fn node(node: &OutlinedNode) -> NodeDocument {
    NodeDocument {
        id: node.id,
        height: node.height,
        parent: node.parent,
        generation: node.generation,
        bytes: node.bytes,
        weight_bytes: node.weight_bytes,
        waiting_bytes: node.waiting.bytes,
        waiting_messages: node.waiting.messages,
        waiting_ranges: node.waiting.ranges,
        holds: match node.holds {
            Holds::Contents => "contents",
            Holds::Metadata => "metadata",
            Holds::Both => "both",
        },
        extents: node.extents.clone(),
        damage: node.damage.clone(),
    }
}

/// Writes what a mount read, wrote and flushed.
pub(super) fn write_figures(figures: &Figures, path: &Path) -> Result<()> {
    let told = with_format(version::EVERGREEN_FIGURES, &senesce_service::evergreen::figures(figures))?;
    fs::write(path, format!("{told:#}\n")).with_context(|| format!("cannot write {}", path.display()))
}

/// The flushes of such a file.
fn read_flushes(path: &Path) -> Result<Value> {
    let text = read_description(path).with_context(|| format!("cannot read {}", path.display()))?;
    let figures: Value = serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    match figures["format"] == version::EVERGREEN_FIGURES {
        true => Ok(figures["flushes"].clone()),
        false => Err(usage(
            format!("{} is no file of figures", path.display()),
            Some("senesce fs mount evergreen:FILE POINT --figures FILE writes one"),
        )),
    }
}

//! The picture of an evergreen's tree.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use senesce_evergreen::{Figures, Holds, Outline, OutlinedNode, outline};
use senesce_experiment::read_description;
use senesce_report::{TreeOptions, render_tree, render_tree_svg};
use serde_json::{Value, json};

use super::{super::send_request::with_format, Place};
use crate::exit::usage;

const SCHEMA: &str = "senesce-evergreen-tree/1";

const FIGURES: &str = "senesce-evergreen-figures/1";

/// Outlines the tree of an evergreen as JSON, with the flushes of a file of figures, if one is
/// named.
pub fn outline_tree(place: &Path, figures: Option<&Path>) -> Result<Value> {
    let place = &Place::named(place).unwrap_or_else(|| Place(place.to_owned()));
    let flushes = figures.map(read_flushes).transpose()?;
    let found = outline(&place.look()?).with_context(|| format!("cannot look into {place}"))?;
    let Outline { generation, shape, area, nodes } = found;
    Ok(json!({
        "schema": SCHEMA,
        "path": format!("evergreen:{place}"),
        "superblock": generation,
        "node_bytes": shape.node_bytes,
        "basement_bytes": shape.basement_bytes,
        "fanout": shape.fanout,
        "key_order": shape.key_order.to_string(),
        "area": { "start_bytes": area.0, "length_bytes": area.1 },
        "nodes": nodes.iter().map(node).collect::<Vec<_>>(),
        "flushes": flushes.unwrap_or_else(|| json!([])),
    }))
}

/// Writes the picture of an outlined tree: a page, or an SVG if it is called so.
pub fn draw_tree(tree: &Value, path: &Path) -> Result<()> {
    let is_svg = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    let options = TreeOptions { senesce_version: env!("CARGO_PKG_VERSION").to_owned(), made_at: None };
    let picture = if is_svg { render_tree_svg(tree) } else { render_tree(tree, &options)? };
    fs::write(path, picture).with_context(|| format!("cannot write {}", path.display()))
}

fn node(node: &OutlinedNode) -> Value {
    json!({
        "id": node.id,
        "height": node.height,
        "parent": node.parent,
        "generation": node.generation,
        "bytes": node.bytes,
        "weight_bytes": node.weight_bytes,
        "waiting_bytes": node.waiting.bytes,
        "waiting_messages": node.waiting.messages,
        "waiting_ranges": node.waiting.ranges,
        "holds": match node.holds {
            Holds::Contents => "contents",
            Holds::Metadata => "metadata",
            Holds::Both => "both",
        },
        "extents": node.extents,
        "damage": node.damage,
    })
}

/// Writes what a mount read, wrote and flushed.
pub(super) fn write_figures(figures: &Figures, path: &Path) -> Result<()> {
    let told = with_format(FIGURES, &senesce_service::evergreen::figures(figures))?;
    fs::write(path, format!("{told:#}\n")).with_context(|| format!("cannot write {}", path.display()))
}

/// The flushes of such a file.
fn read_flushes(path: &Path) -> Result<Value> {
    let text = read_description(path).with_context(|| format!("cannot read {}", path.display()))?;
    let figures: Value = serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    match figures["format"] == FIGURES {
        true => Ok(figures["flushes"].clone()),
        false => Err(usage(
            format!("{} is no file of figures", path.display()),
            Some("senesce fs mount evergreen:FILE POINT --figures FILE writes one"),
        )),
    }
}

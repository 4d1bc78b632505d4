//! The picture of an evergreen's tree.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use senesce_evergreen::{Holds, Outline, OutlinedNode, outline};
use senesce_report::{TreeOptions, render_tree, render_tree_svg};
use serde_json::{Value, json};

use super::Place;

const SCHEMA: &str = "senesce-evergreen-tree/1";

/// Outlines the tree of an evergreen as JSON.
pub fn outline_tree(place: &Path) -> Result<Value> {
    let place = &Place::named(place).unwrap_or_else(|| Place(place.to_owned()));
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

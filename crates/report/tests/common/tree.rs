//! Trees in the form of `senesce inspect --tree --json`.

use serde_json::{Value, json};

/// A tree with a number of leaves, 16 children to a node; every seventh leaf is stored elsewhere.
pub fn tree(leaves: u64) -> Value {
    let mut levels: Vec<u64> = vec![leaves];
    while levels.len() < 2 || levels[levels.len() - 1] > 1 {
        levels.push(levels[levels.len() - 1].div_ceil(16).max(1));
    }
    let mut nodes = Vec::new();
    add(&mut nodes, &levels, levels.len() - 1, 0, None);
    json!({
        "schema": "senesce-evergreen-tree/1", "path": "evergreen:/srv/<e>.img", "superblock": 12, "node_bytes": 4 << 20,
        "basement_bytes": 128 << 10, "fanout": 16, "key_order": "birth path",
        "area": { "start_bytes": 64 << 20, "length_bytes": 8u64 << 30 }, "nodes": nodes,
        "flushes": [{ "height": 1, "count": 40, "bytes": 30 << 20 }, { "height": 2, "count": 12, "bytes": 40 << 20 }],
    })
}

fn add(nodes: &mut Vec<Value>, levels: &[u64], height: usize, number: u64, parent: Option<usize>) {
    let at = nodes.len();
    let place = (64u64 << 20) + number * (3 << 20) + if number % 7 == 6 { 1 << 30 } else { 0 };
    nodes.push(json!({
        "id": at + 1, "height": height, "parent": parent, "generation": 9 + number % 4, "bytes": 2 << 20,
        "weight_bytes": (2 << 20) + (number % 10) * 150_000,
        "waiting_bytes": if parent.is_some() { (number % 5) * 90_000 } else { 0 },
        "waiting_messages": number % 5 * 30, "waiting_ranges": u64::from(number % 9 == 4),
        "holds": if height > 0 { "both" } else if number * 10 < levels[0] * 9 { "contents" } else { "metadata" },
        "extents": [[place, 2 << 20]], "damage": null,
    }));
    if height > 0 {
        let of_level = levels[height - 1];
        (number * 16..(number * 16 + 16).min(of_level))
            .for_each(|child| add(nodes, levels, height - 1, child, Some(at)));
    }
}

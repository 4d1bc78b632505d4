//! A made-up inspection: three files in two directories on a volume of 64 cells.

use serde_json::{Value, json};

/// Two files are near the beginning of the volume, the third one is far away.
pub fn inspection() -> Value {
    const CELLS: usize = 64;
    let at = |cells: &[(usize, u64)]| {
        let mut column = vec![0; CELLS];
        cells.iter().for_each(|(cell, value)| column[*cell] = *value);
        column
    };
    let owners = |cells: &[(usize, u64)]| {
        let mut column = vec![Value::Null; CELLS];
        cells.iter().for_each(|(cell, owner)| column[*cell] = json!(owner));
        column
    };
    let loser = |path: &str| json!({ "path": path, "lost_seconds": 0.0504, "slowdown": 2.5, "bytes": 4096, "files": 1, "extents": 2, "layout_score": 0.5 });
    let seconds = json!({ "as_it_lies": 2.0, "defragmented": 1.0, "best_order": 0.5, "fresh_copy": 0.5 });
    json!({
        "schema": "senesce-inspect/2", "verdict": "Aged.", "device": { "judged_as": ["model: NVMe"] }, "warnings": [],
        "target": { "path": "/srv/<data>", "file_system": "ext4", "kernel": "6", "read": "through its mount", "read_ahead_kib": 128 },
        "costs": [{ "device": "model: HDD", "seconds": seconds }, { "device": "model: NVMe", "seconds": seconds }],
        "worst_directories": [loser("a/very/long/<path>")], "worst_files": [loser("far")],
        "tree": { "layout": {} }, "volume_bytes": CELLS * 4096, "free_space": null,
        "map": {
            "side": 8, "cell_bytes": 4096,
            "used": at(&[(0, 4096), (1, 4096), (40, 4096)]), "free": at(&[]), "extents": at(&[(0, 1), (1, 9), (40, 90)]),
            "owner": owners(&[(0, 1), (1, 2), (40, 3)]), "modified": at(&[(0, 86_400), (1, 172_800), (40, 259_200)]),
        },
        "map_files": [
            { "number": 1, "directory": 1, "name": "x", "size_bytes": 4096, "extents": 1 },
            { "number": 2, "directory": 1, "name": "y", "size_bytes": 4096, "extents": 9 },
            { "number": 3, "directory": 0, "name": "far", "size_bytes": 4096, "extents": 90 },
        ],
        "map_directories": { "0": "", "1": "a/very/long/<path>" },
    })
}

//! Results of a suite in the form of its `results.json`, made by hand.

use serde_json::{Value, json};

/// Two personalities on three file systems, fresh and aged by two profiles; one image of btrfs
/// could not be made.
pub fn suite() -> Value {
    let (mut figures, mut rankings) = (Vec::new(), Vec::new());
    for personality in ["varmail", "oltp"] {
        for (file_system, fresh) in [("ext4", 1.0), ("xfs", 2.0), ("btrfs", 0.8)] {
            for (state, share) in [("fresh", 1.0), ("agrawal", 0.9), ("wang_os", 1.05)] {
                let is_worst = (personality, file_system, state) == ("varmail", "xfs", "agrawal");
                let share = if is_worst { 0.25 } else { share };
                let is_there = file_system != "btrfs" || state != "wang_os";
                let around = |ratio: f64| {
                    let p = if (0.97..1.06).contains(&ratio) { 0.4 } else { 0.029 };
                    json!({ "ratio": ratio, "low": ratio * 0.95, "high": ratio * 1.04, "p": p })
                };
                figures.push(json!({
                    "personality": personality,
                    "file_system": file_system,
                    "state": state,
                    "rate": is_there.then(|| json!({ "count": 4, "median": 900.0 * fresh * share })),
                    "normal": is_there.then(|| around(fresh * share)),
                    "own": is_there.then(|| around(share)),
                    "failed": 0,
                    "no_space": if is_worst { 12 } else { 0 },
                }));
            }
        }
        for state in ["agrawal", "wang_os"] {
            let change = json!({ "better_unaged": "xfs", "better_aged": "ext4", "p_unaged": 0.029, "p_aged": 0.029, "is_sure": true });
            let changes = if personality == "varmail" && state == "agrawal" { vec![change] } else { Vec::new() };
            let aged = if changes.is_empty() { ["xfs", "ext4", "btrfs"] } else { ["ext4", "btrfs", "xfs"] };
            let ranking = json!({ "unaged": ["xfs", "ext4", "btrfs"], "aged": aged, "changes": changes });
            rankings.push(json!({ "personality": personality, "state": state, "ranking": ranking }));
        }
    }
    let reached = json!({ "fullness": 0.8, "turnover": 4.0, "layout": { "files": 1234, "layout_score": 0.97, "extents_per_file": 1.2 } });
    let kib = |extents: u64, buckets: &[(u64, u64)]| {
        let buckets: Vec<Value> = buckets
            .iter()
            .map(|(size, bytes)| json!({ "bucket_bytes": size << 10, "extents": 1, "bytes": bytes << 10 }))
            .collect();
        json!({ "extents": extents, "bytes": 0, "largest_bytes": 0, "mean_bytes": 1048576.0, "buckets": buckets })
    };
    // All sizes from 4 KiB to 128 MiB have a column.
    let one = kib(1, &[(128 << 10, 128 << 10)]);
    let many = kib(4000, &[(4, 3000), (8, 4), (128 << 10, 1000)]);
    json!({
        "schema": "senesce-suite-results/1",
        "senesce_version": "1.2.3",
        "plan": { "name": "sample", "description": "A <sample>.", "runs": 4 },
        "unit": "file operations per second of the modelled device (model: HDD 7.2K)",
        "device": "model: HDD 7.2K",
        "is_complete": true,
        "states": [
            { "file_system": "ext4", "state": "fresh", "reached": null, "free_space": one, "circumstances": [["mkfs_command", "mkfs.ext4"]] },
            { "file_system": "ext4", "state": "agrawal", "reached": reached, "free_space": many, "circumstances": [] },
            { "file_system": "btrfs", "state": "wang_os", "reached": null, "failed": "too <small>", "circumstances": [] },
        ],
        "figures": figures,
        "rankings": rankings,
        "runs": [{ "file_system": "ext4", "circumstances": [["kernel_release", "6.1"]] }],
    })
}

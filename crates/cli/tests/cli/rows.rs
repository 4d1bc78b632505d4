//! Result rows of runs that tests make.

use senesce_store::{CellKey, LayoutRow, ModelledRow};

/// The layout of a file, with this score.
pub fn layout_row(key: CellKey, layout_score: f64) -> LayoutRow {
    LayoutRow {
        key,
        space: "device".into(),
        files: 1,
        fragmented_files: 0,
        extents: 1,
        blocks: 1,
        extents_per_file: 1.0,
        layout_score,
        adjacent_files_share: 0.0,
        path_adjacent_files_share: 0.0,
    }
}

/// The modelled read of a hard disk.
pub fn modelled_row(key: CellKey, seconds_per_gib: f64, requests: u64) -> ModelledRow {
    ModelledRow {
        key,
        device: "model: HDD 7.2K".into(),
        method: "extents".into(),
        seconds: 1.0,
        best_order_seconds: 0.5,
        seconds_per_gib,
        requests,
        read_bytes: 1,
    }
}

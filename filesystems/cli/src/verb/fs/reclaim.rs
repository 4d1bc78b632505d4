//! The space that the deletion of a snapshot or volume freed.

use anyhow::Result;
use senesce_core::Bytes;
use senesce_service::Deleted;
use senesce_volume::check_interrupted;
use serde_json::Value;

/// Prints `would` and the space that a change would free.
pub fn print_reclaimable(would: &str, deleted: &Deleted) {
    let &Deleted { free_bytes_before, free_bytes, .. } = deleted;
    println!("{would}: {} free then, {} now; nothing was changed", Bytes(free_bytes), Bytes(free_bytes_before));
}

/// Prints `document` if there is one. Otherwise prints `line` and the space before and now.
///
/// Errors: a signal ended the work; later consistency points do the rest.
pub fn print_reclaimed(deleted: &Deleted, document: Option<Value>, line: &str) -> Result<()> {
    let &Deleted { free_bytes_before, free_bytes, map_blocks_left } = deleted;
    if let Some(document) = document {
        println!("{document}");
    } else {
        println!("{line}");
        println!("  {} free, {} before", Bytes(free_bytes), Bytes(free_bytes_before));
        if map_blocks_left > 0 {
            println!("  {map_blocks_left} blocks of maps are not processed yet; later consistency points do that");
        }
    }
    Ok(check_interrupted("reclaiming")?)
}

//! The space that the deletion of a snapshot or volume freed.

use anyhow::Result;
use senesce_core::Bytes;
use senesce_service::Deleted;
use senesce_volume::check_interrupted;
use serde_json::Value;

/// Prints `would` and the space that a change would free.
pub fn print_reclaimable(would: &str, deleted: &Deleted) {
    println!("{would}: {} then; nothing was changed", describe_space(deleted));
}

/// The free space, and the change. Two sizes of free space can differ by less than their digits.
fn describe_space(&Deleted { free_bytes_before: before, free_bytes: free, .. }: &Deleted) -> String {
    let (change, how) = (Bytes(free.abs_diff(before)), if free < before { "less" } else { "more" });
    format!("{} free, {change} {how} than before", Bytes(free))
}

/// Prints `document` if there is one. Otherwise prints `line` and the space before and now.
///
/// Errors: a signal ended the work; later consistency points do the rest.
pub fn print_reclaimed(deleted: &Deleted, document: Option<Value>, line: &str) -> Result<()> {
    let map_blocks_left = deleted.map_blocks_left;
    if let Some(document) = document {
        println!("{document}");
    } else {
        println!("{line}");
        println!("  {}", describe_space(deleted));
        if map_blocks_left > 0 {
            println!("  {map_blocks_left} blocks of maps are not processed yet; later consistency points do that");
        }
    }
    Ok(check_interrupted("reclaiming")?)
}

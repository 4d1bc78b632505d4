//! Freeing what deleted snapshots and volumes used, for verbs that delete.

use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_garden::Garden;
use senesce_volume::{check_interrupted, interrupted};
use serde_json::{Value, json};

use super::place::BLOCK_BYTES;
use crate::progress::Stretch;

/// Makes free what nothing uses any more, and says what was done: `line` to people, or `document` to machines. `before`: blocks
/// that were free. What a signal leaves comes with later consistency points.
pub fn reclaim_and_tell(garden: &Garden, before: u64, document: Option<Value>, line: &str, quiet: bool) -> Result<()> {
    let left = reclaim(garden, quiet).context("cannot reclaim what it held")?;
    garden.close().context("cannot close the garden")?;
    let free = garden.report().free;
    if let Some(mut document) = document {
        document["free_bytes_before"] = json!(before * BLOCK_BYTES);
        document["free_bytes"] = json!(free * BLOCK_BYTES);
        document["map_blocks_left"] = json!(left);
        println!("{document}");
    } else {
        println!("{line}");
        println!("  {} free, {} before", Bytes(free * BLOCK_BYTES), Bytes(before * BLOCK_BYTES));
        if left > 0 {
            println!("  {left} blocks of maps are still to be gone through; that goes on by itself");
        }
    }
    Ok(check_interrupted("reclaiming")?)
}

/// Goes through the maps until a signal comes. Says how many blocks are left.
fn reclaim(garden: &Garden, quiet: bool) -> Result<u64> {
    let mut left = garden.reclaim_step(1)?;
    let of = left + 1;
    let mut bar = Stretch::for_stderr(quiet, "reclaiming", "blocks of maps", of);
    while left > 0 && interrupted().is_none() {
        left = garden.reclaim_step(1)?;
        bar.reach(of - left.min(of));
    }
    Ok(left)
}

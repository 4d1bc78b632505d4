//! `senesce fs dedup`: blocks of files that hold the same become one.

use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_garden::DedupStep;
use senesce_volume::{check_interrupted, install_signal_cleanup, interrupted};
use serde_json::json;

use super::{
    place::BLOCK_BYTES,
    words::{explain, show, split},
};
use crate::{args::FsOfVolumeArgs, progress::Stretch};

/// Blocks that are looked at before it is looked whether a signal came.
const BLOCKS: u64 = 4096;

/// One pass over the files of a volume. What was shared until a signal stays shared.
pub fn dedup(args: &FsOfVolumeArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let (place, names) = split(&args.words, &args.drives, 1..=1)?;
    let volume = &names[0];
    let garden = place.garden(&place.open()?)?;
    let before = garden.sharing(volume).map_err(|error| explain(&garden, volume, error))?;
    let mut bar = Stretch::for_stderr(quiet, "looking for what is the same", "blocks", garden.report().blocks);
    let mut all = DedupStep::default();
    while !all.is_done && interrupted().is_none() {
        all += garden.dedup_step(volume, BLOCKS).with_context(|| format!("cannot look through {place}"))?;
        bar.reach(all.looked_at);
    }
    drop(bar);
    garden.close().with_context(|| format!("cannot close {place}"))?;
    let now = garden.sharing(volume)?;
    let DedupStep { looked_at, shared, different, unread, is_done } = all;
    if args.json {
        let document = json!({
            "format": "senesce-fs-dedup/1",
            "volume": String::from_utf8_lossy(volume),
            "looked_at": looked_at,
            "newly_shared_blocks": shared,
            "same_fingerprint_other_bytes": different,
            "unread": unread,
            "whole": is_done,
            "shared_blocks": now.shared,
            "saved_blocks_before": before.saved,
            "saved_blocks": now.saved,
        });
        println!("{document}");
    } else {
        println!("{place}: volume {}: {looked_at} blocks and inodes, {shared} blocks shared", show(volume));
        println!(
            "  {} saved, {} before; {different} had the fingerprint of other bytes, {unread} could not be read",
            Bytes(now.saved * BLOCK_BYTES),
            Bytes(before.saved * BLOCK_BYTES)
        );
    }
    Ok(check_interrupted("looking for what is the same")?)
}

//! `senesce fs recompact`: what is left of compacted blocks is written together.

use crate::version;
use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::Bytes;
use senesce_garden::{PackingSurvey, RecompactStep};
use senesce_volume::{check_interrupted, install_signal_cleanup, interrupted};
use serde::Serialize;

use super::{
    name_arguments::{explain, show, split_volume},
    place::BLOCK_BYTES,
    send_request::{Access, with_format},
};
use crate::{args::FsRecompactArgs, progress::Stretch};

/// VVBNs that are read between two checks for a signal.
const VVBNS: u64 = 16_384;

/// The JSON output of `fs recompact`.
#[derive(Serialize, JsonSchema)]
pub struct RecompactDocument {
    /// The volume.
    volume: String,
    /// Scanned VVBNs that have a place on the drives.
    looked_at: u64,
    /// Compacted blocks that were read, because few of their chunks are left.
    compacted_blocks_read: u64,
    /// Compacted blocks whose chunks move to other blocks.
    compacted_blocks_given_up: u64,
    /// Chunks that move to other blocks.
    chunks_moved: u64,
    /// Compacted blocks that could not be read; they stay as they are.
    unread: u64,
    /// Whether the pass reached the end.
    whole: bool,
    /// The packing before.
    before: PackingDocument,
    /// The packing now.
    after: PackingDocument,
}

/// How the blocks of a volume are packed.
#[derive(Serialize, JsonSchema)]
struct PackingDocument {
    /// Blocks of the files.
    file_blocks: u64,
    /// Blocks of the drives that the files use.
    taken_blocks: u64,
    /// Blocks of the drives that hold chunks of the files.
    compacted_blocks: u64,
    /// Chunks of compacted blocks.
    chunks: u64,
    /// Saved blocks, percent of the blocks of the files. `None` without files.
    saved_percent: Option<f64>,
}

impl PackingDocument {
    fn of(found: &PackingSurvey) -> Self {
        Self {
            file_blocks: found.blocks,
            taken_blocks: found.taken(),
            compacted_blocks: found.compacted,
            chunks: found.chunks,
            saved_percent: found.saved_percent(),
        }
    }
}

/// One pass over a volume. What was written together until a signal stays so.
pub fn recompact(args: &FsRecompactArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let (place, volume) = split_volume(&args.of.words, &args.of.drives)?;
    let volume = &volume;
    let access = Access::of(args.trial.dry_run);
    let garden = place.garden(&access.open(&place)?)?;
    garden.packing(volume).map_err(|error| explain(&garden, volume, error))?;
    let before = garden.survey_packing(volume)?;
    let mut bar = Stretch::for_stderr(quiet, "writing chunks together", "VVBNs", garden.report().blocks);
    let mut all = RecompactStep::default();
    while !all.is_done && interrupted().is_none() {
        let step = garden.recompact_step(volume, VVBNS, args.below);
        all += step.with_context(|| format!("cannot read all of {place}"))?;
        bar.reach(all.looked_at);
    }
    drop(bar);
    garden.close().with_context(|| format!("cannot close {place}"))?;
    let after = garden.survey_packing(volume)?;
    access.announce(&place);
    let RecompactStep { looked_at, read, rewritten, chunks, unread, is_done } = all;
    if args.of.json {
        let document = RecompactDocument {
            volume: String::from_utf8_lossy(volume).into_owned(),
            looked_at,
            compacted_blocks_read: read,
            compacted_blocks_given_up: rewritten,
            chunks_moved: chunks,
            unread,
            whole: is_done,
            before: PackingDocument::of(&before),
            after: PackingDocument::of(&after),
        };
        println!("{}", with_format(version::RECOMPACT, &document)?);
    } else {
        println!(
            "{place}: volume {}: {looked_at} VVBNs, {chunks} chunks of {rewritten} compacted blocks moved together",
            show(volume)
        );
        println!("  before: {}", told(&before));
        println!("  now:    {}", told(&after));
        println!("  {read} compacted blocks were read, {unread} are unreadable");
    }
    Ok(check_interrupted("writing chunks together")?)
}

fn told(found: &PackingSurvey) -> String {
    let bytes = |blocks: u64| Bytes(blocks * BLOCK_BYTES);
    let saved = found.saved_percent().map_or_else(String::new, |percent| format!(", {percent:.1} % saved"));
    let chunks = found.chunks_a_block().map_or_else(String::new, |chunks| format!(", {chunks:.1} chunks a block"));
    format!("{} of files in {}{saved}{chunks}", bytes(found.blocks), bytes(found.taken()))
}

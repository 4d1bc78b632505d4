//! The metadata cost of a move: through the container, which moves a block under its number in the
//! volume, and as if the volume rewrote it with all pointers above it.

use senesce_trials::{CleaningPolicy, Figure};

use crate::{Result, TimedTrial};

/// Number of areas to move, evenly spread.
const AREAS: u64 = 8;

/// Moves areas of an aged aggregate, each with a consistency point of its own. Then it rewrites the
/// same blocks of the file, with one more point.
pub fn compare(trial: &mut TimedTrial) -> Result<[Figure; 2]> {
    trial.set_cleaning(CleaningPolicy::Off);
    let all = trial.trial().setup().areas;
    let [mut moved, mut rewritten] = [(0, 0); 2];
    for number in 0..AREAS {
        trial.trial().rig().garden().consistency_point()?;
        let (moves, contents) = trial.move_area(number * all / AREAS)?;
        let written = point(trial)?;
        // Moved blocks themselves do not count as cost, of any kind.
        moved = (moved.0 + moves.blocks, moved.1 + written.saturating_sub(moves.blocks + moves.metadata));
        for &block in &contents {
            trial.trial().rig().write(block..block + 1)?;
        }
        let blocks = contents.len() as u64;
        rewritten = (rewritten.0 + blocks, rewritten.1 + point(trial)?.saturating_sub(blocks));
    }
    let each = |(blocks, metadata): (u64, u64)| metadata as f64 / blocks as f64;
    let figure = |name, of| Figure::new(name, each(of));
    Ok([
        figure("blocks of metadata for each that moves, by the container", moved),
        figure("the same if the volume wrote it anew (ablation)", rewritten),
    ])
}

/// Blocks that a consistency point writes to data drives.
fn point(trial: &mut TimedTrial) -> Result<u64> {
    let garden = trial.trial().rig().garden();
    let before = garden.report().raid.data.writes.blocks;
    garden.consistency_point()?;
    Ok(garden.report().raid.data.writes.blocks - before)
}

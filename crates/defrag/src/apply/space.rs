//! Makes free space contiguous: a file without a name holds the free space, and contents move into
//! the parts of it that are elsewhere.
//!
//! The file that holds the space is the donor of all moves, so each content moves to exactly the
//! place of the plan. No other program receives space in a window before the window is empty,
//! except the space that a moved file frees there on XFS.

use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;
use senesce_core::Extent;
use senesce_probe::collect::collect_free_extents_as_it_is;

use super::{Applied, ApplyOptions, Donor, Mover, Skip, Steps, Tally, read_extents, sys};
use crate::{
    Error, Tree,
    plan::{Batch, Left, LeftWhy, Part, PlanOptions, can_move, find_obstacle},
    space::{Segment, SpaceMove, SpacePlan, merge_segments, plan_space},
};

/// Other programs keep one part in this number of the free space while the rest is held.
const KEPT_SHARE: u64 = 8;

/// The extents of a file that would hold the free space: the free extents one after the other.
///
/// `free` are (start, length) in bytes. The result is for [`find_segments`].
pub fn hold_in_thought(free: impl IntoIterator<Item = (u64, u64)>) -> Vec<Extent> {
    let mut logical = 0;
    let hold = |(physical, length)| {
        logical += length;
        Extent { logical: logical - length, physical, length }
    };
    free.into_iter().map(hold).collect()
}

/// The parts of the device that are free or can move. `held` are the extents of the file that holds
/// free space. `loose` is the other free space, as (start, length).
pub fn find_segments(tree: &Tree, options: &PlanOptions, held: &[Extent], loose: &[(u64, u64)]) -> Vec<Segment> {
    let mut seen = BTreeSet::new();
    let is_movable = |entry: &usize| {
        let surveyed = &tree.entries[*entry];
        // A file with two names has its blocks once.
        can_move(surveyed, options) && (surveyed.links == 1 || seen.insert(surveyed.inode))
    };
    let movable: Vec<usize> = tree.files().filter(is_movable).collect();
    let extents =
        movable.into_iter().flat_map(|entry| tree.entries[entry].extents.iter().map(move |raw| (entry, raw.extent)));
    merge_segments(held, loose, extents)
}

/// The files whose contents cannot move, by reason.
pub fn find_left(tree: &Tree, options: &PlanOptions) -> BTreeMap<LeftWhy, Left> {
    let mut all: BTreeMap<LeftWhy, Left> = BTreeMap::new();
    for surveyed in tree.files().map(|entry| &tree.entries[entry]) {
        if let Some(why) = find_obstacle(surveyed, options).filter(|why| why.is_obstacle()) {
            let left = all.entry(why).or_default();
            left.files += 1;
            left.bytes += surveyed.extents.iter().map(|raw| raw.extent.length).sum::<u64>();
        }
    }
    all
}

/// Makes free space contiguous. At most `budget_bytes` move.
///
/// Errors: the file system moves no files; the free space cannot be held.
pub fn apply_space(
    tree: &Tree,
    (plan_options, budget_bytes): (&PlanOptions, u64),
    mover: &mut dyn Mover,
    options: ApplyOptions<'_>,
) -> Result<(SpacePlan, Applied), Error> {
    mover.check(tree)?;
    let held = Donor::hold(tree).map_err(|why| Error::CannotHold { path: tree.path().to_owned(), why })?;
    // Space that other programs could use is also free. Without root there is no map of it, so it
    // is unknown, and there are fewer windows.
    let loose = collect_free_extents_as_it_is(tree.path()).unwrap_or_default();
    let loose: Vec<(u64, u64)> = loose.iter().map(|free| (free.start_bytes, free.length_bytes)).collect();
    let segments = find_segments(tree, plan_options, &held.extents, &loose);
    let plan = plan_space(&segments, budget_bytes, plan_options.align_bytes);
    let mut tally = Tally::default();
    let mut all_steps = Steps::new(options.pace, options.clock);
    let mut done_bytes = 0;
    for moves in cut_into_steps(&plan.moves, plan_options.batch_bytes) {
        let parts: Vec<Part> = moves.iter().map(|moved| moved.part).collect();
        let starts: Vec<u64> = moves.iter().map(|moved| moved.offset).collect();
        let batch = Batch { parts, ..Batch::default() };
        tally.add(tree, mover.move_into(tree, &batch, (&held, &starts), &mut all_steps));
        done_bytes += batch.bytes();
        (options.progress)(done_bytes);
        if all_steps.is_stopped() {
            break;
        }
    }
    // Other programs can use the space only after the next commit.
    let root = held.file.try_clone();
    drop(held);
    if let Ok(file) = root {
        let _ = file.set_len(0).and_then(|()| Ok(rustix::fs::syncfs(&file)?));
    }
    Ok((plan, tally.finish(&all_steps)))
}

/// Groups moves into steps of about this number of bytes.
fn cut_into_steps(moves: &[SpaceMove], bytes: u64) -> Vec<&[SpaceMove]> {
    let (mut steps, mut first, mut filled) = (Vec::new(), 0, 0);
    for (at, moved) in moves.iter().enumerate() {
        if filled > 0 && filled + moved.part.length > bytes {
            steps.push(&moves[first..at]);
            (first, filled) = (at, 0);
        }
        filled += moved.part.length;
    }
    steps.push(&moves[first..]);
    steps.retain(|step| !step.is_empty());
    steps
}

impl Donor {
    /// Holds most of the free space.
    fn hold(tree: &Tree) -> Result<Self, Skip> {
        let file = tree.create_unnamed([])?;
        let space = rustix::fs::fstatvfs(&file).map_err(Skip::of)?;
        let mut bytes = (space.f_bavail - space.f_bavail / KEPT_SHARE) * space.f_frsize;
        // The reserves of the file system may be larger than the kept share.
        while let Err(error) = sys::allocate(&file, bytes.max(1)) {
            // A failed attempt may have left blocks, which other programs need.
            let _ = file.set_len(0).and_then(|()| Ok(rustix::fs::syncfs(&file)?));
            bytes -= bytes / KEPT_SHARE;
            if error != Errno::NOSPC || bytes < space.f_frsize * KEPT_SHARE {
                return Err(Skip::of(error));
            }
        }
        let extents = read_extents(&file, tree)?;
        Ok(Self { file, extents })
    }
}

//! The cure by `senesce defrag`, with its prediction.

use std::path::Path;

use senesce_core::ManualClock;
use senesce_defrag::{
    Applied, ApplyOptions, Order, Plan, apply_plan, collect_tree, find_mover, place_moves, plan_moves, predict_costs,
};
use senesce_inspect::ModelOptions;

use super::{super::state::ArmContext, Work};
use crate::{
    Error,
    observer::Event,
    plan::{CurePlan, ScanOrder},
};

/// Moves the files below the root of a mounted volume into the order of the grep test.
///
/// Errors: the file system moves no files. A signal causes [`senesce_defrag::Error::Stopped`] or an
/// incomplete cure.
pub(super) fn move_files(context: &mut ArmContext<'_>, plan: &CurePlan, root: &Path) -> Result<Work, Error> {
    let stop = context.world.stop();
    let (mut mover, options) = find_mover(root, plan.programs)?;
    let tree = collect_tree(root, context.world.threads, &stop)?;
    if let Some(first) = tree.figures.errors.first() {
        let message = format!(
            "{} entries cannot be read, and the cure does not move them; the first: {}",
            tree.figures.errors_count, first.message
        );
        context.observer.on_event(&Event::Warning { arm: context.arm.name.clone(), message });
    }
    let order = order_of(context.plan.measure.order);
    let files = order.apply(&tree)?;
    let moves = plan_moves(&tree.entries, &files, &options.with_strategies(&plan.strategies()));
    let places = place_moves(&tree, &moves, &stop)?;
    let pieces: Vec<_> = places.into_iter().flatten().flatten().collect();
    let model = ModelOptions {
        devices: context.devices,
        read_ahead_kib: context.plan.volumes.read_ahead_kib,
        volume_bytes: 0,
        map_order: 0,
        threads: context.world.threads,
        stop: &stop,
    };
    let predicted = predict_costs(&tree, &order.reading(&tree, &files), &pieces, &model)?;
    // This clock stands still, because the sizes of steps must not depend on the speed of the host.
    let clock = ManualClock::default();
    let apply = ApplyOptions { pace: &mut |_| !stop(), progress: &mut |_| {}, clock: &clock };
    let applied = apply_plan(&tree, &moves, &mut *mover, apply)?;
    Ok(Work { files: Some(files_of(&moves, &applied)), predicted })
}

fn order_of(order: ScanOrder) -> Order {
    match order {
        ScanOrder::Readdir => Order::Readdir,
        ScanOrder::Sorted => Order::Sorted,
        ScanOrder::Inode => Order::Inode,
    }
}

/// Moved files, files that were skipped or cannot move, and the reasons in words.
fn files_of(moves: &Plan, applied: &Applied) -> (u64, u64, String) {
    let left = moves.left.iter().filter(|(why, left)| why.is_obstacle() && left.files > 0);
    let left = left.map(|(why, left)| (left.files, why.words()));
    let skipped = applied.skipped.iter().map(|(why, skipped)| (skipped.files, why.words()));
    let all: Vec<(u64, &str)> = left.chain(skipped).collect();
    let reasons: Vec<String> = all.iter().map(|(files, why)| format!("{files} {why}")).collect();
    (applied.files, all.iter().map(|(files, _)| files).sum(), reasons.join("; "))
}

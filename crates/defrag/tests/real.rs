//! Moves on real file systems, with changes by other programs in the middle of the moves.

use std::{fs, path::Path};

use senesce_core::never;
use senesce_defrag::{
    Applied, ApplyOptions, Order, Plan, PlanOptions, Skip, Tree, apply_plan, collect_tree, find_mover, plan_moves,
};
use senesce_testkit::{Volume, root_or_skip, run};

const FILES: usize = 300;

fn content(file: usize) -> Vec<u8> {
    (0..9000 + file * 61).map(|at| (at * 29 + file * 7) as u8).collect()
}

/// Makes files in another order than their read order.
fn age(root: &Path, directory: &str) {
    fs::create_dir(root.join(directory)).unwrap();
    for step in 0..FILES {
        let file = step * 101 % FILES;
        fs::write(root.join(directory).join(format!("{file:03}")), content(file)).unwrap();
        if step % 8 == 0 {
            run("sync", &["-f", root.to_str().unwrap()]);
        }
    }
    run("sync", &["-f", root.to_str().unwrap()]);
}

fn plan(root: &Path) -> (Tree, Plan) {
    let (_, options) = find_mover(root, false).unwrap();
    let tree = collect_tree(root, 1, &never).unwrap();
    let files = Order::Sorted.apply(&tree).unwrap();
    let plan = plan_moves(&tree.entries, &files, &PlanOptions { batch_bytes: 1 << 20, ..options });
    (tree, plan)
}

/// Applies a plan. `middle` runs once, before the first step of the second batch.
fn apply(root: &Path, (tree, plan): &(Tree, Plan), middle: &mut dyn FnMut()) -> Applied {
    let (mut mover, _) = find_mover(root, false).unwrap();
    let first = plan.batches[0].bytes();
    let (mut done, mut is_over) = (0, false);
    let mut pace = |bytes: u64| {
        done += bytes;
        if done > first && !is_over {
            is_over = true;
            middle();
        }
        true
    };
    apply_plan(tree, plan, &mut *mover, ApplyOptions { pace: &mut pace, progress: &mut |_| {} }).unwrap()
}

/// Bytes in use after a remount: XFS frees some space only some time after a file is gone.
fn used(volume: &Volume) -> u64 {
    volume.remount_cold();
    let space = rustix::fs::statvfs(volume.path("")).unwrap();
    (space.f_blocks - space.f_bfree) * space.f_frsize
}

#[test]
fn new_sharing_during_moves_is_kept() {
    if !root_or_skip("mounts") {
        return;
    }
    for kind in ["btrfs", "xfs"] {
        let volume = Volume::new(kind, 320, &[], "");
        let root = volume.path("");
        age(&root, "tree");
        let before = used(&volume);
        let planned = plan(&root.join("tree"));
        assert!(planned.1.batches.len() >= 3, "{kind}: {:?}", planned.1.batches.len());
        let applied = apply(&root.join("tree"), &planned, &mut || match kind {
            "btrfs" => {
                let (from, to) = (root.to_str().unwrap(), root.join("snap"));
                run("btrfs", &["-q", "subvolume", "snapshot", "-r", from, to.to_str().unwrap()]);
            }
            _ => {
                let (from, to) = (root.join("tree"), root.join("copy"));
                run("cp", &["-r", "--reflink=always", from.to_str().unwrap(), to.to_str().unwrap()]);
            }
        });
        let shared = applied.skipped.get(&Skip::Shared).map_or(0, |skipped| skipped.files);
        assert!(shared > FILES as u64 / 2, "{kind}: {applied:?}");
        drop(planned);
        let grown = used(&volume).saturating_sub(before);
        // The current batch may have lost its sharing, and metadata also grows.
        assert!(grown < 3 << 20, "{kind}: {grown} bytes more");
        (0..FILES).for_each(|file| {
            assert!(fs::read(root.join(format!("tree/{file:03}"))).unwrap() == content(file), "{kind}: {file}");
        });
    }
}

#[test]
fn a_renamed_directory_stops_no_others() {
    if !root_or_skip("mounts") {
        return;
    }
    for kind in ["ext4", "xfs", "btrfs"] {
        let volume = Volume::new(kind, 320, &[], "");
        let root = volume.path("");
        fs::create_dir(root.join("tree")).unwrap();
        age(&root.join("tree"), "a");
        age(&root.join("tree"), "b");
        let tree = root.join("tree");
        let planned = plan(&tree);
        let first = planned.0.entries[planned.1.batches[0].parts[0].entry].path.to_string();
        let gone = first.split('/').next().unwrap().to_owned();
        fs::rename(tree.join(&gone), tree.join("renamed")).unwrap();
        let applied = apply(&tree, &planned, &mut || {});
        let kept = if gone == "a" { "b" } else { "a" };
        assert!(applied.files >= FILES as u64 * 9 / 10, "{kind}: {kept} moves: {applied:?}");
        assert_eq!(applied.skipped[&Skip::Changed].files, FILES as u64, "{kind}: {applied:?}");
        for directory in [kept, "renamed"] {
            (0..FILES).for_each(|file| {
                let path = tree.join(format!("{directory}/{file:03}"));
                assert!(fs::read(&path).unwrap() == content(file), "{kind}: {}", path.display());
            });
        }
    }
}

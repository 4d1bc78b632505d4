//! Moves on real file systems, with changes by other programs in the middle of the moves.

use std::{fs, path::Path};

use senesce_core::{ManualClock, never};
use senesce_defrag::{
    Applied, ApplyOptions, Order, Plan, PlanOptions, Skip, Tree, WorstGroup, apply_plan, balance_group, collect_tree,
    find_mover, free_lengths, plan_balance, plan_moves,
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
    plan_batches(root, 1 << 20)
}

fn plan_batches(root: &Path, batch_bytes: u64) -> (Tree, Plan) {
    let (_, options) = find_mover(root, false).unwrap();
    let tree = collect_tree(root, 1, &never).unwrap();
    let files = Order::Sorted.apply(&tree).unwrap();
    let plan = plan_moves(&tree.entries, &files, &PlanOptions { batch_bytes, ..options });
    (tree, plan)
}

/// Applies a plan. `middle` runs once, before the second batch moves. On Btrfs and XFS, a batch is
/// read, copied and shared.
fn apply(root: &Path, (tree, plan): &(Tree, Plan), middle: &mut dyn FnMut()) -> Applied {
    let (mut mover, _) = find_mover(root, false).unwrap();
    let clock = ManualClock::default();
    let first = plan.batches[0].bytes();
    let (mut done, mut is_over) = (0, false);
    let mut pace = |bytes: u64| {
        done += bytes;
        if done > 3 * first && !is_over {
            is_over = true;
            middle();
        }
        true
    };
    apply_plan(tree, plan, &mut *mover, ApplyOptions { pace: &mut pace, progress: &mut |_| {}, clock: &clock }).unwrap()
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
        match kind {
            // The snapshot moves, too, until its metadata would need too much space. It also has
            // the donors of the current batch, which the kernel then writes elsewhere.
            "btrfs" => assert!(shared == 0 && applied.files > FILES as u64 / 3, "{kind}: {applied:?}"),
            _ => assert!(shared > FILES as u64 / 2, "{kind}: {applied:?}"),
        }
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

/// The bytes of a file on the device, as the kernel maps them.
fn places(path: &Path) -> Vec<(u64, u64)> {
    let file = fs::File::open(path).unwrap();
    let map = senesce_probe::collect::collect_extents(&file, path).unwrap();
    map.iter().map(|raw| (raw.extent.physical, raw.extent.length)).collect()
}

/// The content of a file of the test with snapshots. Small files would need more metadata than 2%.
fn large_content(file: usize) -> Vec<u8> {
    (0..2_000_000 + file * 4321).map(|at| (at * 31 + file * 7 + at / 4096) as u8).collect()
}

#[test]
fn all_snapshots_of_a_btrfs_move_and_space_stays() {
    const FILES: usize = 60;
    if !root_or_skip("mounts") {
        return;
    }
    let volume = Volume::new("btrfs", 768, &["-m", "single"], "");
    let root = volume.path("");
    run("btrfs", &["-q", "subvolume", "create", root.join("live").to_str().unwrap()]);
    let tree = root.join("live/tree");
    fs::create_dir(&tree).unwrap();
    fs::create_dir(root.join("kept")).unwrap();
    for step in 0..FILES {
        let file = step * 23 % FILES;
        fs::write(tree.join(format!("{file:03}")), large_content(file)).unwrap();
        run("sync", &["-f", root.to_str().unwrap()]);
    }
    let snapshots: Vec<_> = (0..24).map(|number| root.join(format!("kept/{number:02}"))).collect();
    for (number, to) in snapshots.iter().enumerate() {
        let (from, to) = (root.join("live"), to.to_str().unwrap());
        let read_only: &[&str] = if number % 2 == 0 { &["-r"] } else { &[] };
        let words = [&["-q", "subvolume", "snapshot"], read_only, &[from.to_str().unwrap(), to]].concat();
        run("btrfs", &words);
    }
    // One file of a snapshot has other content, and a file of the tree has a second owner in it.
    fs::write(snapshots[1].join("tree/007"), b"other").unwrap();
    let (copied, copy) = (tree.join("011"), tree.join("999"));
    run("cp", &["--reflink=always", copied.to_str().unwrap(), copy.to_str().unwrap()]);
    run("sync", &["-f", root.to_str().unwrap()]);
    let before = used(&volume);
    let planned = plan_batches(&tree, 32 << 20);
    assert!(planned.1.files() >= FILES as u64 * 9 / 10, "{:?}", planned.1.left);
    let old = places(&tree.join("030"));
    let applied = apply(&tree, &planned, &mut || {});
    assert!(applied.skipped.is_empty() && applied.files == planned.1.files(), "{applied:?}");
    drop(planned);
    let grown = used(&volume).saturating_sub(before);
    println!("space grew by {grown} bytes, {:.2}%", grown as f64 * 100.0 / before as f64);
    assert!(grown * 50 <= before, "{grown} bytes more than {before}");
    assert_ne!(places(&tree.join("030")), old);
    for file in 0..FILES {
        let name = format!("{file:03}");
        let wanted = places(&tree.join(&name));
        for (number, snapshot) in snapshots.iter().enumerate() {
            let path = snapshot.join("tree").join(&name);
            if (number, file) == (1, 7) {
                assert_eq!(fs::read(&path).unwrap(), b"other");
                continue;
            }
            assert_eq!(places(&path), wanted, "{}", path.display());
        }
        assert!(fs::read(snapshots[0].join("tree").join(&name)).unwrap() == large_content(file), "{file}");
    }
    assert_eq!(places(&copy), places(&copied));
    assert!(fs::read(&copy).unwrap() == large_content(11));
}

#[test]
fn the_worst_block_group_of_a_btrfs_becomes_one_extent() {
    if !root_or_skip("mounts") {
        return;
    }
    let volume = Volume::new("btrfs", 512, &[], "");
    let root = volume.path("");
    let name = |file: usize| root.join(format!("{file:04}"));
    for file in 0..1200 {
        fs::write(name(file), vec![file as u8; 160 << 10]).unwrap();
    }
    run("sync", &["-f", root.to_str().unwrap()]);
    // Holes of 320 KiB between files of 160 KiB.
    (0..1200).filter(|file| file % 3 != 0).for_each(|file| fs::remove_file(name(file)).unwrap());
    volume.remount_cold();
    let read = || senesce_probe::collect::collect_btrfs_free_space(&root).unwrap();
    let before = read();
    let groups = plan_balance(&before, 1 << 30);
    assert!(!groups.is_empty(), "{before:?}");
    groups.iter().for_each(|group| balance_group(&root, group).unwrap());
    let after = read();
    let is_there = |group: &WorstGroup| after.groups.iter().any(|there| there.start_bytes == group.start_bytes);
    // The kernel removes an empty group at once or with a later commit.
    assert!(!groups.iter().all(is_there), "{groups:?}");
    assert!(free_lengths(&after).len() < free_lengths(&before).len());
    (0..1200).step_by(3).for_each(|file| {
        assert!(fs::read(name(file)).unwrap().iter().all(|byte| *byte == file as u8), "{file}");
    });
}

/// Btrfs keeps an extent while any part of it is in use, so a move would need its space twice.
#[test]
fn files_changed_since_a_btrfs_snapshot_stay() {
    use std::os::unix::fs::FileExt;

    const FILES: usize = 40;
    if !root_or_skip("mounts") {
        return;
    }
    let volume = Volume::new("btrfs", 512, &["-m", "single"], "");
    let root = volume.path("");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    run("btrfs", &["-q", "subvolume", "create", &text(&root.join("live"))]);
    let tree = root.join("live/tree");
    fs::create_dir(&tree).unwrap();
    let name = |file: usize| format!("{file:03}");
    for step in 0..FILES {
        let file = step * 23 % FILES;
        fs::write(tree.join(name(file)), large_content(file)).unwrap();
        run("sync", &["-f", &text(&root)]);
    }
    run("btrfs", &["-q", "subvolume", "snapshot", "-r", &text(&root.join("live")), &text(&root.join("kept"))]);
    // The middle of each file, so that the snapshot has blocks that the file has no more.
    for file in 0..FILES {
        let file = fs::File::options().write(true).open(tree.join(name(file))).unwrap();
        file.write_all_at(&[9; 300_000], 700_000).unwrap();
    }
    run("sync", &["-f", &text(&root)]);
    let contents = || (0..FILES).map(|file| fs::read(tree.join(name(file))).unwrap()).collect::<Vec<_>>();
    let (before, was) = (used(&volume), contents());
    let planned = plan_batches(&tree, 32 << 20);
    assert!(planned.1.files() > 0, "{:?}", planned.1.left);
    let applied = apply(&tree, &planned, &mut || {});
    assert_eq!(applied.files, 0, "{applied:?}");
    assert_eq!(applied.skipped[&Skip::Sharers].files, planned.1.files(), "{applied:?}");
    drop(planned);
    let grown = used(&volume).saturating_sub(before);
    assert!(grown * 50 <= before, "{grown} bytes more than {before}");
    assert!(contents() == was);
    for file in 0..FILES {
        assert!(fs::read(root.join("kept/tree").join(name(file))).unwrap() == large_content(file), "{file}");
    }
}

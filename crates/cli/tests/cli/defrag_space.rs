//! Free space becomes contiguous: on XFS so that new inodes find space, on ext4 as a larger extent.

use std::{
    fs::{self, File, Permissions},
    io::{ErrorKind, Write},
    os::unix::fs::{FileExt, PermissionsExt},
    path::Path,
};

use rustix::fs::{FallocateFlags, fallocate};
use senesce_probe::collect::collect_free_extents;
use senesce_testkit::{root_or_skip, unmount_patiently};
use serde_json::Value;

use super::{
    defrag::{check, state},
    disk::volume,
    lab::Lab,
};

const BLOCK: u64 = 4096;

/// Writes a file, gives other free space to a file of reserved blocks, and punches holes of 4 to 7
/// blocks into the first one, each after as many blocks.
pub(super) fn shatter_free_space(root: &Path, mib: usize) {
    let data = File::create(root.join("data")).unwrap();
    let mut writer = &data;
    for piece in 0..mib {
        let bytes: Vec<u8> = (0..1 << 20).map(|at| (at * 31 + at / 4096 + piece * 7) as u8).collect();
        writer.write_all(&bytes).unwrap();
    }
    data.sync_all().unwrap();
    let reserved = File::create(root.join("reserved")).unwrap();
    let mut end = 0;
    for power in (12..28).rev() {
        while fallocate(&reserved, FallocateFlags::empty(), end, 1 << power).is_ok() {
            end += 1 << power;
        }
    }
    let (mut at, mut hole) = (0, 0);
    while at < (mib as u64) << 20 {
        let length = (4 + hole % 4) * BLOCK;
        fallocate(&data, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, length).unwrap();
        at += 2 * length;
        hole += 1;
    }
}

/// Creates empty files. Returns the number of them, if there is no space for one.
fn create_files(directory: &Path, count: usize) -> Result<(), usize> {
    fs::create_dir(directory).map_err(|_| 0usize)?;
    for number in 0..count {
        match File::create(directory.join(number.to_string())) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => return Err(number),
            Err(error) => panic!("{error}"),
        }
    }
    Ok(())
}

fn defrag_space(lab: &Lab, root: &Path, more: &[&str]) -> Value {
    let root = root.to_string_lossy();
    let args = [&["--quiet", "defrag", &root, "--free-space", "--json"], more].concat();
    serde_json::from_str(&lab.run(args).good().stdout).unwrap()
}

#[test]
fn xfs_that_refuses_inodes_accepts_them_afterwards() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let (disk, mount) = volume("xfs", &["-i", "sparse=0"], &lab.path("volume"), 320, lab.path("mnt"));
    let root = &mount.point;
    let tree = root.join("tree");
    fs::create_dir(&tree).unwrap();
    shatter_free_space(&tree, 200);
    // Inodes fill the long extents that XFS keeps in reserve.
    create_files(&root.join("refused"), 500_000).expect_err("no space for inodes");
    let free: Vec<u64> = collect_free_extents(root).unwrap().iter().map(|free| free.length_bytes / BLOCK).collect();
    let short = free.iter().filter(|blocks| (4..=7).contains(*blocks)).count();
    assert!(short * 100 >= free.len() * 94, "{short} of {}", free.len());
    // The tool needs inodes, too.
    (0..3).for_each(|number| fs::remove_file(root.join(format!("refused/{number}"))).unwrap());
    let before = state(&tree);

    let advice = defrag_space(&lab, &tree, &["--dry-run"]);
    assert_eq!(advice["applied"], Value::Null);
    let report = defrag_space(&lab, &tree, &[]);
    let applied = &report["applied"];
    assert!(applied["written_bytes"].as_u64().unwrap() <= report["moved_bytes"].as_u64().unwrap(), "{report}");
    assert_eq!(applied["skipped"], serde_json::json!({}), "{report}");
    assert_eq!(state(&tree), before);
    assert_eq!(create_files(&root.join("accepted"), 10_000), Ok(()), "{report}");
    assert!(unmount_patiently(root));
    check("xfs", &disk.device);
}

#[test]
fn the_largest_free_extent_of_ext4_grows() {
    the_largest_free_extent_grows("4096", 4);
}

/// The kernel exchanges whole pages, so a block must have the same place in its page before and
/// after.
///
/// The extent grows less than planned. A move splits extents of the file, so its map needs more
/// blocks. ext4 allocates them near the old place: in free space of the window that no file holds.
/// Here three such blocks cut a window of 16 MiB into pieces of 4 MiB. With blocks of 4 KiB, a
/// block of the map has four times the extents, and the map grows less.
#[test]
fn it_grows_with_blocks_smaller_than_a_page() {
    the_largest_free_extent_grows("1024", 2);
}

fn the_largest_free_extent_grows(block_bytes: &str, times: u64) {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let (disk, mount) = volume("ext4", &["-b", block_bytes], &lab.path("volume"), 128, lab.path("mnt"));
    let root = &mount.point;
    shatter_free_space(root, 80);
    // The last block of the file is not full, and after a hole.
    let tail = File::options().write(true).open(root.join("data")).unwrap();
    tail.write_all_at(b"tail", (80 << 20) + 100).unwrap();
    tail.sync_all().unwrap();
    drop(tail);
    let data = root.join("data");
    fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
    let shown = lab.run(["-q", "defrag", &root.to_string_lossy(), "--free-space", "--dry-run"]).good().stdout;
    assert!(shown.contains("left alone      1 that can be executed (--programs moves them)"), "{shown}");
    let report = defrag_space(&lab, root, &["--dry-run", "--programs"]);
    assert!(report["left"]["program"].is_null() && report["moved_bytes"].as_u64() > Some(0), "{report}");
    fs::set_permissions(&data, Permissions::from_mode(0o644)).unwrap();
    let before = state(root);
    let report = defrag_space(&lab, root, &[]);
    let number = |value: &Value| value.as_u64().unwrap();
    let (now, after) = (&report["before"]["largest_bytes"], &report["applied"]["after"]["largest_bytes"]);
    assert!(number(after) >= times * number(now), "{report}");
    assert!(number(after) >= 1 << 20, "{report}");
    let extents = |figures: &Value| number(&figures["extents"]);
    assert!(extents(&report["applied"]["after"]) < extents(&report["before"]), "{report}");
    assert_eq!(state(root), before);
    assert!(unmount_patiently(root));
    check("ext4", &disk.device);
}

#[test]
fn btrfs_balances_its_worst_block_groups_only() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let (disk, mount) = volume("btrfs", &[], &lab.path("volume"), 512, lab.path("mnt"));
    let name = |file: usize| mount.point.join(format!("{file:04}"));
    for file in 0..1200 {
        fs::write(name(file), vec![file as u8; 160 << 10]).unwrap();
    }
    rustix::fs::syncfs(File::open(&mount.point).unwrap()).unwrap();
    (0..1200).filter(|file| file % 3 != 0).for_each(|file| fs::remove_file(name(file)).unwrap());
    rustix::fs::syncfs(File::open(&mount.point).unwrap()).unwrap();
    let before = state(&mount.point);
    let point = mount.point.to_string_lossy().into_owned();
    let defrag = |more: &[&str]| -> Value {
        let args = [&["--quiet", "defrag", &point, "--free-space", "--json", "--budget", "1GiB"], more].concat();
        serde_json::from_str(&lab.run(args).good().stdout).unwrap()
    };
    let planned = defrag(&["--dry-run"]);
    assert!(planned["moved_bytes"].as_u64() > Some(0) && planned["applied"].is_null(), "{planned}");
    let report = defrag(&[]);
    let extents = |part: &Value| part["extents"].as_u64().unwrap();
    assert!(extents(&report["applied"]["after"]) < extents(&report["before"]), "{report}");
    assert_eq!(state(&mount.point), before);
    assert!(unmount_patiently(&mount.point));
    check("btrfs", &disk.device);
}

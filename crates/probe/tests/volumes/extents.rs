//! FIEMAP against `filefrag -v`.

use std::{fs, io::Write, os::unix::fs::FileExt, path::Path};

use senesce_core::{Space, never};
use senesce_probe::{
    collect::{TreeItem, collect_extents, collect_space, collect_tree_extents, collect_tree_map},
    map::{ExtentFlags, Placement, RawExtent},
    score::{LayoutScorer, compute_file_layout},
};

use crate::support::{Volume, run, write_fragmented};

fn extents_of(path: &Path) -> Vec<RawExtent> {
    collect_extents(&fs::File::open(path).unwrap(), path).unwrap()
}

/// (logical, physical, blocks) of every row of `filefrag -v`, in blocks of 4 KiB, and the count in
/// its last line.
fn filefrag(path: &Path) -> (Vec<(u64, u64, u64)>, u64) {
    let text = run("filefrag", &["-v", "-b4096", path.to_str().unwrap()]);
    let number = |field: &str| field.trim().split("..").next().unwrap().trim().parse::<u64>().unwrap();
    let rows = text
        .lines()
        .filter(|line| line.split(':').next().unwrap().trim().parse::<u64>().is_ok())
        .map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (number(fields[1]), number(fields[2]), number(fields[3]))
        })
        .collect();
    let count = text.lines().last().unwrap().rsplit_once(": ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    (rows, count)
}

fn fragmented_files_match_filefrag(volume: &Volume, space: Space) {
    write_fragmented(&volume.mountpoint, 3, 60);
    assert_eq!(collect_space(&volume.mountpoint).unwrap(), space);
    let mut total = 0;
    for n in 0..3 {
        let path = volume.path(&format!("fragmented-{n}"));
        let extents = extents_of(&path);
        let (rows, count) = filefrag(&path);
        let ours: Vec<_> = extents
            .iter()
            .map(|raw| (raw.extent.logical / 4096, raw.extent.physical / 4096, raw.extent.length / 4096))
            .collect();
        assert_eq!(ours, rows, "{}", path.display());
        let layout = compute_file_layout(&extents, 4096);
        assert_eq!(layout.blocks, 240);
        assert_eq!(layout.extents, count, "{}", path.display());
        total += layout.extents;
    }
    assert!(total > 12, "the files were to be fragmented, and have {total} extents in all");

    let mut names = Vec::new();
    let mut scorer = LayoutScorer::new(space, 4096);
    let figures = collect_tree_extents(&volume.mountpoint, 2, &never, &mut |file| {
        names.push(file.path.to_string());
        scorer.add_file(file.size_bytes, &file.extents);
    })
    .unwrap();
    assert_eq!(figures.errors, []);
    assert_eq!(scorer.finish().extents, total);
    let mut alone = Vec::new();
    collect_tree_extents(&volume.mountpoint, 1, &never, &mut |file| alone.push(file.path.to_string())).unwrap();
    assert_eq!(names, alone, "the order must not depend on the threads");
}

#[test]
fn ext4_fragmented_files() {
    if senesce_testkit::root_or_skip("mounts an ext4 image") {
        fragmented_files_match_filefrag(&Volume::new("ext4", 64, &[], "noatime"), Space::Device);
    }
}

#[test]
fn xfs_fragmented_files() {
    if senesce_testkit::root_or_skip("mounts an XFS image") {
        // With speculative preallocation the appends would not alternate.
        let volume = Volume::new("xfs", 300, &[], "noatime,allocsize=4k");
        fragmented_files_match_filefrag(&volume, Space::Device);
    }
}

#[test]
fn btrfs_fragmented_files() {
    if senesce_testkit::root_or_skip("mounts a Btrfs image") {
        let volume = Volume::new("btrfs", 128, &[], "noatime,nodiscard");
        fragmented_files_match_filefrag(&volume, Space::BtrfsLogical);
    }
}

#[test]
fn btrfs_names_inline_shared_unwritten_and_encoded_extents() {
    if !senesce_testkit::root_or_skip("mounts a Btrfs image") {
        return;
    }
    let volume = Volume::new("btrfs", 128, &[], "noatime,nodiscard,compress-force=zstd");
    let (inline, encoded, clone) = (volume.path("inline"), volume.path("encoded"), volume.path("clone"));
    fs::write(&inline, b"small").unwrap();
    fs::write(&encoded, vec![b'x'; 1 << 20]).unwrap();
    run("cp", &["--reflink=always", encoded.to_str().unwrap(), clone.to_str().unwrap()]);
    let reserved = volume.path("reserved");
    run("fallocate", &["-l", "1MiB", reserved.to_str().unwrap()]);
    let placements = |path: &Path| extents_of(path).iter().map(RawExtent::placement).collect::<Vec<_>>();
    assert_eq!(placements(&inline), [Placement::Inline]);
    let extents = extents_of(&encoded);
    assert!(extents.iter().all(|raw| raw.placement() == Placement::Encoded), "{extents:?}");
    assert!(extents.iter().all(|raw| raw.flags.contains(ExtentFlags::SHARED)), "{extents:?}");
    assert!(extents_of(&reserved).iter().all(|raw| raw.flags.contains(ExtentFlags::UNWRITTEN)));
    let layout = compute_file_layout(&extents_of(&reserved), 4096);
    assert_eq!((layout.blocks, layout.unwritten_blocks), (256, 256));
}

#[test]
fn ext4_inline_data_sparse_files_and_links() {
    if !senesce_testkit::root_or_skip("mounts an ext4 image") {
        return;
    }
    let volume = Volume::new("ext4", 64, &["-O", "inline_data", "-I", "256"], "noatime");
    fs::write(volume.path("inline"), b"small").unwrap();
    fs::hard_link(volume.path("inline"), volume.path("second-name")).unwrap();
    fs::File::create(volume.path("empty")).unwrap();
    let sparse = fs::File::create(volume.path("sparse")).unwrap();
    sparse.write_all_at(&[1; 4096], 0).unwrap();
    sparse.write_all_at(&[2; 4096], 1 << 20).unwrap();
    // Written but not synced: FIEMAP must sync first.
    fs::File::create(volume.path("plain")).unwrap().write_all(&[3; 65536]).unwrap();
    std::os::unix::fs::symlink("nowhere", volume.path("symlink")).unwrap();
    let mut scorer = LayoutScorer::new(Space::Device, 4096);
    let figures = collect_tree_extents(&volume.mountpoint, 1, &never, &mut |file| {
        scorer.add_file(file.size_bytes, &file.extents)
    })
    .unwrap();
    assert_eq!((figures.files, figures.further_links, figures.errors.len()), (4, 1, 0));
    let layout = scorer.finish();
    assert_eq!((layout.files, layout.inline_files, layout.empty_files), (2, 1, 1));
    assert_eq!((layout.blocks, layout.unplaced_bytes), (18, 0));
}

/// The result of a walk with directories.
struct Walked {
    /// Every name in the order of the walk; directories with a slash at their end.
    names: Vec<String>,
    /// Directories, and the block of their first extent.
    places: Vec<(String, u64)>,
    /// The number of mapped directories, and of those that could not be mapped.
    counts: (u64, u64),
}

/// Makes the tree `a/{b/y,x}`, `z` and walks it.
fn walk_with_directories(volume: &Volume) -> Walked {
    fs::create_dir_all(volume.path("a/b")).unwrap();
    for name in ["a/b/y", "a/x", "z"] {
        fs::write(volume.path(name), [7; 8192]).unwrap();
    }
    let (mut names, mut places) = (Vec::new(), Vec::new());
    let figures = collect_tree_map(&volume.mountpoint, 2, &mut |item| match item {
        TreeItem::Directory(directory) => {
            names.push(format!("{}/", directory.path));
            places.push((directory.path.to_string(), directory.extents[0].extent.physical / 4096));
        }
        TreeItem::File(file) => names.push(file.path.to_string()),
    })
    .unwrap();
    assert_eq!(figures.errors, []);
    assert_eq!(figures.files, 3);
    Walked { names, places, counts: (figures.directories, figures.untold_directories) }
}

#[test]
fn ext4_reports_directory_locations() {
    if !senesce_testkit::root_or_skip("mounts an ext4 image") {
        return;
    }
    let volume = Volume::new("ext4", 64, &["-b", "4096"], "noatime");
    let Walked { names, places, counts } = walk_with_directories(&volume);
    assert_eq!(counts, (4, 0), "the root, lost+found, a and a/b");
    let at = |name: &str| names.iter().position(|known| known == name).unwrap();
    assert_eq!(at("/"), 0, "the root comes first: {names:?}");
    assert!(at("a/") < at("a/x") && at("a/b/") < at("a/b/y"), "a directory comes before what it holds: {names:?}");
    for (path, block) in places {
        // The file system's own debugger is the oracle.
        let answer = run("debugfs", &["-R", &format!("blocks /{path}"), &volume.device]);
        let first: u64 = answer.split_whitespace().next().unwrap().parse().unwrap();
        assert_eq!(block, first, "/{path}");
    }
}

#[test]
fn unmapped_directories_of_xfs_and_btrfs_are_counted() {
    if !senesce_testkit::root_or_skip("mounts XFS and Btrfs images") {
        return;
    }
    for (kind, mib) in [("xfs", 300), ("btrfs", 128)] {
        let volume = Volume::new(kind, mib, &[], "noatime");
        let Walked { names, counts, .. } = walk_with_directories(&volume);
        assert_eq!(names.len(), 3, "{kind}: {names:?}");
        assert_eq!(counts, (0, 3), "{kind}: the root, a and a/b");
    }
}

//! Extents that are not plain data in blocks of their own: each kind is counted.

use std::{fs, os::unix::fs::FileExt, path::Path};

use senesce_inspect::SpecialExtents;

use crate::support::{alone, inspect_at, run, sync, volume};

/// Makes the kinds of files that all file systems support: preallocated, sparse, plain.
fn make_common(root: &Path) {
    fs::write(root.join("simple"), vec![1; 100_000]).unwrap();
    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    run("fallocate", &["--length", "1MiB", &path("preallocated")]);
    // A file with data at both ends of a hole, and a file that is one hole.
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.write_all_at(&[1; 8192], 0).unwrap();
    sparse.write_all_at(&[1; 8192], 1 << 20).unwrap();
    fs::File::create(root.join("hole")).unwrap().set_len(1 << 20).unwrap();
    sync(root);
}

#[test]
fn preallocated_and_sparse_files_of_ext4_are_counted() {
    if !senesce_testkit::root_or_skip("inspects ext4 on a loop device") {
        return;
    }
    let _alone = alone();
    let volume = volume("ext4", 400, &["-O", "inline_data"], "noatime");
    make_common(&volume.mountpoint);
    fs::write(volume.path("inline"), b"few bytes").unwrap();
    sync(&volume.mountpoint);
    let found = inspect_at(&volume.mountpoint).unwrap();
    // The directory lost+found is too large for its inode, the root is not.
    let SpecialExtents { preallocated, sparse_files, inline, encoded, shared, delayed } = found.tree.special;
    assert_eq!((preallocated, sparse_files, encoded, shared, delayed), (1, 2, 0, 0, 0));
    assert!(inline >= 1, "{inline}");
}

#[test]
fn shared_extents_of_xfs_are_counted() {
    if !senesce_testkit::root_or_skip("inspects XFS on a loop device") {
        return;
    }
    let _alone = alone();
    let volume = volume("xfs", 400, &["-m", "reflink=1"], "noatime");
    make_common(&volume.mountpoint);
    let path = |name: &str| volume.path(name).to_str().unwrap().to_owned();
    run("cp", &["--reflink=always", &path("simple"), &path("shared")]);
    sync(&volume.mountpoint);
    let found = inspect_at(&volume.mountpoint).unwrap();
    // The extent counts as shared in both files.
    let special = SpecialExtents { preallocated: 1, sparse_files: 2, shared: 2, ..SpecialExtents::default() };
    assert_eq!(found.tree.special, special);
}

#[test]
fn counts_compressed_shared_and_inline_btrfs_extents() {
    if !senesce_testkit::root_or_skip("inspects Btrfs on a loop device") {
        return;
    }
    let _alone = alone();
    let volume = volume("btrfs", 400, &[], "noatime,nodiscard");
    make_common(&volume.mountpoint);
    let path = |name: &str| volume.path(name).to_str().unwrap().to_owned();
    fs::write(volume.path("inline"), vec![7; 1000]).unwrap();
    run("cp", &["--reflink=always", &path("simple"), &path("shared")]);
    run("mkdir", &[&path("compressed")]);
    run("chattr", &["+c", &path("compressed")]);
    // Compressed extents hold 128 KiB of content each.
    fs::write(volume.path("compressed/file"), vec![7; 512 << 10]).unwrap();
    sync(&volume.mountpoint);
    let found = inspect_at(&volume.mountpoint).unwrap();
    let special = SpecialExtents {
        preallocated: 1,
        sparse_files: 2,
        shared: 2,
        inline: 1,
        encoded: 4,
        ..SpecialExtents::default()
    };
    assert_eq!(found.tree.special, special);
    assert!(found.warnings.iter().any(|warning| warning.contains("4 extents are compressed")), "{:?}", found.warnings);
}

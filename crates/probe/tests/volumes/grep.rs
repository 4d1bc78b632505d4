//! The grep test's counts against `du -s`, and invalid inputs. The counts need no root.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use senesce_core::{Clock, ManualClock, Nanos, Seed, never};
use senesce_probe::{
    Error,
    collect::{GrepOptions, Order, collect_gnu_grep, collect_grep, compute_pattern},
};

use crate::support::{Volume, run};

/// A clock that advances by a fixed span with every reading, forwards or backwards.
struct SteppingClock {
    now: AtomicU64,
    backwards: bool,
}

impl Clock for SteppingClock {
    fn now(&self) -> Nanos {
        let step = if self.backwards { 1_000u64.wrapping_neg() } else { 1_000 };
        Nanos(self.now.fetch_add(step, Ordering::SeqCst))
    }

    fn unix_seconds(&self) -> u64 {
        0
    }
}

fn clock(backwards: bool) -> SteppingClock {
    SteppingClock { now: AtomicU64::new(1 << 40), backwards }
}

fn options(order: Order) -> GrepOptions {
    GrepOptions { order, pattern: compute_pattern(Seed(1)) }
}

/// A tree with difficult entries: links of both kinds, a pipe, an unusual name, empty and large
/// files. Out: files, directories and bytes that a walk reads.
fn make_tree(root: &Path) -> (u64, u64, u64) {
    fs::create_dir_all(root.join("a/b/c")).unwrap();
    fs::create_dir(root.join("empty-directory")).unwrap();
    fs::write(root.join("a/small"), b"text\n").unwrap();
    fs::write(root.join("a/b/empty"), b"").unwrap();
    fs::write(root.join("a/b/c/large"), vec![b'.'; 1_000_003]).unwrap();
    fs::write(root.join("exact"), vec![0u8; 128 * 1024]).unwrap();
    fs::write(root.join(OsStr::from_bytes(b"not-utf8-\xff")), b"12345").unwrap();
    fs::hard_link(root.join("a/b/c/large"), root.join("second-name")).unwrap();
    symlink("..", root.join("a/up")).unwrap();
    symlink("x".repeat(200), root.join("long-symlink")).unwrap();
    run("mkfifo", &[root.join("pipe").to_str().unwrap()]);
    (6, 5, 5 + 2 * 1_000_003 + 128 * 1024 + 5)
}

fn du_bytes(root: &Path) -> u64 {
    run("du", &["-s", "--block-size=1", root.to_str().unwrap()]).split_whitespace().next().unwrap().parse().unwrap()
}

fn counts_equal_du(root: &Path) {
    let (files, directories, bytes) = make_tree(root);
    run("sync", &["-f", root.to_str().unwrap()]);
    for order in [Order::Readdir, Order::Sorted, Order::Inode] {
        let figures = collect_grep(root, &options(order), &clock(false), &never).unwrap();
        assert_eq!((figures.files, figures.directories, figures.read_bytes), (files, directories, bytes), "{order:?}");
        assert_eq!(figures.allocated_bytes, du_bytes(root), "{order:?}");
        assert_eq!((figures.errors_count, figures.wall), (0, Nanos(1_000)));
    }
    let gnu = collect_gnu_grep(root, &compute_pattern(Seed(1)), &clock(false), &never).unwrap();
    assert_eq!((gnu.files, gnu.directories, gnu.read_bytes), (files, directories, bytes));
    assert_eq!((gnu.allocated_bytes, gnu.errors_count), (du_bytes(root), 0));
}

#[test]
fn counts_equal_du_in_a_temporary_directory() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    fs::create_dir(&root).unwrap();
    counts_equal_du(&root);
}

#[test]
fn counts_equal_du_on_every_file_system() {
    if !senesce_testkit::root_or_skip("mounts images") {
        return;
    }
    for (kind, mib) in [("ext4", 64), ("xfs", 300), ("btrfs", 128)] {
        let volume = Volume::new(kind, mib, &[], "noatime");
        let root = volume.path("tree");
        fs::create_dir(&root).unwrap();
        counts_equal_du(&root);
    }
}

#[test]
fn a_found_pattern_is_an_error_across_reads() {
    let directory = tempfile::tempdir().unwrap();
    let pattern = compute_pattern(Seed(1));
    // The pattern crosses the end of the first read of 128 KiB.
    let mut content = vec![b'.'; 128 * 1024 - 7];
    content.extend_from_slice(&pattern);
    content.extend_from_slice(&[b'.'; 100]);
    fs::write(directory.path().join("guilty"), content).unwrap();
    let error = collect_grep(directory.path(), &options(Order::Readdir), &ManualClock::default(), &never).unwrap_err();
    assert!(matches!(&error, Error::PatternFound { path } if path.ends_with("guilty")), "{error}");
    let error = collect_gnu_grep(directory.path(), &pattern, &ManualClock::default(), &never).unwrap_err();
    assert!(matches!(error, Error::PatternFound { .. }), "{error}");
}

#[test]
fn a_clock_that_goes_backwards_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = collect_grep(directory.path(), &options(Order::Readdir), &clock(true), &never).unwrap_err();
    assert!(matches!(error, Error::ClockWentBackwards { .. }), "{error}");
    let error = collect_gnu_grep(directory.path(), b"abc", &clock(true), &never).unwrap_err();
    assert!(matches!(error, Error::ClockWentBackwards { .. }), "{error}");
}

#[test]
fn bad_input_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let empty = GrepOptions { order: Order::Readdir, pattern: Vec::new() };
    let clock = ManualClock::default();
    assert!(matches!(collect_grep(directory.path(), &empty, &clock, &never), Err(Error::BadPattern { .. })));
    assert!(matches!(collect_gnu_grep(directory.path(), b"a.c", &clock, &never), Err(Error::BadPattern { .. })));
    let missing = directory.path().join("missing");
    let error = collect_grep(&missing, &options(Order::Sorted), &clock, &never).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn unreadable_files_are_listed_and_others_read() {
    if !senesce_testkit::root_or_skip("mounts a corrupted ext4 image") {
        return;
    }
    // The block of a directory is overwritten on the device, so that listing it fails.
    let volume = Volume::new("ext4", 64, &[], "noatime,errors=continue");
    fs::create_dir(volume.path("broken")).unwrap();
    fs::write(volume.path("broken/lost"), b"x").unwrap();
    fs::write(volume.path("whole"), b"x").unwrap();
    let device = volume.device.clone();
    volume.unmount();
    run("debugfs", &["-w", "-R", "set_inode_field broken block[2] 0xffffff", &device]);
    run("debugfs", &["-w", "-R", "set_inode_field broken mode 0100644", &device]);
    volume.mount();
    let figures = collect_grep(&volume.mountpoint, &options(Order::Readdir), &clock(false), &never).unwrap();
    assert_eq!(figures.errors_count, 1, "{:?}", figures.errors);
    assert!(figures.errors[0].path.ends_with("broken"), "{:?}", figures.errors);
    assert_eq!((figures.files, figures.read_bytes), (1, 1));
}

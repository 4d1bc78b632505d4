//! Whole inspections: an aged tree against its copy; no writes; trees that change, are forbidden or
//! are interrupted.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use senesce_inspect::{Error, Inspection};

use crate::support::{
    Files, age, alone, inspect_at, inspect_while, run, sync, volume, write_in_pieces, written_sectors,
};

/// Mount options without writes of the file system's own.
const QUIET_EXT4: [&str; 2] = ["-E", "lazy_itable_init=0,lazy_journal_init=0"];

fn show(name: &str, found: &Inspection) {
    let cost = &found.costs[0];
    eprintln!(
        "{name:13} slowdown {:.2}, intrafile {:.2}, interfile {:.2}, metadata {:.2}; as it lies {:.2} s, defragmented \
         {:.2} s, fresh copy {:.2} s; metadata {:.2} s, {:.2} s in a fresh copy",
        cost.slowdown,
        cost.loss_seconds.within_files,
        cost.loss_seconds.between_files,
        cost.loss_seconds.metadata.unwrap(),
        cost.seconds.as_it_lies,
        cost.seconds.defragmented,
        cost.seconds.fresh_copy,
        cost.metadata_seconds.unwrap().as_it_lies,
        cost.metadata_seconds.unwrap().fresh_copy,
    );
    eprintln!("{name:13} {}", found.verdict);
}

fn check_aged_against_unaged(kind: &'static str, arguments: &[&str], options: &str) {
    let _alone = alone();
    let aged = volume(kind, 640, arguments, options);
    age(&aged.mountpoint, Files::Mixed);
    fs::create_dir(aged.path("on-purpose")).unwrap();
    // Large enough that no directory of small files loses as much, however XFS joins its pieces.
    write_in_pieces(&aged.path("on-purpose/worst"), 2048);
    let unaged = volume(kind, 640, arguments, options);
    run("cp", &["-a", &format!("{}/.", aged.mountpoint.display()), unaged.mountpoint.to_str().unwrap()]);
    sync(&unaged.mountpoint);
    aged.remount_cold();
    unaged.remount_cold();
    let [old, young] = [&aged, &unaged].map(|volume| inspect_at(&volume.mountpoint).unwrap());
    show(&format!("{kind} aged"), &old);
    show(&format!("{kind} unaged"), &young);
    let [old_cost, young_cost] = [&old, &young].map(|found| &found.costs[0]);
    assert_eq!((old.tree.files, old.tree.content_bytes), (young.tree.files, young.tree.content_bytes));
    assert!(old_cost.slowdown > 1.25 * young_cost.slowdown, "{} and {}", old_cost.slowdown, young_cost.slowdown);
    assert!(old.verdict.contains("ged: reading all"), "{}", old.verdict);
    assert!(!old.verdict.starts_with("Young"), "{}", old.verdict);
    assert!(young.verdict.starts_with("Young"), "{}", young.verdict);
    // Both have the same fresh copy, except for the listing order and the block groups of contents.
    let fresh = old_cost.seconds.fresh_copy / young_cost.seconds.fresh_copy;
    assert!((0.9..=1.1).contains(&fresh), "{fresh}");
    // The file that was written in pieces is the worst, and so is its directory. In the copy it is
    // not.
    assert_eq!(old.worst_files[0].path, "on-purpose/worst", "{:?}", old.worst_files);
    assert!(old.worst_files[0].extents >= 64, "{:?}", old.worst_files[0]);
    assert_eq!(old.worst_directories[0].path, "on-purpose", "{:?}", old.worst_directories);
    let kept = young.worst_files.iter().find(|file| file.path == "on-purpose/worst");
    assert!(kept.is_none_or(|file| file.lost_seconds < old.worst_files[0].lost_seconds / 10.0), "{kept:?}");
    for cost in [old_cost, young_cost] {
        let loss = cost.loss_seconds;
        let sum = loss.within_files + loss.between_files + loss.metadata.unwrap();
        assert!((sum - loss.total).abs() < 1e-6, "{loss:?}");
        let metadata = cost.metadata_seconds.unwrap();
        assert!(metadata.as_it_lies < cost.seconds.as_it_lies && metadata.fresh_copy > 0.0);
    }
    assert!(!old.warnings.iter().any(|warning| warning.contains("not modelled")), "{:?}", old.warnings);
}

#[test]
fn aged_ext4_is_worse_than_its_copy() {
    if senesce_testkit::root_or_skip("ages ext4 on a loop device") {
        check_aged_against_unaged("ext4", &[], "noatime");
    }
}

#[test]
fn aged_xfs_is_worse_than_its_copy() {
    if senesce_testkit::root_or_skip("ages XFS on a loop device") {
        check_aged_against_unaged("xfs", &[], "noatime");
    }
}

#[test]
fn aged_btrfs_is_worse_than_its_copy() {
    if senesce_testkit::root_or_skip("ages Btrfs on a loop device") {
        // A commit during the copy, which a slow machine would have, would separate what belongs
        // together.
        check_aged_against_unaged("btrfs", &["-m", "single"], "noatime,nodiscard,commit=300");
    }
}

/// Makes a tree of `files` small files in ten directories.
fn make_tree(root: &Path, files: usize) {
    for n in 0..files {
        let directory = root.join(format!("d{}", n % 10));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("file-{n}")), vec![1; 5000 + n]).unwrap();
    }
    sync(root);
}

#[test]
fn inspection_writes_nothing() {
    if !senesce_testkit::root_or_skip("counts the writes of a loop device") {
        return;
    }
    let _alone = alone();
    for (kind, arguments) in [("ext4", &QUIET_EXT4[..]), ("xfs", &[]), ("btrfs", &[])] {
        // Every ordinary read would update the access time.
        let volume = volume(kind, 400, arguments, "strictatime");
        make_tree(&volume.mountpoint, 500);
        volume.remount_cold();
        // At the first open of a file after a mount, ext4 writes the mount point to its superblock.
        drop(fs::File::open(volume.path("d0/file-0")).unwrap());
        sync(&volume.mountpoint);
        let before = written_sectors(&volume);
        let found = inspect_at(&volume.mountpoint).unwrap();
        sync(&volume.mountpoint);
        assert_eq!(written_sectors(&volume) - before, 0, "sectors written on {kind}");
        assert_eq!(found.tree.files, 500);
        // The counter works: a listing that updates the access time is a write.
        fs::read_dir(volume.path("d3")).unwrap().count();
        sync(&volume.mountpoint);
        assert!(written_sectors(&volume) > before, "on {kind}");
    }
}

#[test]
fn unreadable_directory_makes_the_result_partial() {
    if !senesce_testkit::root_or_skip("looks at a volume with nobody's rights") {
        return;
    }
    let _alone = alone();
    for kind in ["ext4", "xfs", "btrfs"] {
        let volume = volume(kind, 400, &[], "noatime");
        fs::set_permissions(&volume.mountpoint, fs::Permissions::from_mode(0o755)).unwrap();
        make_tree(&volume.mountpoint, 100);
        // Another directory without permission; only ext4 has it.
        let _ = fs::remove_dir(volume.path("lost+found"));
        fs::set_permissions(volume.path("d3"), fs::Permissions::from_mode(0o700)).unwrap();
        let root = volume.mountpoint.clone();
        // The rights of this thread and of its children only.
        let as_nobody = std::thread::spawn(move || {
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).unwrap();
            inspect_at(&root)
        });
        let found = as_nobody.join().unwrap().unwrap();
        assert_eq!(found.tree.files, 90, "on {kind}");
        let has = |text: &str| found.warnings.iter().any(|warning| warning.contains(text));
        assert!(has("partial: 1 entries could not be read") && has("d3"), "{:?}", found.warnings);
        assert!(has("are not modelled in any layout"), "{:?}", found.warnings);
        assert_eq!(found.tree.not_looked_at, 1, "on {kind}");
        assert!(found.verdict.starts_with("Partial: 1 entry could not be read. "), "{}", found.verdict);
        assert!(found.verdict.ends_with(" without reads of metadata (see the warnings)."), "{}", found.verdict);
        assert!(found.verdict.contains("reading the 90 files found cold"), "{}", found.verdict);
        assert!(!found.verdict.contains("reading all"), "{}", found.verdict);
        let cost = &found.costs[0];
        assert_eq!((cost.metadata_seconds, cost.metadata_share), (None, None), "on {kind}");
        // Each file is one read, and there are no other reads in any layout.
        let extents = found.tree.layout.extents_per_file.unwrap() * 90.0;
        assert_eq!(cost.requests.fresh_copy, 90, "on {kind}");
        assert!(cost.requests.as_it_lies as f64 <= extents + 0.5, "{:?} on {kind}", cost.requests);
        let json = found.to_json();
        assert!(json["costs"][0]["metadata_share"].is_null() && json["costs"][0]["metadata_seconds"].is_null());
        let whole = inspect_at(&volume.mountpoint).unwrap();
        assert_eq!((whole.tree.files, whole.tree.not_looked_at), (100, 0));
        assert!(whole.verdict.contains("reading all 100 files cold"), "{}", whole.verdict);
        assert!(!whole.warnings.iter().any(|warning| warning.contains("partial")), "{:?}", whole.warnings);
    }
}

#[test]
fn empty_tree_has_nothing_to_judge() {
    if !senesce_testkit::root_or_skip("makes a small ext4") {
        return;
    }
    let _alone = alone();
    let volume = volume("ext4", 64, &[], "noatime");
    let verdict = || inspect_at(&volume.mountpoint).unwrap().verdict;
    assert_eq!(verdict(), "Nothing to judge: there is no file.");
    fs::write(volume.path("one"), b"").unwrap();
    assert_eq!(verdict(), "Nothing to read: the only file is empty.");
    fs::write(volume.path("two"), b"").unwrap();
    assert_eq!(verdict(), "Nothing to read: each of 2 files is empty.");
    fs::remove_file(volume.path("two")).unwrap();
    fs::write(volume.path("one"), [1; 5000]).unwrap();
    sync(&volume.mountpoint);
    assert!(verdict().contains(": reading the only file cold would take"), "{}", verdict());
}

/// Makes, renames, truncates, rewrites and deletes files until `stop` is set.
fn disturb(root: &Path, stop: &AtomicBool) {
    for round in 0u64.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let n = round % 200;
        let directory = root.join(format!("d{}", n % 10));
        let file = directory.join(format!("file-{n}"));
        // A file may not exist any more.
        match round / 200 % 5 {
            0 => drop(fs::write(&file, vec![round as u8; 40_000])),
            1 => drop(fs::rename(&file, root.join(format!("d{}/moved-{n}", (n + 1) % 10)))),
            2 => drop(fs::write(&file, b"short")),
            3 => drop(fs::remove_file(&file)),
            _ => {
                let _ = fs::create_dir(directory.join(format!("new-{n}")));
                let _ = fs::remove_dir(directory.join(format!("new-{}", n.wrapping_sub(20))));
            }
        }
        if round % 500 == 0 {
            sync(root);
        }
    }
}

#[test]
fn changing_tree_is_inspected() {
    if !senesce_testkit::root_or_skip("inspects volumes that are written") {
        return;
    }
    let _alone = alone();
    for kind in ["ext4", "xfs", "btrfs"] {
        let volume = volume(kind, 400, &[], "noatime");
        make_tree(&volume.mountpoint, 2000);
        let stop = AtomicBool::new(false);
        let found: Vec<_> = std::thread::scope(|scope| {
            scope.spawn(|| disturb(&volume.mountpoint, &stop));
            let found = (0..6).map(|_| inspect_at(&volume.mountpoint)).collect();
            stop.store(true, Ordering::Relaxed);
            found
        });
        for found in found {
            let found = found.unwrap();
            // Ten in eleven files do not change.
            assert!(found.tree.files >= 1800, "{} files on {kind}", found.tree.files);
            assert!(found.costs[0].seconds.as_it_lies > 0.0);
        }
    }
}

#[test]
fn interruption_stops_an_inspection() {
    if !senesce_testkit::root_or_skip("inspects ext4 on a loop device") {
        return;
    }
    let _alone = alone();
    let volume = volume("ext4", 400, &[], "noatime");
    make_tree(&volume.mountpoint, 5000);
    let mut asked = Vec::new();
    let stopped = inspect_while(&volume.mountpoint, &mut |entries| {
        asked.push(entries);
        asked.len() < 2
    });
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    assert_eq!(asked.len(), 2, "not asked again: {asked:?}");
    assert!(asked[1] < 5000);
}

//! Files and free space brought to a requested fragmentation, on real file systems;
//! `filefrag` and the file system's own map agree.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::{
    disk::{must, volume},
    lab::Lab,
};

/// XFS can be made without sharing of blocks, and is cut in another way then.
const VOLUMES: [(&str, &[&str], u64); 4] =
    [("ext4", &[], 128), ("xfs", &[], 320), ("xfs", &["-m", "reflink=0"], 320), ("btrfs", &[], 256)];

fn extents_by_filefrag(path: &str) -> u64 {
    let said = must("filefrag", &[path]);
    said.rsplit(": ").next().unwrap().split(' ').next().unwrap().parse().unwrap()
}

fn reached(stdout: &str) -> Value {
    serde_json::from_str::<Value>(stdout).unwrap()["reached"].take()
}

#[test]
fn files_reach_requested_extents_and_scores() {
    if !root_or_skip("mounting") {
        return;
    }
    for (kind, mkfs, mib) in VOLUMES {
        let lab = Lab::new();
        let (_disk, mount) = volume(kind, mkfs, &lab.path("volume"), mib, lab.path("mnt"));
        let path = |name: &str| mount.point.join(name).to_string_lossy().into_owned();
        for extents in [1, 2, 77, 256] {
            let name = path(&format!("new-{extents}"));
            let args = ["fragment", &name, "--size", "1MiB", "--extents", &extents.to_string(), "--json"];
            lab.run(args.into_iter().chain(["--dry-run"])).good();
            let report = reached(&lab.run(args).good().stdout);
            assert_eq!(report["extents"], extents, "{kind} {mkfs:?}");
            assert_eq!(extents_by_filefrag(&name), extents, "{kind} {mkfs:?}");
        }
        // An existing file of an odd size, with attributes of its own.
        let old = path("old");
        let bytes: Vec<u8> = (0..1_000_003u32).map(|n| (n >> 5) as u8).collect();
        std::fs::write(&old, &bytes).unwrap();
        std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::chown(&old, Some(1234), Some(567)).unwrap();
        let before = std::fs::metadata(&old).unwrap();
        let report = reached(&lab.run(["fragment", &old, "--layout-score", "0.75", "--json"]).good().stdout);
        // 245 blocks: 183 of 244 follow.
        assert_eq!((report["extents"].as_u64(), report["layout_score"].as_f64()), (Some(62), Some(0.75)));
        assert_eq!(extents_by_filefrag(&old), 62);
        assert!(std::fs::read(&old).unwrap() == bytes);
        let after = std::fs::metadata(&old).unwrap();
        assert_eq!(
            (after.mode(), after.uid(), after.gid(), after.mtime_nsec()),
            (before.mode(), before.uid(), before.gid(), before.mtime_nsec())
        );
        // In use: another process would continue with the old file.
        let user = std::fs::File::open(&old).unwrap();
        rustix::fs::flock(&user, rustix::fs::FlockOperation::LockShared).unwrap();
        lab.run(["fragment", &old, "--extents", "2"]).refused(3, &["old is in use and was not touched"]);
        drop(user);
        assert_eq!(extents_by_filefrag(&old), 62);
        // And whole again.
        lab.run(["fragment", &old, "--extents", "1"]).good();
        assert_eq!(extents_by_filefrag(&old), 1);

        std::fs::hard_link(&old, mount.point.join("other")).unwrap();
        lab.run(["fragment", &old, "--extents", "3"]).refused(2, &["several hard links"]);
        lab.run(["fragment", &path("new-1"), "--extents", "257"])
            .refused(2, &["257 extents are not possible: the file has 256 block(s)"]);
        lab.run(["fragment", &path("new-1"), "--extents", "0"]).refused(2, &["0 extents"]);
        lab.run(["fragment", &path("new-1"), "--extents", "2", "--size", "1MiB"]).refused(2, &["it exists"]);
        lab.run(["fragment", &path("none"), "--extents", "2"]).refused(2, &["--size SIZE makes one"]);
        lab.run(["fragment", &path("none"), "--extents", "2"]).refused(2, &["no such file"]);
        lab.run(["fragment", &path("none"), "--layout-score", "1.5", "--size", "4k"]).refused(2, &["from 0 to 1"]);
        lab.run(["fragment", &path("big"), "--extents", "2", "--size", "8GiB"]).refused(3, &["free space"]);
        let mut names: Vec<String> =
            std::fs::read_dir(&mount.point).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != "lost+found");
        names.sort();
        assert_eq!(names, ["new-1", "new-2", "new-256", "new-77", "old", "other"], "{kind}");
    }
}

#[test]
fn files_of_a_tree_share_the_layout_score() {
    if !root_or_skip("mounting") {
        return;
    }
    for (kind, mkfs, mib) in VOLUMES {
        let lab = Lab::new();
        let (_disk, mount) = volume(kind, mkfs, &lab.path("volume"), mib, lab.path("mnt"));
        let tree = mount.point.join("tree");
        std::fs::create_dir_all(tree.join("sub")).unwrap();
        for number in 0..40usize {
            let dir = if number % 3 == 0 { tree.join("sub") } else { tree.clone() };
            // Nothing that Btrfs would keep among its metadata.
            std::fs::write(dir.join(number.to_string()), vec![number as u8 + 1; 4097 + 3500 * number]).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", tree.join("link")).unwrap();
        let path = tree.to_string_lossy().into_owned();
        let sum = |path: &str| must("sh", &["-c", &format!("cd {path} && find . -type f | sort | xargs md5sum")]);
        let before = sum(&path);
        lab.run(["fragment", &path, "--layout-score", "0.6", "--json", "--dry-run"]).good();
        let report = reached(&lab.run(["fragment", &path, "--layout-score", "0.6", "--json"]).good().stdout);
        assert!((report["layout_score"].as_f64().unwrap() - 0.6).abs() < 0.001, "{kind}: {report}");
        assert_eq!((report["files"].as_u64(), report["left"].as_u64()), (Some(40), Some(0)));
        let report = reached(&lab.run(["fragment", &path, "--extents", "2", "--json"]).good().stdout);
        assert_eq!(report["extents_per_file"], 2.0, "{kind}: {report}");
        assert_eq!(sum(&path), before);
        // Two names that would part are left, and said.
        std::fs::hard_link(tree.join("1"), tree.join("sub/other")).unwrap();
        lab.run(["fragment", &path, "--extents", "1"]).refused(1, &["not reached", "several hard links"]);
    }
}

#[test]
fn free_space_follows_a_histogram() {
    if !root_or_skip("mounting") {
        return;
    }
    for (kind, mkfs, mib) in VOLUMES {
        let lab = Lab::new();
        let (_disk, mount) = volume(kind, mkfs, &lab.path("volume"), mib, lab.path("mnt"));
        let root = mount.point.to_string_lossy().into_owned();
        // XFS keeps some MiB for itself, which are in every map.
        let args = ["fragment", &root, "--free-space", "4KiB:10%,32KiB:40%,128KiB:50%", "--free", "40MiB", "--json"];
        let within = if kind == "xfs" { "0.5" } else { "0.05" };
        // On Btrfs most of this space is not in a block group yet.
        let dry = lab.run(args.into_iter().chain(["--dry-run", "--within", within])).good();
        let plan: Value = serde_json::from_str(&dry.stdout).unwrap();
        assert_eq!(plan["plan"]["free_bytes"], 40 << 20, "{kind}: {plan}");
        let report = reached(&lab.run(args.into_iter().chain(["--within", within])).good().stdout);
        let bytes = |size: u64| -> f64 {
            let buckets = report["after"]["buckets"].as_array().unwrap();
            let bucket = buckets.iter().find(|bucket| bucket["bucket_bytes"] == size);
            bucket.map_or(0.0, |bucket| bucket["bytes"].as_f64().unwrap() / (40 << 20) as f64)
        };
        for (size, share) in [(4096, 0.1), (32_768, 0.4), (131_072, 0.5)] {
            assert!((bytes(size) - share).abs() < 0.05, "{kind} {mkfs:?}: {size} has {}: {report}", bytes(size));
        }
        lab.run(args).refused(2, &["exists already"]);
        if kind != "xfs" {
            let file = mount.point.join("file").to_string_lossy().into_owned();
            lab.run(["fragment", &file, "--size", "10MiB", "--extents", "1"])
                .refused(1, &["not reachable", "needs at least"]);
            lab.run(["fragment", &file, "--size", "10MiB", "--extents", "1200"]).good();
            assert_eq!(extents_by_filefrag(&file), 1200);
        }
        std::fs::remove_file(mount.point.join("senesce-free-space.filler")).unwrap();
        // What cannot be is said, and the filler does not stay.
        let args = ["fragment", &root, "--free-space", "4KiB:100%", "--free", &format!("{}MiB", mib * 3 / 4)];
        lab.run(args).refused(1, &["not reachable", "no space for a free extent"]);
        lab.run(["fragment", &root, "--free-space", "4KiB:90%"]).refused(2, &["sum to 90"]);
        assert!(!mount.point.join("senesce-free-space.filler").exists());
        if kind != "ext4" {
            continue; // of half of what is free not every share can be had there
        }
        // Half of what is free, unless it is said how much.
        let args = ["fragment", &root, "--free-space", "64KiB:100%", "--within", "0.9", "--json"];
        let report = reached(&lab.run(args).good().stdout);
        let free = |when: &str| report[when]["bytes"].as_f64().unwrap();
        let share = (free("after") - report["reserved_bytes"].as_f64().unwrap()) / free("before");
        assert!((0.4..0.55).contains(&share), "{kind} {mkfs:?}: {report}");
    }
}

#[test]
fn unsupported_file_system_is_refused() {
    let lab = Lab::new();
    let path = lab.memory().join("file").to_string_lossy().into_owned();
    lab.run(["fragment", &path, "--size", "1MiB", "--extents", "2"]).refused(2, &["none of ext4, XFS and Btrfs"]);
    lab.run(["fragment", &path, "--size", "1MiB"]).refused(2, &["--extents"]);
    lab.assert_nothing_left();
}

//! Snapshots, differences and shared blocks of a garden as a user has them.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
};

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::{garden_mount::mount, lab::Lab};

const BLOCK: usize = 4096;

fn mkfs(lab: &Lab, size: &str) {
    lab.run(["fs", "mkfs", "garden", "g", "--size", size, "--data-drives", "3", "--seed", "7"]).good();
}

fn check(lab: &Lab) {
    let told = lab.run(["fs", "check", "g"]).good().stdout;
    assert!(told.starts_with("as it is: clean"), "{told}");
}

fn json(lab: &Lab, args: &[&str]) -> Value {
    serde_json::from_str(&lab.run([args, &["--json"]].concat()).good().stdout).unwrap()
}

/// The figures of volume `main`, and what is free in the garden.
fn stat(lab: &Lab) -> (Value, u64) {
    let all = json(lab, &["fs", "stat", "g"]);
    (all["volumes"][0].clone(), all["aggregate"]["free_bytes"].as_u64().unwrap())
}

/// Contents in which no two blocks are the same.
fn contents(blocks: usize, seed: u8) -> Vec<u8> {
    let mut bytes = vec![seed; blocks * BLOCK];
    let all = bytes.chunks_mut(BLOCK).zip(0_u32..);
    all.for_each(|(block, number)| block[..4].copy_from_slice(&number.to_le_bytes()));
    bytes
}

/// The change, kind, first path and blocks of each line of a difference.
fn changes(told: &Value) -> Vec<(String, String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |change: &Value| {
        let paths = if change["change"] == "removed" { &change["paths_before"] } else { &change["paths"] };
        (text(&change["change"]), text(&change["kind"]), text(&paths[0]), change["blocks"].to_string())
    };
    told["changes"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn diff_names_all_changes_since_a_snapshot() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab, "64MiB");
    let mounted = mount(&lab, &[]);
    let at = |name: &str| lab.path(format!("mnt/{name}"));
    fs::create_dir(at("d")).unwrap();
    for (name, blocks, seed) in [("big", 2000, 1), ("d/gone", 300, 2), ("d/old", 5, 3), ("same", 20, 4)] {
        fs::write(at(name), contents(blocks, seed)).unwrap();
    }
    lab.run(["fs", "recompact", "g", "main"]).refused(3, &["is in use", "(senesce-fs) has locked"]);
    mounted.unmount();

    let made = lab.run(["fs", "snapshot", "create", "g", "main", "monday"]).good().stdout;
    assert!(made.starts_with("g: snapshot monday of volume main: ") && made.ends_with(" inodes\n"), "{made}");
    assert_eq!(changes(&json(&lab, &["fs", "diff", "g", "main", "monday"])), []);
    let (_, free_before) = stat(&lab);

    let mounted = mount(&lab, &[]);
    let big = OpenOptions::new().write(true).open(at("big")).unwrap();
    big.write_all_at(&contents(1500, 9), 100 * BLOCK as u64).unwrap();
    big.write_all_at(b"x", 1900 * BLOCK as u64 + 17).unwrap();
    drop(big);
    fs::remove_file(at("d/gone")).unwrap();
    fs::rename(at("d/old"), at("new name")).unwrap();
    fs::write(at("added"), contents(3, 5)).unwrap();
    mounted.unmount();

    let line = |change: &str, kind: &str, path: &str, blocks: &str| {
        (change.to_owned(), kind.to_owned(), path.to_owned(), blocks.to_owned())
    };
    let told = json(&lab, &["fs", "diff", "g", "main", "monday"]);
    let expected = [
        line("changed", "directory", "/", "[[0,1]]"),
        line("created", "file", "/added", "[[0,3]]"),
        line("changed", "file", "/big", "[[100,1600],[1900,1901]]"),
        line("changed", "directory", "/d", "[[0,1]]"),
        line("removed", "file", "/d/gone", "[]"),
        line("changed", "file", "/new name", "[]"),
    ];
    assert_eq!(changes(&told), expected);
    let renamed = &told["changes"][5];
    assert_eq!((&renamed["paths_before"][0], &renamed["attributes"]), (&"/d/old".into(), &true.into()));
    let told = lab.run(["fs", "diff", "garden:g", "main", "monday"]).good().stdout;
    assert!(told.contains("/new name, was /d/old") && told.contains("blocks 100..1600, 1900\n"), "{told}");
    assert!(told.ends_with("1 created, 1 removed, 4 changed; 1506 blocks of 4,096 bytes\n"), "{told}");

    // The old bytes, beside others who look.
    let mounted = mount(&lab, &["--snapshot", "monday"]);
    assert!(fs::read(at("big")).unwrap() == contents(2000, 1));
    assert!(fs::read(at("d/gone")).unwrap() == contents(300, 2));
    assert!(fs::read(at("d/old")).unwrap() == contents(5, 3) && !at("added").exists());
    assert_eq!(fs::write(at("new"), "x").unwrap_err().raw_os_error(), Some(30));
    let (volume, _) = stat(&lab);
    assert_eq!(volume["snapshots"], 1);
    let held = volume["held_bytes"].as_u64().unwrap() / BLOCK as u64;
    // What was written over and removed, and the blocks above.
    assert!((1801..1900).contains(&held), "{held} blocks are held");
    mounted.unmount();

    // Without a volume, the snapshot is of `main`.
    lab.run(["fs", "snapshot", "create", "g", "tuesday"]).good();
    assert_eq!(changes(&json(&lab, &["fs", "diff", "g", "main", "monday", "tuesday"])), expected);
    assert_eq!(changes(&json(&lab, &["fs", "diff", "g", "main", "tuesday"])), []);
    let listed = json(&lab, &["fs", "snapshot", "list", "g", "main"]);
    let names: Vec<_> =
        listed["snapshots"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["monday", "tuesday"]);

    // Back to monday; tuesday still has the rest.
    lab.run(["fs", "snapshot", "restore", "g", "main", "monday"]).good();
    assert_eq!(changes(&json(&lab, &["fs", "diff", "g", "main", "monday"])), []);
    check(&lab);
    let told = lab.run(["fs", "snapshot", "delete", "g", "main", "tuesday"]).good().stdout;
    assert!(told.starts_with("g: snapshot tuesday of volume main deleted\n  ") && !told.contains("still"), "{told}");
    lab.run(["fs", "snapshot", "delete", "g", "main", "monday"]).good();
    let (volume, free) = stat(&lab);
    assert_eq!((&volume["held_bytes"], &volume["snapshots"]), (&0.into(), &0.into()));
    // Only blocks of the maps that snapshots need may have come.
    assert!(free + 32 * BLOCK as u64 >= free_before, "{free} bytes free, {free_before} before");
    check(&lab);
    let mounted = mount(&lab, &["--read-only"]);
    assert!(fs::read(at("big")).unwrap() == contents(2000, 1));
    mounted.unmount();
}

#[test]
fn unknown_and_taken_names_are_refused() {
    let lab = Lab::new();
    mkfs(&lab, "24MiB");
    let run = |args: &[&str]| lab.run([&["fs"], args].concat());
    run(&["snapshot", "create", "g", "other", "a"]).refused(2, &["no volume other", "its volumes: main"]);
    run(&["snapshot", "delete", "g", "main", "a"])
        .refused(2, &["volume main has no snapshot a", "hint: volume main has no snapshots"]);
    run(&["snapshot", "create", "g", "main", "a"]).good();
    run(&["snapshot", "create", "g", "main", "a"]).refused(2, &["a snapshot a exists", "has the snapshots: a"]);
    run(&["snapshot", "create", "g", "main", ""]).refused(2, &["the name of a snapshot has 0 bytes"]);
    run(&["snapshot", "create", "g"]).refused(2, &["1 or 2 name(s) must follow the garden", "hint: "]);
    run(&["snapshot", "restore", "g", "main", "b"]).refused(2, &["volume main has no snapshot b", "snapshots: a"]);
    run(&["snapshot", "list", "g", "other"]).refused(2, &["no volume other", "its volumes: main"]);
    run(&["diff", "g", "main", "b"]).refused(2, &["volume main has no snapshot b", "snapshots: a"]);
    run(&["diff", "g", "main", "a", "b"]).refused(2, &["volume main has no snapshot b"]);
    run(&["mount", "g", "tmp", "--snapshot", "b"]).refused(2, &["volume main has no snapshot b", "snapshots: a"]);
    run(&["mount", "g", "tmp", "--volume", "other"]).refused(2, &["no volume other", "its volumes: main"]);
    run(&["dedup", "g", "other"]).refused(2, &["no volume other", "its volumes: main"]);
    run(&["dedup", "nowhere", "main"]).refused(2, &["at nowhere: it does not exist"]);
    run(&["snapshot", "list", "--drive", "g/drive-00.img", "main"]).refused(2, &["--log"]);
    let mut named = vec!["snapshot", "list", "main", "--log", "g/log.img"];
    for drive in ["g/drive-00.img", "g/drive-01.img", "g/drive-02.img", "g/drive-03.img"] {
        named.extend(["--drive", drive]);
    }
    let told = run(&named).good().stdout;
    assert!(told.starts_with("a  20") && told.contains("volume main: 1 snapshot(s)"), "{told}");
    check(&lab);
}

#[test]
fn deleting_a_snapshot_frees_a_full_garden() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab, "16MiB");
    let fill = |name: &str| {
        let mounted = mount(&lab, &[]);
        let mut written = 0;
        let file = fs::File::create(lab.path("mnt").join(name)).unwrap();
        // No two runs are alike; the last ones are whatever still fits.
        while file.write_all_at(&contents(1, written as u8), written * BLOCK as u64).is_ok() {
            written += 1;
        }
        drop(file);
        mounted.unmount();
        written
    };
    let mounted = mount(&lab, &[]);
    fs::write(lab.path("mnt/kept"), contents(1500, 3)).unwrap();
    mounted.unmount();
    let first = fill("first");
    assert!(first > 500, "{first} blocks");
    let refused = lab.run(["fs", "snapshot", "create", "g", "main", "full"]);
    refused.refused(
        3,
        &["cannot make snapshot full of volume main in g", "no space left", "hint: delete files or snapshots"],
    );
    check(&lab);
    let mounted = mount(&lab, &[]);
    fs::remove_file(lab.path("mnt/first")).unwrap();
    mounted.unmount();
    lab.run(["fs", "snapshot", "create", "g", "main", "full"]).good();
    let mounted = mount(&lab, &[]);
    fs::remove_file(lab.path("mnt/kept")).unwrap();
    mounted.unmount();
    let second = fill("second");
    assert!(second < first + 100, "{second} blocks beside a snapshot of 1500, {first} beside a file of as many");
    lab.run(["fs", "snapshot", "delete", "g", "main", "full"]).good();
    check(&lab);
    let mounted = mount(&lab, &[]);
    fs::write(lab.path("mnt/third"), contents(1400, 7)).unwrap();
    mounted.unmount();
    check(&lab);
}

#[test]
fn dedup_shares_equal_blocks_and_keeps_contents() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab, "64MiB");
    let mounted = mount(&lab, &[]);
    let names = ["a", "b", "c"];
    names.iter().for_each(|name| fs::write(lab.path("mnt").join(name), contents(200, 1)).unwrap());
    mounted.unmount();
    let (_, before) = stat(&lab);
    let told = json(&lab, &["fs", "dedup", "g", "main"]);
    let saved = told["saved_blocks"].as_u64().unwrap();
    assert!(saved >= 400 && told["newly_shared_blocks"] == saved && told["saved_blocks_before"] == 0, "{told}");
    assert_eq!((&told["whole"], &told["unread"]), (&true.into(), &0.into()));
    let (volume, after) = stat(&lab);
    assert_eq!(volume["saved_blocks"], saved);
    assert!(after >= before + 380 * BLOCK as u64, "{after} bytes free, {before} before");
    let again = lab.run(["fs", "dedup", "g", "main"]).good().stdout;
    assert!(again.contains(", 0 blocks shared\n"), "{again}");
    let told = lab.run(["fs", "stat", "g"]).good().stdout;
    assert!(told.contains(&format!("are shared and save {}.", (saved * 4096) >> 20)), "{told}");
    let mounted = mount(&lab, &[]);
    names.iter().for_each(|name| assert!(fs::read(lab.path("mnt").join(name)).unwrap() == contents(200, 1)));
    mounted.unmount();
    check(&lab);
}

#[test]
fn clone_is_independent_and_deletion_frees_space() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab, "64MiB");
    let mounted = mount(&lab, &[]);
    let at = |name: &str| lab.path(format!("mnt/{name}"));
    fs::write(at("big"), contents(2000, 1)).unwrap();
    fs::write(at("own"), contents(10, 2)).unwrap();
    mounted.unmount();
    lab.run(["fs", "snapshot", "create", "g", "main", "monday"]).good();
    let (_, before) = stat(&lab);
    let told = lab.run(["fs", "clone", "g", "main", "monday", "try"]).good().stdout;
    assert!(told.starts_with("g: volume try, a clone of snapshot monday of volume main; "), "{told}");
    let (_, after) = stat(&lab);
    assert!(before - after < 50 * BLOCK as u64, "{before}, then {after}: nothing is copied");

    // Each changes what the other keeps.
    let mounted = mount(&lab, &["--volume", "try"]);
    assert!(fs::read(at("big")).unwrap() == contents(2000, 1));
    fs::write(at("big"), contents(2000, 7)).unwrap();
    mounted.unmount();
    let mounted = mount(&lab, &["--volume", "main"]);
    assert!(fs::read(at("big")).unwrap() == contents(2000, 1));
    fs::remove_file(at("own")).unwrap();
    mounted.unmount();
    let mounted = mount(&lab, &["--volume", "try", "--read-only"]);
    assert!(fs::read(at("big")).unwrap() == contents(2000, 7) && fs::read(at("own")).unwrap() == contents(10, 2));
    mounted.unmount();
    check(&lab);
    let listed = lab.run(["fs", "volume", "list", "g"]).good().stdout;
    assert!(listed.contains(", a clone of snapshot monday of volume main"), "{listed}");
    let origin = &json(&lab, &["fs", "volume", "list", "g"])["volumes"][1]["clone_of"];
    assert_eq!((&origin["volume"], &origin["snapshot"]), (&"main".into(), &"monday".into()));
    let dumped = lab.run(["fs", "dump", "g", "volumes"]).good().stdout;
    assert!(dumped.contains("clone: VVBNs of the origin"), "{dumped}");
    lab.run(["inspect", "garden:g", "--volume", "try"]).good();

    lab.run(["fs", "snapshot", "delete", "g", "main", "monday"]).refused(2, &["monday has a clone: volume try"]);
    lab.run(["fs", "volume", "delete", "g", "main"]).refused(2, &["volume main has 1 snapshot(s)", "monday"]);
    lab.run(["fs", "volume", "delete", "g", "none"]).refused(2, &["no volume none", "its volumes: main, try"]);
    lab.run(["fs", "clone", "g", "main", "monday", "try"]).refused(2, &["a volume try exists"]);
    lab.run(["fs", "clone", "g", "main", "monday"]).refused(2, &["3 name(s) must follow the garden"]);

    let told = lab.run(["fs", "volume", "delete", "g", "try"]).good().stdout;
    assert!(told.starts_with("g: volume try deleted\n") && told.contains(" free, "), "{told}");
    let told = json(&lab, &["fs", "snapshot", "delete", "g", "main", "monday"]);
    assert!(told["free_bytes"].as_u64().unwrap() > after, "{told}");
    check(&lab);
}

#[test]
fn compressed_chunks_are_rewritten_together() {
    let lab = Lab::new();
    lab.run(["fs", "mkfs", "garden", "h", "--compress=12KiB"]).refused(2, &["12 KiB is not a unit of compression"]);
    if !root_or_skip("mounting") {
        return;
    }
    lab.run(["fs", "mkfs", "garden", "g", "--size=64MiB", "--data-drives=3", "--seed=7", "--compress"]).good();
    lab.run(["fs", "recompact", "g", "other"]).refused(2, &["no volume other", "its volumes: main"]);
    let mounted = mount(&lab, &[]);
    let path = lab.path("mnt").join("file");
    let mut wanted = contents(400, 3);
    fs::write(&path, &wanted).unwrap();
    mounted.unmount();
    let told = json(&lab, &["fs", "recompact", "g", "main"]);
    assert_eq!((&told["before"]["file_blocks"], &told["chunks_moved"]), (&400.into(), &0.into()), "{told}");
    let saved = told["before"]["saved_percent"].as_f64().unwrap();
    assert!(saved > 90.0, "{told}");
    // Most pages become such that nothing makes shorter.
    let mounted = mount(&lab, &[]);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let mut word = 1_u64;
    for page in (0..200).filter(|page| page % 8 != 0) {
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (word >> 56) as u8
        })
        .take(2 * BLOCK)
        .collect();
        let at = page * 2 * BLOCK;
        file.write_all_at(&bytes, at as u64).unwrap();
        wanted[at..at + 2 * BLOCK].copy_from_slice(&bytes);
    }
    drop(file);
    mounted.unmount();
    let told = json(&lab, &["fs", "recompact", "g", "main", "--below", "100"]);
    assert!(told["chunks_moved"].as_u64().unwrap() > 0 && told["whole"] == true, "{told}");
    let again = lab.run(["fs", "recompact", "g", "main"]).good().stdout;
    assert!(again.contains(" 0 chunks of 0 compacted blocks moved together") && again.contains(" % saved"), "{again}");
    let mounted = mount(&lab, &[]);
    assert!(fs::read(&path).unwrap() == wanted);
    mounted.unmount();
    check(&lab);
}

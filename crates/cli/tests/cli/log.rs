//! Looking into logs, replaying them, and logs that are damaged.

use std::{
    fs,
    path::{Path, PathBuf},
};

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::lab::{Lab, SINGLE, SMALL};

/// Runs a plan; gives its log.
fn log_of(lab: &Lab, plan: &str, out: &str) -> PathBuf {
    lab.plan(plan);
    lab.run(["run", "plan.toml", "--quiet", "--out", out]).good();
    lab.path(out).join("arms/ext4/oplog.senesce-log")
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn full_disk_log_replays_to_the_same_tree() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let log = log_of(&lab, SMALL, "out");
    let log = text(&log);
    let shown = lab.run(["log", "show", log]).good().stdout;
    let header: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    assert_eq!(header["workload"]["edition"], "full-disk-paper");
    assert!(
        shown.contains("clone copy-1")
            && shown.contains(" into copy-1 in copy-1 [counted]")
            && shown.contains("[no space")
    );
    assert_eq!(lab.run(["log", "show", log, "-n", "1"]).good().stdout.matches("clone copy-").count(), 1);
    assert!(lab.run(["log", "show", log, "--step", "1"]).good().stdout.contains("clone copy-2"));
    let stat: Value = serde_json::from_str(&lab.run(["log", "stat", log, "--json"]).good().stdout).unwrap();
    assert_eq!((&stat["counted_steps"], &stat["ended"]), (&40.into(), &"complete".into()));
    assert!(stat["no_space_steps"].as_u64().unwrap() >= 1);
    assert!(lab.run(["log", "stat", log]).good().stdout.contains("40 counted"));
    assert!(lab.run(["log", "verify", log]).good().stdout.contains("complete"));

    // The run's directory is not needed: the synthetic history is made again.
    let kept = lab.path("kept.senesce-log");
    fs::copy(log, &kept).unwrap();
    let at_the_end =
        &super::outputs::cells(&lab, "out").into_iter().find(|cell| cell.key == "ext4 full     40").unwrap();
    fs::remove_dir_all(lab.path("out")).unwrap();
    fs::create_dir_all(lab.path("place")).unwrap();
    let tree = format!("tree {}", at_the_end.tree_hash);
    let dir = lab.path("");
    let on_dir = lab.run(["replay", text(&kept), "--on", "place", "--dir", text(&dir)]).good();
    assert!(
        on_dir.stdout.contains(&tree) && on_dir.stdout.contains("equals the one that the log describes"),
        "{}",
        on_dir.stdout
    );
    let image = ["replay", text(&kept), "--on", "image:1GiB", "--fs", "xfs", "--dir", text(&dir)];
    let on_image = lab.run(image.iter().chain(&["--against", "place", "--quiet"])).good();
    assert!(on_image.stdout.contains(&tree) && on_image.stdout.contains("equals that of place"), "{}", on_image.stdout);
    assert_eq!(on_image.stderr, "");
    lab.assert_nothing_left();

    // Kept until it is cleaned, by the command that is printed.
    let kept_image = lab.run(image.iter().chain(&["--against", "place", "--keep"])).good();
    let told = kept_image.stdout.split_once("kept mounted at ").unwrap().1;
    assert!(told.contains("\nnext: senesce inspect /"), "{told}");
    let (root, told) = told.split_once(" (`senesce clean ").unwrap();
    let home = told.split_once('`').unwrap().0;
    assert!(super::lab::mount_points().iter().any(|point| point == root), "{root} is mounted");
    assert_eq!(fs::read_dir(root).unwrap().count(), fs::read_dir(lab.path("place")).unwrap().count());
    let cleaned = lab.run(["clean", home]).good();
    assert!(cleaned.stdout.contains("mount at"), "{}", cleaned.stdout);
    assert!(!fs::exists(root).unwrap() && !fs::exists(home).unwrap());
    lab.assert_nothing_left();

    // Kept as an image with a name of the user's.
    let file = lab.path("kept-volume");
    let with_image = lab.run(image.iter().chain(&["--image", text(&file)])).good();
    let next = format!("kept as the image {0}\nnext: senesce inspect {0}\n", text(&file));
    assert!(with_image.stdout.contains(&next), "{}", with_image.stdout);
    lab.assert_nothing_left();
    assert!(lab.run(["inspect", text(&file)]).good().stdout.contains("layout score"));
    lab.run(image.iter().chain(&["--image", text(&file)])).refused(2, &["kept-volume exists already"]);

    lab.run(["replay", text(&kept), "--on", "place"]).refused(2, &["place is not empty", "hint: "]);
    lab.run(["replay", text(&kept), "--on", "image:1GiB"]).refused(2, &["hint: name one: --fs ext4, xfs, btrfs"]);
    fs::write(lab.path("place/unlike"), "x").unwrap();
    lab.run(image.iter().chain(&["--against", "place"]))
        .refused(1, &["the tree differs from that of place", "unlike: only in place"]);
    // Not enough space for the contents of the log.
    let narrow = |size| ["replay", text(&kept), "--on", size, "--fs", "ext4", "--dir", text(&dir)];
    for (on, says) in [("image:16MiB", "image:16MiB has 16 MiB, which is too small"), ("image:4MiB", "at least 8 MiB")]
    {
        lab.run(narrow(on)).refused(2, &[says, "hint: "]);
    }
    let done = lab.run(narrow("image:28MiB"));
    println!("{}", done.stderr);
    done.refused(1, &["no space left on the volume that replays the log", "make it larger"]);
    lab.assert_nothing_left();
}

#[test]
fn damaged_logs_are_read_up_to_the_damage() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let log = log_of(&lab, SINGLE, "out");
    let good = fs::read(&log).unwrap();
    let bad = lab.path("bad.senesce-log");
    let place = |name: &str| {
        fs::create_dir_all(lab.path(name)).unwrap();
        lab.path(name)
    };
    let dir = lab.path("");

    // Cut in the middle: what is there is good, and it is said that the rest is not.
    fs::write(&bad, &good[..good.len() - 30]).unwrap();
    let verified = lab.run(["log", "verify", text(&bad)]);
    assert!(verified.stdout.contains("truncated: the last whole frame ends at byte"), "{}", verified.stdout);
    verified.refused(1, &["bad.senesce-log is incomplete"]);
    assert!(lab.run(["log", "show", text(&bad)]).good().stdout.contains("clone"));
    let replayed = lab.run(["replay", text(&bad), "--on", text(&place("a")), "--dir", text(&dir)]);
    // Its whole frames are replayed, but no caller must take that for the whole log.
    assert_eq!(replayed.code, 1, "{}", replayed.stderr);
    assert!(replayed.stdout.contains("truncated") && replayed.stderr.contains("only its whole frames"));

    // One bit, anywhere after the mark: refused with frame and byte.
    let mut flipped_in_steps = false;
    for at in (16..good.len()).step_by((good.len() / 12).max(1)) {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&bad, bytes).unwrap();
        let done = lab.run(["log", "verify", text(&bad)]);
        assert_eq!(done.code, 1, "bit flip at {at}: {}{}", done.stdout, done.stderr);
        assert!(done.stderr.contains("bad.senesce-log"), "{}", done.stderr);
        let shown = lab.run(["log", "show", text(&bad)]);
        if done.stderr.contains("is damaged in frame") {
            shown.refused(1, &["is damaged in frame", "at byte"]);
            flipped_in_steps = true;
        }
    }
    assert!(flipped_in_steps);
    lab.run(["replay", text(&bad), "--on", text(&place("b")), "--dir", text(&dir)]).refused(1, &["bad.senesce-log"]);

    let mut newer = good.clone();
    // The version is after the mark.
    let version_at = 8;
    assert_eq!(good[version_at..version_at + 2], 1u16.to_le_bytes());
    newer[version_at] = 9;
    fs::write(&bad, newer).unwrap();
    lab.run(["log", "stat", text(&bad)]).refused(2, &["format version 9", "use a newer senesce"]);
    fs::write(&bad, "hello").unwrap();
    lab.run(["log", "show", text(&bad)]).refused(2, &["bad.senesce-log is not an operation log"]);
    lab.run(["log", "show", "absent"]).refused(2, &["cannot open the log absent", "No such file"]);
    lab.assert_nothing_left();
}

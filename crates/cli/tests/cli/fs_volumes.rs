//! Several volumes and snapshots of one garden, mounted by one command.

use std::{
    fs,
    process::Child,
    time::{Duration, Instant},
};

use memchr::memmem;
use senesce_testkit::root_or_skip;

use super::{
    disk::must,
    garden_mount::start,
    lab::{Lab, mount_points},
};

/// A test that would wait for ever fails then.
const STUCK: Duration = Duration::from_secs(120);

#[track_caller]
fn run(lab: &Lab, words: &str) -> String {
    lab.run(words.split(' ')).good().stdout
}

/// A garden with the volumes `main` and `home`, and a snapshot of `main`.
fn two_volumes() -> Lab {
    let lab = Lab::new();
    run(&lab, "fs mkfs garden g --size 64MiB --data-drives 3 --seed 7");
    run(&lab, "fs volume create g home");
    for dir in ["home", "monday"] {
        fs::create_dir(lab.path(dir)).unwrap();
    }
    let mut child = serve(&lab, &[]);
    fs::write(lab.path("mnt/file"), "as it was").unwrap();
    run(&lab, "fs snapshot create g main monday");
    unmount(&lab, "mnt");
    assert!(child.wait().unwrap().success());
    lab
}

/// Mounts `main` on `mnt`, and more if that is wanted.
fn serve(lab: &Lab, more: &[&str]) -> Child {
    start(lab, lab.command().args(["--quiet", "fs", "mount", "g", "mnt"]).args(more))
}

/// Mounts all three, and waits until they are there: `mnt` is the last one.
fn serve_all(lab: &Lab, more: &[&str]) -> Child {
    let all = ["home=home", "main/monday=monday"].iter().flat_map(|also| ["--also", also]).collect::<Vec<_>>();
    let child = serve(lab, &[&all, more].concat());
    let begin = Instant::now();
    while ["home", "monday"].iter().any(|dir| !is_mounted(lab, dir)) {
        assert!(begin.elapsed() < STUCK, "not all are mounted");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

fn is_mounted(lab: &Lab, dir: &str) -> bool {
    mount_points().contains(&lab.path(dir).to_string_lossy().into_owned())
}

fn unmount(lab: &Lab, dir: &str) {
    senesce_testkit::unmount(&lab.path(dir));
}

/// Waits until `home` and the others of its process are this number of mounts. A mount ends only
/// when no other namespace has it, and a test beside this one may have copied all mounts for a
/// moment.
fn await_mounts(lab: &Lab, count: usize) {
    await_mounts_at(lab, "home", count);
}

fn await_mounts_at(lab: &Lab, place: &str, count: usize) {
    let begin = Instant::now();
    while run(lab, &format!("fs stat {place}")).matches("is mounted on").count() != count {
        assert!(begin.elapsed() < STUCK, "a mount does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn one_command_mounts_volumes_and_snapshots() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = two_volumes();
    let mut child = serve_all(&lab, &["--gardening", "all"]);
    fs::write(lab.path("mnt/file"), "later").unwrap();
    fs::write(lab.path("home/file"), "at home").unwrap();
    assert_eq!(fs::read_to_string(lab.path("monday/file")).unwrap(), "as it was");
    assert_eq!(fs::write(lab.path("monday/file"), "x").unwrap_err().raw_os_error(), Some(30));
    // Each of them leads to the process that serves all.
    for place in ["g", "mnt", "home", "monday"] {
        let told = run(&lab, &format!("fs stat {place}"));
        assert_eq!(told.matches("is mounted on").count(), 3, "{told}");
        assert!(told.contains("  snapshot monday of volume main is mounted on "), "{told}");
    }
    run(&lab, "fs snapshot create home home tuesday");
    lab.run(["fs", "snapshot", "delete", "g", "main", "monday"]).refused(3, &["it is mounted on "]);
    lab.run(["fs", "volume", "delete", "g", "home"]).refused(3, &["it is mounted on "]);
    assert!(run(&lab, "fs clean g").contains("allocation areas"));
    unmount(&lab, "monday");
    await_mounts(&lab, 2);
    run(&lab, "fs snapshot delete g main monday");
    unmount(&lab, "mnt");
    await_mounts(&lab, 1);
    fs::write(lab.path("home/other"), "while main is away").unwrap();
    unmount(&lab, "home");
    assert!(child.wait().unwrap().success());
    assert!(run(&lab, "fs check g").starts_with("as it is: clean"));
}

#[test]
fn killed_mounts_of_volumes_are_cleaned() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = two_volumes();
    let mut child = serve_all(&lab, &["--point-every", "3600", "--write-back=engine"]);
    let marker = b"what the second mount was given, and nobody synced";
    fs::write(lab.path("home/marker"), marker).unwrap();
    let is_durable = || {
        let images = fs::read_dir(lab.path("g")).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
        images.into_iter().any(|image| memmem::find(&image, marker).is_some())
    };
    let begin = Instant::now();
    while !is_durable() {
        assert!(begin.elapsed() < STUCK, "nothing makes it durable");
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    run(&lab, "clean");
    assert!(["mnt", "home", "monday"].iter().all(|dir| !is_mounted(&lab, dir)));
    assert!(run(&lab, "fs check g").contains("clean"));
    let mut child = serve(&lab, &["--volume", "home"]);
    assert_eq!(fs::read(lab.path("mnt/marker")).unwrap(), marker);
    must("kill", &["-INT", &child.id().to_string()]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn all_are_mounted_or_none() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = two_volumes();
    fs::create_dir(lab.path("mnt/below")).unwrap();
    for (also, code, says) in [
        ("other=home", 2, "no volume other"),
        ("main/friday=home", 2, "no snapshot friday"),
        ("home=mnt", 2, "mnt is named twice"),
        ("home=away", 2, "cannot look up away"),
        ("home", 2, "VOLUME=POINT"),
        // Mounting the first one hides it.
        ("home=mnt/below", 2, "cannot mount on "),
    ] {
        lab.run(["fs", "mount", "g", "mnt", "--also", also]).refused(code, &[says]);
        assert!(!is_mounted(&lab, "mnt"), "{also}");
    }
    assert!(run(&lab, "fs check g").starts_with("as it is: clean"));
}

#[test]
fn further_mounts_are_synced_before_a_snapshot() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = two_volumes();
    let mut child = serve_all(&lab, &["--write-back"]);
    let content = "7".repeat(40_000);
    fs::write(lab.path("home/file"), &content).unwrap();
    assert!(run(&lab, "fs stat home").contains("volume home: "));
    run(&lab, "fs snapshot create home home tuesday");
    fs::write(lab.path("home/file"), "later").unwrap();
    ["home", "monday", "mnt"].iter().for_each(|dir| unmount(&lab, dir));
    assert!(child.wait().unwrap().success());
    let mut child = serve(&lab, &["--volume", "home", "--snapshot", "tuesday"]);
    assert!(fs::read_to_string(lab.path("mnt/file")).unwrap() == content);
    unmount(&lab, "mnt");
    assert!(child.wait().unwrap().success());
}

#[test]
fn detached_mounts_delay_no_other_request() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = two_volumes();
    fs::create_dir(lab.path("moved")).unwrap();
    // The kernel moves no mount that is below a shared one.
    let path = |name: &str| lab.path(name).to_string_lossy().into_owned();
    must("mount", &["--bind", &path(""), &path("")]);
    must("mount", &["--make-private", &path("")]);
    let mut child = serve_all(&lab, &["--write-back"]);
    must("mount", &["--move", &path("home"), &path("moved")]);
    let content = "8".repeat(40_000);
    fs::write(lab.path("moved/file"), &content).unwrap();
    for place in ["g", "moved"] {
        let stat = run(&lab, &format!("fs stat {place}"));
        assert!(stat.contains(&format!("volume home is mounted on {}\n", path("moved"))), "{stat}");
    }
    run(&lab, "fs snapshot create g home after-move");
    // A program keeps it, so that it does not end.
    let kept = fs::File::open(lab.path("monday")).unwrap();
    must("umount", &["--lazy", &path("monday")]);
    run(&lab, "fs snapshot create g main beside");
    lab.run(["fs", "snapshot", "delete", "g", "main", "monday"]).refused(3, &["it is mounted on "]);
    drop(kept);
    await_mounts_at(&lab, "moved", 2);
    run(&lab, "fs snapshot delete g main monday");
    unmount(&lab, "mnt");
    await_mounts_at(&lab, "moved", 1);
    run(&lab, "fs snapshot create g main after-unmount");
    unmount(&lab, "moved");
    assert!(child.wait().unwrap().success());
    let mut child = serve(&lab, &["--volume", "home", "--snapshot", "after-move"]);
    assert!(fs::read_to_string(lab.path("mnt/file")).unwrap() == content);
    unmount(&lab, "mnt");
    assert!(child.wait().unwrap().success());
    unmount(&lab, "");
}

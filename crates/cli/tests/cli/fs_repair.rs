//! Labels and the log of gardens that are damaged or lost: `check` finds it, `check --repair`
//! repairs it, mounts continue.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::FileExt,
};

use senesce_testkit::root_or_skip;

use super::{
    garden_mount::{SLOT, mount, mount_and_hear, start, write_synced},
    lab::Lab,
};

fn mkfs(lab: &Lab, more: &[&str]) {
    let all = [&["fs", "mkfs", "garden", "g", "--size", "16MiB", "--log-size", "1MiB", "--seed", "7"], more].concat();
    lab.run(all).good();
}

fn spoil(lab: &Lab, image: &str, at: u64, len: usize) {
    let file = OpenOptions::new().write(true).open(lab.path(image)).unwrap();
    file.write_all_at(&vec![0x5a; len], at).unwrap();
}

/// Mounts, writes a file, and is killed: the log alone has it.
fn kill_with(lab: &Lab, name: &str) {
    let mut child = start(lab, lab.command().args(["--quiet", "fs", "mount", "g", "mnt", "--point-every", "3600"]));
    write_synced(lab, name, "in the log");
    child.kill().unwrap();
    child.wait().unwrap();
    lab.run(["clean"]).good();
}

#[test]
fn repair_prints_each_label_and_log() {
    let lab = Lab::new();
    mkfs(&lab, &[]);
    lab.run(["fs", "check", "g", "--repair"]).good();
    // Both labels of two drives, a label and a block of one copy of the log.
    for image in ["g/drive-00.img", "g/drive-03.img"] {
        spoil(&lab, image, 0, 4096);
        spoil(&lab, image, 2 * SLOT, 4096);
    }
    spoil(&lab, "g/log.img", 0, 4096);
    spoil(&lab, "g/log-2.img", 8192, 4096);
    lab.run(["fs", "check", "g"]).refused(1, &["is damaged"]);
    let would = lab.run(["fs", "check", "g", "--repair", "--dry-run"]);
    would.refused(1, &["nothing was written"]);
    assert!(would.stdout.contains("would repair: label of g/drive-00.img"), "{}", would.stdout);
    lab.run(["fs", "check", "g"]).refused(1, &["is damaged"]);
    let done = lab.run(["fs", "check", "g", "--repair"]).good().stdout;
    for act in
        ["label of g/drive-00.img", "label of g/drive-03.img", "log label at byte 0 of g/log.img", "log copy 1, half 0"]
    {
        assert!(done.contains(&format!("repaired: {act}")), "{act}: {done}");
    }
    assert!(done.contains("after the repair: clean"), "{done}");
    lab.run(["fs", "check", "g"]).good();
    let again = lab.run(["fs", "check", "g", "--repair"]).good().stdout;
    assert!(again.starts_with("nothing to repair"), "{again}");
}

#[test]
fn removed_log_is_recreated_on_request() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab, &[]);
    let mounted = mount(&lab, &[]);
    lab.run(["fs", "check", "g", "--repair"]).refused(3, &["in use"]);
    write_synced(&lab, "kept", "one");
    mounted.unmount();

    // One copy, after a kill.
    kill_with(&lab, "logged");
    fs::remove_file(lab.path("g/log.img")).unwrap();
    lab.run(["fs", "check", "g"]).refused(1, &["is damaged"]);
    let told = mount_and_hear(&lab, &[], || {
        assert_eq!(fs::read(lab.path("mnt/logged")).unwrap(), b"in the log");
    });
    assert!(told.contains("copy 0 of the log is lost; g/log.img replaces it"), "{told}");
    lab.run(["fs", "check", "g"]).good();

    // Both, after it was unmounted: nothing is lost, and no option is needed.
    let remove = || ["g/log.img", "g/log-2.img"].map(|log| fs::remove_file(lab.path(log)).unwrap());
    remove();
    let told = mount_and_hear(&lab, &[], || {
        assert_eq!(fs::read(lab.path("mnt/logged")).unwrap(), b"in the log");
    });
    assert!(told.contains("it was closed there, and nothing is lost"), "{told}");
    lab.run(["fs", "check", "g"]).good();

    // Both, after a kill.
    kill_with(&lab, "gone");
    remove();
    lab.run(["fs", "mount", "g", "mnt"]).refused(1, &["copies is copy 0 of the log is lost", "--without-log"]);
    lab.run(["fs", "check", "g", "--repair"]).refused(1, &["--without-log"]);
    let told = mount_and_hear(&lab, &["--without-log"], || {
        assert_eq!(fs::read(lab.path("mnt/logged")).unwrap(), b"in the log");
        assert!(!lab.path("mnt/gone").exists());
    });
    assert!(told.contains("all operations acknowledged since then are lost"), "{told}");
    lab.run(["fs", "check", "g", "--repair"]).good();
    lab.run(["fs", "check", "g"]).good();
}

#[test]
fn copies_are_on_one_device_or_two() {
    let lab = Lab::new();
    let image = |name: &str, bytes: u64| File::create(lab.path(name)).unwrap().set_len(bytes).unwrap();
    image("one.img", 32 << 20);
    lab.run(["fs", "mkfs", "garden", "one.img", "--seed", "7"]).good();
    // After the drive there are the two copies, each with a label at both ends.
    let log = (32_u64 << 20) - (2 << 20);
    spoil(&lab, "one.img", log + 4096 * 3, 4096);
    lab.run(["fs", "check", "one.img", "--repair"]).good();
    lab.run(["fs", "check", "one.img"]).good();
    // The second label is read where the first one is damaged, also to find the log.
    spoil(&lab, "one.img", 0, 4096);
    let done = lab.run(["fs", "check", "one.img", "--repair"]).good().stdout;
    assert!(done.contains("repaired: label of one.img"), "{done}");

    let named = ["--drive", "d0", "--drive", "d1", "--drive", "d2", "--log", "l0", "--log", "l1"];
    let of = |verb: &[&str], more: &[&str]| lab.run([verb, &named, more].concat());
    of(&["fs", "mkfs", "garden"], &["--size", "16MiB", "--log-size", "1MiB", "--seed", "7"]).good();
    spoil(&lab, "l1", 4096, 40_960);
    of(&["fs", "check"], &[]).refused(1, &["is damaged"]);
    of(&["fs", "check"], &["--repair"]).good();
    of(&["fs", "check"], &[]).good();
    // The second label says whose log it is.
    spoil(&lab, "l0", 0, 4096);
    of(&["fs", "check"], &["--repair", "--without-log"]).good();
    // The log of another garden on a larger device, with a damaged label.
    let other = ["--drive", "o0", "--no-parity", "--log", "ol", "--size", "16MiB", "--log-size", "1MiB", "--seed", "8"];
    lab.run([&["fs", "mkfs", "garden"], &other[..]].concat()).good();
    OpenOptions::new().write(true).open(lab.path("ol")).unwrap().set_len(3 << 20).unwrap();
    spoil(&lab, "ol", 100, 8);
    let before = fs::read(lab.path("ol")).unwrap();
    let by_mistake = |more: &[&str]| {
        let verb = ["fs", "check", "--repair", "--without-log", "--log", "ol"];
        lab.run([&verb, &named[..6], more].concat())
    };
    for force in [&[][..], &["--force"]] {
        by_mistake(force).refused(2, &["ol: the log of another aggregate"]);
    }
    assert!(fs::read(lab.path("ol")).unwrap() == before, "the log of another garden is overwritten");
    // A device that is named as the log by mistake is not overwritten, unless that is wanted.
    let text = b"a letter to keep".repeat(70_000);
    for log in ["l0", "l1"] {
        fs::write(lab.path(log), &text).unwrap();
    }
    let refused = of(&["fs", "check"], &["--repair", "--without-log"]);
    refused.refused(2, &["l0", "force"]);
    assert_eq!(fs::read(lab.path("l0")).unwrap(), text);
    of(&["fs", "check"], &["--repair", "--without-log", "--force"]).good();
    of(&["fs", "check"], &[]).good();
}

#[test]
fn both_logs_are_read_without_drive_labels() {
    let lab = Lab::new();
    mkfs(&lab, &[]);
    for drive in 0..5 {
        spoil(&lab, &format!("g/drive-0{drive}.img"), 0, 4096);
        spoil(&lab, &format!("g/drive-0{drive}.img"), 2 * SLOT, 4096);
    }
    spoil(&lab, "g/log.img", 0, 1 << 20);
    let done = lab.run(["fs", "check", "g", "--repair"]).good().stdout;
    assert!(done.contains("after the repair: clean"), "{done}");
}

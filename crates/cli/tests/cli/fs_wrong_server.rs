//! Commands never reach the process of another garden than the one that is named.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use senesce_testkit::{apart, root_or_skip};

use super::{
    disk::must,
    garden_mount::{mount, start, unmount},
    lab::Lab,
};

#[track_caller]
fn run(lab: &Lab, words: &str) -> String {
    lab.run(words.split(' ')).good().stdout
}

fn mkfs(lab: &Lab, name: &str) {
    run(lab, &format!("fs mkfs garden {name} --size 32MiB --data-drives 2 --volume of-{name}"));
}

/// A garden `other` that is mounted while `act` runs. Its token is the argument.
fn with_other(lab: &Lab, act: impl FnOnce(&str)) {
    mkfs(lab, "other");
    let mut child = start(lab, lab.command().args(["--quiet", "fs", "mount", "other", "mnt", "--volume", "of-other"]));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point = lab.path("mnt").to_string_lossy().into_owned();
    let line = mounts.lines().find(|line| line.contains(&point)).unwrap();
    let token = line.split("senesce-fs:").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    act(&token);
    unmount(lab);
    assert!(child.wait().unwrap().success());
}

#[test]
fn mount_of_another_namespace_names_no_server() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab, "g");
    with_other(&lab, |token| {
        for source in [token, "false"] {
            let script = format!("mount -t tmpfs senesce-fs:{source} g && echo ready && read line");
            let mut forger = apart(&script);
            let forger = forger.current_dir(lab.path(""));
            let mut forger = forger.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(forger.stdout.take().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
            let told = run(&lab, "fs stat g");
            assert!(told.contains("volume of-g: "), "{source}: {told}");
            lab.run(["fs", "volume", "delete", "g", "of-other"]).refused(2, &["no volume of-other"]);
            drop(forger.stdin.take());
            forger.wait().unwrap();
        }
    });
}

#[test]
fn drives_of_two_gardens_name_no_server() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab, "g");
    with_other(&lab, |_| {
        for (one, two, log) in [("other", "g", "other"), ("g", "other", "g"), ("g", "g", "other")] {
            let words = format!("--drive {one}/drive-00.img --drive {two}/drive-01.img --log {log}/log.img");
            let words = format!("fs volume list {words}");
            lab.run(words.split(' ')).refused(2, &["a part of ", "is mounted"]);
        }
    });
}

#[test]
fn mount_point_is_refused_by_offline_commands() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    run(&lab, "fs mkfs garden g --size 32MiB --data-drives 2");
    let mounted = mount(&lab, &["--write-back"]);
    for words in ["fs diff mnt main monday", "fs rebuild mnt", "fs recompact mnt main", "fs check mnt --repair"] {
        lab.run(words.split(' ')).refused(3, &["is a mount point", "unmount it"]);
    }
    // What the kernel keeps for a covered mount cannot be reached.
    must("mount", &["-t", "tmpfs", "cover", &lab.path("mnt").to_string_lossy()]);
    lab.run(["fs", "snapshot", "create", "g", "main", "monday"]).refused(2, &["another mount covers it"]);
    must("umount", &[&lab.path("mnt").to_string_lossy()]);
    run(&lab, "fs snapshot create g main monday");
    mounted.unmount();
}

#[test]
fn other_files_and_bind_mounts_hide_no_server() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab, "g");
    let mounted = mount(&lab, &["--volume", "of-g"]);
    for name in ["g/drive-00.img.bak", "g/drive-09.img"] {
        fs::write(lab.path(name), [7; 10_000]).unwrap();
    }
    assert!(run(&lab, "fs stat g").contains("mounted on"));
    run(&lab, "fs snapshot create g of-g a");
    for name in ["g/drive-00.img.bak", "g/drive-09.img"] {
        fs::remove_file(lab.path(name)).unwrap();
    }
    fs::create_dir(lab.path("bound")).unwrap();
    let path = |name| lab.path(name).to_string_lossy().into_owned();
    must("mount", &["--bind", &path("mnt"), &path("bound")]);
    let told = lab.run(["fs", "stat", "bound"]);
    senesce_testkit::unmount(&lab.path("bound"));
    assert!(told.good().stdout.contains("volume of-g is mounted on"));
    mounted.unmount();
    assert!(run(&lab, "fs check g").starts_with("as it is: clean"));
}

//! Containers of volumes: real file systems, saved and restored to files and devices, and what is
//! refused.

use std::{
    io::{BufRead, BufReader},
    os::unix::fs::symlink,
    process::{Command, Stdio},
};

use senesce_testkit::{found_or_skip, root_or_skip};

use super::{
    disk::{Disk, Mount, must, volume},
    garden_mount::{hold, start},
    lab::Lab,
};

const NAMES: [(&str, u64); 3] = [("ext4", 64), ("xfs", 320), ("btrfs", 160)];

#[test]
fn volumes_are_restored_byte_for_byte() {
    if !root_or_skip("mounting") {
        return;
    }
    for (kind, mib) in NAMES {
        let lab = Lab::new();
        let path = |name: &str| lab.path(name).to_string_lossy().into_owned();
        {
            let (disk, mount) = volume(kind, &[], &lab.path("volume"), mib, lab.path("mnt"));
            for number in 0..200u32 {
                let bytes: Vec<u8> = (0..20_000 + number).map(|n| ((n * number) >> 3) as u8).collect();
                std::fs::write(mount.point.join(number.to_string()), bytes).unwrap();
            }
            // While it is mounted it fits no moment.
            lab.run(["image", "save", &path("volume"), &path("c")]).refused(3, &["in use", "umount"]);
            lab.run(["image", "save", &disk.device, &path("c")]).refused(3, &["in use", "is mounted on", "mnt"]);
            lab.run(["image", "save", &path("mnt"), &path("c")]).refused(2, &["not the directory where it is mounted"]);
        }
        let saved = lab.run(["image", "save", &path("volume"), &path("c"), "--set", "aged=by hand"]).good();
        let listed = lab.run(["image", "list", "--json", &path(".")]).good();
        let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
        let container = &listed["containers"][0];
        assert_eq!(container["file_system"], kind);
        assert_eq!(container["circumstances"]["aged"], "by hand");
        assert_eq!(container["volume_bytes"], mib << 20);
        assert!(saved.stdout.contains(container["content_hash"].as_str().unwrap()));
        let twice = lab.run(["image", "save", &path("volume"), &path("c")]);
        twice.refused(2, &["exists already", "hint: give another name"]);
        assert!(!twice.stderr.contains("--force"), "{}", twice.stderr);
        lab.run(["image", "verify", &path("c")]).good();
        lab.run(["image", "restore", &path("c"), &path("again")]).good();
        must("cmp", &[&path("volume"), &path("again")]);
        lab.run(["image", "restore", &path("c"), &path("again")]).refused(2, &["exists already", "--force"]);

        // A device that held something else, in holes too.
        let image = lab.path("disk");
        std::fs::write(&image, vec![0xA5; (mib << 20) as usize]).unwrap();
        let disk = Disk::attach(&image);
        lab.run(["image", "restore", &path("c"), &disk.device]).refused(3, &["holds data", "--force"]);
        lab.run(["image", "restore", &path("c"), &disk.device, "--force"]).good();
        must("cmp", &[&path("volume"), &disk.device]);
        lab.run(["image", "restore", &path("c"), &disk.device]).refused(3, &[&disk.device, "--force"]);
        lab.run(["image", "restore", &path("c"), &disk.device, "--force"]).good();
        let small = Disk::new(&lab.path("small"), 20);
        lab.run(["image", "restore", &path("c"), &small.device]).refused(2, &["the volume has"]);
        drop((disk, small));
        lab.assert_nothing_left();
    }
}

#[test]
fn damaged_containers_are_refused_with_the_position() {
    let lab = Lab::new();
    let path = |name: &str| lab.path(name).to_string_lossy().into_owned();
    std::fs::write(lab.path("volume"), "not a file system").unwrap();
    lab.run(["image", "save", &path("volume"), &path("c"), "--set", "nothing"]).refused(2, &["NAME=VALUE"]);
    lab.run(["image", "save", &path("volume"), &path("c")]).good();
    let whole = std::fs::read(lab.path("c")).unwrap();
    std::fs::write(lab.path("cut"), &whole[..whole.len() - 1]).unwrap();
    lab.run(["image", "restore", &path("cut"), &path("to")]).refused(1, &["is cut", "the mark of the end"]);
    lab.run(["image", "verify", &path("volume")]).refused(2, &["no image container", "image save"]);
    lab.run(["image", "list", &path("nowhere")]).refused(2, &["nowhere"]);
    assert!(!lab.path("to").exists());
    lab.assert_nothing_left();
}

#[test]
fn trim_works_on_a_copy_of_the_image() {
    if !root_or_skip("mounting") {
        return;
    }
    for (kind, mib) in NAMES {
        let lab = Lab::new();
        let path = |name: &str| lab.path(name).to_string_lossy().into_owned();
        {
            let disk = Disk::new(&lab.path("volume"), mib);
            must(&format!("mkfs.{kind}"), &["-q", &disk.device]);
            let mount = Mount::new(&["-o", "nodiscard", &disk.device], lab.path("mnt"));
            // The log of XFS is used space that is never written here.
            let deleted = if kind == "xfs" { 150 << 20 } else { 40 << 20 };
            std::fs::write(mount.point.join("kept"), vec![1; 5 << 20]).unwrap();
            std::fs::write(mount.point.join("deleted"), vec![2; deleted]).unwrap();
            must("sync", &["-f", &path("mnt")]);
            std::fs::remove_file(mount.point.join("deleted")).unwrap();
        }
        let before = must("sha256sum", &[&path("volume")]);
        let whole = lab.run(["image", "save", &path("volume"), &path("whole")]).good();
        // What Btrfs keeps twice its superblock counts once: nothing is said there.
        let is_told = whole.stderr.contains("deleted files in free space; --trim");
        assert_eq!(is_told, kind != "btrfs", "{kind}: {}", whole.stderr);
        lab.run(["image", "save", "--trim", &path("volume"), &path("trimmed")]).good();
        assert_eq!(must("sha256sum", &[&path("volume")]), before, "{kind}: the image stays as it is");
        let listed = lab.run(["image", "list", "--json", &path("whole"), &path("trimmed")]).good();
        let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
        let data = |at: usize| listed["containers"][at]["data_bytes"].as_u64().unwrap();
        assert!(data(0) > data(1) + (35 << 20), "{kind}: {listed}");
        assert_eq!(listed["containers"][1]["circumstances"]["trimmed"], "true");
        lab.run(["image", "save", "--trim", &path("whole"), &path("no")]).refused(2, &["no image of ext4"]);

        // Two of one identity: what the kernel refuses is reported with what to do, what it need
        // not refuse works.
        let disk = Disk::attach(&lab.path("volume"));
        let mount = Mount::new(&[&disk.device], lab.path("mnt"));
        let again = lab.run(["image", "restore", &path("trimmed"), &path("again")]).good();
        let note = format!("is mounted on {}", path("mnt"));
        assert_eq!(again.stderr.contains(&note), kind != "ext4", "{kind}: {}", again.stderr);
        let bench =
            lab.run(["bench", "--aged", &path("trimmed"), "--dir", &path("."), "--runs", "1", "--", "cat", "kept"]);
        match kind {
            "btrfs" => bench.refused(3, &[&note, "UUID", "unmount it first"]),
            _ => drop(bench.good()),
        }
        assert!(mount.point.join("kept").exists());
        drop((mount, disk));
        lab.assert_nothing_left();
    }
}

#[test]
fn trimmed_image_has_no_note_on_deletions() {
    if !root_or_skip("mounting") {
        return;
    }
    for (kind, mib) in [("ext4", 160), ("xfs", 320)] {
        let lab = Lab::new();
        let path = |name: &str| lab.path(name).to_string_lossy().into_owned();
        {
            let (_disk, mount) = volume(kind, &[], &lab.path("volume"), mib, lab.path("mnt"));
            // Some of it in every chunk of a container, most of which is free.
            for number in 0..1600 {
                std::fs::write(mount.point.join(number.to_string()), [7; 64 << 10]).unwrap();
            }
            must("sync", &["-f", &path("mnt")]);
            (0..1600).filter(|number| number % 8 != 0).for_each(|number| {
                std::fs::remove_file(mount.point.join(number.to_string())).unwrap();
            });
            must("sync", &["-f", &path("mnt")]);
            must("fstrim", &[&path("mnt")]);
        }
        let saved = lab.run(["image", "save", &path("volume"), &path("c")]).good();
        let listed = lab.run(["image", "list", "--json", &path("c")]).good();
        let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
        let data = listed["containers"][0]["data_bytes"].as_u64().unwrap();
        assert!(data > 90 << 20, "{kind}: the chunks are whole: {data}");
        assert!(!saved.stderr.contains("deleted files"), "{kind}: {}", saved.stderr);
        lab.assert_nothing_left();
    }
}

#[test]
fn a_mounted_engine_is_neither_replaced_nor_saved() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    std::fs::write(lab.path("volume"), vec![7; 1 << 20]).unwrap();
    lab.run(["image", "save", "volume", "c"]).good();
    lab.run(["fs", "mkfs", "evergreen", "e.img", "--size", "64MiB", "--seed", "7"]).good();
    lab.run(["fs", "mkfs", "garden", "g", "--size", "64MiB", "--seed", "7"]).good();
    for (place, file) in [("e.img", "e.img"), ("g", "g/drive-00.img"), ("g", "g/log.img")] {
        let mut mount = lab.command();
        mount.args(["--quiet", "fs", "mount", place, "mnt"]).stdout(Stdio::null());
        let mounted = hold(&lab, start(&lab, &mut mount));
        std::fs::write(lab.path("mnt/letter"), "dear").unwrap();
        let says = [file, "is in use and was not touched", "(senesce-fs) has locked", "--force does not help"];
        lab.run(["image", "restore", "--force", "c", file]).refused(3, &says);
        lab.run(["image", "save", file, "torn"]).refused(3, &says);
        lab.run(["fs", "mkfs", "evergreen", file, "--force"]).refused(3, &says);
        assert!(!lab.path("torn").exists());
        mounted.unmount();
        lab.run(["fs", "check", place]).good();
    }
    lab.run(["image", "restore", "--force", "c", "e.img"]).good();
    assert!(std::fs::read(lab.path("e.img")).unwrap() == vec![7; 1 << 20]);
}

#[test]
fn a_restore_writes_the_checked_device() {
    if !root_or_skip("loop devices") {
        return;
    }
    let perl = std::path::Path::new("/usr/bin/perl");
    if found_or_skip(perl.exists().then_some(()), "perl").is_none() {
        return;
    }
    let lab = Lab::new();
    std::fs::write(lab.path("volume"), vec![7; 1 << 20]).unwrap();
    lab.run(["image", "save", "volume", "c"]).good();
    let (blank, precious) = (Disk::new(&lab.path("blank"), 8), Disk::new(&lab.path("precious"), 8));
    precious.format_ext4();
    let before = std::fs::read(&precious.device).unwrap();
    symlink(&blank.device, lab.path("dev")).unwrap();
    symlink(&precious.device, lab.path("other")).unwrap();
    // The container is opened after the check. Its opening waits for this lease, and its owner
    // moves the link first.
    let script = "$| = 1; open(my $file, '+<', 'c') or die; \
                  $SIG{IO} = sub { rename('other', 'dev') or die; fcntl($file, 1024, 2); exit 0 }; \
                  fcntl($file, 1024, 1) or die \"lease: $!\"; print \"ready\\n\"; sleep 1 while 1;";
    let mut owner =
        Command::new(perl).args(["-e", script]).current_dir(lab.path(".")).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(owner.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let restored = lab.run(["image", "restore", "c", "dev"]);
    // It has exited by itself if the container was opened, which the link shows below.
    owner.kill().unwrap();
    owner.wait().unwrap();
    restored.good();
    assert!(std::fs::read(&precious.device).unwrap() == before, "the other device was written");
    assert!(std::fs::read(&blank.device).unwrap().starts_with(&[7; 1 << 20]));
    assert_eq!(std::fs::read_link(lab.path("dev")).unwrap().to_string_lossy(), precious.device);
    drop((blank, precious));
    lab.assert_nothing_left();
}

#[test]
fn a_mistyped_device_does_not_become_a_file() {
    let lab = Lab::new();
    std::fs::write(lab.path("volume"), vec![7; 1 << 20]).unwrap();
    lab.run(["image", "save", "volume", "c"]).good();
    let says = ["/dev/senesce-no-such-disk does not exist", "lsblk"];
    lab.run(["image", "restore", "c", "/dev/senesce-no-such-disk"]).refused(2, &says);
    lab.run(["fs", "mkfs", "evergreen", "/dev/senesce-no-such-disk"]).refused(2, &says);
    assert!(!std::path::Path::new("/dev/senesce-no-such-disk").exists());
    let link = lab.path("link");
    symlink(lab.path("volume"), &link).unwrap();
    lab.run(["image", "restore", "--force", "c", "link"]).refused(2, &["link is a symbolic link"]);
    assert!(link.is_symlink());
}

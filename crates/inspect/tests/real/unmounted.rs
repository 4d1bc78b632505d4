//! Unmounted XFS and Btrfs: the inspection mounts them read-only and changes nothing.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::MetadataExt,
    path::Path,
    process::Stdio,
};

use senesce_inspect::{Error, Inspection};

use crate::support::{Files, Volume, age, alone, inspect_at, inspect_offline, run, sync, volume};

/// The state that must not change: the contents, and the time of their last change.
fn state(image: &Path) -> (String, i64, i64, i64) {
    let metadata = fs::metadata(image).unwrap();
    let hash = run("sha256sum", &[image.to_str().unwrap()]);
    (hash, metadata.mtime(), metadata.mtime_nsec(), metadata.ctime())
}

fn loops_of(image: &Path) -> String {
    run("losetup", &["--associated", image.to_str().unwrap()])
}

/// Runs `look` while the volume is unmounted and its loop device detached.
fn while_unmounted(volume: &Volume, look: impl FnOnce(&Path)) {
    volume.unmount();
    look(&volume.image());
    volume.mount();
}

fn check(kind: &'static str, options: &str) {
    let volume = volume(kind, 640, &[], options);
    age(&volume.mountpoint, Files::Small);
    volume.remount_cold();
    let mounted = inspect_at(&volume.mountpoint).unwrap();
    let device = volume.device.clone();
    while_unmounted(&volume, |image| {
        let before = state(image);
        let found = inspect_at(image).unwrap();
        assert_eq!(found.warnings, [""; 0], "{kind}");
        assert_eq!(found.target.read, "mounted read-only for the inspection");
        assert_eq!(found.target.path, image.to_str().unwrap());
        let figures = |found: &Inspection| {
            let json = found.to_json();
            ["tree", "costs", "worst_files", "worst_directories"].map(|key| json[key].clone())
        };
        assert_eq!(figures(&found), figures(&mounted), "{kind}");
        let free = |found: &Inspection| found.free_space.as_ref().unwrap().figures.clone();
        assert_eq!(free(&found), free(&mounted), "{kind}");
        // A read-only mount reserves nothing, so that a little more is free.
        assert!(found.target.used_bytes <= mounted.target.used_bytes, "{kind}");
        assert_eq!(state(image), before, "{kind}: nothing is written");
        // The only loop device is that of the volume, and the mount had no mount point.
        assert_eq!(loops_of(image).lines().count(), 1, "{}", loops_of(image));
        let found = inspect_at(Path::new(&device)).unwrap();
        assert_eq!(figures(&found), figures(&mounted), "{kind} by its device");
        assert_eq!(state(image), before, "{kind}: nothing is written");
    });
    // As after a power cut: the last change is in the log only.
    let copy = volume.image().with_extension("copy");
    fs::write(volume.path("last"), b"change").unwrap();
    run("sync", &[volume.path("last").to_str().unwrap()]);
    run("cp", &["--sparse=always", volume.image().to_str().unwrap(), copy.to_str().unwrap()]);
    let before = state(&copy);
    if kind == "btrfs" {
        // The kernel cannot reliably distinguish two file systems with one UUID.
        let error = inspect_at(&copy).unwrap_err();
        let point = volume.mountpoint.to_str().unwrap();
        assert!(matches!(&error, Error::TwinMounted { .. }) && error.to_string().contains(point), "{error}");
        assert!(error.hint().unwrap().contains(point), "{:?}", error.hint());
        assert_eq!(state(&copy), before, "nothing is written");
        volume.unmount();
    }
    let found = inspect_at(&copy).unwrap();
    assert!(found.warnings.iter().any(|said| said.contains("log is not replayed")), "{kind}: {:?}", found.warnings);
    assert!(found.tree.files >= 9000);
    assert_eq!(state(&copy), before, "{kind}: nothing is written");
    assert_eq!(loops_of(&copy), "");
}

#[test]
fn image_of_mounted_loop_device_uses_its_mount() {
    if !senesce_testkit::root_or_skip("mounts images") {
        return;
    }
    let _alone = alone();
    for kind in ["ext4", "xfs", "btrfs"] {
        let volume = volume(kind, 400, &[], "noatime");
        let names = || (0..50).map(|n| volume.path(&format!("file-{n}")));
        names().for_each(|path| fs::write(path, vec![1; 9_000]).unwrap());
        sync(&volume.mountpoint);
        names().take(20).for_each(|path| fs::remove_file(path).unwrap());
        let link = volume.image().with_extension("link");
        fs::hard_link(volume.image(), &link).unwrap();
        let attached = || [volume.image(), link.clone()].map(|image| loops_of(&image));
        let before = attached();
        // The file is removed in memory only. Another name of the image is the same file.
        for path in [volume.image(), link.clone()] {
            let found = inspect_at(&path).unwrap();
            assert_eq!(found.tree.files, 30, "{kind}");
            assert_eq!(found.target.read, "through its mount", "{kind}");
            let said = &found.warnings[0];
            let how = format!("is mounted by {} for writing on {}", volume.device, volume.mountpoint.display());
            assert!(said.contains(&how) && said.contains(path.to_str().unwrap()), "{kind}: {said}");
        }
        assert_eq!(attached(), before, "{kind}");
        if kind == "ext4" {
            let found = inspect_offline(&volume.image()).unwrap();
            assert!(found.warnings[0].contains(&format!("mounted by {}", volume.device)), "{:?}", found.warnings);
            // A mount on top hides it: then the warning says that it is read past its mount.
            let point = volume.mountpoint.to_str().unwrap();
            run("mount", &["-t", "tmpfs", "none", point]);
            let hidden = inspect_at(&volume.image());
            senesce_testkit::unmount(Path::new(point));
            let hidden = hidden.unwrap();
            assert!(hidden.warnings[0].contains("read past its mount"), "{:?}", hidden.warnings);
        }
        volume.unmount();
        let found = inspect_at(&volume.image()).unwrap();
        assert_eq!((found.tree.files, found.warnings.len()), (30, 0), "{kind}: {:?}", found.warnings);
    }
}

#[test]
fn unmounted_xfs_is_inspected_without_change() {
    if senesce_testkit::root_or_skip("mounts XFS on a loop device") {
        let _alone = alone();
        check("xfs", "noatime");
    }
}

#[test]
fn unmounted_btrfs_is_inspected_without_change() {
    if senesce_testkit::root_or_skip("mounts Btrfs on a loop device") {
        let _alone = alone();
        check("btrfs", "noatime,nodiscard");
    }
}

#[test]
fn multi_device_volumes_are_refused_with_a_hint() {
    if !senesce_testkit::root_or_skip("examines what is not mounted as root would") {
        return;
    }
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let images = ["one", "two"].map(|name| {
        let path = directory.path().join(name);
        fs::File::create(&path).unwrap().set_len(320 << 20).unwrap();
        path.to_str().unwrap().to_owned()
    });
    run("mkfs.btrfs", &["-q", "-f", &images[0], &images[1]]);
    let error = inspect_at(Path::new(&images[0])).unwrap_err();
    assert!(matches!(&error, Error::NotMountable { .. }) && error.to_string().contains("on 2 devices"), "{error}");
    assert!(error.hint().unwrap().contains("mount -o ro,rescue=nologreplay"), "{:?}", error.hint());
    run("mkfs.xfs", &["-q", "-f", "-l", &format!("logdev={},size=64m", images[1]), &images[0]]);
    let error = inspect_at(Path::new(&images[0])).unwrap_err();
    assert!(error.to_string().contains("its log is on another device"), "{error}");
    // Damage that the kernel refuses to mount.
    run("mkfs.xfs", &["-q", "-f", &images[0]]);
    let mut bytes = fs::read(&images[0]).unwrap();
    bytes[88..92].copy_from_slice(&77u32.to_be_bytes());
    fs::write(&images[0], bytes).unwrap();
    let error = inspect_at(Path::new(&images[0])).unwrap_err();
    assert!(error.to_string().contains("the kernel does not mount the xfs on"), "{error}");
    assert_eq!(loops_of(Path::new(&images[0])), "");
    sync(directory.path());
}

#[test]
fn mount_in_another_namespace_is_not_mounted_again() {
    if !senesce_testkit::root_or_skip("mounts XFS in a mount namespace of its own") {
        return;
    }
    let _alone = alone();
    let volume = Volume::new("xfs", 320, &[], "noatime");
    volume.unmount();
    let point = volume.mountpoint.to_str().unwrap().to_owned();
    let script = format!("mount {} {point} && echo mounted && read line", volume.device);
    let mut child = senesce_testkit::apart(&script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let found = [Path::new(&volume.device), &volume.image()].map(inspect_at);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(said, "mounted\n");
    for error in found.map(Result::unwrap_err) {
        assert!(matches!(&error, Error::MountElsewhere { point: there, .. } if *there == Path::new(&point)), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("nsenter --mount --target") && hint.ends_with(&point)));
    }
    volume.mount();
}

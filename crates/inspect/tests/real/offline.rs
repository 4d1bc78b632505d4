//! ext4 read straight from its device or image gives the same figures as through its mount.

use std::{fs, os::unix::fs::FileExt, path::Path};

use senesce_inspect::{Access, Error, Inspection, Target, find_target};
use senesce_volume::LinuxHost;
use serde_json::Value;

use crate::support::{Files, age, alone, inspect_at, inspect_offline, run, sync, volume};

/// All figures except the way and the time of the inspection.
fn figures(found: &Inspection) -> Value {
    let mut json = found.to_json();
    let keys =
        ["path", "mount_point", "device", "read", "mount_options", "device_read_ahead_kib", "inspected_unix_seconds"];
    for key in keys {
        json["target"].as_object_mut().unwrap().remove(key);
    }
    json.as_object_mut().unwrap().remove("warnings");
    json
}

/// Fails with the first difference only, instead of two pages of numbers.
fn assert_equal(name: &str, path: &str, a: &Value, b: &Value) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{name}: {path}");
            a.iter().for_each(|(key, value)| assert_equal(name, &format!("{path}/{key}"), value, &b[key]));
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{name}: {path}");
            a.iter().zip(b).enumerate().for_each(|(n, (a, b))| assert_equal(name, &format!("{path}/{n}"), a, b));
        }
        _ => assert_eq!(a, b, "{name}: {path}"),
    }
}

/// Makes files of every kind that ext4 supports.
fn add_special_files(root: &Path, has_extents: bool) {
    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    // Files with block maps cannot be preallocated.
    if has_extents {
        run("fallocate", &["--length", "160MiB", &path("preallocated")]);
    }
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.write_all_at(&[1; 8192], 0).unwrap();
    sparse.write_all_at(&[1; 8192], 1 << 20).unwrap();
    fs::write(root.join("tiny"), b"few bytes").unwrap();
    fs::write(root.join("empty"), b"").unwrap();
    fs::hard_link(root.join("tiny"), root.join("d1/another-name")).unwrap();
    std::os::unix::fs::symlink("tiny", root.join("link")).unwrap();
    run("mkfifo", &[&path("pipe")]);
    sync(root);
}

#[test]
fn device_and_mount_of_ext4_have_equal_figures() {
    if !senesce_testkit::root_or_skip("ages ext4 on a loop device") {
        return;
    }
    let _alone = alone();
    let kinds: [(&str, &[&str]); 3] =
        [("plain", &[]), ("block maps", &["-b", "1024", "-O", "^extents,^64bit"]), ("inline", &["-O", "inline_data"])];
    for (name, arguments) in kinds {
        let volume = volume("ext4", 640, arguments, "noatime");
        age(&volume.mountpoint, Files::Small);
        add_special_files(&volume.mountpoint, name != "block maps");
        volume.remount_cold();
        let mounted = inspect_at(&volume.mountpoint).unwrap();
        assert_eq!(mounted.warnings, [""; 0], "{name}");
        assert_eq!(mounted.target.read, "through its mount");
        assert!(mounted.tree.special.preallocated >= 1 || name == "block maps", "{:?}", mounted.tree.special);
        assert!(mounted.free_space.as_ref().unwrap().figures.extents > 50 && mounted.worst_files.len() == 10);
        // Past a mount that no process writes through.
        run("mount", &["-o", "remount,ro", volume.mountpoint.to_str().unwrap()]);
        let past = inspect_offline(Path::new(&volume.device)).unwrap();
        assert_eq!(past.target.read, "straight from the device");
        assert!(past.warnings[0].contains("mounted read-only on"), "{:?}", past.warnings);
        assert_eq!(past.warnings.len(), 1, "{:?}", past.warnings);
        assert_equal(name, "", &figures(&past), &figures(&mounted));
        volume.unmount();
        for path in [Path::new(&volume.device).to_owned(), volume.image()] {
            let offline = inspect_at(&path).unwrap();
            assert_eq!(offline.warnings, [""; 0], "{name}");
            assert_equal(name, "", &figures(&offline), &figures(&mounted));
        }
        volume.mount();
    }
}

#[test]
fn written_or_unclean_ext4_has_a_warning() {
    if !senesce_testkit::root_or_skip("mounts ext4 on a loop device") {
        return;
    }
    let _alone = alone();
    let volume = volume("ext4", 400, &[], "noatime");
    for n in 0..200 {
        fs::write(volume.path(&format!("file-{n}")), vec![1; 10_000]).unwrap();
    }
    sync(&volume.mountpoint);
    let found = inspect_offline(Path::new(&volume.device)).unwrap();
    assert_eq!(found.tree.files, 200);
    let has = |found: &Inspection, text: &str| found.warnings.iter().any(|warning| warning.contains(text));
    assert!(has(&found, "mounted for writing on") && has(&found, "journal is not replayed"), "{:?}", found.warnings);
    // As after a power cut.
    let copy = volume.image().with_extension("copy");
    run("cp", &["--sparse=always", volume.image().to_str().unwrap(), copy.to_str().unwrap()]);
    let found = inspect_at(&copy).unwrap();
    assert!(has(&found, "journal is not replayed") && !has(&found, "mounted for writing on"), "{:?}", found.warnings);
    assert!(found.tree.files <= 200);
}

#[test]
fn device_stands_for_its_whole_mount_only() {
    if !senesce_testkit::root_or_skip("mounts ext4 on a loop device") {
        return;
    }
    let _alone = alone();
    let volume = volume("ext4", 400, &[], "noatime");
    fs::create_dir_all(volume.path("part")).unwrap();
    fs::create_dir_all(volume.path("place")).unwrap();
    let [part, place] = ["part", "place"].map(|name| volume.path(name).to_str().unwrap().to_owned());
    run("mount", &["--bind", &part, &place]);
    let host = LinuxHost::default();
    let found = find_target(Path::new(&volume.device), Access::default(), &host);
    let bound = find_target(Path::new(&place), Access::default(), &host);
    senesce_testkit::unmount(Path::new(&place));
    let Target::Mounted(found) = found.unwrap() else { panic!("it is mounted") };
    assert_eq!((found.root, found.warnings), (volume.mountpoint.clone(), Vec::new()));
    let Target::Mounted(bound) = bound.unwrap() else { panic!("it is mounted") };
    assert_eq!(bound.device, Ok(Path::new(&volume.device).to_owned()));
    assert!(bound.warnings[0].contains("only /part of the file system is mounted"), "{:?}", bound.warnings);
}

#[test]
fn only_ext4_devices_are_read_offline() {
    let refused = |path: &Path| find_target(path, Access::Offline, &LinuxHost::default()).unwrap_err();
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(refused(directory.path()), Error::NotOffline { .. }));
    let image = directory.path().join("xfs");
    fs::write(&image, [&b"XFSB"[..], &[0; 200_000]].concat()).unwrap();
    let error = refused(&image);
    assert!(matches!(&error, Error::NotOffline { problem, .. } if problem.contains("xfs")), "{error}");
}

#[test]
fn other_contents_of_an_image_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    for (offset, mark, name) in [
        (82, &b"FAT32   "[..], "a FAT (vfat) file system"),
        (54, b"FAT16   ", "a FAT (vfat) file system"),
        (3, b"NTFS    ", "an NTFS file system"),
        (3, b"EXFAT   ", "an exFAT file system"),
        (0, b"hsqs", "a squashfs file system"),
        (4086, b"SWAPSPACE2", "a swap area"),
        (0, b"LUKS\xba\xbe", "a LUKS container"),
        (512, b"LABELONE", "an LVM physical volume"),
        (16_500, b"pool_guid", "a ZFS label"),
        (510, b"\x55\xaa", "an MBR partition table or a boot sector"),
    ] {
        let mut bytes = vec![0; 300_000];
        bytes[offset..offset + mark.len()].copy_from_slice(mark);
        if offset < 100 && name.contains("FAT") {
            // All of them also have the signature of a boot sector, which is less specific.
            bytes[510..512].copy_from_slice(b"\x55\xaa");
        }
        fs::write(&image, bytes).unwrap();
        let error = inspect_at(&image).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains(&format!("holds {name}, which cannot be inspected (ext4, XFS, Btrfs and F2FS can)")),
            "{said}"
        );
        assert!(error.hint().is_some_and(|hint| hint.contains("name ")), "{:?}", error.hint());
    }
    fs::write(&image, vec![0; 300_000]).unwrap();
    assert!(matches!(inspect_at(&image), Err(Error::NoFileSystem { .. })));
}

#[test]
fn partitions_of_an_image_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("disk.img");
    let mut disk = vec![0u8; 4 << 20];
    disk[510..512].copy_from_slice(b"\x55\xaa");
    // The second partition starts at 2 MiB and is 1 MiB long.
    disk[462 + 4] = 0x83;
    disk[462 + 8..462 + 12].copy_from_slice(&4096u32.to_le_bytes());
    disk[462 + 12..462 + 16].copy_from_slice(&2048u32.to_le_bytes());
    disk[2 << 20..(2 << 20) + 4].copy_from_slice(b"hsqs");
    let said = |disk: &[u8]| {
        fs::write(&image, disk).unwrap();
        let error = inspect_at(&image).unwrap_err();
        let hint = error.hint().unwrap();
        assert!(hint.contains("losetup") && hint.contains("disk.img") && hint.contains("/dev/loop0pN"), "{hint}");
        error.to_string()
    };
    let text = said(&disk);
    assert!(
        text.ends_with("disk.img holds no file system but partitions: 2 (1 MiB, a squashfs file system)"),
        "{text}"
    );
    // GPT, with its table from sector 2 on: the third of four entries is in use.
    disk[446..510].fill(0);
    disk[512..520].copy_from_slice(b"EFI PART");
    disk[512 + 72..512 + 80].copy_from_slice(&2u64.to_le_bytes());
    disk[512 + 80..512 + 84].copy_from_slice(&4u32.to_le_bytes());
    disk[512 + 84..512 + 88].copy_from_slice(&128u32.to_le_bytes());
    let entry = 1024 + 2 * 128;
    disk[entry] = 1;
    disk[entry + 32..entry + 40].copy_from_slice(&4096u64.to_le_bytes());
    disk[entry + 40..entry + 48].copy_from_slice(&6143u64.to_le_bytes());
    let text = said(&disk);
    assert!(text.ends_with("partitions: 3 (1 MiB, a squashfs file system)"), "{text}");
}

#[test]
fn hint_for_root_does_not_suggest_root() {
    let closed = |is_root, mounted: Option<&str>| Error::Closed {
        path: "/dev/sdz".into(),
        mounted: mounted.map(str::to_owned),
        is_root,
        source: std::io::Error::from_raw_os_error(1),
    };
    let error = closed(true, Some("mounted for writing on /"));
    let said = error.to_string();
    assert!(said.contains("cannot open /dev/sdz (mounted for writing on /): Operation not permitted"), "{said}");
    let hint = error.hint().unwrap();
    assert!(hint.contains("root already") && hint.contains("without --offline") && !hint.contains("sudo"), "{hint}");
    assert!(closed(true, None).hint().unwrap().contains("root already"));
    assert_eq!(closed(false, None).hint().unwrap(), "run as root (sudo)");
}

#[test]
fn truncated_or_damaged_image_is_refused_with_block() {
    if !senesce_testkit::root_or_skip("mounts ext4 on a loop device") {
        return;
    }
    let _alone = alone();
    let volume = volume("ext4", 64, &[], "noatime");
    for n in 0..100 {
        fs::write(volume.path(&format!("file-{n}")), vec![1; 10_000]).unwrap();
    }
    volume.unmount();
    let image = fs::OpenOptions::new().write(true).open(volume.image()).unwrap();
    let copy = volume.image().with_extension("copy");
    fs::copy(volume.image(), &copy).unwrap();
    fs::OpenOptions::new().write(true).open(&copy).unwrap().set_len(40 << 20).unwrap();
    let said = inspect_at(&copy).unwrap_err().to_string();
    assert!(said.contains("cannot read the ext4 on") && said.contains("it is cut off"), "{said}");
    // Invalid bytes after the group descriptors, at the bitmaps and inodes.
    image.write_all_at(&vec![0x5A; 4 << 20], 64 << 10).unwrap();
    let said = inspect_at(&volume.image()).unwrap_err().to_string();
    assert!(said.contains("block "), "{said}");
}

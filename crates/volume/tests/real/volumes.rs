//! The life of an image volume on each file system.

use std::fs;

use senesce_core::{Bytes, ManualClock, Seed};
use senesce_testkit::root_or_skip;
use senesce_volume::{
    Backend, Error, Existing, FileSystemKind, LinuxHost, Slot, Uuid, Volume, VolumeSpec, read_superblock,
};

use crate::bench::{Bench, fill, traces_of, tree};

fn a_life(kind: FileSystemKind) {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let bench = Bench::new();
    let (spec, slot) = (bench.spec(kind), bench.slot("aged"));
    let mut volume = Volume::create(&bench.custodian, &spec, &slot).unwrap();
    assert_eq!(bench.custodian.held().len(), 4, "{:?}", bench.custodian.held());
    fill(volume.root());
    let before = tree(volume.root());
    assert_eq!(before.len(), 4 + 64);

    // Cold: a second read of the tree must read the device.
    let report = volume.remount_cold().unwrap();
    assert!(report.is_cold);
    assert_eq!(report.image_pages_left.unwrap_or(0), 0);
    assert_eq!(report.device_pages_left.unwrap_or(0), 0);
    let sectors = |volume: &Volume| volume.device_stat().unwrap().unwrap().read_sectors;
    let cold = sectors(&volume);
    assert_eq!(tree(volume.root()), before);
    let contents: usize = before.values().map(|entry| entry.3.len()).sum();
    let read = (sectors(&volume) - cold) * 512;
    // Btrfs stores tiny files in its tree. Most of the data is in blocks.
    assert!(read as usize > contents * 9 / 10, "{read} bytes read of {contents}");

    let circumstances = volume.circumstances().unwrap();
    let value = |key: &str| {
        let mut found = circumstances.iter().filter(|(name, _)| name == key);
        let value = found.next().unwrap_or_else(|| panic!("no {key} in {circumstances:#?}")).1.clone();
        assert!(found.next().is_none(), "{key} occurs twice");
        value
    };
    assert_eq!(value("file_system"), kind.name());
    assert_eq!(value("device_read_ahead_kib"), "128");
    assert!(value("mount_options").contains("noatime"), "{}", value("mount_options"));
    assert!(value("mkfs_command").contains(&slot.uuid.to_string()));
    assert!(!value("mkfs_version").is_empty());
    for key in ["kernel_release", "cpu_count", "memory_bytes", "device_bytes", "loop_direct_io", "host_file_system"] {
        value(key);
    }

    // Snapshot, change, restore: the old tree is on a new image, with the old UUID.
    let clock = ManualClock::default();
    let kept = bench.dir().join("kept.img");
    assert!(
        matches!(volume.snapshot_to(&kept, Existing::Keep, &clock), Err(Error::NotPossible { .. })),
        "it is mounted"
    );
    volume.unmount().unwrap();
    fs::write(&kept, "of another program").unwrap();
    let beside = volume.snapshot_to(&kept, Existing::Keep, &clock).unwrap().path;
    assert_eq!(beside.file_name().unwrap(), "kept.img.1");
    fs::remove_file(beside).unwrap();
    assert_eq!(fs::read_to_string(&kept).unwrap(), "of another program");
    volume.snapshot_to(&kept, Existing::Replace, &clock).unwrap();
    volume.mount().unwrap();
    for _ in 0..3 {
        // Several transactions, so that Btrfs's generation exceeds the snapshot's.
        fs::write(volume.root().join("later"), vec![1; 100_000]).unwrap();
        volume.sync().unwrap();
        fs::remove_file(volume.root().join("later")).unwrap();
        volume.sync().unwrap();
    }
    fs::write(volume.root().join("dir-0/file-15"), "changed").unwrap();
    let image = volume.image().unwrap().to_owned();
    let record = volume.mkfs_record().unwrap().clone();
    volume.destroy().unwrap();
    assert!(!image.exists());
    assert!(bench.custodian.held().is_empty(), "{:?}", bench.custodian.held());
    assert_eq!(traces_of(bench.dir()), Vec::<std::path::PathBuf>::new());
    let (restored, _) = Volume::restore(&bench.custodian, &spec, &slot, &kept, &clock).unwrap();
    assert_eq!(restored.mkfs_record(), None);
    let restored = restored.with_mkfs_record(record);
    assert!(restored.circumstances().unwrap().iter().any(|(key, _)| key == "mkfs_command"));
    assert_eq!(tree(restored.root()), before);
    drop(restored);
    assert_eq!(traces_of(bench.dir()), Vec::<std::path::PathBuf>::new());
    let left: Vec<_> = fs::read_dir(bench.dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the journal and the snapshot: {left:?}");
}

#[test]
fn an_ext4_volume_lives_and_is_restored() {
    a_life(FileSystemKind::Ext4);
}

#[test]
fn an_xfs_volume_lives_and_is_restored() {
    a_life(FileSystemKind::Xfs);
}

#[test]
fn a_btrfs_volume_lives_and_is_restored() {
    a_life(FileSystemKind::Btrfs);
}

#[test]
fn a_buffered_image_leaves_the_host_cache() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let (bench, run) = (Bench::new(), tempfile::tempdir().unwrap());
    let host = std::sync::Arc::new(LinuxHost { direct_io: false, ..LinuxHost::default() });
    let custodian = senesce_volume::Custodian::open(host.clone(), run.path()).unwrap();
    let spec = bench.spec(FileSystemKind::Ext4);
    let mut volume = Volume::create(&custodian, &spec, &bench.slot("buffered")).unwrap();
    fs::write(volume.root().join("big"), vec![5; 8 << 20]).unwrap();
    volume.sync().unwrap();
    let report = volume.remount_cold().unwrap();
    if report.image_pages_left.is_some() {
        assert_eq!(report.image_pages_left, Some(0));
        // Proof that the count can exceed zero: a buffered read of the file fills the image's
        // pages.
        assert_eq!(fs::read(volume.root().join("big")).unwrap(), vec![5; 8 << 20]);
        let pages = senesce_volume::cached_pages(volume.image().unwrap()).unwrap().unwrap();
        assert!(pages >= 2048, "{pages} pages of 4 KiB for 8 MiB read through the cache");
    }
    assert_eq!(report.description, "remount+fadvise(image)");
    assert!(report.is_cold);
}

#[test]
fn a_uuid_can_be_reused_after_destruction() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    // The unaged twin does so at every checkpoint. Btrfs must not confuse the old one with the new
    // one.
    let bench = Bench::new();
    let slot = bench.slot("twin");
    for round in 0..3 {
        let volume = Volume::create(&bench.custodian, &bench.spec(FileSystemKind::Btrfs), &slot).unwrap();
        assert_eq!(tree(volume.root()).len(), 0, "round {round}");
        fs::write(volume.root().join("file"), "x").unwrap();
        volume.destroy().unwrap();
    }
}

#[test]
fn settled_btrfs_keeps_options_and_reads_less_ahead() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let bench = Bench::new();
    let slot = bench.slot("settled");
    let spec = VolumeSpec { settles: true, ..bench.spec(FileSystemKind::Btrfs) };
    let mut volume = Volume::create(&bench.custodian, &spec, &slot).unwrap();
    let read_ahead = format!("/sys/fs/btrfs/{}/bdi/read_ahead_kb", slot.uuid);
    for _ in 0..2 {
        assert_eq!(fs::read_to_string(&read_ahead).unwrap().trim(), "512");
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let root = volume.root().to_str().unwrap();
        let options = mounts.lines().find(|line| line.split(' ').nth(1) == Some(root)).unwrap();
        // The read-only mount that comes first keeps the other options.
        for option in ["rw", "nosuid", "nodev", "noatime", "commit=300"] {
            assert!(options.split([' ', ',']).any(|found| found == option), "{option}: {options}");
        }
        assert!(!options.contains("discard"), "{options}");
        fs::write(volume.root().join("file"), "x").unwrap();
        volume.remount_cold().unwrap();
    }
    volume.destroy().unwrap();
}

#[test]
fn two_volumes_in_memory_are_independent() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let bench = Bench::new();
    let backend = Backend::Image { dir: "/dev/shm".into(), size: Bytes(64 << 20), memory: true };
    let spec = VolumeSpec::new(backend, FileSystemKind::Ext4);
    let mut first = Volume::create(&bench.custodian, &spec, &bench.slot("first")).unwrap();
    let second = Volume::create(&bench.custodian, &spec, &bench.slot("second")).unwrap();
    fill(first.root());
    let before = tree(first.root());
    assert!(tree(second.root()).is_empty());
    assert_eq!(first.remount_cold().unwrap().description, "remount (image in memory)");
    assert_eq!(tree(first.root()), before);
    let images = [first.image().unwrap().to_owned(), second.image().unwrap().to_owned()];
    drop((first, second));
    assert!(images.iter().all(|image| !image.exists()));
}

#[test]
fn a_second_volume_of_a_name_is_refused() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let bench = Bench::new();
    let (spec, slot) = (bench.spec(FileSystemKind::Ext4), bench.slot("one"));
    let volume = Volume::create(&bench.custodian, &spec, &slot).unwrap();
    fill(volume.root());
    assert!(matches!(Volume::create(&bench.custodian, &spec, &slot), Err(Error::NotPossible { .. })));
    assert!(volume.image().unwrap().exists());
    assert_eq!(tree(volume.root()).len(), 68);
}

#[test]
fn impossible_volumes_are_refused_and_leave_nothing() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let bench = Bench::new();
    let mut slot = bench.slot("v");
    let ext4 = bench.spec(FileSystemKind::Ext4);
    let create = |spec: &VolumeSpec, slot: &Slot| Volume::create(&bench.custodian, spec, slot).unwrap_err();

    slot.needed = Bytes(1 << 60);
    let error = create(&ext4, &slot);
    assert!(matches!(error, Error::NotEnoughSpace { .. }) && error.is_environment(), "{error}");
    assert!(error.to_string().contains("needed") && error.hint().is_some());
    slot.needed = Bytes(0);

    let on_disk = Backend::Image { dir: bench.dir().to_owned(), size: Bytes(64 << 20), memory: true };
    if !senesce_volume::Host::is_in_memory(&LinuxHost::default(), bench.dir()).unwrap() {
        assert!(matches!(create(&VolumeSpec::new(on_disk, ext4.file_system), &slot), Error::NotInMemory { .. }));
    }

    let mut small = bench.spec(FileSystemKind::Xfs);
    small.backend = Backend::Image { dir: bench.dir().to_owned(), size: Bytes(64 << 20), memory: false };
    assert!(matches!(create(&small, &slot), Error::VolumeTooSmall { .. }));

    let mut odd = ext4.clone();
    odd.mkfs_options = vec!["-b".into(), "100".into()];
    let error = create(&odd, &slot);
    assert!(matches!(&error, Error::ToolFailed { stderr, .. } if stderr.contains("block size")), "{error}");

    let mut odd = ext4.clone();
    odd.mount_options = "noatime,no_such_option".into();
    assert!(matches!(create(&odd, &slot), Error::Io { operation: "mount", .. }));

    let mut other_uuid = ext4.clone();
    other_uuid.mkfs_options = vec!["-U".into(), Uuid::from_seed(Seed(1)).to_string()];
    assert!(matches!(create(&other_uuid, &slot), Error::MkfsWord { word, .. } if word == "-U"));

    slot.name = "../escape".into();
    assert!(matches!(create(&ext4, &slot), Error::NotPossible { .. }));

    assert!(bench.custodian.held().is_empty());
    assert!(traces_of(bench.dir()).is_empty());
    assert_eq!(fs::read_dir(bench.dir()).unwrap().count(), 1, "only the journal");
}

#[test]
fn a_missing_tool_is_named_with_its_package() {
    if !root_or_skip("making volumes") {
        return;
    }
    let bench = Bench::new();
    let run = tempfile::tempdir().unwrap();
    let host = LinuxHost { tool_dirs: vec![bench.dir().to_owned()], ..LinuxHost::default() };
    let custodian = senesce_volume::Custodian::open(std::sync::Arc::new(host), run.path()).unwrap();
    let error = Volume::create(&custodian, &bench.spec(FileSystemKind::Xfs), &bench.slot("v")).unwrap_err();
    assert_eq!(error.to_string(), "mkfs.xfs is not installed");
    assert_eq!(error.hint().unwrap(), "apt-get install xfsprogs");
    assert!(error.is_environment());
}

#[test]
fn a_file_without_a_file_system_is_not_restored() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let bench = Bench::new();
    let junk = bench.dir().join("junk.img");
    fs::write(&junk, vec![7; 1 << 20]).unwrap();
    assert_eq!(read_superblock(&fs::read(&junk).unwrap()), None);
    let spec = bench.spec(FileSystemKind::Ext4);
    let clock = ManualClock::default();
    let result = Volume::restore(&bench.custodian, &spec, &bench.slot("v"), &junk, &clock);
    assert!(matches!(result, Err(Error::Unverified { operation: "restoring", .. })), "{result:?}");
    assert!(traces_of(bench.dir()).is_empty());
}

#[test]
fn ext4_and_xfs_allow_twins_of_one_uuid() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let bench = Bench::new();
    for kind in [FileSystemKind::Ext4, FileSystemKind::Xfs] {
        let (spec, first) = (bench.spec(kind), bench.slot(&format!("{kind}-first")));
        let second = Slot { name: format!("{kind}-second"), ..first.clone() };
        let volumes = [first, second].map(|slot| Volume::create(&bench.custodian, &spec, &slot).unwrap());
        fs::write(volumes[0].root().join("mine"), "x").unwrap();
        assert!(!volumes[1].root().join("mine").exists());
        for volume in volumes {
            volume.destroy().unwrap();
        }
    }
}

#[test]
fn own_bytes_never_exceed_the_real_overhead() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let bench = Bench::new();
    for (kind, mib) in [
        (FileSystemKind::Ext4, 8),
        (FileSystemKind::Ext4, 30),
        (FileSystemKind::Ext4, 511),
        (FileSystemKind::Ext4, 512),
        (FileSystemKind::Ext4, 2000),
        (FileSystemKind::Xfs, 300),
        (FileSystemKind::Xfs, 2000),
        (FileSystemKind::Btrfs, 128),
    ] {
        let size = Bytes(mib * Bytes::MIB);
        let backend = Backend::Image { dir: bench.dir().to_owned(), size, memory: false };
        // Another name is another UUID: a copied mount of the previous volume may still hold its
        // loop device.
        let slot = bench.slot(&format!("own-{kind}-{mib}"));
        let volume = Volume::create(&bench.custodian, &VolumeSpec::new(backend, kind), &slot).unwrap();
        let stat = rustix::fs::statvfs(volume.root()).unwrap();
        let own = size.0 - stat.f_blocks * stat.f_frsize;
        assert!(kind.own_bytes(size).0 <= own, "{kind} of {size} keeps {}", Bytes(own));
        volume.destroy().unwrap();
    }
}

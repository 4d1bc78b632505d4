//! Named block devices, and directories. The devices are loop devices of the test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use senesce_core::Bytes;
use senesce_testkit::root_or_skip;
use senesce_volume::{Backend, Error, FileSystemKind, Host, LinuxHost, Volume, VolumeSpec};

use crate::bench::{Bench, fill, traces_of, tree};

/// A block device that stands for a user's disk.
struct Disk {
    path: PathBuf,
}

impl Disk {
    fn new(dir: &Path, size: u64) -> Self {
        let image = dir.join("disk.img");
        let host = LinuxHost::default();
        host.create_file(&image, Bytes(size)).unwrap();
        Self { path: host.attach_loop(&image).unwrap().path }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        LinuxHost::default().detach_loop(&self.path).unwrap();
    }
}

fn device_spec(path: &Path, kind: FileSystemKind) -> VolumeSpec {
    VolumeSpec::new(Backend::Device { path: path.to_owned(), size: None }, kind)
}

#[test]
fn a_device_with_contents_needs_force() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let bench = Bench::new();
    let disk = Disk::new(bench.dir(), 300 << 20);
    let mut spec = device_spec(&disk.path, FileSystemKind::Ext4);
    spec.backend = Backend::Device { path: disk.path.clone(), size: Some(Bytes(64 << 20)) };
    LinuxHost::default().set_read_ahead(&disk.path, 2560).unwrap();
    let mut volume = Volume::create(&bench.custodian, &spec, &bench.slot("disk")).unwrap();
    assert_eq!(LinuxHost::default().read_ahead(&disk.path).unwrap(), 128);
    let stat = rustix::fs::statvfs(volume.root()).unwrap();
    assert!(stat.f_blocks * stat.f_frsize <= 64 << 20, "the file system has the requested size");
    fill(volume.root());
    let before = tree(volume.root());
    assert_eq!(volume.remount_cold().unwrap().description, "remount");
    assert_eq!(tree(volume.root()), before);

    // In use: refused, also when forced.
    let mut forced = device_spec(&disk.path, FileSystemKind::Xfs);
    forced.force = true;
    let error = Volume::create(&bench.custodian, &forced, &bench.slot("other")).unwrap_err();
    assert!(matches!(&error, Error::DeviceInUse { by, .. } if by.contains("mounted on")), "{error}");
    assert_eq!(tree(volume.root()), before);
    volume.destroy().unwrap();
    assert_eq!(LinuxHost::default().read_ahead(&disk.path).unwrap(), 2560, "the setting of the disk is restored");

    // Not in use, but it holds a file system: refused, unless forced.
    let unforced = device_spec(&disk.path, FileSystemKind::Xfs);
    let error = Volume::create(&bench.custodian, &unforced, &bench.slot("other")).unwrap_err();
    assert!(matches!(&error, Error::HasSignature { found, .. } if found.contains("ext4")), "{error}");
    assert!(error.is_environment() && error.hint().unwrap().contains("--force"));
    drop(Volume::create(&bench.custodian, &forced, &bench.slot("other")).unwrap());
    // Forced twice with one UUID: only the second mkfs may count as proof.
    drop(Volume::create(&bench.custodian, &forced, &bench.slot("other")).unwrap());
}

#[test]
fn a_device_claimed_by_the_kernel_is_refused() {
    if !root_or_skip("loop devices") {
        return;
    }
    let bench = Bench::new();
    let disk = Disk::new(bench.dir(), 64 << 20);
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::EXCL | rustix::fs::OFlags::CLOEXEC;
    let _claim = rustix::fs::open(&disk.path, flags, rustix::fs::Mode::empty()).unwrap();
    let spec = device_spec(&disk.path, FileSystemKind::Ext4);
    let error = Volume::create(&bench.custodian, &spec, &bench.slot("disk")).unwrap_err();
    assert!(matches!(error, Error::DeviceInUse { .. }), "{error}");
}

#[test]
fn a_file_is_refused_as_device() {
    if !root_or_skip("making volumes") {
        return;
    }
    let bench = Bench::new();
    let file = bench.dir().join("file");
    fs::write(&file, "precious").unwrap();
    let spec = device_spec(&file, FileSystemKind::Ext4);
    let error = Volume::create(&bench.custodian, &spec, &bench.slot("v")).unwrap_err();
    assert!(matches!(error, Error::NotABlockDevice { .. }), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn a_directory_volume_is_never_cold() {
    let bench = Bench::new();
    let place = bench.dir().join("place");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("theirs"), "theirs").unwrap();
    let spec = VolumeSpec::new(Backend::Directory { path: place.clone() }, FileSystemKind::Ext4);
    let mut volume = Volume::create(&bench.custodian, &spec, &bench.slot("v")).unwrap();
    fill(volume.root());
    let before = tree(volume.root());
    assert!(!volume.remount_cold().unwrap().is_cold);
    assert_eq!(tree(volume.root()), before);
    assert_eq!(volume.device_stat().unwrap(), None);
    assert!(volume.circumstances().unwrap().contains(&("backend".to_owned(), "directory".to_owned())));
    volume.destroy().unwrap();
    assert_eq!(fs::read_dir(&place).unwrap().count(), 1, "only our directory is removed");
    assert!(traces_of(bench.dir()).is_empty());
}

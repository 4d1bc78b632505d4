//! Uses of a device or file that its own claim does not show: of devices above and below, of twins,
//! and in other mount namespaces. `--force` never helps.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::fs::FlockOperation;
use senesce_testkit::{root_or_skip, run};
use senesce_volume::{Claim, Error, FileSystemKind, LinuxHost, Purpose, ReleaseTries, Volume, check_device};

use crate::bench::Bench;

/// A loop device. Its drop detaches it, also after a panic.
struct Loop(String);

impl Loop {
    fn on(backing: &Path, options: &[&str]) -> Self {
        let backing = backing.to_str().unwrap();
        Self(run("losetup", &[options, &["--find", "--show", backing]].concat()).trim().to_owned())
    }

    fn path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // A failure must not hide the panic of the test.
        let _ = Command::new("losetup").args(["--detach", &self.0]).output();
    }
}

/// A mount. Its drop unmounts it, also after a panic.
struct Mount(PathBuf);

impl Mount {
    fn of(device: &Loop, point: PathBuf) -> Self {
        fs::create_dir_all(&point).unwrap();
        run("mount", &[&device.0, point.to_str().unwrap()]);
        Self(point)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A failure must not hide the panic of the test.
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

fn image(dir: &Path, name: &str, mib: u64) -> PathBuf {
    let path = dir.join(name);
    File::create(&path).unwrap().set_len(mib << 20).unwrap();
    path
}

#[track_caller]
fn assert_in_use(result: Result<(), Error>, says: &[&str]) {
    match result {
        Err(Error::DeviceInUse { by, .. }) => {
            says.iter().for_each(|text| assert!(by.contains(text), "{text:?} is not in {by:?}"));
        }
        other => panic!("not refused as in use: {other:?}"),
    }
}

fn force(device: &Path) -> Result<(), Error> {
    check_device(&LinuxHost::default(), device, true)
}

fn claim(path: &Path, purpose: Purpose) -> Result<(), Error> {
    Claim::open(path, purpose).map(drop)
}

#[test]
fn a_device_below_a_mounted_loop_is_used() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let below = Loop::on(&image(dir.path(), "disk", 64), &[]);
    let above = Loop::on(below.path(), &["--offset", "33554432"]);
    run("mkfs.ext4", &["-q", &above.0]);
    let attached = format!("the loop device {} is attached to {}", above.0, below.0);
    assert_in_use(force(below.path()), &[&attached]);
    let mount = Mount::of(&above, dir.path().join("mnt"));
    let mounted = format!("{} is mounted on {}", above.0, mount.0.display());
    assert_in_use(force(below.path()), &[&attached, &mounted]);
    assert_in_use(claim(below.path(), Purpose::Read), &[&mounted]);
    // The image is two steps below the mount.
    assert_in_use(claim(&dir.path().join("disk"), Purpose::Replace), &[&attached, &mounted]);
    drop((mount, above));
    // A mount namespace that another test made in the meantime keeps a copy of the mount until it
    // is gone.
    let mut freed = force(below.path());
    for _ in 0..600 {
        if freed.is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        freed = force(below.path());
    }
    freed.unwrap();
}

#[test]
fn a_loop_on_a_mounted_device_is_used() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let below = Loop::on(&image(dir.path(), "disk", 64), &[]);
    run("mkfs.ext4", &["-q", &below.0]);
    let mount = Mount::of(&below, dir.path().join("mnt"));
    let above = Loop::on(below.path(), &["--read-only"]);
    assert_in_use(claim(above.path(), Purpose::Read), &[&format!("{} is mounted on", below.0)]);
    drop((above, mount));
}

#[test]
fn twin_loops_conflict_only_if_they_share_bytes() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = image(dir.path(), "disk", 64);
    let first = Loop::on(&file, &["--sizelimit", "33554432"]);
    let second = Loop::on(&file, &["--offset", "33554432"]);
    let whole = Loop::on(&file, &[]);
    run("mkfs.ext4", &["-q", &first.0]);
    let mount = Mount::of(&first, dir.path().join("mnt"));
    assert_in_use(force(whole.path()), &[&format!("{} is mounted on", first.0)]);
    assert_in_use(force(second.path()), &[&whole.0]);
    drop(whole);
    force(second.path()).unwrap();
    drop(mount);
}

#[test]
fn locks_below_and_above_a_loop_are_seen() {
    if !root_or_skip("loop devices") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = image(dir.path(), "disk", 8);
    let device = Loop::on(&file, &[]);
    let lock = |path: &Path| {
        let file = File::open(path).unwrap();
        // Another test may have started a program while the lock was held. Its child holds the lock
        // until it executes the program.
        rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
        file
    };
    let locked = lock(&file);
    assert_in_use(force(device.path()), &[&file.display().to_string()]);
    drop(locked);
    force(device.path()).unwrap();
    let locked = lock(device.path());
    assert_in_use(force(device.path()), &[&device.0]);
    assert_in_use(claim(&file, Purpose::Write), &["is attached to", &device.0]);
    drop(locked);
}

/// A process in another mount namespace, which has a device mounted until it is dropped.
struct Elsewhere(Child);

const MOUNT: &str = "mount \"$0\" \"$1\" && echo mounted && read -r _";

impl Elsewhere {
    /// `script` mounts the device, prints a line, and reads one.
    fn new(script: &str, arguments: &[&str]) -> Self {
        let mut command = senesce_testkit::apart(script);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "mounted\n");
        Self(child)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // A failure must not hide the panic of the test.
        let _ = self.0.wait();
    }
}

#[test]
fn a_mount_in_another_namespace_is_named() {
    if !root_or_skip("loop devices and mount namespaces") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let device = Loop::on(&image(dir.path(), "disk", 64), &[]);
    run("mkfs.ext4", &["-q", &device.0]);
    let point = dir.path().join("hidden");
    fs::create_dir(&point).unwrap();
    let arguments = [&device.0, point.to_str().unwrap()];
    let elsewhere = Elsewhere::new(MOUNT, &arguments);
    let mounted = format!("{} is mounted on {} in the mount namespace of process", device.0, point.display());
    assert_in_use(force(device.path()), &[&mounted]);
    assert_in_use(claim(&dir.path().join("disk"), Purpose::Replace), &[&mounted]);
    drop(elsewhere);
}

#[test]
fn a_mount_in_a_copied_namespace_blocks_unmount() {
    if !root_or_skip("loop devices and mount namespaces") {
        return;
    }
    let release_tries = ReleaseTries { first: 2, elsewhere: 2 };
    let bench = Bench::with_host(LinuxHost { release_tries, ..LinuxHost::default() });
    let (spec, slot) = (bench.spec(FileSystemKind::Ext4), bench.slot("copied"));
    let mut volume = Volume::create(&bench.custodian, &spec, &slot).unwrap();
    let device = volume.device().unwrap().to_str().unwrap().to_owned();
    // As if the namespace had been copied while the volume was mounted.
    let point = bench.dir().join("hidden");
    fs::create_dir(&point).unwrap();
    let elsewhere = Elsewhere::new(MOUNT, &[&device, point.to_str().unwrap()]);
    let mounted = format!("{device} is mounted on {} in the mount namespace of process", point.display());
    assert_in_use(volume.unmount(), &[&mounted]);
    drop(elsewhere);
    volume.mount().unwrap();
    // Another process may have copied this namespace meanwhile.
    let mut ended = volume.unmount();
    for _ in 0..50 {
        if ended.is_ok() {
            break;
        }
        ended = volume.unmount();
    }
    ended.unwrap();
}

/// Swap space. Its drop releases it, also after a panic.
struct Swap(String);

impl Drop for Swap {
    fn drop(&mut self) {
        // A failure must not hide the panic of the test.
        let _ = Command::new("swapoff").arg(&self.0).output();
    }
}

#[test]
fn swap_space_is_in_use_by_every_name() {
    if !root_or_skip("loop devices and swap") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = image(dir.path(), "disk", 8);
    let device = Loop::on(&file, &[]);
    run("mkswap", &[&device.0]);
    run("swapon", &["--priority", "0", &device.0]);
    let swap = Swap(device.0.clone());
    let says = format!("the kernel swaps to {}", device.0);
    assert_in_use(force(device.path()), &[&says]);
    assert_in_use(claim(&file, Purpose::Write), &[&says]);
    drop(swap);
    force(device.path()).unwrap();
}

//! Order and failure on a fake host: if any call fails, or the process is killed at any call,
//! nothing stays.

use std::{
    fs,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use senesce_core::{Bytes, Seed};

use crate::{
    Backend, CleanMode, Custodian, Error, FileSystemKind, JOURNAL_FILE_NAME, MountSource, Outcome, Pace, Resource,
    Slot, Uuid, VirtualDevice, Volume, VolumeSpec, clean,
    host::fake::{FakeHost, Fault},
};

fn spec(dir: &Path) -> VolumeSpec {
    let backend = Backend::Image { dir: dir.to_owned(), size: Bytes(64 << 20), memory: false };
    VolumeSpec::new(backend, FileSystemKind::Ext4)
}

/// The same image as a disk in virtual time.
fn virtual_spec(dir: &Path) -> VolumeSpec {
    let device = VirtualDevice { device: "hdd-7200".to_owned(), pace: Pace::Device };
    let backend = Backend::Virtual { dir: dir.to_owned(), size: Bytes(64 << 20), memory: false, device };
    VolumeSpec::new(backend, FileSystemKind::Ext4)
}

const SPECS: [fn(&Path) -> VolumeSpec; 2] = [spec, virtual_spec];

fn slot(dir: &Path) -> Slot {
    Slot { name: "v".to_owned(), uuid: Uuid::from_seed(Seed(1)), mount_dir: dir.to_owned(), needed: Bytes(1 << 20) }
}

/// Creates, cools, unmounts, mounts and destroys a volume.
fn life(custodian: &Custodian, dir: &Path, spec: fn(&Path) -> VolumeSpec) -> crate::Result<()> {
    let mut volume = Volume::create(custodian, &spec(dir), &slot(dir))?;
    volume.remount_cold()?;
    volume.unmount()?;
    volume.mount()?;
    volume.destroy()
}

fn calls_of_a_life(spec: fn(&Path) -> VolumeSpec) -> usize {
    let temp = tempfile::tempdir().unwrap();
    let host = Arc::new(FakeHost::default());
    let custodian = Custodian::open(host.clone(), temp.path()).unwrap();
    life(&custodian, temp.path(), spec).unwrap();
    assert!(host.is_clean());
    host.world().calls.len()
}

#[test]
fn steps_run_in_order() {
    let temp = tempfile::tempdir().unwrap();
    let host = Arc::new(FakeHost::default());
    let custodian = Custodian::open(host.clone(), temp.path()).unwrap();
    life(&custodian, temp.path(), spec).unwrap();
    let acts = ["create_file", "attach_loop", "run_tool", "set_read_ahead", "create_dir", "mount", "sync_file_system"];
    let acts = [&acts[..], &["unmount", "drop_page_cache", "detach_loop", "remove_file", "remove_dir"]].concat();
    let calls: Vec<&str> = host.world().calls.iter().copied().filter(|call| acts.contains(call)).collect();
    assert_eq!(
        calls,
        [
            "create_file",
            "attach_loop",
            "run_tool", // mkfs
            "run_tool", // its version
            "set_read_ahead",
            "create_dir",
            "mount",
            "sync_file_system",
            "unmount",
            "drop_page_cache", // the device's
            "drop_page_cache", // the image's
            "mount",
            "sync_file_system",
            "unmount",
            "mount",
            "unmount",
            "remove_dir",
            "detach_loop",
            "remove_file",
        ]
    );
}

#[test]
fn unmount_after_a_failed_wait_waits_again() {
    let temp = tempfile::tempdir().unwrap();
    let host = Arc::new(FakeHost::default());
    let custodian = Custodian::open(host.clone(), temp.path()).unwrap();
    let mut volume = Volume::create(&custodian, &spec(temp.path()), &slot(temp.path())).unwrap();
    volume.unmount().unwrap();
    let waits = |host: &FakeHost| host.world().calls.iter().filter(|call| **call == "await_release").count();
    assert_eq!(waits(&host), 1);
    volume.mount().unwrap();
    let begun = host.world().calls.len();
    volume.unmount().unwrap();
    let calls = host.world().calls.clone();
    let after = calls[begun..].iter().position(|call| *call == "await_release").unwrap();
    volume.mount().unwrap();
    let begun = host.world().calls.len();
    *host.fault.lock().unwrap() = Fault::Once(begun + after);
    volume.unmount().unwrap_err();
    assert!(!volume.is_mounted());
    volume.unmount().unwrap();
    assert_eq!(waits(&host), 4);
    volume.unmount().unwrap();
    assert_eq!(waits(&host), 4, "nothing is left to wait for");
}

#[test]
fn disks_go_between_loop_device_and_image() {
    let temp = tempfile::tempdir().unwrap();
    let host = Arc::new(FakeHost::default());
    let custodian = Custodian::open(host.clone(), temp.path()).unwrap();
    life(&custodian, temp.path(), virtual_spec).unwrap();
    let acts = ["create_file", "create_dir", "start_disk", "attach_loop", "mount", "unmount", "detach_loop"];
    let acts = [&acts[..], &["abort_disk", "release_disk", "remove_dir", "remove_file"]].concat();
    let calls: Vec<&str> = host.world().calls.iter().copied().filter(|call| acts.contains(call)).collect();
    let made = ["create_file", "create_dir", "start_disk", "attach_loop", "create_dir", "mount"];
    let used = ["unmount", "mount", "unmount", "mount"];
    let gone = ["unmount", "remove_dir", "detach_loop", "release_disk", "remove_dir", "remove_file"];
    assert_eq!(calls, [&made[..], &used, &gone].concat());
}

#[test]
fn cold_mount_drops_the_cache_of_the_disk_before_and_after() {
    let temp = tempfile::tempdir().unwrap();
    let host = Arc::new(FakeHost::default());
    let custodian = Custodian::open(host.clone(), temp.path()).unwrap();
    let mut volume = Volume::create(&custodian, &virtual_spec(temp.path()), &slot(temp.path())).unwrap();
    volume.remount_cold().unwrap();
    let world = host.world();
    let last = |name| world.calls.iter().rposition(|call| *call == name).unwrap();
    let (unmount, mount) = (last("unmount"), last("mount"));
    let drops = world.cache_drops.lock().unwrap().clone();
    // The mount reads the journal into the cache again.
    let [before, after] = drops[..] else { panic!("{drops:?}") };
    assert!(unmount < before && before <= mount && mount < after, "{drops:?} in {:?}", world.calls);
}

#[test]
fn an_unserved_disk_is_aborted_before_its_unmount() {
    let temp = tempfile::tempdir().unwrap();
    let host = Arc::new(FakeHost::default());
    let custodian = Custodian::open(host.clone(), temp.path()).unwrap();
    let volume = Volume::create(&custodian, &virtual_spec(temp.path()), &slot(temp.path())).unwrap();
    host.world().disks.values_mut().for_each(|disk| disk.1 = false);
    let before = host.world().calls.len();
    drop(volume);
    let calls = host.world().calls[before..].to_vec();
    let at = |name| calls.iter().position(|call| *call == name).unwrap();
    assert!(at("abort_disk") < at("unmount"), "{calls:?}");
    assert!(host.is_clean());
}

#[test]
fn nothing_stays_after_any_failed_call() {
    SPECS.into_iter().for_each(whichever_call_fails);
}

fn whichever_call_fails(spec: fn(&Path) -> VolumeSpec) {
    let mut failures = 0;
    for at in 0..calls_of_a_life(spec) {
        let temp = tempfile::tempdir().unwrap();
        let host = Arc::new(FakeHost::default());
        *host.fault.lock().unwrap() = Fault::Once(at);
        let custodian = Custodian::open(host.clone(), temp.path()).unwrap();
        failures += usize::from(life(&custodian, temp.path(), spec).is_err());
        let call = host.world().calls[at];
        // Dropping the custodian removes the rest.
        drop(custodian);
        assert!(host.is_clean(), "call {at} ({call}) failed, and left {:?}", host.world());
        host.owner_lives.store(false, Ordering::SeqCst);
        assert_eq!(clean(&*host, temp.path(), CleanMode::Act).unwrap(), [], "call {at} ({call})");
    }
    assert!(failures > 15, "the failures are seen: {failures}");
}

#[test]
fn cleaning_after_any_kill_removes_everything() {
    SPECS.into_iter().for_each(wherever_we_are_killed);
}

fn wherever_we_are_killed(spec: fn(&Path) -> VolumeSpec) {
    for at in 0..=calls_of_a_life(spec) {
        let temp = tempfile::tempdir().unwrap();
        let host = Arc::new(FakeHost::default());
        *host.fault.lock().unwrap() = Fault::Death(at);
        let custodian = Custodian::open(host.clone(), temp.path()).unwrap();
        let _ = life(&custodian, temp.path(), spec);
        drop(custodian);
        // Foreign objects, which the cleaner must not touch.
        *host.fault.lock().unwrap() = Fault::None;
        let theirs = temp.path().join("theirs.img");
        crate::Host::create_file(&*host, &theirs, Bytes(1)).unwrap();
        let device = crate::Host::attach_loop(&*host, &theirs).unwrap();
        crate::Host::mount(&*host, &device.path, Path::new("/theirs"), FileSystemKind::Ext4, "").unwrap();

        assert!(matches!(clean(&*host, temp.path(), CleanMode::Act), Err(Error::OwnerAlive { pid: 1, .. })));
        host.owner_lives.store(false, Ordering::SeqCst);
        clean(&*host, temp.path(), CleanMode::Act).unwrap();
        let world = host.world();
        assert_eq!(world.files.keys().collect::<Vec<_>>(), [&theirs], "killed at call {at}");
        assert_eq!(world.loops.len(), 1, "killed at call {at}");
        assert!(world.disks.is_empty(), "killed at call {at}");
        assert_eq!(world.mounts.len(), 1, "killed at call {at}");
        drop(world);
        assert_eq!(clean(&*host, temp.path(), CleanMode::Act).unwrap(), [], "the second time there is nothing to do");
        Custodian::open(host.clone(), temp.path()).unwrap();
    }
}

#[test]
fn nothing_is_mounted_without_a_proved_mkfs() {
    for (claims, works) in [(false, false), (true, false)] {
        let temp = tempfile::tempdir().unwrap();
        let host = Arc::new(FakeHost::default());
        host.world().mkfs_claims = claims;
        host.world().mkfs_works = works;
        let custodian = Custodian::open(host.clone(), temp.path()).unwrap();
        let error = Volume::create(&custodian, &spec(temp.path()), &slot(temp.path())).unwrap_err();
        match error {
            Error::ToolFailed { stderr, .. } => assert_eq!((claims, stderr.as_str()), (false, "it did not work")),
            Error::Unverified { operation, .. } => assert_eq!((claims, operation), (true, "mkfs")),
            other => panic!("{other}"),
        }
        assert!(!host.world().calls.contains(&"mount"));
        assert!(host.is_clean() && custodian.held().is_empty());
    }
}

#[test]
fn an_unfit_machine_is_refused_before_any_work() {
    let temp = tempfile::tempdir().unwrap();
    let cases = [
        FakeHost { is_root: false, ..FakeHost::default() },
        FakeHost { kernel_knows: false, ..FakeHost::default() },
        FakeHost { free: Bytes(1), ..FakeHost::default() },
    ];
    for (index, host) in cases.into_iter().enumerate() {
        let dir = temp.path().join(index.to_string());
        fs::create_dir(&dir).unwrap();
        let host = Arc::new(host);
        let custodian = Custodian::open(host.clone(), &dir).unwrap();
        let error = Volume::create(&custodian, &spec(&dir), &slot(&dir)).unwrap_err();
        assert!(error.is_environment() && error.hint().is_some(), "{error}");
        assert!(!host.world().calls.contains(&"create_file"));
    }
}

#[test]
fn busy_mounts_are_detached_only_after_waiting() {
    for (busy, want) in [(3, Outcome::Removed), (1000, Outcome::DetachedLazily)] {
        let temp = tempfile::tempdir().unwrap();
        let host = Arc::new(FakeHost::default());
        let custodian = Custodian::open(host.clone(), temp.path()).unwrap();
        let _volume = Volume::create(&custodian, &spec(temp.path()), &slot(temp.path())).unwrap();
        host.world().busy = busy;
        let actions = custodian.release_all();
        assert_eq!(actions[0].outcome, want);
        assert!(host.is_clean());
    }
}

#[test]
fn only_the_recording_of_that_name_is_unmounted() {
    for (source, want) in [("senesce-record:1-2-fake", Some("recording at /rec: removed")), ("tmpfs", None)] {
        let temp = tempfile::tempdir().unwrap();
        let host = Arc::new(FakeHost::default());
        let custodian = Custodian::open(host.clone(), temp.path()).unwrap();
        let name = "senesce-record:1-2-fake".to_owned();
        let resource = Resource::Mount { point: "/rec".into(), source: MountSource::Recording { name } };
        let mount = |host: &dyn crate::Host| {
            crate::Host::mount(host, Path::new(source), Path::new("/rec"), FileSystemKind::Ext4, "")
        };
        custodian.acquire(resource, mount).unwrap();
        let reported = custodian.release_all()[0].to_string();
        assert_eq!(
            want.unwrap_or(
                "recording at /rec: not removed, because nothing proves that this run made it: tmpfs is mounted on /rec"
            ),
            reported
        );
        assert_eq!(host.is_clean(), want.is_some());
    }
}

#[test]
fn an_unconfirmed_file_is_known_by_its_name() {
    for (name, gone) in [("v.1-2-fake.img", true), ("precious.img", false)] {
        let temp = tempfile::tempdir().unwrap();
        let host = Arc::new(FakeHost::default());
        drop(Custodian::open(host.clone(), temp.path()).unwrap());
        let path = temp.path().join(name);
        crate::Host::create_file(&*host, &path, Bytes(1)).unwrap();
        let journal = temp.path().join(JOURNAL_FILE_NAME);
        let mut text = fs::read_to_string(&journal).unwrap();
        let entry =
            format!("{{\"event\":\"acquire\",\"id\":0,\"resource\":{{\"kind\":\"file\",\"path\":{path:?}}}}}\n");
        text.push_str(&entry);
        fs::write(&journal, text).unwrap();
        host.owner_lives.store(false, Ordering::SeqCst);
        let actions = clean(&*host, temp.path(), CleanMode::Act).unwrap();
        assert_eq!(matches!(actions[0].outcome, Outcome::Removed), gone, "{actions:?}");
        assert_eq!(host.is_clean(), gone);
    }
}

#[test]
fn a_journal_that_others_can_write_is_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let temp = tempfile::tempdir().unwrap();
    let host = Arc::new(FakeHost::default());
    drop(Custodian::open(host.clone(), temp.path()).unwrap());
    host.owner_lives.store(false, Ordering::SeqCst);
    let journal = temp.path().join(JOURNAL_FILE_NAME);
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(clean(&*host, temp.path(), CleanMode::Act), Err(Error::ForeignJournal { .. })));
    // A link is not followed either. Without a check, its target without a complete line would be
    // cut to nothing.
    fs::remove_file(&journal).unwrap();
    let precious = temp.path().join("precious");
    fs::write(&precious, "no newline").unwrap();
    symlink(&precious, &journal).unwrap();
    assert!(clean(&*host, temp.path(), CleanMode::Act).is_err());
    assert!(Custodian::open(host, temp.path()).is_err());
    assert_eq!(fs::read_to_string(&precious).unwrap(), "no newline");
}

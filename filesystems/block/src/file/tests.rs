//! Lost writes of block devices, and memory of long requests.

use senesce_testkit::{FailingDisk, root_or_skip};

use super::*;

#[test]
fn a_lost_write_does_not_fail_reads_elsewhere() {
    const LONG: usize = LONG_READ + 4096;
    if !root_or_skip("loop devices") {
        return;
    }
    let disk = FailingDisk::new(8, 64);
    let device = FileDevice::open(Path::new(&disk.device), Bytes(8 << 20), FileOptions::default()).unwrap();
    device.write_at(0, &[1; 256 << 10]).unwrap();
    // Loses pages of the write, so that the device has an error.
    rustix::fs::fadvise(&device.file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    disk.await_writes(64);
    device.write_at(4 << 20, &[0; 4096]).unwrap();
    let mut out = vec![1; LONG];
    device.read_at(4 << 20, &mut out).unwrap();
    assert!(out.iter().all(|byte| *byte == 0));
    assert!(device.flush().is_err());
}

#[test]
fn a_new_user_sees_what_the_device_has() {
    if !root_or_skip("loop devices") {
        return;
    }
    for has_seen_it in [false, true] {
        see_what_the_device_has(has_seen_it);
    }
}

fn see_what_the_device_has(has_seen_it: bool) {
    let disk = FailingDisk::new(8, 64);
    let open = || FileDevice::open(Path::new(&disk.device), Bytes(8 << 20), FileOptions::default());
    // Otherwise the kernel drops all pages between the two users.
    let _another = File::open(&disk.device).unwrap();
    let before = open().unwrap();
    before.write_at(0, &[1; 256 << 10]).unwrap();
    // Starts the writeback, as the kernel does in the background.
    rustix::fs::fadvise(&before.file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    disk.await_writes(64);
    if has_seen_it {
        assert!(before.flush().is_err());
    }
    drop(before);
    let after = open().unwrap();
    let mut last = [2; 4096];
    after.read_at(252 << 10, &mut last).unwrap();
    assert!(last.iter().all(|byte| *byte == 0), "the device has no space for it");
    after.flush().unwrap();
    after.write_durably_at(0, &[3; 512]).unwrap();
}

#[test]
fn memory_of_long_requests_is_bounded() {
    if !root_or_skip("loop devices") {
        return;
    }
    let disk = FailingDisk::new(8, 1 << 20);
    let device = FileDevice::open(Path::new(&disk.device), Bytes(8 << 20), FileOptions::default()).unwrap();
    let all = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            // All threads have a buffer at the same time.
            scope.spawn(|| device.with_aligned(LONG_READ, |_| all.wait()));
        }
    });
    assert_eq!(lock(&device.buffers).len(), KEPT_BUFFERS);
}

#[test]
fn lost_writes_fail_flushes_and_durable_writes() {
    if !root_or_skip("loop devices") {
        return;
    }
    let disk = FailingDisk::new(1, 64);
    let path = Path::new(&disk.device);
    let device = FileDevice::open(path, Bytes(1 << 20), FileOptions::default()).unwrap();
    device.write_at(0, &[1; 256 << 10]).unwrap();
    // As if both calls started before either failed.
    assert!(device.flush().is_err());
    device.failed.store(false, Ordering::SeqCst);
    assert!(device.write_durably_at(0, &[2; 4096]).is_err());
    device.failed.store(false, Ordering::SeqCst);
    // The kernel does not report it a third time, so `failed` keeps it.
    assert!(device.flush().is_ok());
    device.failed.store(true, Ordering::SeqCst);
    assert!(device.flush().is_err());
    assert!(device.write_durably_at(0, &[2; 4096]).is_err());
}
